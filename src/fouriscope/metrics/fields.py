"""Complex fields and wrapped phases, compared without the constant phase between them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.metrics._checks import RealArray, complex_pair, real_array, real_pair


def field_nrmse(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Relative error of a complex field after the best complex scale: min over c of ‖truth − c·estimate‖ / ‖truth‖.

    The scale c = ⟨estimate, truth⟩ / ‖estimate‖² takes away the constant phase and the unknown brightness, neither of
    which belongs to the sample. 0 is perfect; 1 means that the fields have nothing in common.

    Parameters
    ----------
    estimate, truth
        Two complex arrays of one shape.

    Examples
    --------
    >>> field = np.exp(1j * np.array([0.0, 0.3, 0.9]))
    >>> field_nrmse(2j * field, field) < 1e-12
    True
    """
    fitted, reference = complex_pair(estimate, truth)
    reference_norm = float(np.linalg.norm(reference))
    if reference_norm == 0.0:
        raise InvalidInputError(
            "field_nrmse needs a truth that is not 0 everywhere; pass the reference field as `truth`"
        )
    fitted_norm = float(np.linalg.norm(fitted))
    if fitted_norm == 0.0:
        return 1.0
    # Unit norms first: the inner product of very faint or very bright fields would under- or overflow.
    direction, target = fitted.ravel() / fitted_norm, reference.ravel() / reference_norm
    return float(np.linalg.norm(target - np.vdot(direction, target) * direction))


def wrap(phase: npt.ArrayLike) -> RealArray:
    """Phase modulo 2π, in (−π, π].

    Parameters
    ----------
    phase
        In radians.

    Examples
    --------
    >>> wrap([0.0, np.pi, -np.pi, 2 * np.pi]) / np.pi
    array([0., 1., 1., 0.])
    """
    phase = real_array(phase, "phase")
    wrapped = np.pi - np.mod(np.pi - phase, 2 * np.pi)
    # np.mod rounds to 2π itself when its argument lies a rounding error below 0.
    return np.asarray(np.where(wrapped <= -np.pi, np.pi, wrapped), dtype=np.float64)


def phase_difference(a: npt.ArrayLike, b: npt.ArrayLike) -> RealArray:
    """a − b for phases known only modulo 2π, with the best constant phase removed, in (−π, π].

    Best in the sense of the fields: c = arg Σ e^{i(a − b)} minimises ‖e^{ia} − e^{i(b + c)}‖. Jumps of 2π in either
    phase and a constant between them leave no trace.

    Parameters
    ----------
    a, b
        Two phases of one shape, in radians.

    Examples
    --------
    >>> unwrapped = np.array([0.0, 2.0, 4.0, 6.0])
    >>> bool(np.allclose(phase_difference(wrap(unwrapped + 1.0), unwrapped), 0.0))
    True
    """
    a, b = real_pair(a, b, names=("a", "b"))
    difference = a - b
    constant = np.angle(np.sum(np.exp(1j * difference)))
    return wrap(difference - constant)
