"""The command line of fouriscope in a process that says last, on stderr, how much memory it took at most, in bytes."""

from __future__ import annotations

import sys

from benchmarks.online_run import peak_bytes
from fouriscope.cli.app import main

if __name__ == "__main__":
    try:
        main()
    finally:
        print(peak_bytes(), file=sys.stderr)
