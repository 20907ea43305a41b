"""Which FFT? 293 transforms of 100² complex64 on one thread, by each library whose licence is as free as ours, and by
ducc0 and pyFFTW (GPL: to compare with, never to depend on) where they happen to be installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.fft
from numba import njit
from numpy.typing import NDArray
from rocket_fft import c2c

from benchmarks.report import table
from benchmarks.timing import interleaved
from fouriscope.forward.kernels import JIT

COUNT, SIDE, TURNS = 293, 100, 15


@njit(**JIT)
def rocket_loop(stack, out):  # type: ignore[no-untyped-def]
    for b in range(len(stack)):
        c2c(stack[b], out[b], np.array([0, 1]), True, 1.0, 1)


def main() -> None:
    rng = np.random.default_rng(0)
    shape = (COUNT, SIDE, SIDE)
    stack: NDArray[Any] = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    out: NDArray[Any] = np.empty_like(stack)

    def scipy_loop() -> None:
        for b in range(COUNT):
            out[b] = scipy.fft.fft2(stack[b], workers=1)

    def numpy_loop() -> None:
        for b in range(COUNT):
            np.fft.fft2(stack[b], out=out[b])

    calls: dict[str, Callable[[], object]] = {
        "rocket-fft in a compiled loop": lambda: rocket_loop(stack, out),
        "scipy.fft, a loop": scipy_loop,
        "scipy.fft, one call for the stack": lambda: scipy.fft.fft2(stack, workers=1),
        "numpy.fft, a loop": numpy_loop,
        "numpy.fft, one call for the stack": lambda: np.fft.fft2(stack, out=out),
    }
    if find_spec("ducc0"):
        import ducc0

        calls["ducc0 (GPL), one call for the stack"] = lambda: ducc0.fft.c2c(stack, axes=(1, 2), out=out, nthreads=1)
    if find_spec("pyfftw"):
        import pyfftw

        planned = pyfftw.FFTW(stack.copy(), pyfftw.empty_aligned(shape, "complex64"), axes=(1, 2), threads=1)
        calls["pyFFTW (GPL), one planned call for the stack"] = lambda: planned(stack, normalise_idft=False)
    seconds = interleaved(calls, TURNS)
    ours = next(iter(seconds.values()))
    rows = [[name, f"{s * 1e3:.1f}", f"{s / COUNT * 1e6:.1f}", f"{s / ours:.2f} ×"] for name, s in seconds.items()]
    header = ["library", "ms", "µs per transform", "time / rocket-fft's"]
    table(f"{COUNT} FFTs of {SIDE}² complex64, one thread", header, rows)


if __name__ == "__main__":
    main()
