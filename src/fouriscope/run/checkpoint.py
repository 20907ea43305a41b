"""checkpoint.npz: everything that a solver needs to continue exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fouriscope.errors import RunFolderError
from fouriscope.run import schema
from fouriscope.run.files import write_arrays
from fouriscope.run.stored_arrays import read_arrays
from fouriscope.solvers import SolverState

CHECKPOINT_NAME = "checkpoint.npz"
# One more when a solver can no longer read the states that it wrote. Those without a number are of 1.
CHECKPOINT_VERSION = 1


def write_checkpoint(folder: Path, state: SolverState, iterations: int) -> None:
    values = {"version": CHECKPOINT_VERSION, "iterations": iterations, "solver": state.values}
    write_arrays(folder / CHECKPOINT_NAME, state.arrays, values)


def read_checkpoint(folder: Path, *, most: int | None = None) -> tuple[SolverState, int] | None:
    """The last checkpoint and its iteration, or None if the run ended before the first.

    ``most`` are the bytes it may have.
    """
    path = folder / CHECKPOINT_NAME
    if not path.exists():
        return None
    try:
        arrays, values = read_arrays(path, most=most)
        if (version := values.get("version", 1)) == CHECKPOINT_VERSION:
            schema.checked(schema.Checkpoint, values, "state.json")
    except OSError as error:  # of the system, or a RunFolderError
        raise RunFolderError(f"{path}: damaged ({error}); delete it to start this run from the beginning") from error
    if version != CHECKPOINT_VERSION:
        raise RunFolderError(
            f"{path}: written by another version of fouriscope (format {str(version)[:20]}, this one reads "
            f"{CHECKPOINT_VERSION}); delete it to start this run again, or continue with the version that wrote it"
        )
    return SolverState(arrays, values["solver"]), values["iterations"]


@contextmanager
def taking_state(folder: Path) -> Iterator[None]:
    """A solver loads a state inside the block; if it cannot, the checkpoint is at fault."""
    advice = (
        "so it was written by another version or with another configuration; delete it to start this run from the "
        "beginning"
    )
    try:
        yield
    except RunFolderError:
        raise
    except KeyError as error:
        raise RunFolderError(f"{folder / CHECKPOINT_NAME}: {error} is missing, {advice}") from error
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise RunFolderError(f"{folder / CHECKPOINT_NAME}: not the state of this solver ({error}), {advice}") from error


def restore(folder: Path, take: Callable[[SolverState], object], *, most: int | None = None) -> int:
    """Pass the state of the last checkpoint to ``take``; returns its iteration, or 0 if there is none."""
    checkpoint = read_checkpoint(folder, most=most)
    if checkpoint is None:
        return 0
    state, iterations = checkpoint
    with taking_state(folder):
        take(state)
    return iterations
