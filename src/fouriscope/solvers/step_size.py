"""How long a step may be: the curvature of the data fidelity for the measurements that are really used."""

from __future__ import annotations

import numpy as np

from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward.objects import RealArray


def curvature(
    fidelity: DataFidelity,
    x: RealArray,
    batch: Minibatch | None,
    rng: np.random.Generator,
    *,
    iterations: int = 10,
    probe: float = 0.02,
) -> float:
    """Largest eigenvalue of ∇²d at x, by power iteration: v ← (∇d(x + εv) − ∇d(x − εv)) / 2ε, normalised.

    The Hessian is seen through central differences of the gradient, so any loss and any object model will do.
    ``probe`` is the rms of εv in radians: large enough for single precision, small beside the scale on which a phase
    is non-linear. A subset of the LEDs has a curvature of its own, often larger than that of them all, because the
    share of bright-field frames, which carry nearly all of it, varies.
    """
    v = rng.standard_normal(x.shape).astype(x.dtype)
    largest = 0.0
    for _ in range(iterations):
        v *= probe / float(np.sqrt(np.mean(np.square(v, dtype=np.float64))))
        difference = fidelity.gradient(x + v, batch).gradient - fidelity.gradient(x - v, batch).gradient
        norm = float(np.linalg.norm(difference)) / (2 * float(np.linalg.norm(v)))
        if norm <= largest * 1.01:
            return max(largest, norm)
        largest = norm
        v = difference
    return largest
