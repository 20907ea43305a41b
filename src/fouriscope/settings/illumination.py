"""Where the light comes from: the kinds of the section [illumination]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fouriscope.optics.spiral import Start
from fouriscope.settings.base import Count, Finite, Pair, Positive, Radius, RefractiveIndex, Section, Thickness


class _Lights(Section):
    patterns: str | None = Field(
        default=None,
        description="a file that says which LEDs shine in which frame, if a frame has several (docs/sources.md)",
    )


class _LEDs(_Lights):
    height: Positive = Field(description="distance from the LEDs to the sample")
    rotation: Finite = Field(default=0.0, description="rotation of the array, in radians")
    offset: Pair = Field(default=(0.0, 0.0), description="displacement (y, x) of the array")
    slide_thickness: Thickness = Field(default=0.0, description="thickness of glass between LEDs and sample")
    slide_index: RefractiveIndex = Field(default=1.52, description="refractive index of that glass")
    die: Thickness = Field(
        default=0.0, description="size of the part of an LED that shines: side or diameter; 0 is a point"
    )
    die_shape: Literal["square", "round"] = Field(default="square", description="shape of that part (docs/sources.md)")


class SquareSection(_LEDs):
    """rows × columns LEDs on a square lattice."""

    kind: Literal["square"]
    shape: tuple[Count, Count] = Field(description="[rows, columns]")
    pitch: Positive = Field(description="distance from LED to LED")


class DiscSection(_LEDs):
    """the LEDs of a square lattice within a radius."""

    kind: Literal["disc"]
    pitch: Positive = Field(description="distance from LED to LED")
    radius: Positive = Field(description="radius of the disc, in pitches")


class SpiralSection(_LEDs):
    """the LEDs of a square lattice from the centre outwards.

    A spiral of odd size begins in the middle. One of even size begins at the central LED from which its first two steps
    go around the middle.
    """

    kind: Literal["spiral"]
    size: Count = Field(description="LEDs along a side")
    pitch: Positive = Field(description="distance from LED to LED")
    count: Count | None = Field(default=None, description="how many LEDs are lit, counted from the start; default: all")
    start: Start = Field(
        default="right", description="direction of the first step, as a frame is shown, with its rows downwards"
    )
    clockwise: bool = Field(default=True, description="whether the spiral turns clockwise, as a frame is shown")


class RingsSection(_LEDs):
    """LEDs on rings."""

    kind: Literal["rings"]
    radii: tuple[Radius, ...] = Field(description="radii of the rings")
    counts: tuple[int, ...] = Field(description="number of LEDs on each ring")
    start_angle: Finite = Field(default=0.0, description="angle of the first LED of each ring, in radians")


class PositionsSection(_LEDs):
    """LEDs anywhere in a plane."""

    kind: Literal["positions"]
    positions: tuple[Pair, ...] = Field(description="[[y, x], …], in the order of the frames")


class DirectionsSection(_Lights):
    """directions instead of positions."""

    kind: Literal["directions"]
    na: tuple[Pair, ...] = Field(description="[[na_y, na_x], …], in the order of the frames")
    height: Positive | None = Field(
        default=None, description="height of the LEDs, if it is known; `offset` and `patch_center` need it"
    )
    rotation: Finite = Field(default=0.0, description="rotation of the directions, in radians")
    offset: Pair = Field(default=(0.0, 0.0), description="displacement (y, x) of the LEDs")


class FileSection(_Lights):
    """a CSV with one line per frame."""

    kind: Literal["file"]
    path: str = Field(description="its header says `na_y,na_x`, or `y,x` in metres, or `row,column`, with `pitch`")
    height: Positive | None = Field(
        default=None, description="distance from the LEDs to the sample, unless the file holds directions"
    )
    pitch: Positive | None = Field(default=None, description="distance from LED to LED, for `row,column`")
    rotation: Finite = Field(default=0.0, description="rotation of the array, in radians")
    offset: Pair = Field(default=(0.0, 0.0), description="displacement (y, x) of the array")
    slide_thickness: Thickness = Field(default=0.0, description="thickness of glass between LEDs and sample")
    slide_index: RefractiveIndex = Field(default=1.52, description="refractive index of that glass")
    die: Thickness = Field(
        default=0.0, description="size of the part of an LED that shines: side or diameter; 0 is a point"
    )
    die_shape: Literal["square", "round"] = Field(default="square", description="shape of that part (docs/sources.md)")


ILLUMINATIONS: dict[str, type[Section]] = {
    "square": SquareSection,
    "disc": DiscSection,
    "spiral": SpiralSection,
    "rings": RingsSection,
    "positions": PositionsSection,
    "directions": DirectionsSection,
    "file": FileSection,
}
IlluminationSection = Annotated[
    SquareSection | DiscSection | SpiralSection | RingsSection | PositionsSection | DirectionsSection | FileSection,
    Field(discriminator="kind"),
]
