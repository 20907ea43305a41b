"""A process that does tasks for :mod:`fouriscope.field.local`: ``python -m fouriscope.field.worker BYTES``.

Tasks come on stdin. Answers, and a sign of life twice per second, go to stdout. Only the coordinator holds the other
ends of these pipes. When it is gone they end, and so does the worker, even in the middle of a task.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from typing import BinaryIO

import psutil

from fouriscope.field.local import OUT_OF_MEMORY

BEAT_SECONDS = 0.5
MEMORY_SHARE = 0.95  # of its limit; a worker that takes more ends, and its tile is tried again with less memory


class Answers:
    """Messages to the coordinator, whole ones, from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._one_at_a_time = stream, threading.Lock()

    def send(self, kind: str, content: bytes = b"") -> None:
        """If nobody reads it any more, the worker ends."""
        with self._one_at_a_time:
            try:
                pickle.dump((kind, content), self._stream)
                self._stream.flush()
            except OSError:
                os._exit(0)


def main(limit: int) -> None:
    """Do what is asked until the coordinator is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the coordinator, which ends its workers itself
    orders = os.fdopen(os.dup(0), "rb")
    answers = Answers(os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a task prints is no answer
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_beat, args=(answers, limit), daemon=True).start()
    threading.Thread(target=_read, args=(orders, tasks), daemon=True).start()
    answers.send("ready")
    while True:
        answers.send("ended", _answer(tasks.get()))


def _answer(task: bytes) -> bytes:
    """(value, None) or (None, error) of a pickled (function, arguments)."""
    try:
        function, arguments = pickle.loads(task)
        return pickle.dumps((function(*arguments), None))
    except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to the coordinator)
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)
        except Exception:  # noqa: BLE001  (an error that cannot travel is told in words)
            answer = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer


def _read(orders: BinaryIO, tasks: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            tasks.put(pickle.load(orders))
    finally:  # the coordinator is gone
        os._exit(0)


def _beat(answers: Answers, limit: int) -> None:
    process = psutil.Process()
    while True:
        time.sleep(BEAT_SECONDS)
        if process.memory_info().rss > MEMORY_SHARE * limit:
            os._exit(OUT_OF_MEMORY)
        answers.send("alive")


if __name__ == "__main__":
    main(int(sys.argv[1]))
