"""Amounts of memory as people write them."""

from __future__ import annotations

import re

from fouriscope.errors import InvalidInputError

UNITS = {"": 1, "B": 1}
UNITS |= {f"{letter}{kind}": base**power for kind, base in (("B", 1000), ("iB", 1024))
          for power, letter in enumerate("kMGT", start=1)}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(size: int | str) -> int:
    """A number of bytes, or text such as "64MB" (10⁶), "512MiB" (2²⁰) or "2GB", in upper or lower case.

    >>> parse_bytes("64MB"), parse_bytes("1.5 GiB"), parse_bytes("4096"), parse_bytes(4096)
    (64000000, 1610612736, 4096, 4096)
    """
    found = _SIZE.fullmatch(str(size))
    units = {unit.upper(): factor for unit, factor in UNITS.items()}
    number = float(found[1]) * units.get(found[2].upper(), 0) if found else 0.0
    if not 1 <= number < 2**63:
        raise InvalidInputError(
            f"memory must be a number of bytes, or a number with a unit such as 64MB, 512MiB or 2GB, got {size!r}"
        )
    return int(number)


def format_bytes(size: int) -> str:
    """
    >>> format_bytes(524288), format_bytes(64_000_000), format_bytes(96)
    ('524 kB', '64 MB', '96 bytes')
    """
    for unit in ("GB", "MB", "kB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g} {unit}"
    return f"{size} bytes"
