"""Ways to damage a file: bytes of any format, values of JSON and TOML, cells of CSV, and what is not a file at all."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

INTEGERS = (0, 1, 2, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 255, 10**4, 10**6, 10**12, 2**62, 2**63 - 1, 0.0, -0.0, 0.5, -0.2, 1e-300, 1e-12, 1e-6, 1e6, 1e12,
    1e300, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    "", "x", "auto", "none", "../../../etc/passwd", "/dev/zero", "é\u202e\x07[bold]", "x" * 100_000, True, False, [],
    {}, [[]], {"a": {"b": {}}}, [1, 2, 3], [0, 0, 10**9, 10**9], [float("nan")] * 4, list(range(5000)),
    {"1000000": 1.0},
)  # fmt: skip


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """The content with one kind of damage; the beginning of a file, where its header is, is hit more often."""
    changed = bytearray(content)
    size = len(changed)
    if size == 0:
        return bytes(rng.randbytes(rng.randrange(1, 64)))
    place = rng.randrange(size) if rng.random() < 0.5 else rng.randrange(min(size, 512))
    length = min(size - place, rng.choice((1, 1, 2, 4, 8, 64, 1024)))
    kind = rng.randrange(8)
    if kind == 0:
        for _ in range(rng.choice((1, 1, 2, 4, 32))):
            changed[min(size - 1, int(size * rng.random() ** rng.choice((1, 4))))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del changed[place:]
    elif kind == 2:
        changed[place : place + length] = bytes(length)
    elif kind == 3:
        changed[place : place + length] = b"\xff" * length
    elif kind == 4:
        changed[place:place] = rng.randbytes(length)
    elif kind == 5:
        del changed[place : place + length]
    elif kind == 6:
        changed[place : place + length] = rng.randbytes(length)
    else:
        width, order = rng.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q"))), rng.choice("<>")
        number = struct.pack(order + width[1], rng.choice(INTEGERS) % 2 ** (8 * width[0]))
        changed[place : place + width[0]] = number
    return bytes(changed)


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.03:
        return b"[" * 100_000
    return json.dumps(_damaged_tree(json.loads(content), rng)).encode()


def damaged_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    row = rng.randrange(len(lines))
    lines[row] = damaged_json(lines[row], rng) + b"\n"
    return b"".join(lines)


def damaged_toml(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.03:
        return b"a = " + b"[" * 100_000
    return tomli_w.dumps(_damaged_tree(tomllib.loads(content.decode()), rng)).encode()


def damaged_csv(content: bytes, rng: random.Random) -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode())))
    row = rng.randrange(len(rows))
    kind = rng.randrange(4)
    if kind == 0:
        del rows[row]
    elif kind == 1:
        rows.insert(row, list(rows[rng.randrange(len(rows))]))
    elif kind == 2:
        rows[row].append(str(_nasty(rng)))
    elif rows[row]:
        rows[row][rng.randrange(len(rows[row]))] = str(_nasty(rng))
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")


def _nasty(rng: random.Random) -> Any:
    return rng.choice(NUMBERS) if rng.random() < 0.6 else rng.choice(OTHERS)


def _damaged_tree(tree: Any, rng: random.Random) -> Any:
    """One to three leaves or branches replaced, left out, renamed or doubled."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return _nasty(rng)
        holder, key = rng.choice(places)
        kind = rng.randrange(10)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif kind == 3 and type(holder[key]) in (int, float):
            holder[key] *= rng.choice((-1, 0, 2, 1e3, 1e-3, 1e6, 1e-6))
        else:
            holder[key] = _nasty(rng)
    return tree


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


STRUCTURED: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": damaged_json,
    ".jsonl": damaged_lines,
    "_metadata.txt": damaged_json,
    ".toml": damaged_toml,
    ".csv": damaged_csv,
}


def damage(path: Path, rng: random.Random) -> str:
    """Damage one file in place; what was done, for the report."""
    if rng.random() < 0.02:
        return _put_in_place(path, rng)
    content = path.read_bytes()
    structured = next((change for ending, change in STRUCTURED.items() if path.name.endswith(ending)), None)
    if structured is not None and rng.random() < 0.8:
        path.write_bytes(structured(content, rng))
        return f"{path.name}: values"
    path.write_bytes(damaged_bytes(content, rng))
    return f"{path.name}: bytes"


def _put_in_place(path: Path, rng: random.Random) -> str:
    """Something that is no file, where one is expected."""
    path.unlink()
    kind = rng.choice(("nothing", "fifo", "folder", "/dev/zero", "loop"))
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "/dev/zero":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path.name)
    return f"{path.name}: {kind} in its place"
