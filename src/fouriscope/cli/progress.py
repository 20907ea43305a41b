"""What a person sees while a solver runs, and how Ctrl-C ends it well."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from fouriscope.solvers import Callback, Record, Solver, StopRule

# What batch systems send before they kill, and a terminal that is closed (which Windows has not).
TERMINATION = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
Handler = Callable[[int, FrameType | None], object]


class SolverProgress:
    """A line that shows iteration, misfit (and SNR where it is known) and the time left."""

    def __init__(self, progress: Progress, task: TaskID, stop: StopRule) -> None:
        self.progress, self.task, self.stop = progress, task, stop
        self.began = time.monotonic()
        self.fraction_at_start: float | None = None

    def __call__(self, solver: Solver, record: Record) -> None:
        fraction = self.stop.fraction_done(solver.history) or 0.0
        if self.fraction_at_start is None:
            # The first iteration holds the compilation and the search for a step: no basis for a prediction.
            self.fraction_at_start, self.began = fraction, time.monotonic()
        details = f"iteration {record.iteration}  misfit {record.misfit:.4g}"
        if not math.isnan(record.snr):
            details += f"  SNR {record.snr:.2f} dB"
        done = fraction - self.fraction_at_start
        left = (time.monotonic() - self.began) * (1 - fraction) / done if done > 0 else math.nan
        details += f"  {duration(left)} left" if math.isfinite(left) else ""
        self.progress.update(self.task, completed=fraction, details=details)


def duration(seconds: float) -> str:
    """Seconds in words a person reads at a glance."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@contextmanager
def shown_progress(console: Console, stop: StopRule, label: str) -> Iterator[list[Callback]]:
    """Callbacks that draw the progress of one solver; none if the console is quiet, or a file."""
    if console.quiet or not console.is_terminal:
        yield []
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[details]}"))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(
            label, total=1.0, details="preparing (the first run on a machine compiles for some seconds)"
        )
        yield [SolverProgress(progress, task, stop)]


@contextmanager
def graceful_interrupt() -> Iterator[Callback]:
    """Ctrl-C (or SIGTERM, SIGHUP) lets the iteration end and then stops the solver; a second Ctrl-C stops at once."""
    with asked_to_stop() as asked:
        yield lambda solver, record: asked()


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C, SIGTERM or SIGHUP came; a second one raises at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    with _handled((signal.SIGINT, *TERMINATION), ask):
        yield asked.is_set


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM, which batch systems send before they kill, and SIGHUP of a terminal that is closed end the block as
    Ctrl-C does; a command that was started with nohup goes on."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(TERMINATION, interrupt):
        yield


@contextmanager
def _handled(numbers: Sequence[signal.Signals], handler: Handler) -> Iterator[None]:
    """``handler`` for signals inside the block, but for those that somebody chose to ignore (nohup does)."""
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in heeded(numbers):
            signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def heeded(numbers: Sequence[signal.Signals]) -> list[signal.Signals]:
    """Those that are not ignored; Ctrl-C is heeded always: who starts us in the background of a script ignores it."""
    return [number for number in numbers if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
