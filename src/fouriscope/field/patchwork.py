"""The forward model of a field that is too large for one set of angles: patches, each with its own angles, blended."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.grids import LEDs
from fouriscope.optics import Illumination, Optics, Pupil, automatic_object_shape
from fouriscope.optics.frame_sources import largest_na

Point = tuple[float, float]
PupilOverField = Pupil | Callable[[Point], Pupil]

SMALLEST_PITCH, SMALLEST_MARGIN, SMALLEST_FRAME = 8, 16, 8


@dataclass(frozen=True, eq=False)
class Patch:
    """Some rows and columns of the frames, and how much this patch contributes to each."""

    rows: slice
    columns: slice
    row_weights: NDArray[np.float32]
    column_weights: NDArray[np.float32]
    center: Point

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) in frame pixels."""
        return len(self.row_weights), len(self.column_weights)

    @property
    def weights(self) -> NDArray[np.float32]:
        """1 at the patch's centre, falling linearly to 0 at the centres of its neighbours."""
        return self.row_weights[:, None] * self.column_weights


class PatchworkModel:
    """Intensities of a large field, over which the angles of the LEDs change, and known aberrations too.

    A lattice of points lies over the frame. Around each of them, a :class:`ForwardModel` with the directions and the
    pupil of that point computes the frames of a patch. The intensities of the patches are interpolated bilinearly
    between the points. So angles change smoothly, and there is no edge where a patch ends.

    Two errors remain. An LED that leaves the pupil somewhere in the field fades out over one ``pitch`` instead of going
    dark at a line. And Fourier transforms repeat a patch beyond its ``margin``. The point spread function of a hard
    pupil has far rings, so this error falls slowly, with about the root of the margin: with the paper's microscope
    (97 LEDs), 256² frames and a phase of 0 to 0.3 rad, the doubled margin changes bright-field frames by 0.0027 rms of
    the empty bright field, where their contrast is 0.018 rms, and by 0.0033 in the outermost 16 pixels. From
    spherical waves in one large transform, frames with 16 pixels of margin differ up to twice as much as with 64;
    more than 64 gained little.

    Parameters
    ----------
    optics, illumination
        The microscope and its LEDs; the frame's centre lies on the optical axis.
    frame_shape
        (rows, columns) of the field in camera pixels.
    pupil
        A pupil for all the field, or a function of (y, x) in metres from the axis that gives the pupil there.
    pitch
        Frame pixels from one point of the lattice to the next.
    margin
        Frame pixels of the object around each patch, and so around the frame, that are simulated but not recorded.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = PatchworkModel(optics, fs.LEDArray.square(3, pitch=4e-3, height=70e-3), (96, 64))
    >>> model.scale, model.object_shape, len(list(model.patches()))
    (2, (384, 320), 12)
    >>> round(float(model.intensity(np.zeros(model.object_shape), leds=[4]).mean()), 4), model.object_window
    (1.0, (slice(96, 288, None), slice(96, 224, None)))
    """

    def __init__(
        self,
        optics: Optics,
        illumination: Illumination,
        frame_shape: tuple[int, int],
        *,
        pupil: PupilOverField | None = None,
        pitch: int = 32,
        margin: int = 48,
    ) -> None:
        if len(frame_shape) != 2:
            raise InvalidInputError(f"frame_shape must be (rows, columns) in camera pixels, got {frame_shape!r}")
        rows, columns = (_at_least("each side of frame_shape", size, SMALLEST_FRAME) for size in frame_shape)
        self.optics, self.illumination, self.frame_shape = optics, illumination, (rows, columns)
        self.pupil = Pupil() if pupil is None else pupil
        self.pitch = _at_least("pitch", pitch, SMALLEST_PITCH)
        self.margin = _at_least("margin", margin, SMALLEST_MARGIN)

    def __len__(self) -> int:
        """Number of LEDs."""
        return len(self.illumination)

    @cached_property
    def scale(self) -> int:
        """Object pixels per frame pixel, one number for the whole field: what its most oblique direction needs."""
        largest = max(largest_na(self.illumination, self.optics, patch.center) for patch in self.patches())
        grids = {(self._grown(patch.shape[0]), self._grown(patch.shape[1])) for patch in self.patches()}
        return max(automatic_object_shape(self.optics, largest, grid)[0] // grid[0] for grid in grids)

    @property
    def object_shape(self) -> tuple[int, int]:
        """Pixels of the simulated object: the frame and its margin."""
        rows, columns = self.frame_shape
        return self._grown(rows) * self.scale, self._grown(columns) * self.scale

    @property
    def object_window(self) -> tuple[slice, slice]:
        """The part of the object that the frames show."""
        rows, columns = ((self.margin * self.scale, (self.margin + size) * self.scale) for size in self.frame_shape)
        return slice(*rows), slice(*columns)

    def patches(self) -> Iterator[Patch]:
        """Every patch, in row-major order."""
        pixel = self.optics.pixel
        axes = (_hats(size, self.pitch) for size in self.frame_shape)
        for (rows, row_weights, y), (columns, column_weights, x) in product(*map(list, axes)):
            yield Patch(rows, columns, row_weights, column_weights, (y * pixel, x * pixel))

    def patch_model(self, patch: Patch) -> ForwardModel:
        """The microscope as it is at the centre of ``patch``."""
        shape = (self._grown(patch.shape[0]) * self.scale, self._grown(patch.shape[1]) * self.scale)
        return ForwardModel(
            self.optics,
            self.illumination,
            patch.shape,
            pupil=self.pupil(patch.center) if callable(self.pupil) else self.pupil,
            object_shape=shape,
            margin=self.margin,
            patch_center=patch.center,
        )

    def cut_out(self, phase: NDArray[np.float32], patch: Patch) -> NDArray[np.float32]:
        """The object of ``patch``, with the real object around it as its margin."""
        top, left = patch.rows.start * self.scale, patch.columns.start * self.scale
        height, width = (self._grown(size) * self.scale for size in patch.shape)
        return phase[top : top + height, left : left + width]

    def intensity(self, phase: NDArray[np.floating], leds: LEDs = None) -> NDArray[np.float32]:
        """Frames of ``phase`` (of ``object_shape``, in radians) for each LED of ``leds``, or all, as float32.

        Memory is that of the frames which are returned, and of one patch.
        """
        phase = self.check_phase(phase)
        frames: NDArray[np.float32] | None = None
        for patch in self.patches():
            model = self.patch_model(patch)
            indices = model.led_indices(leds)
            if frames is None:
                frames = np.zeros((len(indices), *self.frame_shape), np.float32)
            seen = model.intensity(self.cut_out(phase, patch), indices)
            seen *= patch.weights
            frames[:, patch.rows, patch.columns] += seen
        assert frames is not None, "every frame has patches"
        return frames

    def check_phase(self, phase: NDArray[np.floating]) -> NDArray[np.float32]:
        """The phase in single precision; raises if it does not fit this field."""
        phase = np.asarray(phase)
        if phase.dtype.kind not in "fiu" or phase.shape != self.object_shape:
            raise InvalidInputError(
                f"the phase must be a real array of shape {self.object_shape} ({self.scale} object pixels "
                f"per frame pixel, with {self.margin} frame pixels around the frame), got {phase.dtype} of shape "
                f"{phase.shape}; see PatchworkModel.object_shape"
            )
        bad = int(phase.size - np.count_nonzero(np.isfinite(phase)))
        if bad:
            raise InvalidInputError(f"the phase holds {bad} NaN or infinite values of {phase.size}; replace them first")
        return phase.astype(np.float32, copy=False)

    def _grown(self, size: int) -> int:
        return size + 2 * self.margin


def _hats(size: int, pitch: int) -> Iterator[tuple[slice, NDArray[np.float32], float]]:
    """Pixels, weights and place (in pixels from the middle) of the hat functions that add up to 1 on ``size`` pixels.

    >>> [(hat[0], hat[2]) for hat in _hats(17, 8)]
    [(slice(0, 8, None), -8.0), (slice(0, 16, None), 0.0), (slice(8, 17, None), 8.0)]
    """
    count = math.ceil((size - 1) / pitch) + 1
    first = (size - 1 - (count - 1) * pitch) // 2
    for node in range(first, first + count * pitch, pitch):
        # Half-open, although the weight of its first pixel is 0: a patch of 2·pitch pixels suits Fourier transforms.
        pixels = np.arange(max(0, node - pitch), min(size, node + pitch))
        weights = (1 - np.abs(pixels - node) / pitch).astype(np.float32)
        yield slice(int(pixels[0]), int(pixels[-1]) + 1), weights, node + 0.5 - size / 2


def _at_least(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidInputError(f"{name} must be a whole number of frame pixels, got {value!r}") from None
    if number < least:
        raise InvalidInputError(f"{name} must be at least {least} frame pixels, got {number}")
    return number
