"""The dual iteration of the total-variation prox: momentum, restart, stop. Knows nothing of weights and images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fouriscope.engines import numba_is_installed
from fouriscope.parallel import run_sliced, split

Array = npt.NDArray[Any]

ITERATIONS_PER_PASS = 8
"""Iterations between two looks at the gap: strips run this long without waiting for each other."""

FIRST_PASS = 4
"""Iterations before the first look: within a solver, a warm dual is often good enough that early."""


def tv_kernels() -> Any:
    """The module with the loops: compiled, or in plain NumPy where numba is not installed."""
    if numba_is_installed():
        from fouriscope.priors import _tv_kernels

        return _tv_kernels
    from fouriscope.priors import _tv_plain

    return _tv_plain


class Workspace:
    """Arrays for one shape and dtype, kept between calls: fresh pages would cost as much as the work of a warm call."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        height, width = shape
        # Depends on the image alone, never on the number of threads, so that neither does the result.
        # An even number of some 128 rows: with their halo they fit in the L2 cache, and two threads share them fairly.
        self.strips = split(height, max(1, 2 * ((height + 127) // 256)))
        tallest = max(last - first for first, last in self.strips)
        halo = 2 * (ITERATIONS_PER_PASS + 1)
        self.shape, self.dtype = shape, dtype
        # One block: an array this large gets huge pages from the system, and a cold call is not spent on page faults.
        block = np.empty((11, *shape), dtype)
        self.scaled, self.primal = block[0], [block[1], block[2]]
        self.dual = [block[3:7], block[7:11]]
        block[3:] = 0
        self._scratch_shape = (4, min(tallest + halo, height) + 1, width)
        self._scratch: dict[int, tuple[Array, Array]] = {}

    def fits(self, image: Array) -> bool:
        return self.shape == image.shape and self.dtype == image.dtype

    def scratch(self, worker: int) -> tuple[Array, Array]:
        """The private memory of the thread whose first strip is ``worker``."""
        if worker not in self._scratch:
            self._scratch[worker] = (
                np.empty(self._scratch_shape, self.dtype),
                np.empty((2, self.shape[1] + 1), self.dtype),
            )
        return self._scratch[worker]


@dataclass(frozen=True)
class Solution:
    """What came out: x (memory of the workspace), its duality gap, and the iterations spent."""

    x: Array
    gap: float
    iterations: int


def solve_dual(space: Workspace, isotropic: bool, enough: float, max_iterations: int) -> Solution:
    """Minimise ½‖x − z‖² + TV(x) for z = ``space.scaled`` until the gap is at most ``enough``.

    Starts from the dual p in ``space.dual[0][:2]`` and leaves the new one there.
    """
    advance_strip = tv_kernels().advance_strip
    z, dtype = space.scaled, space.dtype.type
    # 1/‖∇‖²: eight in the plane, four along a line.
    step = dtype(1 / 8 if min(space.shape) > 1 else 1 / 4)
    shares = np.zeros((len(space.strips), 2))
    best, gap, done, momentum, restart = math.inf, math.inf, 0, 1.0, True
    while True:
        betas = np.empty(min(ITERATIONS_PER_PASS if done else FIRST_PASS, max_iterations - done), space.dtype)
        for k in range(len(betas)):
            following = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
            betas[k] = (momentum - 1) / following
            momentum = following
        (before, after), x = space.dual, space.primal[1]

        def advance(
            start: int,
            stop: int,
            before: Array = before,
            after: Array = after,
            x: Array = x,
            betas: Array = betas,
            restart: bool = restart,
        ) -> None:
            scratch, rows = space.scratch(start)
            for k in range(start, stop):
                first, last = space.strips[k]
                shares[k] = advance_strip(
                    z, before, after, x, scratch, rows, first, last, betas, step, restart, isotropic
                )

        run_sliced(advance, len(space.strips))
        space.dual.reverse()
        done += len(betas)
        gap, slope = float(np.sum(shares[:, 0])), float(np.sum(shares[:, 1]))
        if gap < best:
            best = gap
            space.primal.reverse()
        if gap <= enough or done >= max_iterations:
            return Solution(space.primal[0], best, done)
        # Momentum that climbs has overshot: start it anew (O'Donoghue & Candès).
        restart = slope > 0
        if restart:
            momentum = 1.0
