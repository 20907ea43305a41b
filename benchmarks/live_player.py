"""A process of its own for the live benchmark: writes frames into a folder, a camera's pace, once it is told to begin.

Arguments: the .npy file of frames, the folder, frames per second, the file whose appearance is the signal to begin.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from fouriscope.cli.playing import PAUSE, write_slowly
from fouriscope.paper import paper_leds


def main() -> None:
    stack, folder, rate, signal = np.load(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    leds = np.argsort(np.hypot(*paper_leds().directions().T), kind="stable")
    while not signal.exists():
        time.sleep(0.01)
    began = time.monotonic()
    for number, led in enumerate(leds):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        write_slowly(folder / f"led_{led:03d}.tif", stack[led], pause=PAUSE / rate)


if __name__ == "__main__":
    main()
