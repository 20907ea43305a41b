"""The aberrations of the lens as Zernike coefficients, found from the gradients that a solver computes anyway."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import Calibrator, GaussNewton, stiffness
from fouriscope.calibration.loops import box_kernels
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Contributions, DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics.zernike_polynomials import noll_to_nm, zernike_in_powers
from fouriscope.parallel import run_sliced

# Noll's indices of the default: defocus to secondary astigmatism and tetrafoil, radial orders 2 to 4.
MODES = tuple(range(4, 16))


class ZernikePupil(Calibrator):
    r"""c_j of the pupil P_i = A_i exp(i Σ_j c_j Z_j), by stochastic Gauss–Newton steps on the data fidelity itself.

    With b_i = P_i S_i O the spectrum of a frame's field, and D_i the derivative of d with respect to it, which the
    object's gradient needs too,

        ∂d/∂c_j = Σ_i Σ_m Z_j(m) · 2 Im{ conj(b_i) D_i }(m),
        H_jk ≈ Σ_i ½ d″ · [ Σ_m Z_j Z_k \|b_i\|² − Σ_m Z_j \|b_i\|² Σ_m Z_k \|b_i\|² / Σ_m \|b_i\|² ].

    H is the curvature, assuming that half of a change of the field is a change of its modulus. The subtracted term is
    the constant phase of a frame, which no camera sees and which the direct light would otherwise dominate.
    Polynomials need only moments of the boxes, Σ y^p x^q \|b\|²: about ten operations per pixel.

    Gauge: piston (j = 1) and tilt (2, 3) do not change. Frames do not show the first; the second is a shift of the
    object. The modulus of the pupil stays 1.

    Parameters
    ----------
    modes
        Noll indices that may change; the others of the model's pupil stay.
    rate
        Rate of the Gauss–Newton steps. It fades as 1/(1 + passes/5), because minibatches are noisy to the end.
    largest_step
        The largest change of a coefficient in one step, in radians.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> lens = fs.ForwardModel(optics, leds, (32, 32), pupil=fs.Pupil({5: 0.3, 7: -0.2}))
    >>> truth = 0.5 * (np.indices(lens.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(lens, truth, seed=0)
    >>> unknown = fs.Acquisition(optics, leds, data.frames, periodic=True)
    >>> result = fs.reconstruct(unknown, prior=None, calibrate="zernike", batch=20, iterations=60, loss="amplitude")
    >>> {j: round(c, 2) for j, c in result.geometry.zernike.items() if abs(c) > 0.02}
    {5: 0.3, 7: -0.2}
    """

    name = "zernike"
    watches = True
    finds_the_pupil = True

    def __init__(self, modes: Iterable[int] = MODES, *, rate: float = 1.0, largest_step: float = 0.3) -> None:
        self.modes = tuple(int(mode) for mode in modes)
        if not self.modes or min(self.modes) < 4 or len(set(self.modes)) != len(self.modes):
            raise InvalidInputError(
                "modes must be Noll indices from 4 (defocus) on, each once: piston and tilts cannot be told from "
                f"the object; got {self.modes}"
            )
        if not (rate > 0 and largest_step > 0):
            raise InvalidInputError(f"rate and largest_step must be positive, got {rate} and {largest_step}")
        self._newton = GaussNewton(len(self.modes), rate=rate, largest_step=largest_step)
        orders = [noll_to_nm(mode) for mode in self.modes]
        self._degree = max(n for n, _ in orders)
        side = self._degree + 1
        self._powers = np.zeros((len(orders), side, side))
        for powers, (n, m) in zip(self._powers, orders, strict=True):
            powers[: n + 1, : n + 1] = zernike_in_powers(n, m)
        self._products = _products(self._powers)
        self.forget()

    def forget(self) -> None:
        self._watched = False
        self._slope = np.zeros(len(self.modes))
        self._curvature = np.zeros((len(self.modes),) * 2)

    def watch(self, seen: Contributions) -> None:
        box_moments = box_kernels(seen.model.engine).box_moments
        model, sources, side = seen.model, seen.sources, self._degree + 1
        slopes = np.empty((len(sources), side, side))
        energies = np.empty((len(sources), 2 * side - 1, 2 * side - 1))
        geometry, box = model.geometry, model.geometry.support_box
        steps = np.asarray(geometry.frequency_step) / geometry.optics.cutoff
        arguments = (
            *(seen.spectrum, *model.pupils(sources), seen.boxes, model.box_rows[sources], model.box_columns[sources]),
            *(geometry.fractions[sources], box.row0, box.col0, steps, slopes, energies),
        )
        run_sliced(lambda start, stop: box_moments(*arguments, start, stop), len(sources))
        if not model.sources.have_one_colour:
            # Of another wavelength the pupil is larger by its scale, and the phase as much more of a wave.
            scales = model.sources.scales[sources][:, None, None]
            slopes *= scales ** (1 - np.add.outer(np.arange(side), np.arange(side)))
            energies *= scales ** -np.add.outer(np.arange(2 * side - 1.0), np.arange(2 * side - 1))
        self._slope += np.einsum("jpq,pq->j", self._powers, slopes.sum(axis=0)) / seen.spectrum.size
        self._curvature += self._curvature_of(seen, energies)
        self._watched = True

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        model = fidelity.model
        if not self._watched:
            return None
        change = self._newton.step(self._slope, self._curvature, batch.size / np.count_nonzero(fidelity.weights))
        self.forget()
        found = dict(model.pupil.zernike)
        for mode, difference in zip(self.modes, change, strict=True):
            found[mode] = found.get(mode, 0.0) + float(difference)
        return model.revised(pupil=replace(model.pupil, zernike=found))

    def _curvature_of(self, seen: Contributions, energies: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.maximum(energies[:, 0, 0], np.finfo(np.float64).tiny)
        scale = stiffness(seen, total) * seen.model.sources.scales[seen.sources] ** 2
        side = self._degree + 1
        means = np.einsum("jpq,bpq->bj", self._powers, energies[:, :side, :side])
        squares = np.einsum("jkpq,pq->jk", self._products, np.einsum("b,bpq->pq", scale, energies))
        return np.asarray(squares - np.einsum("b,bj,bk->jk", scale / total, means, means))

    def measurements_grew(self, share: float) -> None:
        self._newton.passes *= share

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._newton.state_arrays()

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._newton.load_state_arrays(arrays)
        self.forget()


def _products(powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The polynomials Z_j Z_k, in powers."""
    count, side, _ = powers.shape
    products = np.zeros((count, count, 2 * side - 1, 2 * side - 1))
    for p in range(side):
        for q in range(side):
            products[:, :, p : p + side, q : q + side] += powers[:, None, p, q, None, None] * powers[None]
    return products
