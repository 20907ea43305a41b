"""The strength of the prior that is found, beside the best one: ``python -m benchmarks strength [count]``.

Hostile microscopes with the alignment behind them. The default chooses the strength from the noise and from unseen
frames. The oracle tries strengths on the same frames, with everything else as the default has it, and knows the truth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import fouriscope as fs
from benchmarks.hostile import default, without_veil
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.run import Result
from fouriscope.settings import Calibration, Spectral
from fouriscope.simulation import HostileMicroscope, field_error

COUNT = 10
# Beside the strength that follows from the noise alone.
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0)
BAR = 1.05


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks strength", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help="microscopes")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    chosen = parser.parse_args(arguments)
    rows, ratios = [], []
    for seed in range(chosen.first, chosen.first + chosen.count):
        microscope = HostileMicroscope.draw(seed)
        raw, truth = microscope.acquire(seed)
        aligned, result = default(without_veil(raw))
        own = float(result.config["solver"]["strength_factor"])
        errors = {
            factor: field_error(with_strength(aligned, result, factor).transmittance, truth) for factor in FACTORS
        }
        errors[own] = field_error(result.transmittance, truth)
        best = min(errors, key=errors.__getitem__)
        ratios.append(errors[own] / errors[best])
        verdict = bar(f"strength, seed {seed}: error beside the oracle's", ratios[-1], BAR)
        numbers = [f"{own:g}", f"{errors[own]:.4f}", f"{best:g}", f"{errors[best]:.4f}", f"{ratios[-1]:.3f}"]
        rows.append([f"{seed} {microscope.sample}", *numbers, *verdict])
        print(
            f"{seed:>3} {microscope.sample:<9}{own:g}: "
            + ", ".join(f"{f:g} {e:.4f}" for f, e in sorted(errors.items()))
        )
        sys.stdout.flush()
    table(
        "Automatic strength beside the oracle's; factors of the strength that follows from the noise",
        ["microscope", "chosen", "error", "oracle", "error", "ratio", "bar", ""],
        rows,
    )
    print(
        f"within 5 %: {np.mean(np.array(ratios) <= BAR):.0%}; median {np.median(ratios):.3f}, worst {max(ratios):.3f}"
    )


def with_strength(aligned: Acquisition, like: Result, factor: float) -> Result:
    """The reconstruction with this factor, and everything else that the default had decided."""
    method = Spectral.model_validate({**like.config["solver"], "strength_factor": factor})
    calibration = Calibration.model_validate(like.config["calibration"])
    return fs.reconstruct(aligned, align=(), method=method, calibrate=calibration)


if __name__ == "__main__":
    main(sys.argv[1:])
