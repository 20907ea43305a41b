"""Every image with every method, each result kept as soon as it is there, so that nothing is ever computed twice."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope import __version__
from fouriscope.acquisition import Acquisition
from fouriscope.errors import RunFolderError, not_written
from fouriscope.forward import ForwardModel
from fouriscope.paper import paper_model
from fouriscope.reconstruction import reconstruct
from fouriscope.reproduction.images import TestImage
from fouriscope.reproduction.protocol import SNR_DB, Method, Protocol
from fouriscope.run.files import write_arrays
from fouriscope.run.stored_arrays import read_arrays
from fouriscope.simulation import simulate
from fouriscope.solvers import BY_CALLBACK, INTERRUPTED, Callback, Record, Solver

FORMAT = 1
COLUMNS = ("iteration", "frames_seen", "seconds", "misfit", "residual", "snr", "snr_raw")


@dataclass(frozen=True)
class Listener:
    """Who follows a long job: ``tell`` hears what was found, ``plan`` how many milliseconds of work there are,
    ``progress`` how many of them are done and what is going on; ``interrupt`` says whether to stop."""

    tell: Callable[[str], object]
    plan: Callable[[float], object]
    progress: Callable[[float, str], object]
    interrupt: Callback


@dataclass(frozen=True, eq=False)
class Cell:
    """One image reconstructed with one method."""

    image: str
    method: str
    strength: float
    phase: NDArray[np.float32]
    curves: dict[str, NDArray[np.float64]]

    @property
    def final(self) -> float:
        """SNR in dB at the last iteration, aligned."""
        return float(self.curves["snr"][-1])

    @property
    def final_raw(self) -> float:
        return float(self.curves["snr_raw"][-1])

    @property
    def best(self) -> float:
        return float(self.curves["snr"].max())


class Experiment:
    """The simulated acquisitions of a protocol, and the folder that keeps what was made of them."""

    def __init__(self, protocol: Protocol, images: Sequence[TestImage], phase_range: float, folder: Path) -> None:
        self.protocol, self.images, self.phase_range = protocol, list(images), phase_range
        self.folder = folder / "cells"
        self.model = model_of(protocol)
        self._simulated: tuple[str, Acquisition] | None = None

    def truth(self, image: TestImage) -> NDArray[np.float32]:
        return image.grey * np.float32(self.phase_range)

    def acquisition(self, image: TestImage) -> Acquisition:
        """Frames of an image, kept until those of another are asked for; the noise of each has its own seed."""
        if self._simulated is None or self._simulated[0] != image.name:
            self._simulated = None  # before the next ones need their memory
            frames = simulate(self.model, self.truth(image), snr_db=SNR_DB, noise="stack", seed=self._seed(image))
            self._simulated = image.name, frames
        return self._simulated[1]

    def _seed(self, image: TestImage) -> int:
        return self.protocol.seed + [other.name for other in self.images].index(image.name)

    def run(self, image: TestImage, method: Method, strength: float | None, callbacks: Sequence[Callback] = ()) -> Cell:
        """The cell of an image and a method: from the folder if it is there, computed and kept otherwise."""
        key = self._fingerprint(image, method, strength)
        path = self.folder / file_name(image.name) / f"{file_name(method.name)}.npz"
        kept = _read(path, key)
        if kept is not None:
            return kept
        frames = self.acquisition(image)
        result = reconstruct(
            frames,
            prior=method.make_prior(strength),
            method=method.settings(len(frames), seed=self.protocol.seed),
            iterations=method.iterations(self.protocol.gradients),
            callbacks=callbacks,
        )
        if result.stop_reason in (INTERRUPTED, BY_CALLBACK):
            raise KeyboardInterrupt
        cell = Cell(
            image.name,
            method.name,
            result.history.last.strength,
            result.phase.astype(np.float32),
            {name: result.history[name] for name in COLUMNS},
        )
        values = {"key": key, "image": cell.image, "method": cell.method, "strength": cell.strength}
        keep_arrays(path, {"phase": cell.phase}, cell.curves, values)
        return cell

    def _fingerprint(self, image: TestImage, method: Method, strength: float | None) -> str:
        """Everything that a cell depends on; a cell of anything else is computed again."""
        words = self.words(image, method, strength)
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()

    def words(self, image: TestImage, method: Method, strength: float | None) -> dict[str, Any]:
        """What a fingerprint is made of."""
        return {
            "format": FORMAT,
            "version": __version__,
            "frame": self.protocol.frame,
            "radius": self.protocol.radius,
            "gradients": self.protocol.gradients,
            "seed": self._seed(image),
            "phase_range": self.phase_range,
            "image": image.checksum,
            "method": asdict(method),
            "strength": strength,
        }


def run_all(
    experiment: Experiment,
    methods: Sequence[Method],
    strengths: dict[str, dict[str, float]],
    listener: Listener,
) -> list[Cell]:
    """Every image with every method, image by image; ``strengths[image][method]`` or automatic."""
    cells: list[Cell] = []
    done = 0.0
    for image in experiment.images:
        for method in methods:
            cost = method.milliseconds(experiment.protocol.gradients)
            label = f"{image.name}: {method.name}"
            listener.progress(done, label)

            def report(
                solver: Solver, record: Record, done: float = done, method: Method = method, label: str = label
            ) -> None:
                gradients = record.iteration * method.gradients_per_iteration
                listener.progress(done + method.milliseconds(gradients), f"{label}  {record.snr:.2f} dB")

            strength = strengths[image.name].get(method.strength_key) if method.needs_strength else None
            cells.append(experiment.run(image, method, strength, [report, listener.interrupt]))
            done += cost
    listener.progress(done, "done")
    return cells


def planned(protocol: Protocol, methods: Sequence[Method], images: int) -> float:
    """Milliseconds that the whole job is expected to take on two cores."""
    return images * sum(method.milliseconds(protocol.gradients) for method in methods)


def model_of(protocol: Protocol) -> ForwardModel:
    return paper_model(protocol.frame, protocol.radius)


def file_name(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "unnamed"


def keep_arrays(
    path: Path, arrays: dict[str, NDArray[Any]], curves: dict[str, NDArray[Any]], values: dict[str, Any]
) -> None:
    """Write a cell, with the ``key`` among its values by which :func:`kept_arrays` knows it again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, {**arrays, **{f"curve.{name}": curve for name, curve in curves.items()}}, values)
    except OSError as error:
        raise RunFolderError(f"{not_written(path, error)}, and run it again") from error


def kept_arrays(path: Path, key: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """Arrays and values that were kept, if they are those of ``key``; what cannot be read is computed again."""
    if not path.exists():
        return None
    try:
        arrays, values = read_arrays(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return (arrays, values) if values.get("key") == key else None


def curves_of(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The curves among the arrays of a cell, by their names."""
    return {name.removeprefix("curve."): array for name, array in arrays.items() if name.startswith("curve.")}


def _read(path: Path, key: str) -> Cell | None:
    kept = kept_arrays(path, key)
    if kept is None:
        return None
    arrays, values = kept
    curves = curves_of(arrays)
    return Cell(values["image"], values["method"], float(values["strength"]), arrays["phase"], curves)
