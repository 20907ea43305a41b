"""EPRY's complex spectrum and pupil correction, and what the rest of the package calls an object and a pupil."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fouriscope.engines import Engine
from fouriscope.fidelity import DataFidelity, Loss
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.optics.objective import pupil_overlap
from fouriscope.reductions import norm

# δ, in units of the largest |·|² it stands beside: it only keeps 0/0 away, the steps are bounded by themselves.
DAMPING = 1e-9
# Of a clear sample, in units of its mean.
ROUNDING = 1e-3


def spectrum_of(model: ForwardModel, x: RealArray) -> ComplexArray:
    """F o(x)."""
    spectrum = model.spectrum(model.transmittance(x))
    if not np.any(x):
        # What the FFT rounds to instead of 0 would lend dark-field frames a phase that means nothing.
        spectrum[np.abs(spectrum) < ROUNDING * spectrum.size] = 0
    return spectrum


def x_of(model: ForwardModel, spectrum: ComplexArray) -> RealArray:
    """What the model's object can hold of F⁻¹ spectrum: a wave, phase and absorption, or the phase alone.

    The phase is measured from the direction of the mean of the sample, so that a weak one does not wrap around.
    """
    o = model.inverse_spectrum(spectrum)
    mean = complex(spectrum[0, 0] if model.object.clear is None else model.object.sample(o).mean(dtype=np.complex128))
    o *= o.dtype.type(mean.conjugate() / abs(mean) if abs(mean) > 0 else 1.0)
    return np.asarray(model.object.of_transmittance(o), model.dtype)


def mean_light(spectrum: ComplexArray) -> float:
    """The mean of |o|²."""
    return (norm(spectrum.view(spectrum.real.dtype)) / spectrum.size) ** 2


def union_of_pupils(model: ForwardModel) -> RealArray:
    """The largest |P_m| of all sources, for each bin of the support box."""
    union = np.zeros(model.pupils.box_shape, model.dtype)
    size = model.pupils.at_once
    for first in range(0, len(model.sources), size):
        stack, index = model.pupils(np.arange(first, min(first + size, len(model.sources))))
        np.maximum(union, np.abs(stack[index]).max(axis=0), out=union)
    return union


def visit(
    fidelity: DataFidelity,
    spectrum: ComplexArray,
    correction: ComplexArray,
    leds: NDArray[np.int64],
    steps: tuple[float, float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Visit ``leds`` in turn, updating both arrays in place: (misfit, light) of each."""
    model, loss = fidelity.model, fidelity.loss
    misfits, lights = np.empty(len(leds)), np.empty(len(leds))
    points = model.sources.are_points and model.engine.is_compiled  # plain loops take points as sums of one
    sources, bounds = (leds, np.arange(0)) if points else model.sources.of(leds)
    _sweep_of(model.engine, loss, points=points)(
        *(spectrum, correction, *model.pupils(sources), model.box_rows[sources], model.box_columns[sources]),
        *(() if points else (bounds, _shares(model, sources, bounds))),
        *(*model.geometry.grid_shape, model.geometry.margin),
        *fidelity.data_of(leds),
        *(loss.epsilon, loss.is_projection, *steps, DAMPING, misfits, lights),
    )
    return misfits, lights


def _sweep_of(engine: Engine, loss: Loss, *, points: bool) -> Callable[..., None]:
    if not engine.is_compiled:
        from fouriscope.fidelity.array_losses import pixels_of
        from fouriscope.solvers._epry_plain import sweep_sums as sweep_plainly

        return partial(sweep_plainly, pixels_of(loss))
    from fouriscope.fidelity.kernels import for_loss
    from fouriscope.solvers._epry_kernels import sweep
    from fouriscope.solvers._epry_sum_kernel import sweep_sums

    return for_loss(sweep if points else sweep_sums, type(loss))


def _shares(model: ForwardModel, sources: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """By so much of a step each source moves the object: its weight beside those of its frame that see the same.

    The sources of a die see nearly the same frequencies. If each went the whole way, together they would go as many
    times too far. LEDs of a pattern whose pupils do not overlap go the whole way each, as they would one by one.
    """
    weights, na = model.sources.weights[sources], model.sources.na[sources] * model.sources.scales[sources, None]
    shares = np.empty(len(sources))
    for first, last in pairwise(bounds.tolist()):
        away = na[first:last, None] - na[None, first:last]
        overlap = pupil_overlap(np.hypot(away[..., 0], away[..., 1]), model.optics.na)
        shares[first:last] = weights[first:last] / (overlap @ weights[first:last])
    return shares
