"""Numbers about a finished reconstruction that need no second one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray

# A gain within this share of its bound is at it.
AT_BOUND = 0.01
# What has fewer cycles over the field than this is background.
SLOW = 3.0
# Slow phase needs no more pixels than this along a side.
COARSE = 128


def share_outside_band(model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]) -> float:
    """The share of the object's spectral energy, its mean left out, that no pupil of ``leds`` sees.

    Nothing was measured there: a prior, or the object model, has invented it. The edges of a phase object have a little
    of it; noise that a solver let grow has much.

    Parameters
    ----------
    model, x
        The model, and the object as it was reconstructed.
    leds
        Numbers of the LEDs that were used.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(3, pitch=4e-3, height=70e-3), (24, 24))
    >>> noise = np.random.default_rng(0).normal(0, 0.1, model.object_shape)
    >>> slow = 0.1 * np.cos(2 * np.pi * np.arange(model.object_shape[1]) / model.object_shape[1]) + 0 * noise
    >>> [bool(share_outside_band(model, image, np.arange(9)) > 0.5) for image in (slow, noise)]
    [False, True]
    """
    energy = np.abs(model.spectrum(model.transmittance(x))).astype(np.float64) ** 2
    energy[0, 0] = 0
    total = float(energy.sum())
    return float(energy[model.coverage(leds) <= 0].sum()) / total if total else 0.0


def gains_at_bounds(gains: NDArray[Any], began: NDArray[Any] | None, bound: float, used: NDArray[np.bool_]) -> int:
    """How many gains of ``used`` LEDs lie within 1 % of 1/bound or bound times where they began.

    Parameters
    ----------
    gains, began
        The gains as found, and where they began; None for 1.
    bound
        The largest factor by which a gain may change.
    used
        Whether each LED was used.

    Examples
    --------
    >>> gains_at_bounds(np.array([1.0, 2.99, 1 / 3, 9.0]), None, 3.0, np.array([True, True, True, False]))
    2
    """
    ratio = np.asarray(gains, np.float64) / (1.0 if began is None else np.asarray(began, np.float64))
    return int(np.count_nonzero(used & (np.abs(np.log(ratio)) >= np.log(bound / (1 + AT_BOUND)))))


def slow_background(transmittance: ComplexArray) -> float:
    """Root mean square, in radians, of the phase with less than 3 cycles over the field; the mean does not count.

    Slow phase leaves almost no trace in the frames, so it goes wrong first. It may also be the sample.

    Parameters
    ----------
    transmittance
        The complex object.

    Examples
    --------
    >>> row = np.arange(64) / 64
    >>> round(slow_background(np.exp(1j * (0.5 * np.cos(2 * np.pi * row) + 0.3 * np.cos(20 * np.pi * row))
    ...                                 * np.ones((64, 1)))), 2)
    0.35
    """
    coarse = _coarse(np.asarray(transmittance))
    phase = np.angle(coarse)
    if any(np.any(np.abs(np.diff(phase, axis=axis)) >= np.pi) for axis in (0, 1)):
        from skimage.restoration import unwrap_phase

        phase = np.asarray(unwrap_phase(phase, rng=0))
    rows, columns = phase.shape
    spectrum = np.fft.fft2(phase - phase.mean()) / phase.size
    cycles = np.hypot((np.fft.fftfreq(rows) * rows)[:, None], (np.fft.fftfreq(columns) * columns)[None, :])
    return float(np.sqrt(np.sum(np.abs(spectrum[cycles < SLOW - 1e-9]) ** 2)))


def _coarse(field: ComplexArray) -> ComplexArray:
    """The mean field over blocks, so that few pixels are left and a block's phase is that of its mean field."""
    rows, columns = field.shape
    down, across = (max(1, size // COARSE) for size in (rows, columns))
    kept = field[: rows // down * down, : columns // across * across]
    blocks = kept.reshape(rows // down, down, columns // across, across)
    return np.asarray(blocks.mean(axis=(1, 3)))
