"""How long a step may be: the curvature of the data fidelity for the measurements that are really used."""

from __future__ import annotations

import math

import numpy as np

from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import dot, norm

# No pixel is displaced further than this, in radians: an absorption enters as e^{−μ}, and a step of some units in one
# pixel (where an eigenvector gathers) measures that exponential, not a curvature.
FURTHEST = 0.12


def hessian_product(
    fidelity: DataFidelity, x: RealArray, v: RealArray, batch: Minibatch | None, *, probe: float = 0.02
) -> RealArray:
    """∇²d(x) v by central differences of the gradient, so that any loss and any object model will do.

    ``probe`` is the rms of the displacement in radians: large enough for single precision, small beside the scale on
    which a phase is non-linear. Where an absorption is gathered in a few pixels it is less, so that none
    moves far.
    """
    rms = norm(v) / math.sqrt(v.size)
    if fidelity.model.object.limits[-1] is not None:  # a bounded image is an exponent; a phase cannot explode
        probe = min(probe, FURTHEST * rms / float(np.abs(v).max()))
    displacement = v * v.dtype.type(probe / rms)
    ahead = fidelity.gradient(x + displacement, batch).gradient
    behind = fidelity.gradient(x - displacement, batch).gradient
    product: RealArray = (ahead - behind) * v.dtype.type(rms / (2 * probe))
    return product


def curvature(
    fidelity: DataFidelity,
    x: RealArray,
    batch: Minibatch | None,
    rng: np.random.Generator,
    *,
    iterations: int = 8,
) -> float:
    """Largest eigenvalue of ∇²d at x, by the Lanczos method with ``iterations`` products.

    A subset of the LEDs has a curvature of its own, often larger than that of them all, because the share of
    bright-field frames, which carry nearly all of it, varies. From below the estimate is some percent short of the
    true value after eight products, where a power iteration would still be 15 % short. Products that are not finite end
    it; NaN if the first one is not.
    """
    v = rng.standard_normal(x.shape).astype(x.dtype)
    v /= v.dtype.type(norm(v))
    before = np.zeros_like(v)
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for _ in range(iterations):
        w = hessian_product(fidelity, x, v, batch)
        along = dot(v, w)
        if not math.isfinite(along):
            break
        diagonal.append(along)
        w -= w.dtype.type(diagonal[-1]) * v
        if off_diagonal:
            w -= w.dtype.type(off_diagonal[-1]) * before
        length = norm(w)
        if length <= 1e-6 * max(abs(d) for d in diagonal) or not math.isfinite(length):
            break
        off_diagonal.append(length)
        before, v = v, w / w.dtype.type(length)
    if not diagonal:
        return math.nan
    inner = off_diagonal[: len(diagonal) - 1]
    tridiagonal = np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    return float(np.linalg.eigvalsh(tridiagonal)[-1])
