"""Optics and illumination compiled into grids: which part of the object's spectrum reaches which frame.

Indices of frequency are whole numbers that are 0 at DC. The field of source i is the inverse transform of pupil × a
crop of the object's spectrum around its direction. The crop takes the object's bins n = m + whole_bins[i] to the
frame's bins m, and the pupil is evaluated at (m − fractions[i])·du: the crop stays on whole bins and no direction is
rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import require_point
from fouriscope.optics.frame_sources import frame_sources, largest_na
from fouriscope.optics.grid_shapes import Band, automatic_object_shape, require_margin, require_shape
from fouriscope.optics.illumination import Illumination
from fouriscope.optics.objective import Optics
from fouriscope.optics.patterns import lit_leds
from fouriscope.optics.sources import Sources

# The disc is tested in cycles per metre and the box is computed in bins; this is more than their rounding can differ.
_ROUNDING = 1e-9


class SupportBox(NamedTuple):
    """The frame bins row0 ≤ m < row0 + height, col0 ≤ m < col0 + width, outside which every pupil is zero.

    Attributes
    ----------
    row0, col0
        The first row and the first column of the box.
    height, width
        Its size in bins.
    """

    row0: int
    col0: int
    height: int
    width: int


@dataclass(frozen=True, eq=False)
class Geometry:
    """Everything the forward model needs to know about space and frequency; make it with :meth:`compile`.

    Attributes
    ----------
    optics
        The microscope.
    na
        (N, 2) directions (na_y, na_x) at this patch, one per frame: that of the middle of its LED, or, if it has
        several LEDs, of the one nearest to the axis.
    frame_shape
        (rows, columns) of a measured frame.
    margin
        Frame pixels on every side that are estimated but not measured, because a sample continues beyond its frame.
    object_shape
        (rows, columns) of the reconstructed object, margin included.
    patch_center
        (y, x) in metres from the optical axis.
    sources
        The coherent sources of the frames; by default one for each LED.
    led_na
        (L, 2) directions of the LEDs that shine; by default those of the frames, which have one LED each.

    Examples
    --------
    >>> from fouriscope.optics.illumination import LEDArray
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    >>> geometry = Geometry.compile(optics, leds, (100, 100))
    >>> geometry.object_shape, int(geometry.bright_field.sum()), round(geometry.synthetic_na, 3)
    ((500, 500), 37, 0.677)
    """

    optics: Optics
    na: NDArray[np.float64]
    frame_shape: tuple[int, int]
    margin: int
    object_shape: tuple[int, int]
    patch_center: tuple[float, float] = (0.0, 0.0)
    sources: Sources = field(default_factory=lambda: Sources.points(np.zeros((0, 2))))
    led_na: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))

    @classmethod
    def compile(
        cls,
        optics: Optics,
        illumination: Illumination,
        frame_shape: tuple[int, int],
        *,
        margin: int = 0,
        object_shape: tuple[int, int] | Literal["auto"] = "auto",
        band: Band = "intensity",
        patch_center: tuple[float, float] = (0.0, 0.0),
        sources: Sources | None = None,
    ) -> Geometry:
        """Compute the directions at the patch, choose the object's shape unless it is given, and check that all fits.

        An automatic shape holds the ``band`` of the intensity, or of the field alone. ``sources`` replaces those that
        follow from the illumination.

        Raises
        ------
        InvalidInputError
            If the camera undersamples the field, or if an LED reaches beyond the object's spectrum.
        """
        center = require_point("patch_center", patch_center)
        na = illumination.directions(center)
        frame = require_shape("frame_shape", frame_shape)
        border = require_margin(margin)
        if isinstance(object_shape, str):
            if object_shape != "auto":
                raise InvalidInputError(f"object_shape must be 'auto' or (rows, columns), got {object_shape!r}.")
            grid = (frame[0] + 2 * border, frame[1] + 2 * border)
            largest = largest_na(illumination, optics, center)
            object_shape = automatic_object_shape(optics, largest, grid, band)
        leds, lit = lit_leds(illumination)
        if sources is None:
            sources = frame_sources(illumination, optics, center)
        elif len(sources.offsets) != len(na) + 1:
            raise InvalidInputError(
                f"a model of {len(na)} frames needs sources for all of them, got {len(sources.offsets) - 1}"
            )
        return cls(optics, na, frame, border, object_shape, center, sources, leds.directions(center)[lit])

    def __post_init__(self) -> None:
        na = np.array(self.na, dtype=np.float64)
        if na.ndim != 2 or na.shape[1] != 2 or len(na) == 0 or not np.isfinite(na).all():
            raise InvalidInputError(f"na must be a finite (N, 2) array of (na_y, na_x), got shape {na.shape}.")
        object.__setattr__(self, "na", _read_only(na))
        if not len(self.sources):
            object.__setattr__(self, "sources", Sources.points(self.na))
        if not len(self.led_na):
            object.__setattr__(self, "led_na", self.na)
        object.__setattr__(self, "frame_shape", require_shape("frame_shape", self.frame_shape))
        object.__setattr__(self, "margin", require_margin(self.margin))
        object.__setattr__(self, "object_shape", require_shape("object_shape", self.object_shape))
        object.__setattr__(self, "patch_center", require_point("patch_center", self.patch_center))
        self._check_camera()
        self._check_object()

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of a frame with its margins."""
        return self.frame_shape[0] + 2 * self.margin, self.frame_shape[1] + 2 * self.margin

    @property
    def frequency_step(self) -> tuple[float, float]:
        """du of each axis, in cycles per metre: 1/(grid·pixel). Frame and object share it."""
        rows, columns = self.grid_shape
        return 1 / (rows * self.optics.pixel), 1 / (columns * self.optics.pixel)

    @property
    def object_pixel(self) -> tuple[float, float]:
        """Pixel of the object on each axis, in metres: pixel·grid/object."""
        rows, columns = self.grid_shape
        return self.optics.pixel * rows / self.object_shape[0], self.optics.pixel * columns / self.object_shape[1]

    @cached_property
    def illumination_na(self) -> NDArray[np.float64]:
        """(N,) |na| of each frame's LED, or, if it has several, of the one nearest to the axis."""
        return _read_only(np.hypot(self.na[:, 0], self.na[:, 1]))

    @property
    def synthetic_na(self) -> float:
        """max|na| of the LEDs + NA, which bounds the resolution of the object."""
        return float(np.hypot(self.led_na[:, 0], self.led_na[:, 1]).max()) + self.optics.na

    @cached_property
    def outer_na(self) -> NDArray[np.float64]:
        """(N,) |na| of each frame's source that is farthest from the axis: it limits the detail of the frame."""
        sizes = np.hypot(self.sources.na[:, 0], self.sources.na[:, 1])
        return _read_only(np.maximum.reduceat(sizes, self.sources.offsets[:-1]))

    @property
    def is_multiplexed(self) -> bool:
        """Whether the frames are lit by several LEDs, and have no directions of their own."""
        return not np.array_equal(self.led_na, self.na)

    @property
    def bright_field(self) -> NDArray[np.bool_]:
        """(N,) whether direct light passes the pupil: that of (the middle of) a frame's LED, or of one of several."""
        return self.optics.passes(self.illumination_na)

    @cached_property
    def direct_light(self) -> NDArray[np.float64]:
        """(N,) the share of each LED's direct light that passes the pupil: 1 in bright field, 0 in dark field, and
        between them if an LED with a size lies across the pupil's edge."""
        return _read_only(self.sources.direct_light(self.optics))

    @cached_property
    def shifts(self) -> NDArray[np.float64]:
        """(M, 2) direction of each source in bins of (row, column) frequency: na/λ_m/du."""
        at_own = self.sources.na * self.sources.scales[:, None]
        return _read_only(at_own / self.optics.wavelength / np.asarray(self.frequency_step))

    @cached_property
    def whole_bins(self) -> NDArray[np.int64]:
        """(M, 2) the shifts rounded to whole bins (halves to even): where each source's crop is centred."""
        bins = np.rint(self.shifts).astype(np.int64)
        bins.setflags(write=False)
        return bins

    @cached_property
    def fractions(self) -> NDArray[np.float64]:
        """(M, 2) shifts − whole_bins, from −½ to ½: by how much each source's pupil moves within its crop."""
        return _read_only(self.shifts - self.whole_bins)

    @cached_property
    def support_box(self) -> SupportBox:
        """The smallest box of frame bins that bounds the pupil discs of all sources, each moved by its fraction."""
        radius = self.sources.scales[:, None] * (self.optics.cutoff / np.asarray(self.frequency_step))
        lowest = np.ceil((self.fractions - radius).min(axis=0) - _ROUNDING).astype(int)
        highest = np.floor((self.fractions + radius).max(axis=0) + _ROUNDING).astype(int)
        height, width = highest - lowest + 1
        return SupportBox(int(lowest[0]), int(lowest[1]), int(height), int(width))

    @property
    def object_window(self) -> tuple[slice, slice]:
        """Slices of the object that show the measured frame, the margins cut off, rounded to whole object pixels."""
        rows, columns = (
            slice(round(self.margin * fine / grid), round((self.margin + frame) * fine / grid))
            for fine, grid, frame in zip(self.object_shape, self.grid_shape, self.frame_shape, strict=True)
        )
        return rows, columns

    def _check_camera(self) -> None:
        box, grid = self.support_box, self.grid_shape
        if box.height <= grid[0] and box.width <= grid[1]:
            return
        # A disc anywhere within half a bin covers up to 2R + 2 bins, which leaves this much of λ/(2NA).
        nyquist = self.optics.nyquist_field_pixel
        usable = nyquist * (1 - 2 / min(grid))
        raise InvalidInputError(
            f"the camera undersamples the field: the pupil needs {box.height} × {box.width} frequency bins, but the "
            f"frame has {grid[0]} × {grid[1]}. The pixel at the sample is {self.optics.pixel * 1e6:.4g} µm and may be "
            f"at most {usable * 1e6:.4g} µm here (λ/(2NA) = {nyquist * 1e6:.4g} µm less two bins); "
            f"use a magnification of at least {self.optics.camera_pixel / usable:.4g} or a smaller camera pixel."
        )

    def _check_object(self) -> None:
        grid, shape = self.grid_shape, self.object_shape
        if shape[0] < grid[0] or shape[1] < grid[1]:
            raise InvalidInputError(
                f"object_shape must be at least the frame with its margins, {grid}, got {shape}; "
                "use object_shape='auto' or a larger shape."
            )
        box, size = self.support_box, np.asarray(shape)
        first = self.whole_bins + np.array([box.row0, box.col0])
        last = first + np.array([box.height, box.width]) - 1
        beyond = np.any((first < -(size // 2)) | (last > (size - 1) // 2), axis=1)
        if not beyond.any():
            return
        source = int(np.argmax(np.where(beyond, np.hypot(*self.sources.na.T), -1)))
        led, at = int(self.sources.frames[source]), self.sources.na[source]
        limits = (size - 1) // 2 * np.asarray(self.frequency_step) * self.optics.wavelength
        needed = np.maximum(np.maximum(-2 * first, 2 * last + 1).max(axis=0), grid).tolist()
        raise InvalidInputError(
            f"LED {led} at (na_y, na_x) = ({at[0]:.4f}, {at[1]:.4f}) with the objective's NA "
            f"{self.optics.na:g} reaches outside the object's spectrum, which for shape {shape} ends at NA "
            f"({limits[0]:.4f}, {limits[1]:.4f}); the smallest object_shape that is large enough is {tuple(needed)}."
        )


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.setflags(write=False)
    return array
