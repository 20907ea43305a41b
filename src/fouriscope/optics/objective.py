"""The microscope between sample and camera: wavelength, objective and pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError

_LONGEST_WAVELENGTH = 100e-6
_LARGEST_CAMERA_PIXEL = 1e-3
# No microscope lies beyond these bounds: somebody has confused units or keys, and larger numbers would overflow.
_BOUNDS = {
    "wavelength": (1e-11, np.inf, "metres: 513 nm is 513e-9"),
    "na": (1e-5, np.inf, "the sine of an angle, times the refractive index"),
    "magnification": (1e-3, 1e5, "the size of the image over that of the sample"),
    "camera_pixel": (1e-10, np.inf, "metres: 6.5 µm is 6.5e-6"),
    "medium_index": (0.5, 10.0, "1 for air, 1.33 for water, 1.518 for oil"),
}
_SMALLEST_PIXEL, _LARGEST_PIXEL = 1e-11, 1e-2
_MOST_CURVED = 1e5
# Relative to NA: far above rounding errors, far below any distance between LEDs.
EDGE_TOLERANCE = 1e-9


def require_finite(name: str, value: object) -> float:
    """Return ``value`` as a float, or say which argument ``name`` is not a finite number."""
    if not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def require_positive(name: str, value: object) -> float:
    """Return ``value`` as a float, or say which argument ``name`` is not a positive finite number."""
    number = require_finite(name, value)
    if number <= 0:
        raise InvalidInputError(f"{name} must be positive, got {number:g}.")
    return number


def require_within(name: str, value: float, least: float, most: float, meaning: str) -> float:
    """Return ``value``, or say that argument ``name`` is out of bounds, and what it means."""
    if not least <= value <= most:
        reach = f"at least {least:g}" if most == np.inf else f"from {least:g} to {most:g}"
        raise InvalidInputError(f"{name} must be {reach}, got {value:g}; it is {meaning}.")
    return value


@door_class
@dataclass(frozen=True)
class Optics:
    """A coherent imaging system, described by the numbers that Fourier ptychography needs.

    The objective passes the spatial frequencies k of the field with |k| ≤ NA/λ. The *field* is therefore sampled well
    by pixels up to λ/(2NA) and the *intensity*, whose spectrum is twice as wide, by pixels up to λ/(4NA).
    Fourier ptychography needs only the first: intensities may alias, because the model aliases them in the same way.

    Parameters
    ----------
    wavelength
        λ, in vacuum, in metres.
    na
        NA, the numerical aperture of the objective.
    magnification
        Magnification of the sample on the camera.
    camera_pixel
        Pitch of the camera's pixels, in metres, on the camera itself.
    medium_index
        Refractive index n between sample and objective; NA < n.
    bandwidth
        Bandwidth of the light around λ: full width at half maximum of a Gaussian, in metres. 0 is one wavelength.
    spectrum
        Instead of a bandwidth: pairs (wavelength in metres, weight). See docs/sources.md.
    wave_curvature
        c, the curvature of an LED's light as the objective sees it, in 1/m: at the distance r from where its direction
        is k, it is k − c r (in NA). That is 1/height of the LEDs if the objective is telecentric. None leaves it out
        within a patch, and is 1/height from patch to patch. See docs/physics.md.

    Examples
    --------
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> f"{optics.pixel * 1e6:.4f} µm at the sample, of at most {optics.nyquist_field_pixel * 1e6:.4f} µm"
    '0.7977 µm at the sample, of at most 1.2825 µm'
    """

    wavelength: float
    na: float
    magnification: float
    camera_pixel: float
    medium_index: float = 1.0
    bandwidth: float = 0.0
    spectrum: tuple[tuple[float, float], ...] = ()
    wave_curvature: float | None = None

    def __post_init__(self) -> None:
        for name in _BOUNDS:
            object.__setattr__(self, name, require_positive(name, getattr(self, name)))
        for name, (least, most, meaning) in _BOUNDS.items():
            require_within(name, getattr(self, name), least, most, meaning)
        if self.wavelength > _LONGEST_WAVELENGTH:
            raise InvalidInputError(
                f"wavelength = {self.wavelength:g} m is longer than {_LONGEST_WAVELENGTH:g} m; "
                "wavelengths are in metres: 513 nm is 513e-9."
            )
        self._check_bandwidth()
        if self.wave_curvature is not None:
            curvature = require_finite("wave_curvature", self.wave_curvature)
            require_within("wave_curvature", curvature, -_MOST_CURVED, _MOST_CURVED, "in 1/m: LEDs at 70 mm have 14")
            object.__setattr__(self, "wave_curvature", curvature)
        if self.camera_pixel > _LARGEST_CAMERA_PIXEL:
            raise InvalidInputError(
                f"camera_pixel = {self.camera_pixel:g} m is larger than {_LARGEST_CAMERA_PIXEL:g} m; "
                "pixels are in metres: 6.5 µm is 6.5e-6."
            )
        require_within(
            "camera_pixel / magnification",
            self.pixel,
            _SMALLEST_PIXEL,
            _LARGEST_PIXEL,
            "metres, the pixel at the sample; if camera_pixel is that already, magnification is 1",
        )
        if self.na >= self.medium_index:
            raise InvalidInputError(
                f"na must be smaller than medium_index = {self.medium_index:g}, got {self.na:g}; "
                "give the index of the immersion medium, 1.33 for water or 1.518 for oil."
            )

    def _check_bandwidth(self) -> None:
        from fouriscope.optics.bandwidth import require_spectrum

        object.__setattr__(self, "bandwidth", require_finite("bandwidth", self.bandwidth))
        if not 0 <= self.bandwidth <= 0.4 * self.wavelength:
            raise InvalidInputError(
                f"bandwidth must be from 0 to {0.4 * self.wavelength:g} m, 40 % of the wavelength, got "
                f"{self.bandwidth:g}; it is in metres: 20 nm is 20e-9."
            )
        object.__setattr__(self, "spectrum", require_spectrum(self.spectrum, self.wavelength))
        if self.spectrum and self.bandwidth:
            raise InvalidInputError("bandwidth and spectrum describe the same thing: give one of the two.")

    @property
    def pixel(self) -> float:
        """Camera pixel seen at the sample, in metres: camera_pixel / magnification."""
        return self.camera_pixel / self.magnification

    @property
    def cutoff(self) -> float:
        """Highest spatial frequency of the field that the objective passes, in cycles per metre: NA/λ."""
        return self.na / self.wavelength

    def passes(self, na: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether light at numerical aperture ``na`` passes the pupil. Light at exactly NA does.

        One rule for the pupil's samples and for the LEDs: an LED at exactly NA must not be bright for one and dark for
        the other because of the last digit.
        """
        return np.asarray(na <= self.na * (1 + EDGE_TOLERANCE))

    @property
    def nyquist_field_pixel(self) -> float:
        """Largest pixel at the sample, in metres, that samples the field without loss: λ/(2NA)."""
        return self.wavelength / (2 * self.na)

    @property
    def nyquist_intensity_pixel(self) -> float:
        """Largest pixel at the sample, in metres, that samples the intensity without aliasing: λ/(4NA)."""
        return self.wavelength / (4 * self.na)


def pupil_overlap(distance: NDArray[np.float64], na: float) -> NDArray[np.float64]:
    """Common area of two pupils of radius ``na`` whose middles are ``distance`` apart, as a fraction of one.

    Examples
    --------
    >>> pupil_overlap(np.array([0.0, 0.2, 0.5]), na=0.2).round(3).tolist()
    [1.0, 0.391, 0.0]
    """
    q = np.minimum(distance / (2 * na), 1)
    return np.asarray(2 / np.pi * (np.arccos(q) - q * np.sqrt(1 - q**2)))
