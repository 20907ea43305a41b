"""The gradient of a minibatch beside the FFTs that it cannot avoid: same FFT library, same threads, same run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rocket_fft import c2c

import fouriscope as fs
from benchmarks import microscope
from benchmarks.report import bar, table
from benchmarks.timing import interleaved, page_faults
from fouriscope.forward.kernels import JIT, fft2
from fouriscope.parallel import run_sliced, thread_count, threads

LIMIT = 1.5
TURNS = {60: 60, 293: 25}


@njit(**JIT)
def frame_ffts(stack, start, stop):  # type: ignore[no-untyped-def]
    """There and back for each frame of the stack, in place."""
    for b in range(start, stop):
        c2c(stack[b], stack[b], np.array([0, 1]), False, 1.0 / stack[b].size, 1)
        c2c(stack[b], stack[b], np.array([0, 1]), True, 1.0, 1)


@njit(**JIT)
def frame_ffts_in_cache(frame, count):  # type: ignore[no-untyped-def]
    """The same number of transforms, all of one frame, which never leaves the cache: nothing can be faster."""
    for _ in range(count):
        c2c(frame, frame, np.array([0, 1]), False, 1.0 / frame.size, 1)
        c2c(frame, frame, np.array([0, 1]), True, 1.0, 1)


def random_fields(shape: tuple[int, ...]) -> NDArray[Any]:
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def ffts_alone(model: fs.ForwardModel, batch: int, *, in_cache: bool) -> Any:
    """A call that makes 2 FFTs of the object and 2 × ``batch`` of a frame, and allocates nothing."""
    spectrum = random_fields(model.object_shape)
    out = np.empty_like(spectrum)
    stack = random_fields((batch, *model.frame_shape))

    def slice_in_cache(start: int, stop: int) -> None:
        frame_ffts_in_cache(stack[start], stop - start)

    def call() -> None:
        fft2(spectrum, out, True, 1.0, thread_count())
        run_sliced(slice_in_cache if in_cache else lambda start, stop: frame_ffts(stack, start, stop), batch)
        fft2(out, spectrum, False, 1.0 / out.size, thread_count())

    return call


def main() -> None:
    model = fs.ForwardModel(microscope.optics(), microscope.leds(), (100, 100))
    fidelity, x = microscope.fidelity(model)
    rows = []
    for batch, turns in TURNS.items():
        leds = np.sort(np.random.default_rng(2).choice(len(model), batch, replace=False))

        def gradient(leds: NDArray[np.int64] = leds) -> object:
            return fidelity.gradient(x, leds)

        calls = {
            "gradient": gradient,
            "ffts": ffts_alone(model, batch, in_cache=False),
            "cached": ffts_alone(model, batch, in_cache=True),
        }
        for count in (1, 2):
            with threads(count):
                seconds = interleaved(calls, turns)
                faults = page_faults(gradient)
            ratio = seconds["gradient"] / seconds["ffts"]
            cells = [f"{seconds[name] * 1e3:.2f}" for name in ("gradient", "ffts")]
            cells += [f"{ratio:.2f}", *bar(f"gradient, B = {batch}, {count} threads", ratio, LIMIT)]
            cells += [f"{seconds['gradient'] / seconds['cached']:.2f}", f"{faults:.0f}"]
            rows.append([f"{batch} LEDs, {count} thread{'s' if count > 1 else ''}", *cells])
    header = ["minibatch", "gradient / ms", "its FFTs / ms", "ratio", "bar", "", "ratio, in cache", "page faults"]
    table("Gradient, object 500², frames 100², complex64", header, rows)


if __name__ == "__main__":
    main()
