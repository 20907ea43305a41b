"""Three wavelengths of one microscope: the section [colour], which is added to an ordinary description."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fouriscope.acquisition.colours import Colour
from fouriscope.settings.base import Pair, Positive, Section, Thickness


class Channel(Section):
    """[colour.red], [colour.green] and [colour.blue]: what differs from channel to channel.

    Examples
    --------
    >>> Channel(wavelength=470e-9, frames={"path": "blue.tif"}).offset
    (0.0, 0.0)
    """

    wavelength: Positive = Field(description="λ of this channel, instead of `microscope.wavelength`")
    bandwidth: Thickness = Field(default=0.0, description="full width at half maximum of its light, in metres")
    offset: Pair = Field(
        default=(0.0, 0.0), description="(y, x) of this colour's dies from those of the reference, in metres"
    )
    frames: dict[str, Any] = Field(
        default_factory=dict,
        description="the keys of [frames] that differ. Without `path`, `pattern`, `files` or `dataset`, the channel "
        "reads the plane of its colour from the frames that all channels share",
    )


class ColourSection(Section):
    """[colour]: three channels with one geometry."""

    red: Channel = Field(description="[colour.red]")
    green: Channel = Field(description="[colour.green]")
    blue: Channel = Field(description="[colour.blue]")
    reference: Colour = Field(
        default="green", description="the channel that aligns the array, and to which the others are registered"
    )

    @property
    def channels(self) -> dict[Colour, Channel]:
        """The channels by name, the reference first."""
        by_name: dict[Colour, Channel] = {"red": self.red, "green": self.green, "blue": self.blue}
        return {self.reference: by_name[self.reference]} | by_name
