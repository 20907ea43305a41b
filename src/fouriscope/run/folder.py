"""The run folder: everything that watches, compares or resumes a run uses it.

::

    run/
      config.toml       the configuration as resolved, defaults included
      provenance.json   versions, machine, acquisition, checksums of the input
      status.json       running (and by which process), finished, interrupted or failed, and why
      metrics.jsonl     one line per iteration
      checkpoint.npz    everything needed to continue exactly (arrays + state.json)
      snapshot.npz      the picture so far, for the page (about once per second)
      result/           images (OME-TIFF, OME-Zarr), object.zarr (complex), pupil, geometry, summary.json, figure.png;
                        docs/results.md lists them
      .lock             held by the process that writes, and by no other

Every file but ``metrics.jsonl`` is replaced atomically. ``metrics.jsonl`` grows. A line cut short by a kill is ignored,
and lines after the last checkpoint are dropped when a run is resumed, because they will be computed again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from fouriscope.checks import door
from fouriscope.errors import FouriscopeError, RunFolderError, not_written
from fouriscope.run import checkpoint, schema
from fouriscope.run.files import remove_leftovers, write_json, write_text
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.lock import LOCK_NAME, FolderLock
from fouriscope.run.metrics import METRICS_NAME, line_of, read_history
from fouriscope.run.toml_lines import toml_of
from fouriscope.solvers import History, Record, SolverState

FORMAT = 1


class RunFolder:
    """One run on the disk: its configuration, provenance, status, metrics, checkpoint and result, read and written.

    ``RunFolder.open(path)`` looks at a run, :meth:`fouriscope.Result.load` takes its pictures.

    Parameters
    ----------
    path
        The folder. It need not exist yet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = RunFolder.create(f"{place}/first", {"solver": {"batch": 60}}, {})
    ...     run.write_status("finished", "300 iterations")
    ...     run.close()
    ...     RunFolder.open(run.path).status()["state"], RunFolder.open(run.path).config()
    ('finished', {'solver': {'batch': 60}})
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.files = FolderFiles(self.path)
        self._metrics: TextIO | None = None
        self._lock: FolderLock | None = None

    def __repr__(self) -> str:
        try:
            status = self.status()
        except RunFolderError:
            return f"RunFolder: {self.path}, no run yet"
        return f"RunFolder: {self.path}, {status.get('state')}" + (
            f" ({reason})" if (reason := status.get("reason")) else ""
        )

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any], provenance: dict[str, Any]) -> RunFolder:
        """Start a new folder and lock it until :meth:`close`; a folder that already holds something is refused."""
        folder = cls(path)
        folder.check_free()
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.lock()
            folder.check_free()  # again: somebody else may have been faster
            # The configuration comes last: a folder that has one has everything a resume needs.
            write_json(folder.path / "provenance.json", {"format": FORMAT} | provenance)
            folder.write_status("running")
            folder.write_config(config)
        except RunFolderError:
            folder.close()
            raise
        except OSError as error:
            folder.close()
            raise RunFolderError(not_written(folder.path, error)) from error
        return folder

    @classmethod
    @door
    def open(cls, path: str | Path) -> RunFolder:
        """Open an existing run; raises if there is none."""
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"{folder.path}: no such folder; a run folder holds config.toml and metrics.jsonl")
        if not folder._is_run():
            raise RunFolderError(
                f"{folder.path}: not a run folder (config.toml or provenance.json is missing); if a run was killed "
                "here before it began, delete the folder and start again"
            )
        folder.provenance()
        return folder

    def lock(self) -> None:
        """Become the only writer until :meth:`close`, or raise and say who writes."""
        if self._lock is not None:
            return
        try:
            self._lock = FolderLock(self.path)
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(not_written(self.path, error)) from error

    def check_free(self) -> None:
        """Raise unless a new run can be started here."""
        if self.path.exists() and (
            not self.path.is_dir() or any(child.name != LOCK_NAME for child in self.path.iterdir())
        ):
            go_on = f", or continue it with: fouriscope resume {self.path}" if self._is_run() else ""
            raise RunFolderError(f"{self.path} exists and is not empty; choose another folder or delete it{go_on}")

    def _is_run(self) -> bool:
        return all((self.path / name).is_file() for name in ("config.toml", "provenance.json"))

    def write_config(self, config: dict[str, Any]) -> None:
        write_text(self.path / "config.toml", toml_of(config))

    def config(self) -> dict[str, Any]:
        """config.toml as a dictionary."""
        return self.files.toml("config.toml")

    def provenance(self) -> dict[str, Any]:
        """provenance.json, checked."""
        found = self.files.json("provenance.json")
        if type(number := found.get("format")) is int and number != FORMAT:
            raise RunFolderError(
                f"{self.path} has format {number}, but this fouriscope reads {FORMAT}; use the version that wrote it"
            )
        checked: dict[str, Any] = schema.checked(schema.Provenance, found, self.path / "provenance.json")
        return checked

    def status(self) -> dict[str, Any]:
        """status.json, checked."""
        checked: dict[str, Any] = schema.checked(
            schema.Status, self.files.json("status.json"), self.path / "status.json"
        )
        return checked

    def write_status(self, state: str, reason: str = "") -> None:
        writer = {"pid": os.getpid(), "host": socket.gethostname()} if state == "running" else {}
        write_json(self.path / "status.json", {"state": state, "reason": reason, **writer})

    @contextlib.contextmanager
    def ending(self, interrupted: str) -> Iterator[None]:
        """Close the folder after the block; if it ends with an error, say so in status.json, or how it was
        ``interrupted``."""
        try:
            yield
        except (KeyboardInterrupt, Exception) as error:
            told = str(error) if isinstance(error, FouriscopeError) else f"{type(error).__name__}: {error}"
            end = ("interrupted", interrupted) if isinstance(error, KeyboardInterrupt) else ("failed", told)
            with contextlib.suppress(OSError):  # the error itself matters more than a note of it
                self.write_status(*end)
            raise
        finally:
            with contextlib.suppress(OSError):
                self.close()

    def history(self) -> History:
        """The complete lines of metrics.jsonl."""
        return read_history(self.files)

    def append(self, record: Record) -> None:
        """One more line of metrics.jsonl, visible to readers at once."""
        if self._metrics is None:
            self._metrics = (self.path / METRICS_NAME).open("a", encoding="utf-8", buffering=1)
        self._metrics.write(line_of(record))

    def close(self) -> None:
        """End writing, and let others write."""
        try:
            self._close_metrics()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _close_metrics(self) -> None:
        if self._metrics is not None:
            metrics, self._metrics = self._metrics, None
            metrics.close()

    def write_checkpoint(self, state: SolverState, iterations: int) -> None:
        if self._metrics is not None:
            os.fsync(self._metrics.fileno())  # a checkpoint must never be ahead of the metrics, even after a power cut
        checkpoint.write_checkpoint(self.path, state, iterations)

    def read_checkpoint(self) -> tuple[SolverState, int] | None:
        """The last checkpoint and its iteration, or None if the run ended before the first."""
        return checkpoint.read_checkpoint(self.path)

    def forget_checkpoint(self) -> None:
        """Go back to the beginning: the run resumes from there."""
        (self.path / "checkpoint.npz").unlink(missing_ok=True)

    def begin_again(self, config: dict[str, Any]) -> None:
        """Drop all iterations and go on with another configuration, which is written last: a run that is killed on the
        way resumes at the beginning, with the old one."""
        self.forget_checkpoint()
        self.rewind(0)
        self.write_config(config)

    def restore(self, take: Callable[[SolverState], object], *, most: int | None = None) -> int:
        """Pass the state of the last checkpoint, at most ``most`` bytes, to ``take``; returns its iteration, or 0."""
        return checkpoint.restore(self.path, take, most=most)

    def rewind(self, iterations: int) -> History:
        """Drop what came after the last checkpoint, and leftovers of a killed writer; returns what is kept."""
        self._close_metrics()
        self._restore_result()
        remove_leftovers(self.path)
        history = self.history()
        if len(history) < iterations:
            raise RunFolderError(
                f"{self.path / METRICS_NAME} holds {len(history)} iterations, but the checkpoint holds {iterations}; "
                "the folder was changed by hand and cannot be continued"
            )
        kept = History(history.records[:iterations])
        write_text(self.path / METRICS_NAME, "".join(map(line_of, kept)))
        return kept

    def write_result(self, write: Callable[[Path], object]) -> None:
        """Replace the result by what ``write`` puts into a folder, which is built under another name, then renamed."""
        building = self.path / ".result.part"
        shutil.rmtree(building, ignore_errors=True)
        try:
            building.mkdir()
            write(building)
            self.replace_result(building)
        except OSError as error:
            raise RunFolderError(not_written(self.path / "result", error)) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)  # there only if something went wrong

    def replace_result(self, new: Path) -> None:
        """Make the folder ``new`` the result. One of them is there, whole, at every moment but between two renames."""
        final, old = self._result_paths()
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        try:
            new.rename(final)
        except OSError:
            self._restore_result()
            raise
        shutil.rmtree(old, ignore_errors=True)

    def _restore_result(self) -> None:
        """Undo a replacement that was killed between its two renames."""
        final, old = self._result_paths()
        if old.exists() and not final.exists():
            old.rename(final)

    def _result_paths(self) -> tuple[Path, Path]:
        return self.path / "result", self.path / ".result.old.part"
