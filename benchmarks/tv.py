"""Total-variation prox: time to a given distance from the exact minimiser, beside scikit-image's, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.report import bar, table
from fouriscope.parallel import thread_count
from fouriscope.priors import TV

Image = npt.NDArray[np.floating[Any]]

WEIGHT = 0.05
NOISE = 0.1
TARGETS = (1e-3, 1e-4)
RIVAL_LIMIT = 4000


def noisy_photograph(size: int = 500) -> Image:
    from skimage import data, transform

    clean = transform.resize(data.camera(), (size, size), anti_aliasing=True)
    noisy: Image = clean + np.random.default_rng(0).normal(0, NOISE, clean.shape)
    return noisy


def fastest(call: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several calls: the other users of the machine only ever add."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def relative_distance(image: Image, exact: Image) -> float:
    # Not by BLAS: its threads go on spinning after the sum, and would be timed with the next call.
    return float(np.sqrt(np.sum((image - exact) ** 2) / np.sum(exact**2)))


def ours(image: Image, exact: Image, target: float) -> tuple[float, float, int]:
    """Seconds, distance and iterations of a cold call with the loosest tried accuracy that reaches the target."""
    accuracy = 0.2
    while True:
        prior = TV(accuracy=accuracy, max_iterations=20_000)
        distance = relative_distance(prior.denoise(image, WEIGHT**0.5), exact)
        if distance <= target:
            break
        accuracy /= 1.1

    def cold() -> None:
        TV(accuracy=accuracy, max_iterations=20_000).denoise(image, WEIGHT**0.5)

    return fastest(cold, 25), distance, prior.last_iterations


def rival(image: Image, exact: Image, target: float) -> tuple[float, float, int]:
    """The same of ``denoise_tv_chambolle``: its ``weight`` is our w, its eps is set so that it never stops early."""
    from skimage.restoration import denoise_tv_chambolle

    def run(iterations: int) -> Image:
        result: Image = denoise_tv_chambolle(image, weight=WEIGHT, eps=0, max_num_iter=iterations)
        return result

    too_few, enough = 0, 16
    while enough < RIVAL_LIMIT and relative_distance(run(enough), exact) > target:
        too_few, enough = enough, min(2 * enough, RIVAL_LIMIT)
    while enough - too_few > max(1, enough // 16):
        middle = (too_few + enough) // 2
        if relative_distance(run(middle), exact) > target:
            too_few = middle
        else:
            enough = middle
    return fastest(lambda: run(enough), 4), relative_distance(run(enough), exact), enough


def warm_call(image: Image) -> tuple[float, int]:
    """Seconds and iterations of a call within a solver: the image has moved a little since the last one."""
    rng = np.random.default_rng(1)
    moved = [(image + rng.normal(0, 0.02 * NOISE, image.shape)).astype(image.dtype) for _ in range(20)]
    prior = TV()
    prior.denoise(image, WEIGHT**0.5)
    seconds = []
    for _ in range(3):
        for following in moved:
            seconds.append(fastest(lambda following=following: prior.denoise(following, WEIGHT**0.5), 1))  # type: ignore[misc]
    return min(seconds), prior.last_iterations


def main() -> None:
    image = noisy_photograph()
    exact = TV(accuracy=1e-5, max_iterations=8000).denoise(image, WEIGHT**0.5)
    single = image.astype(np.float32)
    TV().denoise(single, WEIGHT**0.5)  # compiles
    rows = []
    for target in TARGETS:
        mine, theirs = ours(single, exact, target), rival(single, exact, target)
        ratio = theirs[0] / mine[0]
        cells = [cell for s, d, n in (mine, theirs) for cell in (f"{s * 1e3:.1f}", str(n), f"{d:.1e}")]
        faster = bar(f"TV, cold, at {target:g}", ratio, 20, at_least=True)
        rows.append([f"{target:g}", *cells, f"{ratio:.0f} x", *faster])
    header = [
        "distance wanted",
        "fouriscope / ms",
        "iterations",
        "distance",
        "scikit-image / ms",
        "iterations",
        "distance",
    ]
    title = f"TV prox, {single.shape[0]}², float32, weight {WEIGHT}, {thread_count()} threads: cold, to ‖x − x*‖/‖x*‖"
    table(title, [*header, "faster", "bar", ""], rows)
    seconds, iterations = warm_call(single)
    row = [
        f"accuracy {TV().accuracy}",
        f"{seconds * 1e3:.1f}",
        str(iterations),
        *bar("TV, warm / ms", seconds * 1e3, 3),
    ]
    table("A warm call, as in a solver", ["", "ms", "iterations", "bar", ""], [row])


if __name__ == "__main__":
    main()
