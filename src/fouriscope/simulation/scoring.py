"""How far a reconstruction is from the truth, apart from what no frame shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.metrics import field_nrmse
from fouriscope.simulation.truth import ComplexArray, Truth

# The share of each side of the window, at either end, where the comparison fades out. Otherwise its edges would count
# as structure.
FADE = 1 / 16
# A shift of the object is sought within this many frame pixels.
FURTHEST = 8.0
STEPS = 12


def field_error(estimate: NDArray[Any], truth: Truth) -> float:
    r"""NRMSE of the complex field in the frames' window, after the best gauge: min ‖B(t_s − c e^{iq·r} o)‖ / ‖B t_s‖.

    o is the ``estimate`` on any grid that fills the window, t_s is the true field moved by s, and B limits both to the
    frequencies that LEDs reach, in a window that fades out at its border. Four things are free, because no frame shows
    them: the complex factor c (brightness and constant phase), the shift s (a tilt of the pupil), the ramp q (a
    displaced array is a wedge on the object) and, if ``truth.twin``, the sign of the phase. 0 is perfect.

    The ramp and the shift are first found as peaks of correlations, then together by Gauss and Newton's steps.

    Parameters
    ----------
    estimate
        The complex field.
    truth
        What :class:`HostileMicroscope` returns beside the acquisition.

    Examples
    --------
    >>> import fouriscope as fs
    >>> from fouriscope.simulation import HostileMicroscope
    >>> _, truth = HostileMicroscope().acquire(0)
    >>> field_error(2j * truth.field((192, 192)), truth) < 1e-6
    True
    """
    field = np.asarray(estimate, np.complex128)
    if field.ndim != 2 or min(field.shape) < 8:
        raise InvalidInputError(
            f"the field must have at least 8 × 8 pixels over the frames' window, got shape {field.shape}"
        )
    if not np.isfinite(field).all():
        return float("inf")
    if not field.any():
        return 1.0
    candidates = (field, field.conj()) if truth.twin else (field,)
    return min(_Comparison(candidate, truth).best() for candidate in candidates)


class _Comparison:
    """One estimate compared with the truth. A gauge is q_y, q_x (cycles per metre), s_y, s_x (metres)."""

    def __init__(self, field: ComplexArray, truth: Truth) -> None:
        self.field, self.truth, self.shape = field / np.linalg.norm(field), truth, field.shape
        self.steps = tuple(size / n for size, n in zip(truth.extent, self.shape, strict=True))
        self.places = [np.arange(n) * step for n, step in zip(self.shape, self.steps, strict=True)]
        self.fade = np.outer(*(_fading(n) for n in self.shape))
        axes = [np.fft.fftfreq(n, step) for n, step in zip(self.shape, self.steps, strict=True)]
        self.seen = truth.reached(axes[0][:, None], axes[1][None])

    def best(self) -> float:
        """The smallest error from two starts: the ramp where the fields correlate best, and none."""
        starts = [self._registered(np.zeros(4), rounds=2), self._registered(np.zeros(4), rounds=0)]
        return min(self._refined(start) for start in starts)

    def error(self, gauge: NDArray[np.float64]) -> float:
        return field_nrmse(self._spectrum(self._ramped(gauge)), self._spectrum(self._true(gauge)))

    def _ramped(self, gauge: NDArray[np.float64]) -> ComplexArray:
        ramps = [np.exp(2j * np.pi * q * places) for q, places in zip(gauge[:2], self.places, strict=True)]
        return np.asarray(self.field * np.outer(*ramps))

    def _true(self, gauge: NDArray[np.float64], slope: int | None = None) -> ComplexArray:
        return self.truth.field(self.shape, gauge[2:], slope=slope)

    def _spectrum(self, field: ComplexArray) -> ComplexArray:
        """B: the faded field's spectrum where LEDs reach."""
        return np.asarray(np.fft.fft2(self.fade * field)[self.seen])

    def _registered(self, gauge: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
        """The ramp, then the shift, where the fields correlate best, to half a bin and one pixel."""
        for _ in range(rounds):
            overlap = self.fade * self.fade * self._ramped(gauge).conj() * self._true(gauge)
            padded = np.fft.fft2(overlap, [2 * n for n in self.shape])
            peak = np.unravel_index(np.abs(padded).argmax(), padded.shape)
            gauge[:2] += [np.fft.fftfreq(2 * n, d)[k] for n, d, k in zip(self.shape, self.steps, peak, strict=True)]
            gauge[2:] += self._shift(gauge)
        if not rounds:
            gauge[2:] += self._shift(gauge)
        return gauge

    def _shift(self, gauge: NDArray[np.float64]) -> list[float]:
        product = np.fft.fft2(self.fade * self._true(gauge)) * np.fft.fft2(self.fade * self._ramped(gauge)).conj()
        product[0, 0] = 0  # the mean lies anywhere
        likeness = np.abs(np.fft.ifft2(np.where(self.seen, product, 0)))
        places = [np.fft.fftfreq(n, 1 / n) * step for n, step in zip(self.shape, self.steps, strict=True)]
        near = np.hypot(places[0][:, None], places[1][None]) <= FURTHEST * self.truth.geometry.optics.pixel
        peak = np.unravel_index(np.where(near, likeness, 0).argmax(), likeness.shape)
        return [float(place[k]) for place, k in zip(places, peak, strict=True)]

    def _refined(self, gauge: NDArray[np.float64]) -> float:
        """Least squares in c, q and s together; a step that does not help is halved."""
        error = self.error(gauge)
        for _ in range(STEPS):
            step, better = self._step(gauge), error
            for _ in range(5):
                better = self.error(gauge + step)
                if better < error:
                    break
                step = step / 2
            if not better < error:
                break
            gauge, improved, error = gauge + step, error - better, better
            if improved < 1e-6 * error + 1e-12:
                break
        return error

    def _step(self, gauge: NDArray[np.float64]) -> NDArray[np.float64]:
        ramped = self._ramped(gauge)
        estimate, target = self._spectrum(ramped), self._spectrum(self._true(gauge))
        scale = np.vdot(estimate, target) / np.vdot(estimate, estimate).real
        grids = np.meshgrid(*self.places, indexing="ij")
        columns = [scale * self._spectrum(2j * np.pi * grid * ramped) for grid in grids]
        columns += [-self._spectrum(self._true(gauge, slope=axis)) for axis in (0, 1)]
        columns += [estimate, 1j * estimate]
        # Columns of very different units are brought to one length, or the solution would drop some as noise.
        lengths = np.array([np.linalg.norm(column) for column in columns])
        lengths[lengths == 0] = 1
        matrix = np.stack([np.concatenate([c.real, c.imag]) for c in columns], axis=1) / lengths
        misfit = target - scale * estimate
        found = np.linalg.lstsq(matrix, np.concatenate([misfit.real, misfit.imag]), rcond=None)[0]
        return np.asarray((found / lengths)[:4])


def _fading(size: int) -> NDArray[np.float64]:
    """1 in the middle, falling to 0 at either end as a cosine does."""
    inwards = np.minimum(np.arange(size) + 0.5, size - 0.5 - np.arange(size)) / size
    return np.asarray(np.sin(np.pi / 2 * np.clip(inwards / FADE, 0, 1)) ** 2)
