"""What a calibration may change of a model, as plain arrays for checkpoints and results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward import ForwardModel
from fouriscope.optics import Adjusted, Illumination, LEDArray, Pupil
from fouriscope.optics.die import DieShape


def model_arrays(model: ForwardModel) -> dict[str, NDArray[Any]]:
    """Pupil, illumination and gains of a model."""
    pupil, lights = model.pupil, model.illumination
    arrays: dict[str, NDArray[Any]] = {
        "zernike": np.array(list(pupil.zernike.items()), np.float64).reshape(-1, 2),
        "defocus": np.array(pupil.defocus),
    }
    if pupil.array is not None:
        arrays["pupil"] = pupil.array
    if model.gains is not None:
        arrays["gains"] = model.gains
    if isinstance(lights, Adjusted):
        arrays["na_shifts"], lights = lights.shifts, lights.base
    if isinstance(lights, LEDArray):
        arrays |= {
            "positions": lights.positions,
            "array": np.array([lights.height, lights.rotation, *lights.offset]),
        }
        if lights.die:
            arrays["die"] = np.array([lights.die, lights.die_shape == "round"], np.float64)
    return arrays


def model_from_arrays(model: ForwardModel, arrays: dict[str, NDArray[Any]]) -> ForwardModel:
    """``model`` with what :func:`model_arrays` gave of another one."""
    pupil = Pupil(
        zernike={int(index): float(value) for index, value in arrays["zernike"]},
        defocus=float(arrays["defocus"].item()),
        array=arrays.get("pupil"),
    )
    lights: Illumination = model.illumination
    if isinstance(lights, Adjusted):
        lights = lights.base
    if "positions" in arrays:
        height, rotation, y, x = (float(number) for number in arrays["array"])
        slide = lights.slide if isinstance(lights, LEDArray) else None
        die, is_round = arrays.get("die", (0.0, 0.0))
        shape: DieShape = "round" if is_round else "square"
        lights = LEDArray(arrays["positions"], height, rotation, (y, x), slide, float(die), shape)
    if "na_shifts" in arrays:
        lights = Adjusted(lights, arrays["na_shifts"])
    return model.revised(pupil=pupil, illumination=lights, gains=arrays.get("gains"))
