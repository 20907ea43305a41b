"""The free numbers of the experiment: the phase range, and a strength for every prior, method and image.

They are searched for once and stored: with the package for the paper's images and for scikit-image's, and in the
output folder for all others.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from fouriscope.errors import InvalidInputError
from fouriscope.reproduction.experiment import Experiment, Listener
from fouriscope.reproduction.images import TestImage
from fouriscope.reproduction.protocol import CALIBRATION_TARGET, Method, Protocol, method
from fouriscope.run.files import write_text
from fouriscope.tuning import tune

FILE = "strengths.toml"
CLOSE_ENOUGH = 0.1  # dB
FIRST_RANGE = 0.3
ROUNDS_AT_MOST = 5

Strengths = dict[str, dict[str, float]]
"""By image, then by :attr:`Method.strength_key`."""


class StrengthBook:
    """What is known: the output folder's own findings first, then what the package brought."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.own = _read(self.path.read_text(encoding="utf-8"), str(self.path)) if self.path.exists() else {}
        self.shipped = _read(files("fouriscope.reproduction").joinpath(FILE).read_text(encoding="utf-8"), FILE)

    def phase_range(self, images: Sequence[TestImage], protocol: Protocol) -> float | None:
        """The range that was calibrated for these images, or for a set that they are the first ones of."""
        sums = [image.checksum for image in images]
        for book in (self.own, self.shipped):
            for entry in book.get("phase_range", []):
                if entry["images"][: len(sums)] == sums and entry["problem"] == _problem(protocol):
                    return float(entry["value"])
        return None

    def note_phase_range(self, images: Sequence[TestImage], protocol: Protocol, value: float) -> None:
        entry = {"images": [image.checksum for image in images], "problem": _problem(protocol), "value": value}
        self.own.setdefault("phase_range", []).append(entry)
        self._save()

    def strength(self, image: TestImage, key: str, problem: str) -> float | None:
        for book in (self.own, self.shipped):
            value = book.get("strength", {}).get(f"{image.checksum} {problem}", {}).get(key)
            if value is not None:
                return float(value)
        return None

    def note_strength(self, image: TestImage, key: str, problem: str, value: float) -> float:
        """Write it down; returns it as written, in four digits, so that a second run uses the very same number."""
        table = self.own.setdefault("strength", {}).setdefault(f"{image.checksum} {problem}", {"image": image.name})
        table[key] = float(f"{value:.4g}")
        self._save()
        return float(table[key])

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, tomli_w.dumps(self.own))


def calibrate_phase_range(experiment_for: Callable[[float], Experiment], listener: Listener) -> float:
    """The range [0, r] for which NoReg-Online ends at the paper's 18.48 dB, averaged over the images.

    The SNR rises by about 20 dB for ten times the range; a secant in log r needs two or three rounds.
    """
    online = method("NoReg-Online")
    value, slope = FIRST_RANGE, 20.0
    seen: list[tuple[float, float]] = []
    for _ in range(ROUNDS_AT_MOST):
        experiment = experiment_for(value)
        ends = [experiment.run(image, online, None, [listener.interrupt]).final for image in experiment.images]
        snr = float(np.mean(ends))
        listener.tell(
            f"phase in [0, {value:.4g}] rad: NoReg-Online ends at {snr:.2f} dB (wanted: {CALIBRATION_TARGET} dB)"
        )
        seen.append((math.log10(value), snr))
        if abs(snr - CALIBRATION_TARGET) < CLOSE_ENOUGH:
            return value
        if len(seen) > 1 and seen[-1][0] != seen[-2][0]:
            slope = max(5.0, (seen[-1][1] - seen[-2][1]) / (seen[-1][0] - seen[-2][0]))
        value = float(f"{value * 10 ** ((CALIBRATION_TARGET - snr) / slope):.4g}")
    return value


def find_strengths(
    experiment: Experiment, methods: Sequence[Method], book: StrengthBook, listener: Listener
) -> Strengths:
    """A strength for every image and method that needs one: from the book, or searched for and noted in it.

    Without a search, those that are not in the book are left out, and become automatic.
    """
    problem = f"{_problem(experiment.protocol)}, [0, {experiment.phase_range:g}] rad"
    found: Strengths = {}
    for image in experiment.images:
        found[image.name] = {}
        for one in methods:
            if not one.needs_strength:
                continue
            value = book.strength(image, one.strength_key, problem)
            if value is None and not experiment.protocol.search:
                continue
            if value is None:
                listener.tell(f"{image.name}: searching the strength of {one.name}")
                data = experiment.acquisition(image)
                found_value = tune(
                    data,
                    prior=one.make_prior(None),
                    criterion="truth" if one.strength_from == "oracle" else "held-out",
                    evaluations=5,
                    factor=4.0,
                    callbacks=[listener.interrupt],
                    method=one.settings(len(data), seed=experiment.protocol.seed),
                    iterations=one.iterations(experiment.protocol.gradients),
                ).value
                value = book.note_strength(image, one.strength_key, problem, found_value)
            found[image.name][one.strength_key] = value
    return found


def _problem(protocol: Protocol) -> str:
    """What a strength depends on besides the image: not the number of iterations, which a quick run cuts short."""
    return f"{protocol.frame} px frames, radius {protocol.radius:g}, seed {protocol.seed}"


def _read(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{where}: not a TOML file ({error}); delete it to search again") from error
