"""What the camera saw of an LED and what the model predicts, from the checkpoint of a run.

The frames lie where ``config.toml`` of the run says: the one thing that is read from outside the run folder, and only
as frames. Everything here is computed when somebody asks, and takes the processor from a solver that runs meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import RunFolderError
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.run.assemble import build_acquisition, build_calibration, build_loss, build_model
from fouriscope.run.config import parse_config
from fouriscope.run.folder import RunFolder
from fouriscope.settings import RunConfig
from fouriscope.solvers import SolverState
from fouriscope.solvers._epry_arrays import x_of
from fouriscope.viewer.folder_files import FolderFiles

FloatArray = NDArray[np.float32]
KINDS = ("measured", "predicted", "difference")


class Predictions:
    """Frames and misfits of one run, at its last checkpoint; a newer checkpoint is taken when it is there."""

    def __init__(self, files: FolderFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._version: int | None = None
        self._state: tuple[DataFidelity, NDArray[Any]] | None = None
        self._misfits: NDArray[np.float64] | None = None

    def version(self) -> int | None:
        """Of the checkpoint; None where there is none."""
        return self._files.version("checkpoint.npz")

    def frame(self, led: int, kind: str) -> FloatArray:
        """The measured or the predicted frame of an LED, or predicted − measured."""
        with self._lock:
            fidelity, x = self._current()
            if not 0 <= led < len(fidelity):
                raise RunFolderError(f"LED must be 0 … {len(fidelity) - 1}, got {led}")
            measured = predicted = np.zeros(fidelity.model.frame_shape, np.float32)
            if kind != "predicted":
                measured = np.asarray(fidelity.frames.frame(led), np.float32)
            if kind != "measured":
                predicted = np.asarray(fidelity.model.intensity(x, [led])[0], np.float32)
        return {"measured": measured, "predicted": predicted, "difference": predicted - measured}[kind]

    def misfits(self) -> NDArray[np.float64]:
        """d_j of each LED, in the loss that the run minimises."""
        with self._lock:
            fidelity, x = self._current()
            if self._misfits is None:
                self._misfits = fidelity.misfits(x)
            return self._misfits

    def pixel(self) -> float:
        """Of a frame, at the sample, in metres."""
        with self._lock:
            return self._current()[0].model.optics.pixel

    def _current(self) -> tuple[DataFidelity, NDArray[Any]]:
        version = self.version()
        if self._state is None or version != self._version:
            self._state = _load(self._files.root, self._files)
            self._version, self._misfits = version, None
        return self._state


def _load(folder: Path, files: FolderFiles) -> tuple[DataFidelity, NDArray[Any]]:
    """d with the model as the run has found it, and x."""
    for name in ("config.toml", "provenance.json", "checkpoint.npz"):
        files.path(name)
    run = RunFolder.open(folder)
    document = run.config()
    if "frames" not in document:
        raise RunFolderError(
            "this run was saved from Python, and its frames were never on the disk; runs of `fouriscope reconstruct` "
            "know where theirs are"
        )
    config = parse_config(document, where="config.toml")
    checkpoint = run.read_checkpoint()
    if checkpoint is None:
        raise RunFolderError("a prediction needs a checkpoint, which a run writes every ten seconds and at its end")
    acquisition = build_acquisition(config, folder)
    model = build_model(acquisition, config)
    fidelity = DataFidelity.of(acquisition, model, loss=build_loss(config))
    return fidelity, _take_state(checkpoint[0], config, fidelity)


def _take_state(state: SolverState, config: RunConfig, fidelity: DataFidelity) -> NDArray[Any]:
    """x of a checkpoint; ``fidelity`` gets the model that a calibration had found until then."""
    try:
        calibration = build_calibration(config.calibration)
        if calibration is not None:
            prefix = "calibration."
            found = {name.removeprefix(prefix): a for name, a in state.arrays.items() if name.startswith(prefix)}
            calibration.load_state_arrays(found, fidelity)
        x = _take_epry(state, fidelity) if config.solver.method == "epry" else state.arrays["x"]
    except KeyError as error:
        raise RunFolderError(f"checkpoint.npz lacks {error}; it was written by another version") from error
    return fidelity.model.check_x(x)


def _take_epry(state: SolverState, fidelity: DataFidelity) -> NDArray[Any]:
    """EPRY keeps the object's spectrum, and a correction that multiplies the pupil of the model."""
    model: ForwardModel = fidelity.model
    correction = model.pupils.on_frame_grid(state.arrays["correction"])
    known = model.pupil
    array = correction if known.array is None else known.array * correction
    fidelity.use(model.revised(pupil=replace(known, array=array)))
    return x_of(model, state.arrays["spectrum"])
