"""`fouriscope simulate --live`: an acquisition that takes its time, for trying out `fouriscope watch`."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.errors import InvalidInputError
from fouriscope.run.files import write_text
from fouriscope.run.toml_lines import toml_of

# Of the time of a frame, how long its second half is kept back.
PAUSE = 0.3


def play(
    out: Path, data: Acquisition, document: dict[str, Any], *, rate: float, order: str, seed: int, console: Console
) -> None:
    """Write ``config.toml``, then one TIFF per frame into ``frames/``, ``rate`` per second, as a camera program does.

    Each file is written in two halves with a pause in between, under its final name: a program that reads it too early
    reads half a frame.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise InvalidInputError(f"--rate must be a positive number of frames per second, got {rate}")
    folder, leds = out / "frames", led_order(data, order, seed)
    names = [f"led_{led:03d}.tif" for led in range(len(data))]
    frames = data.frames.frames if isinstance(data.frames, CalibratedFrames) else data.frames
    folder.mkdir()
    section = {**document["frames"], "path": "frames", "files": names}
    write_text(out / "config.toml", toml_of({**document, "frames": section}))
    console.print(
        f"writing {len(leds)} frames into {escape(str(folder))}, {rate:g} per second; in another terminal, run:\n"
        f"fouriscope watch {escape(str(folder))} --config {escape(str(out / 'config.toml'))}"
    )
    began = time.monotonic()
    for number, led in enumerate(leds):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        write_slowly(folder / names[led], frames.frame(int(led)), pause=PAUSE / rate)


def led_order(data: Acquisition, order: str, seed: int) -> NDArray[np.int64]:
    """ "na": from the axis outwards, the detail last; "random": any."""
    if order == "random":
        return np.random.default_rng(seed).permutation(len(data))
    if order == "na":
        return np.argsort(data.illumination_na, kind="stable")
    raise InvalidInputError(f"--order must be 'na' or 'random', got {order!r}")


def write_slowly(path: Path, image: NDArray[Any], *, pause: float) -> None:
    """A TIFF of which, for the time of ``pause``, only half is there."""
    import tifffile

    buffer = io.BytesIO()
    tifffile.imwrite(buffer, image, photometric="minisblack")
    data = buffer.getvalue()
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        time.sleep(pause)
        file.write(data[len(data) // 2 :])
