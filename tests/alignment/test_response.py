"""Counts that are a power of the intensity are recognised and straightened, and others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fouriscope.acquisition import Acquisition, ArrayFrames, CorrectedFrames
from fouriscope.acquisition.corrections import Corrections
from fouriscope.acquisition.straightening import straightened
from fouriscope.alignment import Alignment, align, find_response
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.run.aligned import with_alignment
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described
from fouriscope.run.inputs import resolved
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)
OFFSET, BRIGHT, GAMMA = 40.0, 2e4, 0.5


def light(longer: float = 1.0) -> np.ndarray:
    """Intensities of a strong phase, with dark field exposed ``longer``; empty bright field is 1."""
    model = ForwardModel(OPTICS, LEDS, (48, 48))
    phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape).astype(np.float32)
    exposures = np.where(model.geometry.bright_field, 1.0, longer)
    return np.asarray(model.intensity(phase) * exposures[:, None, None], np.float64)


def bent(gamma: float, longer: float = 1.0) -> Acquisition:
    """As somebody describes it who knows the offset and the level of the bright field, but nothing of the gamma."""
    counts = np.random.default_rng(1).poisson(OFFSET + BRIGHT * light(longer)).astype(np.float64) ** gamma
    dark, gain = OFFSET**gamma, (OFFSET + BRIGHT) ** gamma - OFFSET**gamma
    frames = CorrectedFrames(ArrayFrames(counts), Corrections(offset=dark, gain=gain))
    return Acquisition(OPTICS, LEDS, frames, periodic=True)


@pytest.mark.parametrize("longer", [1.0, 6.0])
def test_a_power_is_found_whatever_the_exposure_of_the_dark_field(longer: float) -> None:
    found = find_response(bent(GAMMA, longer))
    assert found is not None
    assert found.power == pytest.approx(GAMMA, rel=0.25)


@pytest.mark.parametrize("longer", [1.0, 6.0])
def test_counts_that_are_intensities_stay_so(longer: float) -> None:
    found = find_response(bent(1.0, longer))
    assert found is not None
    assert not found.changed


def test_an_alignment_straightens_the_frames() -> None:
    data = bent(GAMMA)
    found = align(data, circles=False, focus=False, array=False, na=False, die=False, edge=False)
    assert found.power != 1
    assert any(note.startswith("response:") for note in found.notes)
    right, before = light(), np.asarray(data.frames)
    after = np.asarray(found.acquisition.frames)
    assert np.abs(after - right).mean() < 0.5 * np.abs(before - right).mean()


def test_images_that_are_bent_themselves_are_not_guessed_at() -> None:
    data = bent(GAMMA)
    assert isinstance(data.frames, CorrectedFrames)
    flat = replace(data.frames.corrections, flat=np.ones(data.frame_shape))
    with_flat = replace(data, frames=CorrectedFrames(data.frames.frames, flat))
    assert find_response(with_flat) is None
    with pytest.raises(InvalidInputError, match="flat image"):
        straightened(with_flat.frames, GAMMA)


def test_too_few_frames_tell_nothing() -> None:
    data = bent(GAMMA)
    weights = np.zeros(len(data))
    weights[:10] = 1
    assert find_response(replace(data, weights=weights)) is None


def test_stray_light_and_exposures_are_straightened_with_the_counts() -> None:
    """What the camera saw: (light + stray) · exposure + offset, to the power; and everything is known but the power."""
    rng = np.random.default_rng(0)
    clean, stray, exposures = rng.uniform(0, 500, (3, 8, 8)), np.array([0.0, 5.0, 20.0]), np.array([1.0, 2.0, 8.0])
    seen = (clean + stray[:, None, None]) * exposures[:, None, None] + OFFSET
    dark = OFFSET**GAMMA
    background = ((stray * exposures + OFFSET) ** GAMMA - dark) / exposures
    told = Corrections(offset=dark, exposures=exposures, background=background, gain=(OFFSET + BRIGHT) ** GAMMA - dark)
    straight = straightened(CorrectedFrames(ArrayFrames(seen**GAMMA), told), GAMMA)
    np.testing.assert_allclose(np.asarray(straight), clean / BRIGHT, rtol=1e-9)


@pytest.mark.parametrize("given", [{}, {"offset": 9.0, "gain": 20.0}, {"background": 3.0, "saturation": 30.0}])
def test_a_configuration_gets_the_frames_of_the_alignment(tmp_path: Path, given: dict[str, float]) -> None:
    np.save(tmp_path / "frames.npy", np.random.default_rng(0).uniform(1, 40, (81, 8, 8)))
    document = {
        "frames": {"path": "frames.npy", **given},
        "microscope": {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6},
        "illumination": {"kind": "square", "shape": [9, 9], "pitch": 4e-3, "height": 70e-3},
    }
    config = parse_config(document, where="test")
    before = Described(config, tmp_path).acquisition()
    straight = replace(before, frames=straightened(before.frames, GAMMA))
    written = parse_config(
        with_alignment(resolved(config, tmp_path), Alignment(straight, ("response: found",), GAMMA)), where="test"
    )
    again = Described(written, tmp_path)
    for acquisition in (again.acquisition(), again.seen_anew(straight)):
        np.testing.assert_array_equal(np.asarray(acquisition.frames), np.asarray(straight.frames))
    if before.mask is not None:
        np.testing.assert_array_equal(np.asarray(again.acquisition().mask), np.asarray(before.mask))
