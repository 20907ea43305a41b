"""The gradient of a minibatch beside the FFTs that it cannot avoid: same FFT library, same threads, same run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rocket_fft import c2c

from benchmarks import microscope
from benchmarks.report import bar, table
from benchmarks.timing import interleaved, page_faults
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.forward.kernels import JIT, fft2
from fouriscope.parallel import run_sliced, thread_count, threads
from fouriscope.priors import TV

LIMIT = 1.5
TURNS = {60: 100, 293: 40}


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


def ffts_alone(model: ForwardModel, batch: int, *, in_cache: bool) -> Any:
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


def within_a_solver(fidelity: DataFidelity, x: NDArray[Any], leds: NDArray[np.int64]) -> tuple[float, float]:
    """(seconds, page faults) of a gradient between steps of a TV prior, with the heap as a solver leaves it.

    The fastest gradient, and the mean of their page faults, which depends on how the heap happens to lie.
    """
    prior = TV()
    fastest, pages, iterations = float("inf"), 0, 30
    before = ahead = x
    for _ in range(iterations):
        faults, start = page_faults(), time.perf_counter()
        gradient = fidelity.gradient(ahead, leds).gradient
        fastest, pages = min(fastest, time.perf_counter() - start), pages + page_faults() - faults
        after = prior.denoise(ahead - np.float32(1e-4) * gradient, 0.05)
        before, ahead = after, after + np.float32(0.5) * (after - before)
    return fastest, pages / iterations


def main() -> None:
    model = ForwardModel(microscope.optics(), microscope.leds(), (100, 100))
    fidelity, x = microscope.fidelity(model)
    rows, within = [], []
    for batch, turns in TURNS.items():
        leds = np.sort(np.random.default_rng(2).choice(len(model), batch, replace=False))

        def gradient(leds: NDArray[np.int64] = leds) -> object:
            return fidelity.gradient(x, leds)

        calls = {
            "gradient": gradient,
            "ffts": ffts_alone(model, batch, in_cache=False),
            "cached": ffts_alone(model, batch, in_cache=True),
        }
        on_one_thread = 0.0
        for count in (1, 2):
            name = f"{batch} LEDs, {count} thread{'s' if count > 1 else ''}"
            with threads(count):
                seconds = interleaved(calls, turns)
                in_solver, faults = within_a_solver(fidelity, x, leds)
            alone, ffts = seconds["gradient"], seconds["ffts"]
            on_one_thread = on_one_thread or ffts
            cells = [f"{alone * 1e3:.2f}", f"{ffts * 1e3:.2f}", f"{alone / ffts:.2f}"]
            cells += bar(f"gradient, {name}", alone / ffts, LIMIT)
            rows.append([name, *cells, f"{alone / seconds['cached']:.2f}", f"{on_one_thread / ffts:.2f}"])
            within.append([name, f"{in_solver * 1e3:.2f}", f"{in_solver / ffts:.2f}", f"{faults:.0f}"])
    title = "Gradient, object 500², frames 100², complex64"
    header = [
        "minibatch",
        "gradient / ms",
        "its FFTs / ms",
        "ratio",
        "bar",
        "",
        "ratio, FFTs in cache",
        "FFTs' speed-up",
    ]
    table(title, header, rows)
    table("The same between steps of a TV prior", ["minibatch", "gradient / ms", "ratio", "page faults"], within)


if __name__ == "__main__":
    main()
