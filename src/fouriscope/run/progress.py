"""What a person sees while a solver runs: a bar in a terminal, a line in a notebook, lines in a log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as BarsOfRich

from fouriscope.solvers import Record, Solver, StopRule

# Where there is no terminal, a line about the progress is printed this often.
LINE_SECONDS = 30.0
# A notebook sends every change to its page.
NOTEBOOK_SECONDS = 0.2


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
        # The rule may have become another one since it was read: unseen frames can ask for more iterations.
        fraction = (solver.stop_rule or self.stop).fraction_done(solver.history) or 0.0
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


class NotebookLine(SolverProgress):
    """One line below the cell of a notebook, which is replaced as the run goes on."""

    def __init__(self, label: str, stop: StopRule) -> None:
        from IPython.display import display

        super().__init__(stop)
        self.label, self.line, self.shown = label, "", -math.inf
        self.place = display({"text/plain": label}, raw=True, display_id=True)

    def stage(self, name: str) -> None:
        self.line = name
        self.show_line()

    def show(self, fraction: float, details: str) -> None:
        self.line = f"{self.label}: {100 * fraction:.0f} %  {details}"
        if time.monotonic() - self.shown >= NOTEBOOK_SECONDS:
            self.show_line()

    def show_line(self) -> None:
        """Replace what is there."""
        self.place.update({"text/plain": self.line}, raw=True)
        self.shown = time.monotonic()


def duration(seconds: float) -> str:
    """Seconds in words a person reads at a glance."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@contextmanager
def shown_progress(console: Console, stop: StopRule, label: str) -> Iterator[Progress]:
    """The progress of one solver: a bar in a terminal, a line in a notebook, lines in a log, nothing if it is quiet."""
    if console.quiet:
        yield Progress()
    elif console.is_jupyter:
        line = NotebookLine(label, stop)
        yield line
        line.show_line()
    elif not console.is_terminal:
        yield Lines(console, label, stop)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[details]}"))
        with BarsOfRich(*columns, console=console) as bars:
            yield Bar(bars, label, stop)
