"""What a worker that is started here does first; Dask calls it in every new process."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the coordinator: it ends the workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
