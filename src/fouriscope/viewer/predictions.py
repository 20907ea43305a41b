"""What the camera saw of an LED and what the model predicts, from the checkpoint of a run.

The frames lie where ``config.toml`` of the run says. They are the only files read from outside the run folder, and only
as frames. Everything here is computed on request, and competes with a running solver for the processor.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import RunFolderError
from fouriscope.fidelity import DataFidelity
from fouriscope.run.folder import RunFolder
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.found import found_so_far
from fouriscope.viewer.expected_noise import expected_misfits

FloatArray = NDArray[np.float32]
# Bytes of a checkpoint that is read for looking.
LARGEST_CHECKPOINT = 2**30
KINDS = ("measured", "predicted", "difference")


class Predictions:
    """Frames and misfits of one run, at its last checkpoint; a newer checkpoint is taken when it is there."""

    # One computes at a time, and one keeps its object and model in memory, whatever the number of runs.
    _lock = threading.Lock()
    _keeper: ClassVar[Predictions | None] = None

    def __init__(self, files: FolderFiles) -> None:
        self._files = files
        self._version: int | None = None
        self._state: tuple[DataFidelity, NDArray[Any]] | None = None
        self._misfits: NDArray[np.float64] | None = None
        self._expected: NDArray[np.float64] | None = None

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

    def expected_misfits(self) -> NDArray[np.float64]:
        """What noise alone would leave of each LED's frame, in the same loss."""
        with self._lock:
            fidelity, x = self._current()
            if self._expected is None:
                self._expected = expected_misfits(fidelity, x)
            return self._expected

    def pixel(self) -> float:
        """Of a frame, at the sample, in metres."""
        with self._lock:
            return self._current()[0].model.optics.pixel

    def _current(self) -> tuple[DataFidelity, NDArray[Any]]:
        version = self.version()
        if self._state is None or version != self._version:
            if Predictions._keeper is not None:
                Predictions._keeper._state = None
            Predictions._keeper = self
            for name in ("config.toml", "provenance.json", "checkpoint.npz"):
                self._files.path(name)  # raises if it is a way out of the folder
            self._state = found_so_far(RunFolder.open(self._files.root), most=LARGEST_CHECKPOINT)
            self._version, self._misfits, self._expected = version, None, None
        return self._state
