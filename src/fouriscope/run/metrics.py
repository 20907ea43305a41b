"""metrics.jsonl: one line per iteration, and what a line may hold."""

from __future__ import annotations

import json

from pydantic import ValidationError

from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.schema import Line, first_problem
from fouriscope.solvers import History, Record

METRICS_NAME = "metrics.jsonl"
# Bytes; ten numbers and their names are less than 400.
LONGEST_LINE = 4096
MOST_LINES = 2_000_000


def line_of(record: Record) -> str:
    return json.dumps(record.as_dict()) + "\n"


def record_of(line: bytes) -> Record:
    """The record of a line; ValueError if it is none."""
    values = json.loads(line)
    try:
        Line.model_validate(values)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error
    return Record.from_dict(values)


def read_history(files: FolderFiles) -> History:
    """The complete lines, up to the first incomplete one, which a kill cut short."""
    if not files.exists(METRICS_NAME):
        return History()
    records: list[Record] = []
    with files.open(METRICS_NAME) as file:
        while len(records) < MOST_LINES and (line := file.readline(LONGEST_LINE)):
            try:
                records.append(record_of(line))
            except (ValueError, RecursionError):
                break
    return History(records)
