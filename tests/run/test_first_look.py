"""What two sweeps of EPRY show of a sample before its run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import fouriscope as fs
from fouriscope.run.doubt import LOOK
from fouriscope.run.first_look import ABSORBS, HAS_TURNS, why_no_phase
from fouriscope.settings import Engine
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes


def acquired(rad: float, absorption: float, photons: float, smooth: float = 0.0) -> fs.Acquisition:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    image = gaussian_filter(shapes(model.object_shape, 1.0), smooth, mode="wrap")
    x = np.stack([rad * image / np.ptp(image), np.full_like(image, absorption)]).astype(np.float32)
    frames = np.random.default_rng(0).poisson(model.intensity(x) * photons) / photons
    return fs.Acquisition(OPTICS, LEDS, frames.astype(np.float32), periodic=True)


@pytest.mark.parametrize("photons", [50, 2000])
@pytest.mark.parametrize("rad", [0.0, 0.3, 1.0])
def test_a_phase_may_be_one_and_absorption_is_seen(rad: float, photons: float) -> None:
    assert why_no_phase(acquired(rad, 0.0, photons), Engine()) is None
    assert why_no_phase(acquired(rad, 0.1, photons), Engine()) == ABSORBS


def test_a_phase_with_whole_turns_is_seen_and_found() -> None:
    data = acquired(9.0, 0.0, 2000, smooth=6.0)
    assert why_no_phase(data, Engine()) == HAS_TURNS
    assert fs.reconstruct(data, iterations=5).config["object"]["model"] == "wave"


def test_pixels_that_are_not_measured_take_no_light_away() -> None:
    few = np.indices((24, 24)).sum(axis=0) % 8 == 0
    assert why_no_phase(replace(acquired(1.0, 0.0, 2000), mask=few), Engine()) is None


def test_a_run_as_a_wave_begins_at_once() -> None:
    iterations: list[int] = []
    data = acquired(0.3, 0.1, 2000)
    result = fs.reconstruct(
        data, iterations=LOOK + 5, callbacks=[lambda _, record: iterations.append(record.iteration)]
    )
    assert result.config["object"]["model"] == "wave"
    assert iterations == list(range(1, len(iterations) + 1))


def test_who_chooses_a_phase_gets_it() -> None:
    result = fs.reconstruct(acquired(0.3, 0.1, 2000), object="phase", iterations=5)
    assert result.config["object"]["model"] == "phase"
