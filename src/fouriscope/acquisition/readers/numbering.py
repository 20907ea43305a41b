"""Numbers in the names of files: gaps and duplicates, which shift every later frame to another LED."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

LISTED = 5


def notes_on_numbers(files: Sequence[Path]) -> list[str]:
    """What is odd about the numbers of files that differ in one number alone.

    >>> notes_on_numbers([Path(name) for name in ("led_1.tif", "led_01.tif", "led_2.tif", "led_5.tif")])
    ['led_1.tif and led_01.tif have the same number', 'the numbers 3, 4 are missing between 1 and 5: was a frame lost?']
    """
    parts = [re.split(r"(\d+)", file.name) for file in files]
    if len({tuple(name[::2]) for name in parts}) != 1:
        return []
    values = [tuple(int(number) for number in name[1::2]) for name in parts]
    varying = [place for place, column in enumerate(zip(*values, strict=True)) if len(set(column)) > 1]
    if len(varying) != 1:
        return []
    numbers = [value[varying[0]] for value in values]
    found: list[str] = []
    for number, count in Counter(numbers).items():
        if count > 1 and len(found) < LISTED:
            names = [file.name for file, other in zip(files, numbers, strict=True) if other == number]
            found.append(f"{' and '.join(names)} have the same number")
    first, last, there = min(numbers), max(numbers), set(numbers)
    lost = last - first + 1 - len(there)
    if lost:
        missing = (number for number in range(first, last + 1) if number not in there)
        listed = ", ".join(str(number) for number, _ in zip(missing, range(LISTED), strict=False))
        more = f" and {lost - LISTED} more" if lost > LISTED else ""
        found.append(f"the numbers {listed}{more} are missing between {first} and {last}: was a frame lost?")
    return found
