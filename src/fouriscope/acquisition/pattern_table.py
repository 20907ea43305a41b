"""Patterns in a file: which LEDs shine in which frame, and how brightly."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from fouriscope.acquisition.images import read_image
from fouriscope.acquisition.input_files import read_text
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import MOST_LEDS, FloatArray
from fouriscope.optics.patterns import checked_patterns

COLUMNS = ("frame", "led", "weight")
# Numbers that a matrix may have. More would mean a wrong frame number, and would fill the memory.
_MOST_NUMBERS = 2**27
_EXPECTED = (
    "a table with the header frame,led,weight (or frame,led), or a matrix with a line per frame and a column per LED"
)


def read_patterns(path: Path, leds: int) -> FloatArray:
    """(frames, LEDs) weights from a CSV or a .npy; frames and LEDs are counted from 0.

    A CSV is a table with the header ``frame,led,weight``, its lines in any order (without ``weight`` it is 1), or a
    matrix without a header: a line per frame, a number per LED. A .npy holds that matrix.
    """
    if path.suffix.lower() == ".npy":
        matrix = np.asarray(read_image(path))
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"{path}: a real matrix (frames, LEDs) was expected, got {matrix.dtype} of shape {matrix.shape}"
            )
    else:
        matrix = _from_text(path, leds)
    try:
        return checked_patterns(matrix, leds)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def pattern_text(patterns: FloatArray) -> str:
    """Patterns as CSV, with as many digits as the weights have.

    >>> print(pattern_text(np.array([[1, 0], [0.5, 1]])))
    frame,led,weight
    0,0,1
    1,0,0.5
    1,1,1
    <BLANKLINE>
    """
    places = zip(*map(np.ndarray.tolist, np.nonzero(patterns)), strict=True)
    lines = [f"{frame},{led},{repr(float(patterns[frame, led])).removesuffix('.0')}" for frame, led in places]
    return "\n".join([",".join(COLUMNS), *lines]) + "\n"


def _from_text(path: Path, leds: int) -> FloatArray:
    text = read_text(path, "a table of patterns")
    try:
        rows = [
            (number, [cell.strip() for cell in row])
            for number, row in enumerate(csv.reader(io.StringIO(text)), start=1)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InvalidInputError(f"{path}: cannot be read as a table of patterns ({error})") from error
    if not rows:
        raise InvalidInputError(f"{path}: {_EXPECTED} was expected, but the file is empty")
    header = [name.lower() for name in rows[0][1]]
    if set(header) >= {"frame", "led"}:
        return _from_table(path, header, rows[1:], leds)
    values = [[_number(path, number, cell) for cell in row] for number, row in rows]
    ragged = next((number for number, row in rows if len(row) != leds), None)
    if ragged is not None:
        width = len(next(row for number, row in rows if number == ragged))
        raise InvalidInputError(f"{path}: line {ragged} must hold a number for each of {leds} LEDs, got {width}")
    return np.array(values)


def _from_table(path: Path, header: list[str], rows: list[tuple[int, list[str]]], leds: int) -> FloatArray:
    if not rows:
        raise InvalidInputError(f"{path}: there is no pattern below the header")
    entries: dict[tuple[int, int], float] = {}
    for number, row in rows:
        cells = dict(zip(header, row, strict=False))
        frame, led = (_whole(path, number, cells.get(name, "")) for name in COLUMNS[:2])
        if not 0 <= led < leds:
            raise InvalidInputError(f"{path}: line {number} names LED {led}, but LEDs are 0 to {leds - 1}")
        if not 0 <= frame < MOST_LEDS:
            raise InvalidInputError(f"{path}: line {number} names frame {frame}; frames are counted from 0")
        if (frame, led) in entries:
            raise InvalidInputError(f"{path}: line {number} names LED {led} of frame {frame} for the second time")
        entries[frame, led] = _number(path, number, cells.get("weight", "")) if "weight" in header else 1.0
    frames = 1 + max(frame for frame, _ in entries)
    if frames * leds > _MOST_NUMBERS:
        raise InvalidInputError(f"{path}: {frames} frames of {leds} LEDs are too many; is a frame number wrong?")
    matrix = np.zeros((frames, leds))
    for place, weight in entries.items():
        matrix[place] = weight
    return matrix


def _whole(path: Path, number: int, cell: str) -> int:
    value = _number(path, number, cell)
    if value != int(value):
        raise InvalidInputError(f"{path}: line {number} must name a frame and an LED by whole numbers, got {cell!r}")
    return int(value)


def _number(path: Path, number: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InvalidInputError(f"{path}: line {number} holds {cell!r} where a finite number was expected; {_EXPECTED}")
    return value
