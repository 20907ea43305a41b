"""A small acquisition whose frames can be handed over one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import tomli_w
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.forward import ForwardModel
from fouriscope.live import LiveReconstruction, stream
from fouriscope.simulation import simulate
from tests.conftest import LEDS, OPTICS
from tests.run.problems import document
from tests.solvers.problems import shapes

SHAPE = (24, 24)
COUNT = len(LEDS)


def model() -> ForwardModel:
    return ForwardModel(OPTICS, LEDS, SHAPE)


def acquisition(seed: int = 0) -> Acquisition:
    lens = model()
    return simulate(lens, shapes(lens.object_shape, 0.3).astype(np.float32), snr_db=35, seed=seed)


def live_reconstruction(**options: Any) -> LiveReconstruction:
    return stream(OPTICS, LEDS, SHAPE, **{"periodic": True, "batch": 12, "seed": 0, "prior": "tv", **options})


def stack(data: Acquisition) -> NDArray[Any]:
    return np.stack([data.frames.frame(led) for led in range(len(data))])


def from_the_axis(first: int = 0) -> list[int]:
    """All LEDs, the bright field first."""
    order = np.argsort(np.hypot(*LEDS.directions().T), kind="stable")
    return [int(led) for led in order[first:]]


def write_frame(folder: Path, led: int, image: NDArray[Any]) -> Path:
    path = folder / name_of(led)
    tifffile.imwrite(path, image, photometric="minisblack")
    return path


def name_of(led: int) -> str:
    return f"led_{led:02d}.tif"


def write_config(folder: Path, **sections: dict[str, Any]) -> Path:
    """acquisition.toml for frames that will come to ``folder/frames``."""
    (folder / "frames").mkdir(parents=True, exist_ok=True)
    frames = {"path": "frames", "pattern": "led_*.tif", "truth": None} | sections.pop("frames", {})
    path = folder / "acquisition.toml"
    path.write_text(tomli_w.dumps(document(frames=frames, **sections)), encoding="utf-8")
    return path
