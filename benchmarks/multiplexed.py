"""Several LEDs at once: fewer frames for nearly the same image, on the demo's problem and on real frames added up.

Adding frames of a sequential set gives the frames of its LEDs together, with the noise of as many read-outs.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.heldout import REGION, drawn, in_the_middle, misfits
from benchmarks.microscope import leds, optics
from benchmarks.report import bar, table
from benchmarks.timing import interleaved
from fouriscope import settings
from fouriscope.acquisition import Acquisition, multiplex
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.loading import description_of
from fouriscope.optics import Multiplexed, random_patterns
from fouriscope.paper import paper_model, phase_image
from fouriscope.reconstruction import reconstruct
from fouriscope.run.aligned import aligned, with_alignment
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop
from fouriscope.run.config import parse_config
from fouriscope.run.inputs import resolved
from fouriscope.settings import RunConfig
from fouriscope.simulation import simulate

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "fpm"
SETS = ("uconn_bloodsmear_green", "zuo_usaf", "thu_usaf_defocused")
PHASE_RANGE, SNR_DB, TOGETHER, BATCH, ITERATIONS = 0.3, 40.0, 8, 60, 300
NEAR_SEQUENTIAL, BEYOND_FEW, HELD_OUT = 2.0, 2.0, 1.25
ALIGNED_ON, REAL_TOGETHER, DRAWS = 256, 4, (0,)


def main() -> None:
    demo()
    if DATA.is_dir():
        real()
    else:
        print(f"skipped: no data in {DATA} (FOURISCOPE_DATA says where to look)")


def demo() -> None:
    """Cameraman as a phase, 40 dB over the stack, TV: 293 frames, 69 patterns, and 69 frames of one LED each."""
    sequential = paper_model()
    truth = phase_image(sequential.object_shape, PHASE_RANGE)
    patterns = random_patterns(leds(), optics(), TOGETHER, seed=0)
    models = {
        "one by one": sequential,
        "dark field eight at a time": lit(Multiplexed(leds(), patterns), sequential),
        "the innermost, one by one": lit(leds().subset(inner(len(patterns))), sequential),
        "bright field and some of the dark": lit(leds().subset(spread(len(patterns))), sequential),
    }
    found = {}
    for name, model in models.items():
        data = simulate(model, truth, snr_db=SNR_DB, seed=0)
        result = reconstruct(
            data,
            object=settings.Object(shape=sequential.object_shape),
            prior="tv",
            loss="intensity",
            batch=min(BATCH, len(data)),
            iterations=ITERATIONS,
            seed=0,
        )
        found[name] = result.snr(truth).aligned
    names = list(models)
    lost = found[names[0]] - found[names[1]]
    more = found[names[1]] - max(found[name] for name in names[2:])
    rows = [[name, str(len(models[name])), f"{found[name]:.2f}", "", "", ""] for name in names]
    rows.append(["lost beside one by one", "", "", f"{lost:.2f}", *bar("patterns, dB lost", lost, NEAR_SEQUENTIAL)])
    cells = bar("patterns, dB beyond as many single frames", more, BEYOND_FEW, at_least=True)
    rows.append(["more than as many single frames", "", "", f"{more:.2f}", *cells])
    title = f"Cameraman, {SNR_DB:g} dB, TV, {ITERATIONS} iterations: SNR"
    table(title, ("LEDs", "frames", "SNR / dB", "dB", "bar", ""), rows)
    calls = {}
    for name in names[:2]:
        fidelity = DataFidelity(models[name], models[name].intensity(truth))
        calls[name] = lambda fidelity=fidelity: fidelity.gradient(truth)
    seconds = interleaved(calls, 10)
    table("A gradient over all frames", ("LEDs", "ms"), [[name, f"{1e3 * seconds[name]:.1f}"] for name in calls])


def lit(lights: Any, like: ForwardModel) -> ForwardModel:
    return ForwardModel(like.optics, lights, like.frame_shape, object_shape=like.object_shape)


def inner(count: int) -> NDArray[np.int64]:
    """The LEDs nearest to the axis."""
    return np.sort(np.argsort(np.hypot(*leds().directions().T), kind="stable")[:count])


def spread(count: int) -> NDArray[np.int64]:
    """Bright field, and as much of the dark field as there is room for, drawn at random."""
    bright = optics().passes(np.hypot(*leds().directions().T))
    dark = np.random.default_rng(0).choice(np.flatnonzero(~bright), count - int(bright.sum()), replace=False)
    return np.sort(np.concatenate([np.flatnonzero(bright), dark]))


def real() -> None:
    """Held-out LEDs predicted from the other frames, one by one and added four at a time."""
    rows = []
    for name in SETS:
        config = aligned_description(name)
        data = build_acquisition(in_the_middle(config, Path(), REGION), Path())
        found: dict[str, list[tuple[float, float]]] = {}
        for draw in DRAWS:
            held = drawn(data, np.random.default_rng(draw))
            weights = data.frame_weights
            weights[held] = 0
            found.setdefault("one by one", []).append(predicted(replace(data, weights=weights), config, held, data))
            for way, together in added(data, weights > 0, draw).items():
                summed = multiplex(replace(data, weights=weights), together)
                found.setdefault(way, []).append(predicted(summed, config, held, data))
        base = np.array(found["one by one"])
        for way, pairs in found.items():
            bright, dark = np.mean(pairs, axis=0)
            ratio = float(np.exp(np.mean(np.log(np.array(pairs) / base))))
            cells = bar(f"{name}, {way}: held-out misfit", ratio, HELD_OUT) if way != "one by one" else ["", ""]
            rows.append([name, way, f"{bright:.4f}", f"{dark:.4f}", f"{ratio:.3f}", *cells])
    header = ("set", "frames", "bright", "dark", "beside one by one", "bar", "")
    table(f"Real frames of {REGION}², misfit of LEDs held out, draws: {len(DRAWS)}", header, rows)


def aligned_description(name: str) -> RunConfig:
    """The set as `fouriscope import` describes it, with what an alignment on its middle found."""
    config, base = description_of(DATA / name)
    config = in_the_middle(config, base, ALIGNED_ON)
    alignment = aligned(build_acquisition(config, base), config.alignment)
    return parse_config(with_alignment(resolved(config, base), alignment), where=name)


def added(data: Acquisition, used: NDArray[np.bool_], seed: int) -> dict[str, NDArray[np.float64]]:
    """Patterns of the frames that are used: dark field four at a time, and all of them, each side of the pupil's edge
    with its own kind."""
    sizes = np.hypot(*data.illumination.directions(data.patch_center).T)
    bright = data.optics.passes(sizes)
    dark_only = np.concatenate(
        [np.eye(len(data))[used & bright], groups(np.flatnonzero(used & ~bright), len(data), seed)]
    )
    both = [groups(np.flatnonzero(used & side), len(data), seed) for side in (bright, ~bright)]
    return {"dark field added four at a time": dark_only, "all added four at a time": np.concatenate(both)}


def groups(chosen: NDArray[np.int64], count: int, seed: int) -> NDArray[np.float64]:
    order = np.random.default_rng(seed).permutation(chosen)
    patterns = np.zeros((-(-len(order) // REAL_TOGETHER), count))
    patterns[np.arange(len(order)) // REAL_TOGETHER, order] = 1
    return patterns


def predicted(seen: Acquisition, config: RunConfig, held: NDArray[np.int64], data: Acquisition) -> tuple[float, float]:
    """Misfits of ``held``, in bright and in dark field, after a run without them."""
    solver = build_solver(seen, config)
    solver.solve(build_stop(config.stop))
    model, geometry = solver.model, solver.model.geometry
    one_by_one = ForwardModel(
        data.optics,
        data.illumination,
        data.frame_shape,
        pupil=model.pupil,
        object="wave",
        object_shape=geometry.object_shape,
        margin=geometry.margin,
        patch_center=data.patch_center,
    )
    return misfits(data, one_by_one, solver.x, held)


if __name__ == "__main__":
    main()
