"""However a command ends, it ends with one line and an exit code, for expected errors and for all others."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.errors import NO_ROOM, FouriscopeError, not_written

# Exit codes: wrong input, or something that the system refuses; a mistake of ours; Ctrl-C; nobody reads the output.
REFUSED, UNEXPECTED, INTERRUPTED, OUTPUT_CLOSED = 2, 70, 130, 141
# Set to anything, it brings the traceback to the terminal.
DEBUG = "FOURISCOPE_DEBUG"
LONGEST_LINE = 1000
# ClickException: of click, or of the copy of it that newer versions of typer have.
WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[2]

_run_folder: list[Path] = []  # of the command that runs


class OutputClosedError(BrokenPipeError):
    """Nobody reads what a command prints, as with ``| head``."""


def keep_details_in(run_folder: Path) -> None:
    """Let the details of an unexpected error go into this folder, once it is that of a run."""
    _run_folder[:] = [run_folder]


def exit_code_of(command: Callable[[], Any]) -> int:
    """Run a command; returns its exit code, and says in one line of stderr what went wrong."""
    _run_folder.clear()
    try:
        return command() or 0
    except (WRONG_USAGE, typer.Exit, typer.Abort):
        raise
    except FouriscopeError as error:
        return _say(str(error), REFUSED)
    except OutputClosedError:
        with contextlib.suppress(OSError, ValueError):  # or Python would complain again when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except MemoryError as error:
        return _say(
            f"there is not enough memory ({str(error) or 'no details'}); use smaller or fewer frames, a smaller "
            "object, or end other programs",
            REFUSED,
        )
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  (this is the last resort)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            where = error.filename or next(iter(_run_folder), "output")
            return _say(f"{not_written(where, error)}, then give the same command again", REFUSED)
        if isinstance(error, OSError) and error.errno is not None:
            return _say(f"{error.filename or 'output'}: {error.strerror}", REFUSED)
        return _say(f"{_in_a_line(error)}: a bug in fouriscope, please report it; {_details(error)}", UNEXPECTED)


def _say(text: str, code: int) -> int:
    line = " ".join(text.split())
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 :]}"
    errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    errors.print(f"[bold red]error:[/] {escape(line)}")
    return code


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__} ({(str(error).splitlines() or [''])[0][:200]})"


def _details(error: Exception) -> str:
    """Write what is needed to find the mistake into a file; returns the words that say where it is."""
    told = "".join(traceback.format_exception(error))
    if os.environ.get(DEBUG):
        sys.stderr.write(told)
    installed = sorted(f"{package.name} {package.version}" for package in importlib.metadata.distributions())
    lines = [
        time.strftime("%Y-%m-%d %H:%M:%S %z"),
        shlex.join(sys.argv),
        f"Python {platform.python_version()}, {platform.platform()}",
        "",
        told,
        *installed,
    ]
    text = "\n".join(lines).encode("utf-8", "backslashreplace").decode()
    name, refused = time.strftime(f"error-%Y%m%d-%H%M%S-{os.getpid()}.txt"), ""
    for folder in _places():
        try:
            _write(folder, name, text)
        except OSError as problem:
            refused = f"{folder}: {problem.strerror}"
        else:
            return f"details are in {folder / name}"
    return f"its details could not be written ({refused}): set {DEBUG}=1 to see them"


def _write(folder: Path, name: str, text: str) -> None:
    """The whole file or none, readable by its owner alone. The library's own way of writing would have to be loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, folder / name)
    except BaseException:
        os.unlink(part)
        raise


def _places() -> list[Path]:
    """Where the details may go, the best first: the run folder if there is one (an empty one would not be new)."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "fouriscope"
    run = [folder for folder in _run_folder if (folder / "config.toml").is_file()]
    return [*run, state, Path(tempfile.gettempdir())]
