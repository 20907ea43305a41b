"""What the last steps have shown of the curvature: the memory of a quasi-Newton method (L-BFGS)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward.objects import ComplexArray
from fouriscope.reductions import dot

# Pairs that are kept. In trials on eight hostile microscopes three did as well as eight or fifteen.
MEMORY = 3
# A direction is at most so many times as long as the plain step: the curvature that few pairs show may be wrong.
LONGEST = 10.0
# Pairs whose angle is nearer to a right one than this show no curvature that could be trusted.
LEAST_COSINE = 1e-6
# Where the objective has grown by more than this share, the pairs have led astray.
GROWTH = 0.02


class Secants:
    """Pairs s = z_k − z_{k−1}, y = r_k − r_{k−1} of places and residuals, and the direction −B r that they imply.

    B is the L-BFGS approximation of the inverse Jacobian of r: it maps each y to its s, and is the identity, scaled by
    ⟨s, y⟩/⟨y, y⟩ of the last pair, in all other directions. So r has to be preconditioned, which makes its Jacobian
    roughly the identity. r need not be a gradient: the pull of a denoiser may be a part of it.

    Places and residuals are complex arrays; the inner product is ⟨a, b⟩ = Re Σ ā b. At most
    2 · 3 + 2 arrays of the size of r are kept.

    Examples
    --------
    A quadratic with curvatures from 0.1 to 1, from the residuals alone:

    >>> import numpy as np
    >>> curvature, z, secants = np.linspace(0.1, 1, 8), np.ones(8, complex), Secants()
    >>> for _ in range(20):
    ...     r = curvature * z
    ...     z = z + secants.direction(z, r, objective=float(np.sum(curvature * np.abs(z) ** 2)))
    >>> bool(np.abs(z).max() < 1e-4)
    True
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: what comes has another objective, or another model."""
        self._pairs: list[tuple[ComplexArray, ComplexArray]] = []
        self._last: tuple[ComplexArray, ComplexArray] | None = None
        self._objective = math.inf

    def direction(self, place: ComplexArray, residual: ComplexArray, *, objective: float) -> ComplexArray:
        """Where to go from ``place``, at which the residual is ``residual``.

        If the objective has grown, the pairs are forgotten and the direction is −``residual``.
        """
        if objective > (1 + GROWTH) * self._objective:
            self._pairs = []
        elif self._last is not None:
            s, y = place - self._last[0], residual - self._last[1]
            if _inner(s, y) > LEAST_COSINE * math.sqrt(_inner(s, s) * _inner(y, y)):
                self._pairs = [*self._pairs, (s, y)][-MEMORY:]
        self._last, self._objective = (place, residual), objective
        return self._descent(residual)

    def _descent(self, residual: ComplexArray) -> ComplexArray:
        q, shares = residual.copy(), []
        real = q.real.dtype.type
        for s, y in reversed(self._pairs):
            shares.append(_inner(s, q) / _inner(s, y))
            q -= real(shares[-1]) * y
        if self._pairs:
            s, y = self._pairs[-1]
            q *= real(_inner(s, y) / _inner(y, y))
        for (s, y), share in zip(self._pairs, reversed(shares), strict=True):
            q += real(share - _inner(y, q) / _inner(s, y)) * s
        plain, length = (math.sqrt(_inner(one, one)) for one in (residual, q))
        q *= real(-min(1.0, LONGEST * plain / length) if length else -1.0)
        return q

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue exactly."""
        if self._last is None:
            return {}
        arrays: dict[str, NDArray[Any]] = {"objective": np.array(self._objective), "last": np.stack(self._last)}
        return arrays | ({"pairs": np.stack([np.stack(pair) for pair in self._pairs])} if self._pairs else {})

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]], like: ComplexArray) -> None:
        """Take back what :meth:`state_arrays` gave, of places that are ``like`` this one."""
        self.forget()
        if "last" not in arrays:
            return
        for name in ("last", "pairs"):
            array = arrays.get(name)
            if array is not None and (array.shape[-like.ndim :], array.dtype) != (like.shape, like.dtype):
                raise InvalidInputError(
                    f"the saved secants are {array.dtype} of shape {array.shape}, but this solver's spectrum is "
                    f"{like.dtype} of {like.shape}"
                )
        self._last = (arrays["last"][0], arrays["last"][1])
        self._pairs = [(pair[0], pair[1]) for pair in arrays.get("pairs", ())]
        self._objective = float(arrays["objective"])


def _inner(a: ComplexArray, b: ComplexArray) -> float:
    return dot(a.view(a.real.dtype), b.view(b.real.dtype))
