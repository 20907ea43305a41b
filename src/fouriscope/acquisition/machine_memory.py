"""How much memory there is, and how much is free: the machine's, or what a container or batch job allows."""

from __future__ import annotations

from pathlib import Path

import psutil


def memory_available(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be allocated without swapping: the machine's, or what the container or batch job (a control
    group, of which psutil knows nothing) still allows, whichever is less."""
    machine = int(psutil.virtual_memory().available)
    allowed = _of_the_group(group)
    return machine if allowed is None else min(machine, allowed)


def memory_total(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of the machine, or those that the container or batch job may have, whichever is less."""
    machine = int(psutil.virtual_memory().total)
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
    except OSError:  # no control groups, or those of an older kernel
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


def _of_the_group(group: Path) -> int | None:
    try:
        limit, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:  # no control groups, or those of an older kernel
        return None
    return max(0, int(limit) - int(used)) if limit.isdecimal() else None
