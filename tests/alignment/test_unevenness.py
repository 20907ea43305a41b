"""Frames whose direct light passes the pupil in a part of the field only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import Acquisition
from fouriscope.alignment import align, course
from fouriscope.alignment.unevenness import direct_shares, uneven, unevenly_lit
from fouriscope.optics import Directions, LEDArray, Optics

HEIGHT = 2e-3
# The corners of the array lie at 0.2075, just outside the pupil.
LEDS = LEDArray.square(5, pitch=0.15e-3, height=HEIGHT)
OPTICS = Optics(wavelength=513e-9, na=0.205, magnification=8.1485, camera_pixel=6.5e-6)


def curved(sign: float = 1.0, margin: int = 16) -> Acquisition:
    """A weak sample under LEDs so near that the direct light of the corner ones passes in one part only."""
    real = fs.ForwardModel(
        replace(OPTICS, wave_curvature=sign / HEIGHT), LEDS, frame_shape=(64, 64), object="wave", margin=margin
    )
    rng = np.random.default_rng(0)
    x = 0.02 * rng.normal(size=real.x_shape).astype(np.float32)
    return Acquisition(OPTICS, LEDS, real.intensity(x))


def at_the_edge() -> list[int]:
    return np.flatnonzero(np.abs(np.hypot(*LEDS.directions().T) - OPTICS.na) < 0.01).tolist()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_frames_with_an_edge_across_the_field_are_found(sign: float) -> None:
    assert len(at_the_edge()) == 4
    assert uneven(curved(sign)).tolist() == at_the_edge()


def test_gains_do_not_matter() -> None:
    data = curved()
    gains = np.random.default_rng(1).uniform(0.5, 2, len(data))
    stack = np.stack([data.frames.frame(led) for led in range(len(data))])
    bright = Acquisition(OPTICS, LEDS, stack * gains[:, None, None].astype(np.float32), gains=gains)
    assert uneven(bright).tolist() == at_the_edge()


def test_a_light_that_does_not_change_over_the_field_is_even() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, frame_shape=(64, 64))
    phase = 0.5 * np.random.default_rng(0).normal(size=model.object_shape)
    frames = fs.simulate(model, phase, seed=0).frames
    assert not len(uneven(Acquisition(OPTICS, LEDS, frames)))


def test_light_that_the_model_knows_to_be_curved_is_its_business() -> None:
    data = curved()
    assert not len(uneven(replace(data, optics=replace(OPTICS, wave_curvature=1 / HEIGHT))))
    assert not len(uneven(replace(data, periodic=True)))


def test_frames_without_weight_are_not_found_again() -> None:
    weights = np.ones(len(LEDS))
    weights[at_the_edge()[0]] = 0
    assert uneven(replace(curved(), weights=weights)).tolist() == at_the_edge()[1:]


def test_a_sample_that_is_denser_on_one_side_does_not_matter() -> None:
    data = curved()
    density = np.linspace(1, 0.3, 64)[:, None].astype(np.float32)
    stack = np.stack([data.frames.frame(led) for led in range(len(data))]) * density
    assert uneven(replace(data, frames=stack)).tolist() == at_the_edge()


def test_the_last_bright_frames_are_kept() -> None:
    frames = np.ones((4, 24, 24))
    frames[1:] = np.linspace(1, 0.2, 24)
    na = np.array([[0.0, 0.0], [0.0, 0.19], [0.0, -0.19], [0.0, 0.195]])
    assert not len(uneven(Acquisition(OPTICS, Directions(na), frames)))


def test_blocks_without_a_pixel_that_counts_are_left_out() -> None:
    data = curved()
    mask = np.ones((64, 64), bool)
    mask[:12] = False
    stack = np.stack([data.frames.frame(led) for led in range(len(data))])
    stack[:, :12] = np.nan
    assert uneven(replace(data, frames=stack, mask=mask)).tolist() == at_the_edge()
    assert not len(uneven(replace(data, mask=np.zeros((64, 64), bool))))


def test_a_corner_of_a_die_that_shines_into_a_part_of_the_field_is_found_by_its_size() -> None:
    dark = np.flatnonzero(np.hypot(*LEDS.directions().T) > OPTICS.na)
    sized = replace(LEDS, die=0.006e-3)
    frames = np.full((len(LEDS), 64, 64), 1e-3)
    frames[np.setdiff1d(np.arange(len(LEDS)), dark)] = 1.0
    data = Acquisition(OPTICS, sized, frames)
    shares = direct_shares(data, *(np.array([-32.0, 0.0, 32.0]),) * 2)
    reached = np.flatnonzero((shares.max(axis=(0, 1)) > 0) & (shares[1, 1] == 0))
    assert len(reached)
    assert set(reached) <= set(unevenly_lit(data).tolist()) <= set(dark.tolist())
    assert not len(unevenly_lit(replace(data, illumination=LEDS)))
    assert not len(unevenly_lit(replace(data, periodic=True)))


@pytest.mark.parametrize("tiles", [False, True])
def test_the_alignment_leaves_them_out_unless_tiles_decide_for_themselves(
    tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "uneven", lambda acquisition: np.array([7]))
    others = dict.fromkeys(("circles", "exposure", "focus", "response", "na", "array", "die", "curvature"), False)
    found = align(replace(curved(), weights=np.ones(len(LEDS))), **others, tiles=tiles)  # type: ignore[arg-type]
    assert any("(LED 7)" in note for note in found.notes) == (not tiles)
    assert found.acquisition.frame_weights[7] == tiles
