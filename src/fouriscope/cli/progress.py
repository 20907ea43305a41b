"""How Ctrl-C ends a command well, and words that several commands print."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from fouriscope.run.progress import Progress, duration, shown_progress
from fouriscope.solvers import INTERRUPTED, Callback, Record

__all__ = [
    "Progress",
    "asked_to_stop",
    "duration",
    "graceful_interrupt",
    "shown_progress",
    "snr_line",
    "terminated_as_interrupted",
]

# What batch systems send before they kill, and a terminal that is closed (which Windows has not).
TERMINATION = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
Handler = Callable[[int, FrameType | None], object]


def snr_line(record: Record) -> str:
    """How far the estimate is from a known truth, in words."""
    return (
        f"SNR {record.snr:.2f} dB against the truth, without the constant phase, which no frame shows "
        f"(with it {record.snr_raw:.2f} dB)"
    )


@contextmanager
def graceful_interrupt() -> Iterator[Callback]:
    """Ctrl-C (or SIGTERM, SIGHUP) lets the iteration end and then stops the solver; a second Ctrl-C stops at once."""
    with asked_to_stop() as asked:
        yield lambda solver, record: INTERRUPTED if asked() else None


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
