"""Numbers that no microscope has, and arrays that would fill the memory: refused before anything is built."""

from __future__ import annotations

from typing import Any

import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Directions, LEDArray, Optics, Pupil
from fouriscope.settings import ADMM, Calibration, FramesSection, PnP, PupilSection

GOOD: dict[str, Any] = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.0, "camera_pixel": 6.5e-6}


@pytest.mark.parametrize("key", [*GOOD, "medium_index"])
@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_extreme_optics(key: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=key):
        Optics(**(GOOD | {key: value}))


def test_a_magnification_that_no_image_file_could_hold() -> None:
    with pytest.raises(InvalidInputError, match=r"magnification must be from 0\.001 to 100000, got 1e\+12"):
        Optics(**(GOOD | {"magnification": 1e12}))
    with pytest.raises(InvalidInputError, match="camera_pixel / magnification must be"):
        Optics(**(GOOD | {"magnification": 1e5, "camera_pixel": 1e-9}))


@pytest.mark.parametrize(
    "build",
    [
        lambda: LEDArray.disc(4e-3, 70e-3, 10_000),
        lambda: LEDArray.square((10**6, 10**6), 4e-3, 70e-3),
        lambda: LEDArray.spiral(10**6, 4e-3, 70e-3),
        lambda: LEDArray.rings([1e-3, 2e-3], [10**9, 10**9], 70e-3),
    ],
)
def test_more_leds_than_any_array_has(build: Any) -> None:
    with pytest.raises(InvalidInputError, match="an array may have at most 100000 LEDs, but this one would have"):
        build()


def test_extreme_places() -> None:
    for height in (1e-300, 1e9):
        with pytest.raises(InvalidInputError, match="height must be from 1e-06 to 1000"):
            LEDArray.at([(0.0, 0.0)], height)
        with pytest.raises(InvalidInputError, match="height must be"):
            Directions([(0.0, 0.0)], height)
    with pytest.raises(InvalidInputError, match="the distance of an LED from the axis"):
        LEDArray.square(3, 1e9, 70e-3)
    with pytest.raises(InvalidInputError, match="defocus"):
        Pupil(defocus=1e9)
    with pytest.raises(InvalidInputError, match=r"from 1 .* to 136"):
        Pupil({1_000_000: 1.0})


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        (PupilSection, {"zernike": {1_000_000: 1.0}}),
        (Calibration, {"zernike_modes": tuple(range(4, 400))}),
        (Calibration, {"zernike_modes": (4, 4)}),
        (PnP, {"steps_per_denoising": 10**12}),
        (ADMM, {"data_steps": 10**12}),
        (FramesSection, {"shape": (10**9, 10**9)}),
        (FramesSection, {"path": "a.npy", "gain": 1e-300}),
        (FramesSection, {"path": "a.npy", "power": 1e-300}),
        (FramesSection, {"path": "a.npy", "offset": float("inf")}),
    ],
)
def test_extreme_settings(section: Any, keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        section(**keys)
