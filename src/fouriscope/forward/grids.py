"""Where everything lies: the grids of frames and object, and each source's box in the object's spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import numbers
from fouriscope.errors import InvalidInputError
from fouriscope.forward.objects import ComplexArray
from fouriscope.optics import Geometry, Optics, OpticsReport, report_geometry

LEDs = Sequence[int] | NDArray[np.integer[Any]] | None


class Grids:
    """The part of a forward model that knows its geometry, and nothing of pupils and objects."""

    def _place(self, geometry: Geometry) -> None:
        """Compute where each source's box starts in the object's spectrum, in FFT layout (DC first)."""
        self.geometry = geometry
        self.sources = geometry.sources
        box = geometry.support_box
        self.box_rows = (geometry.whole_bins[:, 0] + box.row0) % geometry.object_shape[0]
        self.box_columns = (geometry.whole_bins[:, 1] + box.col0) % geometry.object_shape[1]

    def __len__(self) -> int:
        """Number of LEDs, which is the number of frames."""
        return len(self.geometry.na)

    @property
    def optics(self) -> Optics:
        return self.geometry.optics

    @property
    def frame_shape(self) -> tuple[int, int]:
        """The measured window, in camera pixels."""
        return self.geometry.frame_shape

    @property
    def object_shape(self) -> tuple[int, int]:
        """Pixels of the object, margin included."""
        return self.geometry.object_shape

    @property
    def object_pixel(self) -> tuple[float, float]:
        """(height, width) of an object pixel in metres."""
        return self.geometry.object_pixel

    @property
    def synthetic_na(self) -> float:
        """Largest illumination NA + objective NA: the aperture of the reconstruction."""
        return self.geometry.synthetic_na

    def report(self) -> OpticsReport:
        """What was compiled, in numbers, with warnings for a set-up that cannot work; print it."""
        return report_geometry(self.geometry)

    def led_indices(self, leds: LEDs) -> NDArray[np.int64]:
        """``leds`` as a checked index array; None means all."""
        if leds is None:
            return np.arange(len(self))
        indices = np.atleast_1d(numbers("leds", leds))
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise InvalidInputError(f"LEDs must be given as whole numbers, got {leds!r}")
        if indices.size and (indices.min() < 0 or indices.max() >= len(self)):
            raise InvalidInputError(
                f"LED numbers must lie in 0…{len(self) - 1}, got {int(indices.min())}…{int(indices.max())}"
            )
        return indices.astype(np.int64)

    def on_grid(self, name: str, array: ComplexArray) -> ComplexArray:
        """``array``, of an object's shape, or say that the argument ``name`` is none."""
        array = numbers(name, array)
        if array.shape != self.object_shape:
            raise InvalidInputError(f"{name}: the object has {self.object_shape} pixels, got {array.shape}")
        return array

    @property
    def window(self) -> tuple[slice, slice]:
        """The measured window inside the frame's grid (all of it without a margin)."""
        margin = self.geometry.margin
        return (slice(margin, margin + self.frame_shape[0]), slice(margin, margin + self.frame_shape[1]))

    def boxes(self, source: int) -> tuple[Any, Any]:
        """Index arrays of a source's box in the object's spectrum and of the support box in the frame's spectrum."""
        box = self.geometry.support_box
        rows, columns = np.arange(box.height), np.arange(box.width)
        place = np.ix_(
            (self.box_rows[source] + rows) % self.object_shape[0],
            (self.box_columns[source] + columns) % self.object_shape[1],
        )
        grid = self.geometry.grid_shape
        target = np.ix_((box.row0 + rows) % grid[0], (box.col0 + columns) % grid[1])
        return place, target


def seen_bins(geometry: Geometry) -> tuple[tuple[int, int], tuple[int, int]]:
    """(lowest, highest + 1) of the rows, and of the columns, of an object's spectrum that some source's box reaches.

    >>> from fouriscope.paper import paper_model
    >>> seen_bins(paper_model().geometry)
    ((-102, 103), (-102, 103))
    """
    box, bins = geometry.support_box, geometry.whole_bins
    (row, column), (last_row, last_column) = bins.min(axis=0).tolist(), bins.max(axis=0).tolist()
    return (
        (row + box.row0, last_row + box.row0 + box.height),
        (column + box.col0, last_column + box.col0 + box.width),
    )
