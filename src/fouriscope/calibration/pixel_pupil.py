"""The pupil bin by bin, smoothed: what no Zernike polynomial describes, and the modulus."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import Calibrator, stiffness
from fouriscope.calibration.loops import box_kernels
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Contributions, DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.optics import Geometry
from fouriscope.parallel import run_sliced


class PixelPupil(Calibrator):
    r"""The array A of the pupil P = A exp(i …), bin by bin within the disc: log A ← log A − rate · 2G / (H + damping).

    With b_i = P_i S_i O and D_i = ∂d/∂b̄_i, G = Σ_i conj(b_i) D_i holds both derivatives: 2 Re G with respect to log
    \|A\| and 2 Im G with respect to its phase. H = Σ_i ½ d″ \|b_i\|² is their curvature in each bin. (Each LED sees A
    moved by a fraction of a bin. This is in the model, but not carried into G.) Both are smoothed over a part of the
    disc before the division: a lens has no fine structure, and free bins would fit the noise of bright-field frames.

    Gauge: after each step the mean modulus within the disc is set to 1 (the object's brightness), and the mean phase
    and the tilt are subtracted (the object's phase and place).

    Parameters
    ----------
    rate
        Rate of the step, which is made once per pass.
    start
        Passes over the measurements before the first step, so that the object means something.
    damping
        Damping, in units of the mean of H over the disc.
    modulus
        Bounds (least, most) of \|A\|: a lens neither blocks nor amplifies much.
    smooth
        Standard deviation of the Gaussian, in radii of the disc; 0 leaves every bin free.
    """

    name = "pixels"
    watches = True
    finds_the_pupil = True

    def __init__(
        self,
        *,
        rate: float = 0.3,
        start: float = 2.0,
        damping: float = 0.2,
        modulus: tuple[float, float] = (0.2, 2.0),
        smooth: float = 0.15,
    ) -> None:
        if not (rate > 0 and damping > 0 and 0 <= modulus[0] < 1 < modulus[1] and smooth >= 0):
            raise InvalidInputError(
                "rate and damping must be positive, modulus must enclose 1 and smooth must be at least 0, got "
                f"{rate}, {damping}, {modulus} and {smooth}"
            )
        self.rate, self.start, self.damping, self.modulus, self.smooth = rate, start, damping, modulus, smooth
        self._passes = 0.0
        self._gathered = 0.0
        self._totals: tuple[ComplexArray, NDArray[np.float64]] | None = None
        self.forget()

    def forget(self) -> None:
        self._product: ComplexArray | None = None
        self._curvature: NDArray[np.float64] | None = None

    def watch(self, seen: Contributions) -> None:
        box_products = box_kernels(seen.model.engine).box_products
        model, sources, shape = seen.model, seen.sources, seen.model.pupils.box_shape
        product = np.zeros(shape, np.complex128)
        energies = np.empty((len(sources), *shape), model.dtype)
        arguments = (
            *(seen.spectrum, *model.pupils(sources), seen.boxes, model.box_rows[sources], model.box_columns[sources]),
            *(product, energies),
        )
        run_sliced(lambda start, stop: box_products(*arguments, start, stop), shape[0])
        totals = energies.sum(axis=(1, 2), dtype=np.float64)
        curvature = np.einsum("b,brc->rc", stiffness(seen, totals), energies)
        # On the frame's grid, because another calibrator may change the box before the turn of this one.
        product, curvature = model.pupils.on_frame_grid(product), model.pupils.on_frame_grid(curvature)
        if self._product is not None and self._curvature is not None:
            product, curvature = product + self._product, curvature + self._curvature
        self._product, self._curvature = product, curvature

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        if self._product is None or self._curvature is None:
            return None
        model, share = fidelity.model, batch.size / np.count_nonzero(fidelity.weights)
        slope = self._product * (share / float(np.prod(model.object_shape)))
        curvature = self._curvature * share
        self.forget()
        self._passes += share
        if self._passes < self.start:
            return None
        self._gathered += share
        if self._totals is not None:
            slope, curvature = slope + self._totals[0], curvature + self._totals[1]
        self._totals = slope, curvature
        if self._gathered < 1:
            return None
        self._totals, self._gathered = None, 0.0
        disc = _disc(model.geometry)
        if self.smooth:
            slope, curvature = self._smoothed(slope, model.geometry), self._smoothed(curvature, model.geometry).real
        array = np.ones(disc.shape, np.complex128) if model.pupil.array is None else model.pupil.array.copy()
        # A relative change: 2 Re and 2 Im of the slope are the derivatives by log|A| and by the phase.
        floor = self.damping * float(curvature[disc].mean())
        if not floor > 0:
            return None
        array[disc] *= 1 - self.rate * 2 * slope[disc] / (curvature[disc] + floor)
        return model.revised(pupil=replace(model.pupil, array=self._in_gauge(array, disc)))

    def _smoothed(self, image: NDArray[Any], geometry: Geometry) -> ComplexArray:
        from scipy.ndimage import gaussian_filter

        bins = [self.smooth * geometry.optics.cutoff / step for step in geometry.frequency_step]
        return np.asarray(gaussian_filter(image.astype(np.complex128), bins, mode="constant"))

    def _in_gauge(self, array: ComplexArray, disc: NDArray[np.bool_]) -> ComplexArray:
        """Without mean phase and tilt, of mean modulus 1, and within bounds; 1 outside the disc."""
        modulus = np.abs(array)
        # The tilt of a phase that may wrap: the mean product of neighbours.
        for axis in range(2):
            ahead, behind = (np.roll(array, shift, axis) * np.roll(disc, shift, axis) for shift in (0, 1))
            turn = np.angle(np.sum(ahead * np.conj(behind) * disc))
            places = np.arange(array.shape[axis]) - array.shape[axis] // 2
            array = array * np.exp(-1j * turn * places.reshape((-1, 1) if axis == 0 else (1, -1)))
        array = array * np.exp(-1j * np.angle(array[disc].sum()))
        phase = np.angle(array)
        bounded = np.clip(modulus / modulus[disc].mean(), *self.modulus)
        return np.asarray(np.where(disc, bounded * np.exp(1j * phase), 1.0))

    def measurements_grew(self, share: float) -> None:
        self._passes *= share

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"counters": np.array([self._passes, self._gathered])}
        if self._totals is not None:
            arrays |= {"slope": self._totals[0], "curvature": self._totals[1]}
        return arrays

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._passes, self._gathered = (float(number) for number in arrays["counters"])
        self._totals = (arrays["slope"], arrays["curvature"]) if "slope" in arrays else None
        self.forget()


def _disc(geometry: Geometry) -> NDArray[np.bool_]:
    """Bins of the frame's grid, zero frequency at n//2, that lie within the pupil."""
    fy, fx = (
        (np.arange(size) - size // 2) * step
        for size, step in zip(geometry.grid_shape, geometry.frequency_step, strict=True)
    )
    return geometry.optics.passes(np.hypot(fy[:, None], fx[None, :]) * geometry.optics.wavelength)
