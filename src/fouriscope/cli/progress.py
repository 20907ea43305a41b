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
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as BarsOfRich

from fouriscope.solvers import Callback, Record, Solver, StopRule

# Where there is no terminal, a line about the progress is printed this often.
LINE_SECONDS = 30.0
# What batch systems send before they kill, and a terminal that is closed (which Windows has not).
TERMINATION = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
Handler = Callable[[int, FrameType | None], object]


class Progress:
    """The stage that a command is in and, while a solver runs, its iteration, misfit and the time left.

    Callable as a callback of a solver; :meth:`stage` names what comes before and after it. This one shows nothing.
    """

    def stage(self, name: str) -> None:
        """What is being done now, such as "aligning the microscope"."""

    def __call__(self, solver: Solver, record: Record) -> None:
        """One more iteration."""


class SolverProgress(Progress):
    """Progress of a solver that stops by ``stop``."""

    def __init__(self, stop: StopRule) -> None:
        self.stop, self.began = stop, time.monotonic()
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
        self.show(fraction, details)

    def show(self, fraction: float, details: str) -> None:
        """The part that is done, and the rest in words."""
        raise NotImplementedError


class Bar(SolverProgress):
    """A bar in a terminal; it carries the ``label`` while the solver runs."""

    def __init__(self, bars: BarsOfRich, label: str, stop: StopRule) -> None:
        super().__init__(stop)
        self.bars, self.label = bars, label
        self.task = bars.add_task(label, total=1.0, details="starting")

    def stage(self, name: str) -> None:
        self.bars.update(self.task, description=name, details="")

    def show(self, fraction: float, details: str) -> None:
        self.bars.update(self.task, completed=fraction, description=self.label, details=details)


class Lines(SolverProgress):
    """Plain lines for logs, at most one every ``LINE_SECONDS``: a short command, or one that is refused, has none."""

    def __init__(self, console: Console, label: str, stop: StopRule) -> None:
        super().__init__(stop)
        self.console, self.label, self.printed = console, label, time.monotonic()

    def stage(self, name: str) -> None:
        self._print(name)

    def show(self, fraction: float, details: str) -> None:
        self._print(f"{self.label.strip()}: {details}")

    def _print(self, line: str) -> None:
        if time.monotonic() - self.printed >= LINE_SECONDS:
            self.console.print(line)
            self.printed = time.monotonic()


def duration(seconds: float) -> str:
    """Seconds in words a person reads at a glance."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def snr_line(record: Record) -> str:
    """How far the estimate is from a known truth, in words."""
    return (
        f"SNR {record.snr:.2f} dB against the truth, without the constant phase, which no frame shows "
        f"(with it {record.snr_raw:.2f} dB)"
    )


@contextmanager
def shown_progress(console: Console, stop: StopRule, label: str) -> Iterator[Progress]:
    """The progress of one solver: a bar in a terminal, lines in a log, nothing if the console is quiet."""
    if console.quiet:
        yield Progress()
    elif not console.is_terminal:
        yield Lines(console, label, stop)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[details]}"))
        with BarsOfRich(*columns, console=console) as bars:
            yield Bar(bars, label, stop)


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
    Ctrl-C does; a command that was started with nohup continues."""

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
    """Those that are not ignored. Ctrl-C always counts: shells ignore it for background processes of a script."""
    return [number for number in numbers if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
