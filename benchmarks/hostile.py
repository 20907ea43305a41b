"""Microscopes with faults, drawn at random: ``python -m benchmarks hostile [count] [--first SEED]``.

Every method has the same frames, as their user would describe them, ours after the stray light was taken off as
``fouriscope import`` does. The error is that of the complex field without what
no frame can tell (:func:`fouriscope.simulation.field_error`). Rivals get the geometry that our alignment found and the
frames without stray light too, and each keeps the better of its results.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriscope as fs
from benchmarks import fpm_rs_peer, ptylab_hostile
from benchmarks.heldout import plain_epry
from benchmarks.real import REFERENCE, reference
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition, CalibratedFrames, CorrectedFrames, survey_frames
from fouriscope.acquisition.corrections import Corrections
from fouriscope.acquisition.suggestions import veil
from fouriscope.acquisition.survey import RIM
from fouriscope.optics import Directions, Pupil
from fouriscope.run import Result
from fouriscope.simulation import HostileMicroscope, Truth, field_error

COUNT = 50

Field = NDArray[Any]


def default(acquisition: Acquisition) -> tuple[Acquisition, Result]:
    """The frames as ``fs.reconstruct`` aligns them, and what somebody gets from it who sets nothing."""
    found = fs.align(acquisition).acquisition
    return found, fs.reconstruct(found, align=())


@dataclass(frozen=True)
class Believed:
    """A set of frames with one belief about its geometry."""

    name: str
    acquisition: Acquisition
    gains: NDArray[np.float64] | None = None


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hostile", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help="microscopes")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--results", type=Path, help="a JSON file to go on with: seeds in it are not run again")
    chosen = parser.parse_args(arguments)
    path = chosen.results or Path(tempfile.mkdtemp(prefix="fouriscope_hostile_")) / "hostile.json"
    done: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else {}
    print(f"results: {path}\n", flush=True)
    peers = rivals()
    seeds = [str(seed) for seed in range(chosen.first, chosen.first + chosen.count)]
    for seed in seeds:
        if seed not in done:
            done[seed] = one(int(seed), peers)
            path.write_text(json.dumps(done, indent=1))
        found = done[seed]
        errors = ", ".join(f"{name} {error:.4f}" for name, error in found["errors"].items())
        cause = f"told {found['EPRY, geometry, focus and gains told']:.4f}, off {found['directions off by, in NA']:.4f}"
        print(
            f"{seed:>3} {found['sample']:<9}{errors}; ratio {found['ratio']:.3f} ({cause}), {found['seconds']:.0f} s",
            flush=True,
        )
    _report({seed: done[seed] for seed in seeds})


def one(seed: int, peers: dict[str, Callable[[Believed], Field]]) -> dict[str, Any]:
    """The errors of all methods on the microscope of ``seed``, and ours beside the best of the others."""
    microscope = HostileMicroscope.draw(seed)
    raw, truth = microscope.acquire(seed)
    data = without_veil(raw)
    started = time.perf_counter()
    aligned, result = default(data)
    seconds = time.perf_counter() - started
    beliefs = [Believed("as described", raw), as_found(aligned, result)]
    errors = {"default": field_error(result.transmittance, truth)}
    for name, method in peers.items():
        errors[name] = min(_error(method, belief, truth) for belief in beliefs)
    others = min((error for name, error in errors.items() if name != "default"), default=math.nan)
    known = replace(data, illumination=Directions(truth.geometry.na), pupil=Pupil(defocus=microscope.defocus))
    told = Believed("told", known, truth.gains * truth.exposures)
    return {
        "sample": microscope.sample,
        "errors": errors,
        "ratio": errors["default"] / others,
        "seconds": seconds,
        # For whoever looks for the cause: is it the geometry, or what comes after it?
        "EPRY, geometry, focus and gains told": _error(our_epry, told, truth),
        "directions off by, in NA": directions_off(result, truth),
        "faults": asdict(microscope),
    }


def without_veil(data: Acquisition) -> Acquisition:
    """Without the stray light of dark frames, which ``fouriscope import`` finds and takes off for whoever uses it."""
    outside = np.hypot(*data.illumination.directions(data.patch_center).T) > (1 + RIM) * data.optics.na
    level = veil(survey_frames(data.frames), offset=0.0, outside=outside)
    counts = data.frames
    assert isinstance(counts, CalibratedFrames)
    corrections = Corrections(offset=counts.offset, background=level * counts.gain, gain=counts.gain)
    return replace(data, frames=CorrectedFrames(counts.frames, corrections))


def directions_off(result: Result, truth: Truth) -> float:
    """Root mean square distance of the directions that were found from the true ones, or from their twins."""
    assert result.geometry is not None
    sides = (1, -1) if truth.twin else (1,)
    return min(float(np.sqrt(np.mean((side * result.geometry.na - truth.geometry.na) ** 2 * 2))) for side in sides)


def as_found(data: Acquisition, result: Result) -> Believed:
    """The frames with the directions, the aperture, the focus and the gains of our result."""
    found = result.geometry
    assert found is not None
    optics = replace(data.optics, na=found.objective_na)
    pupil = replace(data.pupil, defocus=found.defocus)
    return Believed(
        "as found", replace(data, optics=optics, illumination=Directions(found.na), pupil=pupil), found.gains
    )


def _error(method: Callable[[Believed], Field], belief: Believed, truth: Truth) -> float:
    """Of a method that gives up or diverges, infinite."""
    try:
        return field_error(method(belief), truth)
    except (fs.errors.FouriscopeError, ArithmeticError, ValueError, IndexError) as error:
        print(f"    {belief.name}: {type(error).__name__}: {error}", flush=True)
        return math.inf


def rivals() -> dict[str, Callable[[Believed], Field]]:
    """The methods that can be run here; of the others it is said why not."""
    found: dict[str, Callable[[Believed], Field]] = {"EPRY": our_epry}
    if REFERENCE.is_file():
        found["reference EPRY"] = reference_epry
    else:
        print(f"the reference EPRY is left out: there is no {REFERENCE}")
    methods: dict[str, tuple[str | None, Callable[..., Field]]] = {
        f"PtyLab {engine}": (ptylab_hostile.why_not(), partial(ptylab_hostile.reconstruct, engine))
        for engine in ptylab_hostile.ENGINES
    }
    methods["fpm-rs"] = (fpm_rs_peer.why_not(), fpm_rs_peer.reconstruct)
    for name, (reason, run) in methods.items():
        if reason:
            print(f"{name} is left out: {reason}")
        else:
            found[name] = partial(_with_belief, run)
    return found


def _with_belief(run: Callable[..., Field], belief: Believed) -> Field:
    return run(belief.acquisition, belief.gains)


def our_epry(belief: Believed) -> Field:
    """20 sweeps in random order, decay 0.3, pupil recovered."""
    data = belief.acquisition
    model, x = plain_epry(data, data.illumination, belief.gains)
    return model.transmittance(x)[model.geometry.object_window]


def reference_epry(belief: Believed) -> Field:
    """The yardstick that shares no code with us; its directions are whole bins."""
    data = belief.acquisition
    frames = np.stack([np.asarray(data.frames.frame(led), np.float64) for led in range(len(data))])
    if belief.gains is not None:
        frames = frames / belief.gains[:, None, None]
    na = data.illumination.directions(data.patch_center)
    optics = data.optics
    found = reference().epry(frames, na, optics.wavelength, optics.na, optics.pixel, data.pupil.defocus)[0]
    return np.asarray(found)


def _report(found: dict[str, dict[str, Any]]) -> None:
    ratios = np.array([one["ratio"] for one in found.values()])
    names = list(next(iter(found.values()))["errors"])
    rows = [
        [
            f"{seed} {one['sample']}",
            *(f"{one['errors'].get(name, math.nan):.4f}" for name in names),
            f"{one['ratio']:.3f}",
        ]
        for seed, one in found.items()
    ]
    table(f"Error of the complex field, {len(found)} hostile microscopes", ["microscope", *names, "ratio"], rows)
    share, worst = float(np.mean(ratios < 1)), float(ratios.max())
    lines = [
        [
            "better than the best of the others",
            f"{share:.2f}",
            *bar("hostile, share that is better", share, 0.9, at_least=True),
        ],
        ["at most 1.1 times as far off", f"{float(np.mean(ratios <= 1.1)):.2f}", "", ""],
        ["worst ratio", f"{worst:.3f}", *bar("hostile, worst ratio", worst, 1.1)],
        ["median ratio", f"{float(np.median(ratios)):.3f}", "", ""],
    ]
    table("Ours beside the best of the others", ["", "value", "bar", ""], lines)
    samples = sorted({one["sample"] for one in found.values()})
    kinds = {sample: [one["ratio"] for one in found.values() if one["sample"] == sample] for sample in samples}
    table("By sample", GROUP, [_group(sample, np.array(kinds[sample])) for sample in samples])
    alone = {
        name: np.array([one["errors"]["default"] / one["errors"][name] for one in found.values()])
        for name in names
        if name != "default"
    }
    table("Beside each alone", GROUP, [_group(name, values) for name, values in alone.items()])


GROUP = ["", "microscopes", "better", "median", "geometric mean", "worst"]


def _group(name: str, ratios: NDArray[np.float64]) -> list[str]:
    middle, mean = float(np.median(ratios)), float(np.exp(np.mean(np.log(ratios))))
    return [name, str(len(ratios)), f"{np.mean(ratios < 1):.2f}", f"{middle:.3f}", f"{mean:.3f}", f"{ratios.max():.2f}"]


if __name__ == "__main__":
    main(sys.argv[1:])
