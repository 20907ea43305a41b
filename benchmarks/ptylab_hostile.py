"""PtyLab on an acquisition that is described, perhaps wrongly: its best engines, from frames and directions."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration_problems import Problem
from benchmarks.ptylab_peer import PtyLabRun, Stage
from fouriscope.acquisition import Acquisition
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray

# The settings with which each did best on the problems of `python -m benchmarks calibration`.
ENGINES: dict[str, tuple[Stage, ...]] = {
    "ePIE": (
        Stage("ePIE", 35, {"betaObject": 0.25, "betaProbe": 1.0}),
        Stage("ePIE", 15, {"betaObject": 0.1, "betaProbe": 0.1}),
    ),
    "mPIE": (Stage("mPIE", 50, weigh_by_intensity=True),),
}


def why_not() -> str | None:
    """The reason why it cannot be run here, or None."""
    return None if find_spec("PtyLab") is not None else "it cannot be imported; pip install -e '.[bench]' brings it"


def reconstruct(engine: str, data: Acquisition, gains: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """The complex field in the frames' window, by "ePIE" or "mPIE"."""
    na = data.illumination.directions(data.patch_center)
    frames = np.stack([np.asarray(data.frames.frame(led), np.float32) for led in range(len(data))])
    if gains is not None:
        frames = frames / gains.astype(np.float32)[:, None, None]
    side, optics = frames.shape[1], data.optics
    # It crops boxes as large as a frame, where a disc of the pupil's size would do.
    furthest = float(np.abs(na).max()) / optics.wavelength * side * optics.pixel
    factor = math.ceil((2 * furthest + side + 4) / side)
    model = ForwardModel(
        optics,
        LEDArray.from_directions(na, height=0.08),
        (side, side),
        pupil=data.pupil,
        object="complex",
        object_shape=(factor * side, factor * side),
    )
    run = PtyLabRun(Problem(model, model, np.maximum(frames, 0), np.ones(model.object_shape)))
    for stage in ENGINES[engine]:
        run.run(stage)
    return run.field()
