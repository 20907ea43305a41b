"""How much memory there is, and how much is free: the machine's, or what a container or batch job allows."""

from __future__ import annotations

from pathlib import Path

import psutil

GROUP = Path("/sys/fs/cgroup")


def memory_available(group: Path = GROUP) -> int:
    """Bytes that can be allocated without swapping: the machine's, or what the container or batch job (a control
    group, of which psutil knows nothing) still allows, whichever is less."""
    machine = int(psutil.virtual_memory().available)
    limit, used = _bytes(group / "memory.max"), _bytes(group / "memory.current")
    return machine if limit is None or used is None else min(machine, max(0, limit - used))


def memory_total() -> int:
    """Bytes of the machine, or those that the container or batch job may have, whichever is less."""
    machine, limit = int(psutil.virtual_memory().total), _bytes(GROUP / "memory.max")
    return machine if limit is None else min(machine, limit)


def _bytes(path: Path) -> int | None:
    """A number of a control group; None if it is "max", if there are no such groups, or those of an older kernel."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
