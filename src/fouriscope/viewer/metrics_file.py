"""metrics.jsonl as it grows: each line is read once."""

from __future__ import annotations

import json
import math
from typing import Any

from fouriscope.errors import RunFolderError
from fouriscope.solvers import History, Record
from fouriscope.viewer.folder_files import FolderFiles

NAME = "metrics.jsonl"
COLUMNS = ("iteration", "frames_seen", "seconds", "misfit", "residual", "step", "strength", "snr", "snr_raw")
# Of the iterations that a prediction of the time left looks back on; the first holds compilation and is left out.
LOOK_BACK = 200


class MetricsFile:
    """The records of a run so far.

    ``generation`` counts how often the file began anew: a resumed run drops the lines after its last checkpoint, so
    who has read them must forget them.
    """

    def __init__(self, files: FolderFiles) -> None:
        self._files = files
        self._records: list[Record] = []
        self._offset, self._inode = 0, -1
        self.generation = 0

    def read(self) -> list[Record]:
        """All complete lines; those that are new are read now."""
        path = self._files.path(NAME)
        try:
            found = path.stat()
            if found.st_ino != self._inode or found.st_size < self._offset:
                self._records, self._offset, self._inode = [], 0, found.st_ino
                self.generation += 1
            if found.st_size > self._offset and path.is_file():
                with path.open("rb") as file:
                    file.seek(self._offset)
                    self._take(file.read(found.st_size - self._offset))
        except FileNotFoundError:
            self._records, self._offset, self._inode = [], 0, -1
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(f"{NAME}: not readable ({error.strerror or error})") from error
        return self._records

    def _take(self, data: bytes) -> None:
        """The complete lines of ``data``; the last may be cut short, and is read again when it is whole."""
        *lines, _ = data.split(b"\n")
        for line in lines:
            try:
                self._records.append(Record.from_dict(json.loads(line)))
            except (ValueError, TypeError) as error:
                raise RunFolderError(
                    f"{NAME}: line {len(self._records) + 1} is not what a run writes ({error})"
                ) from error
            self._offset += len(line) + 1

    def columns(self, start: int) -> dict[str, list[float | None]]:
        """The records from number ``start`` on, by column; None is what is not known."""
        return {name: [_finite(getattr(record, name)) for record in self._records[start:]] for name in COLUMNS}

    def history(self) -> History:
        return History(self._records)

    def seconds_left(self, fraction: float | None) -> float | None:
        """How long the run will still take at its recent pace, if it is ``fraction`` done and that can be said."""
        recent = self._records[-LOOK_BACK:] if len(self._records) > LOOK_BACK else self._records[1:]
        if fraction is None or not 0 < fraction < 1 or len(recent) < 2:
            return None
        pace = (recent[-1].seconds - recent[0].seconds) / (len(recent) - 1)
        total = len(self._records) / fraction
        return _finite(pace * (total - len(self._records)))


def _finite(value: Any) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None
