"""Direct light that leaks into dark frames beside the pupil's edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from fouriscope.acquisition import Acquisition
from fouriscope.alignment import align, haze
from fouriscope.alignment.haze import REACHES, hazy
from fouriscope.alignment.trials import Trials
from fouriscope.errors import DivergenceError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.optics.die import die_radius
from fouriscope.parallel import threads
from fouriscope.solvers import EPRY, Iterations
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)
MODEL = ForwardModel(OPTICS, LEDS, (64, 64), object="wave")
distance = np.hypot(*LEDS.directions().T) / OPTICS.na
# The searches that are not meant here.
OTHERS: dict[str, Any] = dict.fromkeys(("circles", "exposure", "focus", "na", "array", "die"), False)
BESIDE = np.flatnonzero((distance > 1) & (distance < 1 + REACHES[-1]))


def bars() -> np.ndarray:
    """An absorbing sample with edges and without a slow phase."""
    rows, columns = np.indices(MODEL.object_shape)
    return np.where((rows // 12 % 3 == 0) & (columns // 30 % 2 == 0), 0.3, 1.0) + 0j


def slow(scale: float) -> np.ndarray:
    """A smooth random phase with this standard deviation."""
    noise = np.random.default_rng(5).normal(size=MODEL.object_shape)
    smooth = gaussian_filter(noise, 16, mode="wrap")
    return np.asarray(scale * smooth / smooth.std())


def taken(sample: np.ndarray, haze: float = 0.0) -> Acquisition:
    x = np.stack([sample.real - 1, sample.imag]).astype(np.float32)
    frames = np.random.default_rng(1).poisson(MODEL.intensity(x) * 5000) / 5000
    light = gaussian_filter(np.random.default_rng(2).random((len(BESIDE), 64, 64)), (0, 8, 8), mode="wrap")
    light -= light.min(axis=(1, 2), keepdims=True)
    frames[BESIDE] += haze * light / light.mean(axis=(1, 2), keepdims=True)
    return Acquisition(OPTICS, LEDS, frames.astype(np.float32), periodic=True)


@pytest.fixture(scope="module")
def leaking() -> Acquisition:
    return taken(bars(), haze=0.015)


def test_frames_with_haze_are_found(leaking: Acquisition) -> None:
    assert len(BESIDE)
    np.testing.assert_array_equal(hazy(leaking), BESIDE)


def test_the_number_of_threads_does_not_matter(leaking: Acquisition) -> None:
    with threads(1):
        np.testing.assert_array_equal(hazy(leaking), BESIDE)


@pytest.mark.parametrize("sample", [bars(), bars() * np.exp(1j * slow(0.5)), np.exp(1j * slow(0.5))])
def test_frames_without_haze_are_kept_also_if_the_sample_has_slow_phases(sample: np.ndarray) -> None:
    assert not len(hazy(taken(sample)))


def test_without_frames_beside_the_edge_or_bright_ones_to_ask_nothing_is_left_out(leaking: Acquisition) -> None:
    none_beside, few_bright = leaking.frame_weights, leaking.frame_weights
    none_beside[BESIDE] = 0
    few_bright[(distance > 0.6) & (distance < 1)] = 0
    for weights in (none_beside, few_bright):
        assert not len(hazy(replace(leaking, weights=weights)))


@pytest.mark.parametrize("die", [0.0, 1e-3])
def test_of_leds_with_a_size_the_point_nearest_to_the_axis_counts(
    leaking: Acquisition, monkeypatch: pytest.MonkeyPatch, die: float
) -> None:
    asked: list[list[np.ndarray]] = []

    def seen(trials: Trials, leds: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
        asked.append(groups)
        return np.ones((len(groups), len(leds)))

    monkeypatch.setattr(haze, "_misfits", seen)
    lights = replace(LEDS, die=die)
    assert not len(hazy(replace(leaking, illumination=lights)))
    nearest = distance - die_radius(lights, (0.0, 0.0)) / OPTICS.na
    for reach, group in zip(REACHES, asked[0][1:], strict=True):
        np.testing.assert_array_equal(group, np.flatnonzero((distance > 1) & (nearest < 1 + reach)))
    assert (len(asked[0][-1]) > len(BESIDE)) == (die > 0)


def test_if_nothing_can_be_reconstructed_nothing_is_left_out(
    leaking: Acquisition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverges(*_: Any, **__: Any) -> EPRY:
        raise DivergenceError("astray")

    monkeypatch.setattr(Trials, "sweeps", staticmethod(diverges))
    assert not len(hazy(leaking))


def test_the_alignment_leaves_them_out_and_the_slow_phase_is_not_there(leaking: Acquisition) -> None:
    """The reason for all this: the haze alone makes a slow phase of a sample that has none."""
    found = align(leaking, **OTHERS)
    left_out = np.flatnonzero(found.acquisition.frame_weights == 0)
    assert set(BESIDE) <= set(left_out)
    errors = [float(np.linalg.norm(_epry(data) - bars())) for data in (leaking, found.acquisition)]
    assert errors[1] < 0.5 * errors[0]


def _epry(data: Acquisition) -> np.ndarray:
    fidelity = DataFidelity.of(data, MODEL, loss="amplitude")
    solver = EPRY(fidelity, AllLEDs(np.flatnonzero(fidelity.weights > 0)), decay=0.3, seed=0)
    solver.solve(Iterations(15))
    wave = MODEL.transmittance(solver.x)
    return np.asarray(wave * np.exp(-1j * np.angle(np.vdot(bars(), wave))))
