"""LEDs in a CSV file: one line per frame, in the order of the frames."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import read_text
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Directions, GlassSlide, Illumination, LEDArray
from fouriscope.optics.die import DieShape

TableKind = Literal["na", "positions", "grid"]
COLUMNS: dict[TableKind, tuple[str, str]] = {"na": ("na_y", "na_x"), "positions": ("y", "x"), "grid": ("row", "column")}


@dataclass(frozen=True, eq=False)
class LEDTable:
    """One pair (y, x) per LED: directions in NA ("na"), metres ("positions"), or steps of a lattice ("grid").

    x runs along the columns of a frame and y along its rows. An LED at +x lights the sample so that the frame shows
    the object's spectrum around +na_x/λ.
    """

    kind: TableKind
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64)
        if values.ndim != 2 or values.shape[1] != 2 or not np.isfinite(values).all():
            raise InvalidInputError(f"LEDs must be finite pairs (y, x), got shape {values.shape}")
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.values)

    def illumination(
        self,
        *,
        height: float | None = None,
        pitch: float | None = None,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> Illumination:
        """The light source: positions and lattices with the ``height`` of the array, directions as they are.

        Directions can be turned by a ``rotation``, and moved by an ``offset`` if the height is known.
        """
        if self.kind == "na":
            if pitch is not None or slide is not None or die:
                raise InvalidInputError(
                    "LEDs given as directions in NA take no pitch, slide_thickness or die: these are for LEDs with "
                    "positions"
                )
            if height is None and offset != (0.0, 0.0):
                raise InvalidInputError(
                    "illumination.height is missing: an offset in metres needs the height of the LEDs, in metres"
                )
            if not rotation and offset == (0.0, 0.0):
                return Directions(self.values, height=height)
            placed = LEDArray.from_directions(self.values, 1.0 if height is None else height)
            moved = placed.moved(turn=rotation, shift=offset)
            return moved if height is not None else Directions(moved.directions())
        if height is None:
            raise InvalidInputError("illumination.height is missing: LEDs with positions need it, in metres")
        if (self.kind == "grid") != (pitch is not None):
            raise InvalidInputError(
                "illumination.pitch is missing: LEDs counted in rows and columns need it, in metres"
                if pitch is None
                else "illumination.pitch belongs to LEDs counted in rows and columns; these have positions in metres"
            )
        positions = self.values if pitch is None else self.values * pitch
        return LEDArray.at(
            positions, height, rotation=rotation, offset=offset, slide=slide, die=die, die_shape=die_shape
        )

    def text(self) -> str:
        """The table as CSV, with as many digits as the numbers have.

        >>> print(LEDTable("grid", np.array([[0, 0], [0, 1]])).text())
        row,column
        0,0
        0,1
        <BLANKLINE>
        """
        lines = [",".join(COLUMNS[self.kind])]
        lines += [",".join(repr(float(value)).removesuffix(".0") for value in pair) for pair in self.values]
        return "\n".join(lines) + "\n"


def read_led_table(path: Path) -> LEDTable:
    """Read a CSV whose header names the columns: na_y, na_x, or y, x in metres, or row, column; others are ignored."""
    text = read_text(path, "a table of LEDs")
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidInputError(f"{path}: cannot be read as a table of LEDs ({error})") from error
    header = [name.strip().lower().removesuffix("_m") for name in rows[0]] if rows else []
    for kind, names in COLUMNS.items():
        if set(names) <= set(header):
            places = [header.index(name) for name in names]
            values = np.array([_pair(path, number, row, places) for number, row in enumerate(rows[1:], start=2)])
            if not len(values):
                raise InvalidInputError(f"{path}: there is no LED below the header")
            return LEDTable(kind, values)
    wanted = " or ".join(", ".join(names) for names in COLUMNS.values())
    raise InvalidInputError(
        f"{path}: the first line must name the columns {wanted}, got {','.join(header) or 'nothing'}"
    )


def _pair(path: Path, number: int, row: list[str], places: list[int]) -> tuple[float, float]:
    try:
        y, x = (float(row[place]) for place in places)
    except (ValueError, IndexError):
        y = x = np.nan
    if not (np.isfinite(y) and np.isfinite(x)):
        raise InvalidInputError(f"{path}: line {number} must hold two finite numbers, got {','.join(row)!r}")
    return y, x
