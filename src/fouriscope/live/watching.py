"""Follows a folder, reconstructs what is in it while it fills, and keeps a run folder like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition import Acquisition, ArrivingFrames, CorrectedFrames, Corrections, FrameMasks, Frames
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.live.incoming import Arrival, IncomingFiles
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.paper import paper_leds, paper_optics
from fouriscope.parallel import thread_count
from fouriscope.run import Result, RunConfig, RunFolder
from fouriscope.run.assemble import (
    BuiltSolver,
    build_illumination,
    build_optics,
    build_pupil,
    build_stop,
    patch_center_of,
)
from fouriscope.run.execute import input_files, resolved, solve_into
from fouriscope.run.files import write_json
from fouriscope.run.folder import FORMAT
from fouriscope.run.measured import corrections_of, cut, load_image, rejected_frames
from fouriscope.solvers import Callback, History

LOOK_SECONDS = 0.05


class WatchedFolder:
    """One run of ``fouriscope watch``: files become frames, frames a picture, all of it in a run folder.

    Parameters
    ----------
    config, base
        The configuration, and where its relative paths start. ``frames.path`` may be missing: ``folder`` stands in for
        it. What is to be found "auto" from all frames cannot be, while they are not there.
    folder
        Where the frames come.
    out
        The run folder; one that a watch left unfinished goes on.
    first_number
        See :class:`~fouriscope.live.incoming.IncomingFiles`.
    silence
        Stop when no frame has come for so many seconds.
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
        _refuse_what_needs_all_frames(config)
        thread_count()
        build_stop(config.stop)
        section = config.frames
        self.shape = section.shape
        self.config = config.model_copy(
            update={"frames": section.model_copy(update={"path": str(folder.resolve()), "shape": None})}
        )
        self.base, self.out, self.silence, self.tell = base, out, silence, tell
        self.optics, self.illumination = build_optics(config), build_illumination(config.illumination, base)
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
        self._looked = self._heard = time.monotonic()
        self._complete_since = 0

    def run(
        self,
        *,
        callbacks: Sequence[Callback] = (),
        asked_to_stop: Callable[[], bool] = lambda: False,
        checkpoint_seconds: float | None = None,
    ) -> Result | None:
        """Watch until the reconstruction of all frames is done, or somebody asks; None if nothing could begin."""
        warm_up(self.config)
        while not self._ready():
            if asked_to_stop() or self._silent():
                return None
            time.sleep(LOOK_SECONDS)
        run = self._open_run()
        return solve_into(run, lambda keep: self._solve(run, [keep, *callbacks], asked_to_stop), checkpoint_seconds)

    def _ready(self) -> bool:
        """Whether there is a bright-field frame; a run that goes on also waits for what lies there already."""
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
        return self.silence is not None and time.monotonic() - self._heard > self.silence

    def _begin(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> LiveReconstruction:
        """Everything that waited for the shape of a frame."""
        section, count = self.config.frames, len(self.illumination)
        directions = self.illumination.directions()
        self._layout = StoredFrames(self.incoming.folder, count, (shape[0], shape[1]), dtype, section.roi)
        arriving = ArrivingFrames(self._layout.shape)
        corrections = corrections_of(section, self._layout, self.base, self.optics, directions)
        frames: Frames = CorrectedFrames(arriving, corrections) if section.is_corrected else arriving
        counts: Frames = arriving
        if section.bit_shift or section.amplitude:
            counts = CorrectedFrames(arriving, Corrections(bit_shift=section.bit_shift, amplitude=section.amplitude))
        good = None if section.mask is None else cut(load_image(self.base / section.mask), self._layout)
        assert section.saturation != "auto"
        weights = np.ones(count) if section.weights is None else np.array(section.weights, np.float64)
        weights[list(rejected_frames(section, None, directions, self.optics, None, count))] = 0
        acquisition = Acquisition(
            self.optics,
            self.illumination,
            frames,
            pupil=build_pupil(self.config.pupil, self.base),
            patch_center=patch_center_of(self.config, self._layout, self.illumination),
            weights=weights,
            mask=good if section.saturation is None else FrameMasks(counts, saturation=section.saturation, good=good),
            truth=None if section.truth is None else load_image(self.base / section.truth),
        )
        return LiveReconstruction(acquisition, self.config)

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
            self.live.restore(state, run.rewind(done))
        run.write_status("running")
        return run

    def _provenance(self, *, complete: bool) -> dict[str, Any]:
        """``complete`` says that the configuration names all frames, so that a resume needs nobody to watch."""
        assert self.live is not None
        return self.live.provenance(input_files(self.config, self.base)) | {
            "alignment": {"notes": [], "nominal_na": self.live.model.geometry.na.tolist()},
            "watch": {"complete": complete},
        }

    def _solve(self, run: RunFolder, callbacks: Sequence[Callback], asked_to_stop: Callable[[], bool]) -> BuiltSolver:
        live, reason = self.live, None
        assert live is not None
        assert live.solver is not None
        self._complete_since = len(live.history)
        while reason is None:
            if self._take_in() or not live.is_complete:
                self._complete_since = len(live.history)
            record = live.step()
            assert record is not None
            stopped = [bool(callback(live.solver, record)) for callback in callbacks]
            reason = self._reason_to_stop(live)
            if reason is None and (asked_to_stop() or any(stopped)):
                reason = "interrupted"
        live.solver.stop_reason = reason
        complete = live.is_complete and len(self.incoming.paths) == len(live.acquisition)
        if complete:
            run.write_config(self._for_a_resume(live.history))
        write_json(run.path / "provenance.json", {"format": FORMAT} | self._provenance(complete=complete))
        return live.solver

    def _reason_to_stop(self, live: LiveReconstruction) -> str | None:
        """[stop] counts from when the last frame came: what came before was done with less."""
        if self._silent():
            return f"no frame for {self.silence:g} s"
        if not live.is_complete:
            return None
        records, start = live.history.records, self._complete_since
        before = records[start - 1].seconds if start else 0.0
        since = [replace(record, seconds=record.seconds - before) for record in records[start:]]
        return build_stop(self.config.stop)(History(since))

    def _for_a_resume(self, history: History) -> dict[str, Any]:
        """The configuration of the same run with all frames on disk: files by name, and [stop] from the beginning."""
        names, stop = {"files": self.incoming.names()}, dict(self.document["stop"])
        frames = {key: value for key, value in self.document["frames"].items() if key != "pattern"} | names
        if isinstance(stop.get("iterations"), int):
            stop["iterations"] += self._complete_since
        if "seconds" in stop and self._complete_since:
            stop["seconds"] += history.records[self._complete_since - 1].seconds
        return self.document | {"frames": frames, "stop": stop}


def warm_up(config: RunConfig) -> None:
    """Compile, or load, all that an iteration needs, on something small: the first frame should not have to wait."""
    optics, leds, shape = paper_optics(), paper_leds(1.5), (24, 24)
    grid = config.object.model_copy(update={"shape": "auto", "margin": 0})
    plain = config.model_copy(update={"object": grid, "calibration": type(config.calibration)()})
    live = LiveReconstruction(Acquisition(optics, leds, ArrivingFrames((len(leds), *shape))), plain)
    rng = np.random.default_rng(0)
    for led in range(len(leds)):
        live.add(1 + 0.1 * rng.standard_normal(shape).astype(np.float32), led)
        live.step()


def _refuse_what_needs_all_frames(config: RunConfig) -> None:
    section = config.frames
    if section.kind not in (None, "folder"):
        raise InvalidInputError(
            f'frames.kind = "{section.kind}" is one file, and watch follows a folder with one image a frame (a stack '
            "that grows page by page cannot be followed)"
        )
    for key in ("saturation", "bad_pixels", "reject"):
        if getattr(section, key) == "auto":
            raise InvalidInputError(
                f'frames.{key} = "auto" looks at all frames, which are not there yet: give numbers, as `fouriscope '
                "import` writes them for an earlier acquisition of the same camera, or leave it out"
            )


def _interrupted_run(out: Path, document: dict[str, Any]) -> RunFolder | None:
    """The run of an earlier watch that did not come to its end, if ``out`` is one; raises if it is anything else."""
    folder = RunFolder(out)
    watched = folder.provenance().get("watch") if (out / "config.toml").is_file() else None
    if watched is None:
        folder.check_free()
        return None
    run = RunFolder.open(out)
    if watched["complete"]:
        raise RunFolderError(f"{out} has all its frames; it goes on with: fouriscope resume {out} --iterations N")
    if run.config() != document:
        raise RunFolderError(f"{out} was begun with another configuration or folder; choose another --out")
    return run
