"""Run folders as the page needs them: read only, and patient with runs that are empty, broken, half-written or gone."""

from __future__ import annotations

import csv
import io
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from fouriscope.acquisition.colours import COLOURS
from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.run import schema
from fouriscope.run.assemble import build_stop
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.snapshot import SNAPSHOT_NAME
from fouriscope.settings import Stop
from fouriscope.viewer.field_images import FieldImages
from fouriscope.viewer.images import COLOUR_NAMES, RunImages
from fouriscope.viewer.metrics_file import MetricsFile, finite
from fouriscope.viewer.predictions import Predictions
from fouriscope.viewer.pyramid_images import COLOUR_PYRAMID, PyramidImages
from fouriscope.viewer.summaries import summary_of

# What is watched for changes, and what the page is told has changed.
WATCHED = {
    "images": (SNAPSHOT_NAME, "result", "thumbnail.png"),
    "metrics": ("metrics.jsonl", "tiles"),
    "status": ("status.json", "config.toml", "plan.json", "."),
}
FIGURES = {"figure.png": "result/figure.png", "colour.png": "result/colour.png", "thumbnail.png": "thumbnail.png"}


class ViewedRun:
    """One run folder. Nothing is kept that the folder may change, but lines of metrics that were read."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.files = FolderFiles(path, confined=True)
        self.metrics = MetricsFile(self.files)
        self.predictions = Predictions(self.files)

    @property
    def is_field(self) -> bool:
        return self.files.exists("plan.json")

    @property
    def is_colour(self) -> bool:
        """Whether it has three wavelengths, each a run of its own in a folder below."""
        return is_colour(self.files)

    @property
    def images(self) -> RunImages | PyramidImages:
        if self.is_field:
            return FieldImages(self.files)
        return PyramidImages(self.files, COLOUR_PYRAMID, COLOUR_NAMES) if self.is_colour else RunImages(self.files)

    def versions(self) -> dict[str, tuple[int | None, ...]]:
        """Something that changes when the run does, by what changes."""
        return {kind: tuple(map(self.files.version, names)) for kind, names in WATCHED.items()}

    def image_version(self) -> str:
        """Of everything that images are made of."""
        return format(hash(self.versions()["images"]) & (2**63 - 1), "x")

    def describe(self) -> dict[str, Any]:
        """What the list of runs shows. If a run cannot be read, it says why."""
        described: dict[str, Any] = {"name": self.name, "kind": "field" if self.is_field else "run", "images": []}
        try:
            described |= self._state()
            if described["state"] in ("gone", "empty", "broken"):
                return described
            described |= {"figures": self.figures(), "image_version": self.image_version()}
            described |= self._progress(described["state"]) | {"images": self.images.names()}
        except (FouriscopeError, OSError) as error:
            described |= {"state": "broken", "message": str(error), "images": []}
        return described

    def _state(self) -> dict[str, Any]:
        if not self.path.is_dir():
            return {"state": "gone", "message": "The folder does not exist yet, or it was moved or deleted."}
        if not any(self.path.iterdir()):
            return {"state": "empty", "message": "The folder is empty. Waiting for a run to begin in it."}
        if not self.files.exists("config.toml"):
            return {"state": "broken", "message": "Not a run folder: config.toml is missing."}
        status = schema.checked(schema.Status, self.files.json("status.json"), "status.json")
        state, reason = status["state"], status.get("reason", "")
        if state == "running" and _is_dead(status):
            began = "field" if self.is_field else "colour" if self.is_colour else None
            command = "fouriscope resume" if began is None else f"the `fouriscope {began}` command that began it"
            return {"state": "stalled", "message": f"Its process ended unexpectedly. Continue it with {command}."}
        return {"state": state, "message": reason, "verdict": self._verdict() if state == "finished" else None}

    def _verdict(self) -> dict[str, Any] | None:
        """What a finished run says about itself, if it does: a level, a sentence, and warnings."""
        if not self.files.exists("result/summary.json"):
            return None
        try:
            found = self.files.json("result/summary.json")["verdict"]
            warnings = [str(warning) for warning in found["warnings"]]
            return {"level": str(found["level"]), "sentence": str(found["sentence"]), "warnings": warnings}
        except (KeyError, TypeError):  # of an older version, or of a field
            return None

    def summary(self) -> list[dict[str, Any]]:
        """The run in a few lines: :func:`fouriscope.viewer.summaries.summary_of`."""
        return summary_of(self.files)

    def _progress(self, state: str) -> dict[str, Any]:
        if self.is_field:
            done, total = self.images.tiles() if isinstance(self.images, FieldImages) else (0, 0)
            return {"tiles": [done, total], "fraction": done / total if total else None}
        records = self.metrics.read()
        if not records:
            return {"iteration": 0, "fraction": None}
        fraction = build_stop(self._stop()).fraction_done(self.metrics.history())
        left = self.metrics.seconds_left(fraction) if state == "running" else None
        return {"iteration": len(records), "fraction": finite(fraction), "seconds_left": left}

    def _stop(self) -> Stop:
        try:
            return Stop.model_validate(self.files.toml("config.toml").get("stop", {}))
        except ValidationError as error:
            raise RunFolderError(f"config.toml: stop.{schema.first_problem(error)}") from error

    def config(self) -> str:
        """config.toml, as it is."""
        return self.files.shown_text("config.toml")

    def figures(self) -> list[str]:
        return [name for name, path in FIGURES.items() if self.files.exists(path)]

    def figure(self, name: str) -> bytes:
        """A PNG by its name in :data:`FIGURES`."""
        if name not in FIGURES or not self.files.exists(FIGURES[name]):
            raise RunFolderError(f"this run has no figure of that name; it has {', '.join(self.figures()) or 'none'}")
        return self.files.data(FIGURES[name])

    def leds(self, *, with_misfits: bool) -> dict[str, Any]:
        """The LEDs by column; ``with_misfits`` computes the misfits, and those that noise alone would leave."""
        leds: dict[str, Any] = {"objective_na": None, "na": [], "weight": [], "misfit": [], "noise": [], "arrived": []}
        images = self.images
        if isinstance(images, RunImages) and images.source() == SNAPSHOT_NAME:
            snapshot = images.snapshot()
            leds["objective_na"] = snapshot.objective_na or None
            na = snapshot.led_na if snapshot.led_na is not None else np.zeros((0, 2))
            weight, arrived = snapshot.led_weight, snapshot.led_arrived
        elif self.files.exists("result/geometry.csv"):
            na = self._table_of_leds()
            numbers = schema.checked(schema.Geometry, self.files.json("result/geometry.json"), "result/geometry.json")
            leds["objective_na"] = numbers["objective_na"]
            weight, arrived = np.ones(len(na)), np.ones(len(na), bool)
        else:
            return leds
        misfit = noise = np.full(len(na), np.nan)
        if with_misfits:
            misfit, noise = self.predictions.misfits(), self.predictions.expected_misfits()
        if not (np.isfinite(na).all() and np.isfinite(weight).all()):
            raise RunFolderError("directions or weights of LEDs are not finite")
        known = {"misfit": finite_or_none(misfit), "noise": finite_or_none(noise)}
        return leds | known | {"na": na.tolist(), "weight": weight.tolist(), "arrived": arrived.tolist()}

    def _table_of_leds(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        text = self.files.text("result/geometry.csv")
        try:
            rows = list(csv.DictReader(io.StringIO(text)))
            return np.array([[float(row["na_y"]), float(row["na_x"])] for row in rows]).reshape(-1, 2)
        except (KeyError, ValueError, TypeError, csv.Error) as error:
            raise RunFolderError(f"result/geometry.csv was not written by a run ({error})") from error


def finite_or_none(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    """As JSON can hold them."""
    return [float(value) if np.isfinite(value) else None for value in values]


def is_colour(files: FolderFiles) -> bool:
    """Whether a folder holds three wavelengths."""
    try:
        return bool(files.json("provenance.json").get("kind") == "colour")
    except RunFolderError:
        return False


def viewed_runs(paths: Sequence[Path]) -> list[ViewedRun]:
    """The runs of the given folders, under names that tell them apart.

    >>> [run.name for run in viewed_runs([Path("a/run"), Path("b/run"), Path("tv")])]
    ['a/run', 'b/run', 'tv']
    """
    absolute = [path.absolute() for path in paths]
    depth = 1
    while depth < 8 and len({path.parts[-depth:] for path in absolute}) < len(set(absolute)):
        depth += 1
    names = [path.name for path in absolute]
    return [
        ViewedRun(path, path.name if names.count(path.name) == 1 else "/".join(path.parts[-depth:]))
        for path in absolute
    ]


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Run folders for ``paths``, of which a folder of runs (a demo's, say) stands for the runs in it."""
    folders: list[Path] = []
    for path in paths:
        if not path.is_dir():
            what = "not a folder" if path.exists() else "no such folder"
            raise RunFolderError(f"{path}: {what}; give a run folder that `fouriscope reconstruct` wrote")
        inside = sorted(child for child in path.iterdir() if (child / "status.json").is_file())
        if (path / "config.toml").exists() and (path / "status.json").exists():
            folders += [path, *(path / name for name in COLOURS)] if is_colour(FolderFiles(path)) else [path]
        elif inside:
            folders += inside
        elif any(path.iterdir()) and not (path / "provenance.json").exists():
            raise RunFolderError(
                f"{path}: neither a run folder nor a folder of runs; a run folder holds config.toml and status.json"
            )
        else:
            folders.append(path)  # empty, or just begun: the page waits
    return folders


def _is_dead(status: dict[str, Any]) -> bool:
    """Whether the process that says it runs is a process of this machine that does not."""
    pid = status.get("pid")
    if pid is None or status.get("host") != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # there is one, of somebody else
    return False
