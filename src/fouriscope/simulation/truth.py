"""What a simulated microscope really was, and the field that its frames show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.optics import Geometry, LEDArray, Pupil

ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Truth:
    """The object, the geometry and the faults behind an acquisition.

    Attributes
    ----------
    whole
        The complex transmittance of the whole periodic field, which continues beyond the frames.
    geometry
        The true microscope: directions, frames, and the ``margin`` by which the field continues beyond them.
    illumination
        The LEDs where they really are.
    pupil
        P as it really is, on the frequency grid of the frame with its margin.
    gains, exposures
        (N,) brightness of each LED, and by how much longer its frame was exposed than a bright-field frame.
    twin
        Whether the object may be this one or its complex conjugate: intensities cannot tell an array from its image
        through the origin, so this is open if the described orientation is wrong.
    """

    whole: ComplexArray
    geometry: Geometry
    illumination: LEDArray
    pupil: Pupil
    gains: NDArray[np.float64]
    exposures: NDArray[np.float64]
    twin: bool = False

    @property
    def object(self) -> ComplexArray:
        """The transmittance in the frames' window, limited to what the LEDs reach, on the grid of ``whole``."""
        rows, columns = self.geometry.object_window
        return self.field((rows.stop - rows.start, columns.stop - columns.start))

    @property
    def extent(self) -> tuple[float, float]:
        """(height, width) of the frames' window in metres."""
        rows, columns = self.geometry.frame_shape
        return rows * self.geometry.optics.pixel, columns * self.geometry.optics.pixel

    def reached(self, fy: ArrayLike, fx: ArrayLike) -> NDArray[np.bool_]:
        """Whether some LED's pupil passes the spatial frequencies (``fy``, ``fx``), in cycles per metre."""
        optics = self.geometry.optics
        rows, columns = np.broadcast_arrays(np.asarray(fy, np.float64), np.asarray(fx, np.float64))
        seen = np.zeros(rows.shape, bool)
        for na_y, na_x in self.geometry.na:
            seen |= optics.passes(np.hypot(rows * optics.wavelength - na_y, columns * optics.wavelength - na_x))
        return seen

    def field(self, shape: tuple[int, int], shift: ArrayLike = (0.0, 0.0), *, slope: int | None = None) -> ComplexArray:
        """The object, limited to what the LEDs reach, at ``shape`` points that fill the frames' window.

        The field is periodic and band-limited, so it is known exactly between the pixels: the points may be moved by
        ``shift`` = (y, x) metres. ``slope`` = 0 or 1 gives the derivative along that axis, per metre.
        """
        frequencies, spectrum = self._band
        sides = []
        for axis in (0, 1):
            start = self.geometry.margin * self.geometry.optics.pixel + np.asarray(shift, np.float64)[axis]
            points = start + np.arange(shape[axis]) * self.extent[axis] / shape[axis]
            waves = np.exp(2j * np.pi * points[:, None] * frequencies[axis][None])
            sides.append(waves * (2j * np.pi * frequencies[axis]) if slope == axis else waves)
        return np.asarray(sides[0] @ spectrum @ sides[1].T)

    @cached_property
    def _band(self) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ComplexArray]:
        """The frequencies of each axis within the band, and the spectrum there, which is 0 where no LED reaches."""
        axes = [
            np.fft.fftfreq(n, 1 / n) * step
            for n, step in zip(self.whole.shape, self.geometry.frequency_step, strict=True)
        ]
        seen = self.reached(axes[0][:, None], axes[1][None])
        spectrum = np.where(seen, np.fft.fft2(self.whole), 0) / self.whole.size
        rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
        return (axes[0][rows], axes[1][columns]), np.asarray(spectrum[np.ix_(rows, columns)], np.complex128)
