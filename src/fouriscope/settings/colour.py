"""Three wavelengths of one microscope: the section [colour], which stands beside those of an ordinary description."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fouriscope.acquisition.colours import Colour
from fouriscope.settings.base import Pair, Positive, Section, Thickness


class Channel(Section):
    """[colour.red], [colour.green] and [colour.blue]: what a channel has of its own.

    >>> Channel(wavelength=470e-9, frames={"path": "blue.tif"}).offset
    (0.0, 0.0)
    """

    wavelength: Positive = Field(description="λ of this channel, instead of `microscope.wavelength`")
    bandwidth: Thickness = Field(default=0.0, description="of its light: full width at half maximum")
    offset: Pair = Field(
        default=(0.0, 0.0), description="(y, x) of this colour's dies beside those of the reference, in metres"
    )
    frames: dict[str, Any] = Field(
        default_factory=dict,
        description="keys of [frames] that differ; without `path`, `pattern`, `files` or `dataset` it is the plane of "
        "this colour of the frames that all share",
    )


class ColourSection(Section):
    """[colour]: three channels with one geometry."""

    red: Channel = Field(description="[colour.red]")
    green: Channel = Field(description="[colour.green]")
    blue: Channel = Field(description="[colour.blue]")
    reference: Colour = Field(
        default="green", description="the channel that the array is aligned with, and the others are registered to"
    )

    @property
    def channels(self) -> dict[Colour, Channel]:
        """By their names, the reference first."""
        by_name: dict[Colour, Channel] = {"red": self.red, "green": self.green, "blue": self.blue}
        return {self.reference: by_name[self.reference]} | by_name
