"""metrics.jsonl as it grows: each line is read once."""

from __future__ import annotations

import math
from typing import Any

from fouriscope.errors import RunFolderError
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.metrics import LONGEST_LINE, METRICS_NAME, MOST_LINES, record_of
from fouriscope.solvers import History, Record

COLUMNS = ("iteration", "frames_seen", "seconds", "misfit", "residual", "step", "strength", "snr", "snr_raw")
# Of the iterations that a prediction of the time left looks back on; the first holds compilation and is left out.
LOOK_BACK = 200


class MetricsFile:
    """The records of a run so far.

    ``generation`` counts how often the file was cut: a resumed run drops the lines after its last checkpoint, so a
    reader must forget them too.
    """

    def __init__(self, files: FolderFiles) -> None:
        self._files = files
        self._records: list[Record] = []
        self._offset, self._inode = 0, -1
        self.generation = 0

    def read(self) -> list[Record]:
        """All complete lines; those that are new are read now."""
        try:
            found = self._files.path(METRICS_NAME).stat()
            if found.st_ino != self._inode or found.st_size < self._offset:
                self._records, self._offset, self._inode = [], 0, found.st_ino
                self.generation += 1
            if found.st_size > self._offset:
                self._read_on()
        except FileNotFoundError:
            self._records, self._offset, self._inode = [], 0, -1
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(f"{METRICS_NAME}: not readable ({error.strerror or error})") from error
        return self._records

    def _read_on(self) -> None:
        """The complete lines that are new; the last may be cut short, and is read again when it is whole."""
        with self._files.open(METRICS_NAME) as file:
            file.seek(self._offset)
            while line := file.readline(LONGEST_LINE):
                if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                    return
                self._records.append(self._record(line))
                self._offset += len(line)

    def _record(self, line: bytes) -> Record:
        number = len(self._records) + 1
        if number > MOST_LINES:
            raise RunFolderError(f"{METRICS_NAME} has more than {MOST_LINES} lines, which are not shown")
        try:
            return record_of(line)
        except (ValueError, RecursionError) as error:
            raise RunFolderError(f"{METRICS_NAME}: line {number} was not written by a run ({error})") from error

    def columns(self, start: int) -> dict[str, list[float | None]]:
        """The records from number ``start`` on, by column; None if a value is not known."""
        return {name: [finite(getattr(record, name)) for record in self._records[start:]] for name in COLUMNS}

    def history(self) -> History:
        return History(self._records)

    def seconds_left(self, fraction: float | None) -> float | None:
        """How long the run will still take at its recent pace, if it is ``fraction`` done and that can be said."""
        recent = self._records[-LOOK_BACK:] if len(self._records) > LOOK_BACK else self._records[1:]
        if fraction is None or not 0 < fraction < 1 or len(recent) < 2:
            return None
        pace = (recent[-1].seconds - recent[0].seconds) / (len(recent) - 1)
        total = len(self._records) / fraction
        return finite(pace * (total - len(self._records)))


def finite(value: Any) -> float | None:
    """A number that JSON can hold, or None."""
    return value if isinstance(value, int | float) and math.isfinite(value) else None
