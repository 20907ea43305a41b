"""``python -m benchmarks`` runs every benchmark, ``python -m benchmarks gradient tv`` those two.

``described``, ``engines``, ``hostile``, ``real``, ``seconds``, ``soak`` and ``strength`` take long and run only when
they are named; what follows them are their own arguments: ``python -m benchmarks hostile 10``.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks import report

BENCHMARKS = (
    "gradient",
    "epoch",
    "memory",
    "streaming",
    "live",
    "importing",
    "checks",
    "field",
    "field_edge",
    "fft_libraries",
    "tv",
    "bm3d",
    "cnn",
    "specimens",
    "quality",
    "steps",
    "passes",
    "waves",
    "defaults",
    "alignment",
    "calibration",
    "die",
    "bandwidth",
    "multiplexed",
    "blood_smear",
    "viewer",
    "paper",
)
LONG = ("described", "engines", "hostile", "real", "seconds", "soak", "strength")


def main(names: list[str]) -> None:
    if names and names[0] in LONG:
        import_module(f"benchmarks.{names[0]}").main(names[1:])
        print(f"\n{report.summary()}")
        return
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark is called {', '.join(unknown)}; there are {', '.join((*BENCHMARKS, *LONG))}")
    for name in names or BENCHMARKS:
        print(f"\n## {name}\n", flush=True)
        import_module(f"benchmarks.{name}").main()
    print(f"\n{report.summary()}")


if __name__ == "__main__":
    main(sys.argv[1:])
