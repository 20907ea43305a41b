"""Watches a folder, reconstructs its frames while it fills, and writes a run folder like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition import ArrivingFrames
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.live.beginning import refuse_what_needs_all_frames, warm_up
from fouriscope.live.incoming import Arrival, IncomingFiles
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.parallel import thread_count
from fouriscope.run import Result, RunConfig, RunFolder
from fouriscope.run.assemble import build_stop
from fouriscope.run.checkpoint import taking_state
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described
from fouriscope.run.files import write_json
from fouriscope.run.folder import FORMAT
from fouriscope.run.inputs import input_files, resolved
from fouriscope.run.microscope import build_illumination
from fouriscope.run.solving import solve_into
from fouriscope.solvers import INTERRUPTED, Callback, History, Solver, reason_of

LOOK_SECONDS = 0.05


class WatchedFolder:
    """One run of ``fouriscope watch``: it reads files as they arrive, reconstructs them, and writes a run folder.

    Parameters
    ----------
    config, base
        The configuration, and where its relative paths start. ``frames.path`` may be missing: ``folder`` replaces it.
        Settings that "auto" finds from all frames are not possible.
    folder
        The folder that the frames are written to.
    out
        The run folder. One that a watch left unfinished is continued.
    first_number
        See :class:`~fouriscope.live.incoming.IncomingFiles`.
    silence
        Stop when no frame has come for this many seconds after the first one.
    tell
        Called with lines for the user: files left out, and why.
    """

    def __init__(
        self,
        config: RunConfig,
        base: Path,
        folder: Path,
        out: Path,
        *,
        first_number: int | None = None,
        silence: float | None = None,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        refuse_what_needs_all_frames(config)
        thread_count()
        build_stop(config.stop)
        section = config.frames
        self.shape = section.shape
        self.config = config.model_copy(
            update={"frames": section.model_copy(update={"path": str(folder.resolve()), "shape": None})}
        )
        self.base, self.out, self.silence, self.tell = base, out, silence, tell
        self.illumination = build_illumination(config.illumination, base)
        self.document = resolved(self.config, base)
        self.interrupted_run = _interrupted_run(out, self.document)
        self.incoming = IncomingFiles(
            folder.resolve(),
            len(self.illumination),
            pattern=section.pattern,
            files=section.files,
            first_number=first_number,
            shape=section.shape,
            tell=tell,
        )
        self.live: LiveReconstruction | None = None
        self._looked = time.monotonic()
        self._heard: float | None = None
        self._complete_since = 0

    def run(
        self,
        *,
        callbacks: Sequence[Callback] = (),
        asked_to_stop: Callable[[], bool] = lambda: False,
        checkpoint_seconds: float | None = None,
    ) -> Result | None:
        """Watch until the reconstruction of all frames is done, or is interrupted; None if nothing could begin."""
        warm_up(self.config)
        while not self._ready():
            if asked_to_stop() or self._silent():
                return None
            time.sleep(LOOK_SECONDS)
        run = self._open_run()
        return solve_into(run, lambda keep: self._solve(run, [keep, *callbacks], asked_to_stop), checkpoint_seconds)

    def _ready(self) -> bool:
        """Whether there is a bright-field frame; a continued run also waits for the frames that are already there."""
        arrivals = self._take_in()
        if self.live is None or (arrivals and self.interrupted_run):
            return False
        return self.live.prepare()

    def _take_in(self) -> list[Arrival]:
        """Look into the folder, if it is time, and add what has come."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return []
        arrivals = self.incoming.look()
        self._looked = time.monotonic()
        for led, path, image in arrivals:
            if self.live is None:
                self.live = self._begin(image.shape, image.dtype)
            try:
                self.live.add(image[self._layout.rows, self._layout.columns], led)
            except InvalidInputError as error:
                self.tell(f"{path.name} is left out: {error}")
                continue
            self._heard = time.monotonic()
        return arrivals

    def _silent(self) -> bool:
        if self.silence is None or self._heard is None:
            return False
        return time.monotonic() - self._heard > self.silence

    def _begin(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> LiveReconstruction:
        """Everything that waited for the shape of a frame."""
        whole = (shape[0], shape[1])
        self._layout = StoredFrames(self.incoming.folder, len(self.illumination), whole, dtype, self.config.frames.roi)
        described = Described(self.config, self.base, self._layout)
        return LiveReconstruction(described.acquisition(ArrivingFrames(self._layout.shape)), self.config)

    def _open_run(self) -> RunFolder:
        assert self.live is not None
        if self.interrupted_run is None:
            return RunFolder.create(self.out, self.document, self._provenance(complete=False))
        run = self.interrupted_run
        run.lock()
        checkpoint = run.read_checkpoint()
        if checkpoint is None:
            run.rewind(0)
        else:
            state, done = checkpoint
            history = run.rewind(done)
            with taking_state(run.path):
                self.live.restore(state, history)
        run.write_status("running")
        return run

    def _provenance(self, *, complete: bool) -> dict[str, Any]:
        """``complete`` says that the configuration names all frames, so that a resume needs nobody to watch."""
        assert self.live is not None
        return self.live.provenance(input_files(self.config, self.base)) | {
            "alignment": {"notes": [], "nominal_na": self.live.model.geometry.na.tolist()},
            "watch": {"complete": complete},
        }

    def _solve(self, run: RunFolder, callbacks: Sequence[Callback], asked_to_stop: Callable[[], bool]) -> Solver:
        live, reason = self.live, None
        assert live is not None
        assert live.solver is not None
        # Iterations with all frames that a killed watch did before count, too: [stop] must not begin anew.
        self._complete_since = sum(record.frames_arrived < len(live.acquisition) for record in live.history.records)
        while reason is None:
            if self._take_in() or not live.is_complete:
                self._complete_since = len(live.history)
            record = live.step()
            assert record is not None
            answers = [callback(live.solver, record) for callback in callbacks]
            interrupted = INTERRUPTED if asked_to_stop() else None
            reason = self._reason_to_stop(live) or interrupted or reason_of(answers)
        live.solver.stop_reason = reason
        complete = live.is_complete and len(self.incoming.paths) == len(live.acquisition)
        if complete:
            run.write_config(self._for_a_resume(live.history))
        write_json(run.path / "provenance.json", {"format": FORMAT} | self._provenance(complete=complete))
        return live.solver

    def _reason_to_stop(self, live: LiveReconstruction) -> str | None:
        """[stop] counts from the last frame: earlier iterations had fewer frames."""
        if self._silent():
            return f"no frame for {self.silence:g} s"
        if not live.is_complete:
            return None
        records, start = live.history.records, self._complete_since
        before = records[start - 1].seconds if start else 0.0
        since = [replace(record, seconds=record.seconds - before) for record in records[start:]]
        reason = build_stop(self.config.stop)(History(since))
        return None if reason is None else f"{reason} with all frames"

    def _for_a_resume(self, history: History) -> dict[str, Any]:
        """The configuration of the same run with all frames on disk: files by name, and [stop] from the beginning."""
        names, stop = {"files": self.incoming.names()}, dict(self.document["stop"])
        frames = {key: value for key, value in self.document["frames"].items() if key != "pattern"} | names
        limit = self.config.stop.limit
        if "iterations" in stop and limit is not None:
            stop["iterations"] = limit + self._complete_since
        if "seconds" in stop and self._complete_since:
            stop["seconds"] += history.records[self._complete_since - 1].seconds
        return self.document | {"frames": frames, "stop": stop}


def _interrupted_run(out: Path, document: dict[str, Any]) -> RunFolder | None:
    """The run of an earlier watch that did not come to its end, if ``out`` is one; raises if it is anything else."""
    folder = RunFolder(out)
    watched = folder.provenance().get("watch") if (out / "config.toml").is_file() else None
    if watched is None:
        folder.check_free()
        return None
    run = RunFolder.open(out)
    if watched["complete"]:
        raise RunFolderError(f"{out} has all its frames; continue it with: fouriscope resume {out} --iterations N")
    if resolved(parse_config(run.config(), where=str(out), is_record=True), Path()) != document:
        raise RunFolderError(f"{out} was begun with another configuration or folder; choose another --out")
    return run
