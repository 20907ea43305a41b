"""Camera counts become intensities in units of the bright field, and what is left as counts is told."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.errors import InvalidInputError, UnitsWarning
from tests.conftest import LEDS, OPTICS

MODEL = fs.ForwardModel(OPTICS, LEDS, (24, 24))


@pytest.fixture(scope="module")
def intensity() -> NDArray[np.float64]:
    phase = np.zeros(MODEL.object_shape)
    phase[30:40, 30:40] = 0.5
    return np.asarray(fs.simulate(MODEL, phase, seed=0).frames, np.float64)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float32, np.float64])
def test_counts_of_any_type_become_intensity(intensity: NDArray[np.float64], dtype: Any) -> None:
    counts = np.round(10 + 150 * intensity).astype(dtype)
    data = fs.Acquisition.from_counts(OPTICS, LEDS, counts, dark=10, bright_field=150.0, periodic=True)
    assert data.periodic
    np.testing.assert_allclose(np.asarray(data.frames), intensity, atol=0.5 / 150 + 1e-6)


def test_the_empty_field_is_found_in_bright_frames(intensity: NDArray[np.float64]) -> None:
    counts = (100 + 8000 * intensity).astype(np.uint16)
    data = fs.Acquisition.from_counts(OPTICS, LEDS, counts, dark=np.full((24, 24), 100))
    np.testing.assert_allclose(np.asarray(data.frames), intensity, rtol=0.02, atol=0.002)


def test_longer_exposures_are_divided_out(intensity: NDArray[np.float64]) -> None:
    times = np.where(MODEL.geometry.bright_field, 1.0, 20.0)
    counts = (100 + 1000 * times[:, None, None] * intensity).astype(np.uint16)
    data = fs.Acquisition.from_counts(OPTICS, LEDS, counts, dark=100, exposures=times)
    np.testing.assert_allclose(np.asarray(data.frames), intensity, rtol=0.02, atol=0.002)


def test_a_stack_on_disk_is_not_read_as_a_whole(intensity: NDArray[np.float64], tmp_path: Path) -> None:
    np.save(tmp_path / "stack.npy", (8000 * intensity).astype(np.uint16))
    data = fs.Acquisition.from_counts(OPTICS, LEDS, fs.open_frames(tmp_path / "stack.npy"))
    assert np.median(data.frames.frame(24)) == pytest.approx(1, rel=0.02)


def test_patterns_are_brighter_than_one_led(intensity: NDArray[np.float64]) -> None:
    patterns = np.kron(np.eye(7), np.ones(7))
    counts = 500 * np.einsum("pl,lij->pij", patterns, intensity)
    data = fs.Acquisition.from_counts(OPTICS, fs.Multiplexed(LEDS, patterns), counts)
    assert data.frames.frame(3).mean() == pytest.approx(intensity[21:28].sum(axis=0).mean(), rel=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dark": 20000}, "it is -.* above dark: give the number, or look at dark"),
        ({"bright_field": 0.0}, "bright_field must be the counts of the empty field, above 0"),
        ({"exposures": [1.0, 2.0]}, "exposures must be finite and of shape"),
        ({"dark": np.zeros((3, 3))}, "dark must be finite and of shape"),
        ({"weights": np.ones(3)}, "one per frame is needed, 49"),
    ],
)
def test_wrong_numbers_are_told(intensity: NDArray[np.float64], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fs.Acquisition.from_counts(OPTICS, LEDS, (8000 * intensity).astype(np.uint16), **changes)


def test_without_bright_field_the_number_must_be_given(intensity: NDArray[np.float64]) -> None:
    dark = fs.Directions(LEDS.directions() + np.array([0.6, 0]))
    with pytest.raises(InvalidInputError, match="no frame is bright field: give the number"):
        fs.Acquisition.from_counts(OPTICS, dark, intensity)
    assert fs.Acquisition.from_counts(OPTICS, dark, intensity, bright_field=2.0).frames.frame(0).mean() > 0


@pytest.mark.parametrize("scale", [50, 8000, 1e-3])
def test_frames_in_another_unit_are_told_and_gains_excuse_them(intensity: NDArray[np.float64], scale: float) -> None:
    data = fs.Acquisition(OPTICS, LEDS, scale * intensity, periodic=True)
    with pytest.warns(UnitsWarning, match=r"near 1; here it is [\d.]+ \(float64\).*from_counts"):
        fs.reconstruct(data, batch=12, iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = fs.Acquisition(OPTICS, LEDS, scale * intensity, gains=np.full(49, float(scale)), periodic=True)
        fs.reconstruct(known, batch=12, iterations=1)


def test_the_warning_points_at_the_caller(intensity: NDArray[np.float64]) -> None:
    data = fs.Acquisition(OPTICS, LEDS, (8000 * intensity).astype(np.uint16), periodic=True)
    with pytest.warns(UnitsWarning, match=r"\(uint16\)") as told:
        fs.reconstruct(data, batch=12, iterations=1)
    assert told[0].filename == __file__
    with pytest.warns(UnitsWarning) as told:
        fs.tune(data, prior="tv", batch=12, iterations=5, evaluations=1)
    assert told[0].filename == __file__


def test_the_sheet_of_an_acquisition(intensity: NDArray[np.float64]) -> None:
    weights = np.ones(49)
    weights[3] = 0
    figure = fs.Acquisition(OPTICS, LEDS, intensity, weights=weights).plot()
    assert len(figure.axes) == 2
    assert "1 rejected" in figure.get_suptitle()
