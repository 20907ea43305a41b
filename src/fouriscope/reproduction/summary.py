"""From cells to the numbers that the paper reports, and to the bars that this project has set itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.reproduction.experiment import Cell
from fouriscope.reproduction.protocol import CALIBRATION_TARGET, FAST, METHODS, PUBLISHED_SECONDS, Method


@dataclass(frozen=True, eq=False)
class Average:
    """A method over all images; curves are means at equal iterations."""

    method: Method
    cells: tuple[Cell, ...]

    @property
    def final(self) -> float:
        return float(np.mean([cell.final for cell in self.cells]))

    @property
    def final_raw(self) -> float:
        return float(np.mean([cell.final_raw for cell in self.cells]))

    @property
    def best(self) -> float:
        """The mean of each image's own best iteration."""
        return float(np.mean([cell.best for cell in self.cells]))

    @property
    def milliseconds(self) -> float:
        """An iteration; the first ones, which measure the step and may compile, are left out."""
        times = [np.median(np.diff(cell.curves["seconds"])) for cell in self.cells if len(cell.curves["seconds"]) > 1]
        return 1e3 * float(np.mean(times)) if times else float("nan")

    def curve(self, column: str) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.mean([cell.curves[column] for cell in self.cells], axis=0)
        return mean

    def seconds_to(self, level: float) -> float:
        """Mean seconds until the mean SNR has reached ``level``; infinite if it never does."""
        reached = np.flatnonzero(self.curve("snr") >= level)
        return float(self.curve("seconds")[reached[0]]) if len(reached) else float("inf")


@dataclass(frozen=True)
class Bar:
    """Something measured, beside what the paper has and what it must reach."""

    what: str
    paper: str
    wanted: str
    measured: str
    reached: bool


@dataclass(frozen=True, eq=False)
class Summary:
    """Averages by method, in the order of :data:`METHODS`."""

    averages: dict[str, Average]
    phase_range: float

    @classmethod
    def of(cls, cells: Sequence[Cell], phase_range: float) -> Summary:
        by_name: dict[str, list[Cell]] = {}
        for cell in cells:
            by_name.setdefault(cell.method, []).append(cell)
        found = {m.name: Average(m, tuple(by_name[m.name])) for m in METHODS if m.name in by_name}
        return cls(found, phase_range)

    def __getitem__(self, name: str) -> Average:
        return self.averages[name]

    @property
    def images(self) -> list[str]:
        return [cell.image for cell in next(iter(self.averages.values())).cells]

    def bars(self) -> list[Bar]:
        """The numbers of the issue that can be told from the methods that were run."""
        have = self.averages.keys()
        bars: list[Bar] = []
        if "NoReg-Online" in have:
            noreg = self["NoReg-Online"]
            off = noreg.final - CALIBRATION_TARGET
            bars.append(
                Bar("NoReg-Online", "18.48 dB", "18.48 ± 1 by calibration", f"{noreg.final:.2f} dB", abs(off) <= 1)
            )
        if {"NoReg-Online", "TV-Online"} <= have:
            bars += _gain(self["TV-Online"], self["NoReg-Online"], 5.0, 0.94, "+0.94 dB")
        if {"NoReg-Online", "BM3D-Online"} <= have:
            bars += _gain(self["BM3D-Online"], self["NoReg-Online"], 7.0, 1.5, "+1.26 dB")
        if {"TV-Online", "BM3D-Online"} <= have:
            bars += _gain(self["BM3D-Online"], self["TV-Online"], 0.4, 0.4, "+0.32 dB")
        if {"BM3D-Online", "BM3D-Full"} <= have:
            loss = self["BM3D-Full"].final - self["BM3D-Online"].final
            bars.append(Bar("BM3D-Full over BM3D-Online", "0.25 dB", "≤ 0.25 dB", f"{loss:+.2f} dB", loss <= 0.25))
        for prior in ("NoReg", "TV", "BM3D"):
            if {f"{prior}-Online", f"{prior}-Batch"} <= have:
                bars.append(_online_over_batch(self[f"{prior}-Online"], self[f"{prior}-Batch"]))
        if "BM3D-Online" in have:
            factor = PUBLISHED_SECONDS["BM3D-Online"] / (self["BM3D-Online"].milliseconds / 1e3)
            bars.append(
                Bar("BM3D-Online, per iteration", "9.07 s", "60 × faster", f"{factor:.0f} × faster", factor >= 60)
            )
        if {"BM3D-Full", FAST} <= have:
            level = self["BM3D-Full"].final - 0.25
            share = self[FAST].seconds_to(level) / self["BM3D-Full"].seconds_to(level)
            what = f"{FAST}: seconds to BM3D-Full − 0.25 dB, as a share of BM3D-Full's"
            bars.append(Bar(what, "about 0.5", "≤ 0.5", f"{share:.2f}", share <= 0.5))
        for name, held in (("TV-Online", "TV-Online, held-out λ"), (FAST, f"{FAST}, held-out λ")):
            if {name, held} <= have:
                loss = self[name].final - self[held].final
                bars.append(
                    Bar(f"{name}: oracle over held-out strength", "–", "≤ 0.3 dB", f"{loss:+.2f} dB", loss <= 0.3)
                )
        return bars

    def as_json(self) -> dict[str, Any]:
        return {
            "phase_range_rad": self.phase_range,
            "images": self.images,
            "methods": {
                name: {
                    "snr_db": average.final,
                    "snr_raw_db": average.final_raw,
                    "snr_best_iteration_db": average.best,
                    "milliseconds_an_iteration": average.milliseconds,
                    "iterations": int(average.curve("iteration")[-1]),
                    "images": {
                        cell.image: {
                            "snr_db": cell.final,
                            "snr_raw_db": cell.final_raw,
                            "snr_best_iteration_db": cell.best,
                            "strength": cell.strength,
                            "seconds": float(cell.curves["seconds"][-1]),
                        }
                        for cell in average.cells
                    },
                    "average_snr_db": [round(float(value), 4) for value in average.curve("snr")],
                    "average_seconds": [round(float(value), 5) for value in average.curve("seconds")],
                }
                for name, average in self.averages.items()
            },
            "bars": [
                {"what": b.what, "paper": b.paper, "bar": b.wanted, "measured": b.measured, "reached": b.reached}
                for b in self.bars()
            ],
        }


def _gain(better: Average, worse: Average, final: float, best: float, paper: str) -> list[Bar]:
    what = f"{better.method.name} over {worse.method.name}"
    gains = (better.final - worse.final, better.best - worse.best)
    return [
        Bar(f"{what}, at convergence", paper, f"≥ +{final:g} dB", f"{gains[0]:+.2f} dB", gains[0] >= final),
        Bar(f"{what}, each at its best iteration", paper, f"≥ +{best:g} dB", f"{gains[1]:+.2f} dB", gains[1] >= best),
    ]


def _online_over_batch(online: Average, batch: Average) -> Bar:
    gains = [a.final - b.final for a, b in zip(online.cells, batch.cells, strict=True)]
    what = f"{online.method.name} over {batch.method.name}, the image that gains least"
    return Bar(what, "higher", "higher on every image", f"{min(gains):+.2f} dB", min(gains) > 0)
