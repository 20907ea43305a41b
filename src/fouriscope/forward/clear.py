"""The wave behind a clear sample: LEDs are near, so their light is curved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward.objects import ComplexArray
from fouriscope.optics import Geometry

# Without a margin, the bowl becomes flat from here on, in units of half the grid.
FLAT_FROM = 0.9


def clear_wave(geometry: Geometry) -> ComplexArray | None:
    """exp(iπ c r²/λ) on the object's grid, r from the middle of the patch; None if c = 0 or unknown.

    The light of an LED at the height h reaches the point r under another angle than the middle: its direction is
    k − r/h there. The light of all LEDs is changed in the same way, so it is the same as if the *sample* had the phase
    π r²/(λh): models for plane waves explain the frames of a clear sample by such a bowl. The chief rays of an
    objective that is not telecentric tilt over the field, too, so c = ``wave_curvature`` may differ from 1/h.

    Fourier transforms repeat the grid. So the bowl becomes flat at its edge, within the margin around the frame: a kink
    there would hold all frequencies. Those beyond the pupil around the direct light are left out.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(513e-9, 0.2, 8.1485, 6.5e-6, wave_curvature=1 / 70e-3)
    >>> leds = fs.LEDArray.square(3, pitch=4e-3, height=70e-3)
    >>> geometry = Geometry.compile(optics, leds, (64, 64), margin=16)
    >>> wave, middle = clear_wave(geometry), geometry.object_shape[0] // 2
    >>> turned = np.angle(wave[middle, middle + 32] / wave[middle, middle])
    >>> bool(abs(turned - np.pi * (32 * geometry.object_pixel[1]) ** 2 / (513e-9 * 70e-3)) < 1e-3)
    True
    """
    optics = geometry.optics
    if not optics.wave_curvature:
        return None
    factor = np.pi * optics.wave_curvature / optics.wavelength
    down, across = (
        np.exp(1j * factor * _squares(size, window.stop - window.start) * pixel**2)
        for size, window, pixel in zip(
            geometry.object_shape, geometry.object_window, geometry.object_pixel, strict=True
        )
    )
    spectrum = np.fft.fft2(down[:, None] * across)
    v, u = (np.fft.fftfreq(*axis) for axis in zip(geometry.object_shape, geometry.object_pixel, strict=True))
    spectrum[np.hypot(v[:, None], u) > optics.cutoff] = 0
    return np.asarray(np.fft.ifft2(spectrum))


def _squares(size: int, window: int) -> NDArray[np.float64]:
    """The squares of the distances of ``size`` pixels from the middle, and beyond the ``window`` what becomes flat at
    the edge: its slope, twice the distance, falls to 0 there.

    >>> _squares(8, 4).tolist()
    [8.0, 7.0, 4.0, 1.0, 0.0, 1.0, 4.0, 7.0]
    """
    half = size / 2
    inside = min(window / 2, FLAT_FROM * half)
    away = np.abs(np.arange(size) - size // 2).astype(np.float64)
    beyond = np.maximum(away - inside, 0)
    return np.where(away <= inside, away**2, inside**2 + 2 * inside * beyond * (1 - beyond / (2 * (half - inside))))
