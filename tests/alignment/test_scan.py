"""A look around finds an array in a wrong place, and leaves one in the right place alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.alignment import scan
from fouriscope.optics import LEDArray
from fouriscope.simulation import HostileMicroscope

PITCH = 4e-3


def off(found: object, true: LEDArray) -> float:
    """The distance of two places, in pitches."""
    assert isinstance(found, LEDArray)
    return float(np.hypot(*np.subtract(found.offset, true.offset))) / PITCH


@pytest.mark.parametrize("displacement", [(2.4e-3, -0.8e-3), (0.3e-3, 3.5e-3)])
def test_an_array_in_a_wrong_place_is_found_with_a_sample_of_several_turns_of_phase(
    displacement: tuple[float, float],
) -> None:
    microscope = HostileMicroscope(leds=9, frame=48, surround=24, sample="wrapping", displacement=displacement)
    data, truth = microscope.acquire(1)
    fit = scan(data)
    assert fit is not None
    assert fit.changed
    assert fit.after > fit.before
    assert off(data.illumination, truth.illumination) > 0.6
    assert off(fit.illumination, truth.illumination) < 0.25


@pytest.mark.parametrize("sample", ["wrapping", "weak"])
def test_an_array_in_the_right_place_stays(sample: str) -> None:
    data, _ = HostileMicroscope(leds=9, frame=48, surround=24, sample=sample).acquire(1)  # type: ignore[arg-type]
    fit = scan(data)
    assert fit is not None
    assert not fit.changed
    assert fit.illumination is data.illumination


def test_too_few_frames_cannot_tell() -> None:
    data, _ = HostileMicroscope(leds=9, frame=32, surround=16).acquire(1)
    na = np.hypot(*data.illumination.directions().T)
    few = replace(data, weights=(na < np.sort(na)[12]).astype(float))
    assert scan(few) is None
    assert scan(fs.Acquisition(data.optics, data.illumination, data.frames, weights=(na > 0.3).astype(float))) is None
