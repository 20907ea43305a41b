"""How directions change over the field, found from the frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.alignment.curvature import find_curvature, with_curvature
from fouriscope.alignment.trials import PATCH, center_of_patch, most_detailed_place

OPTICS = fs.Optics(wavelength=532e-9, na=0.1, magnification=2, camera_pixel=3.45e-6)
LEDS = fs.LEDArray.square(7, pitch=4e-3, height=50e-3)


def acquire(curvature: float | None, frame: int = 128) -> fs.Acquisition:
    """Frames of cells in the middle of a field that goes on, under LEDs whose light is curved."""
    optics = replace(OPTICS, wave_curvature=curvature)
    whole = fs.ForwardModel(optics, LEDS, (frame, frame), object="wave", margin=24)
    rng = np.random.default_rng(0)
    y, x = (np.arange(size) for size in whole.object_shape)
    phase = np.zeros(whole.object_shape)
    for _ in range(120):
        middle, radius = rng.uniform(0, whole.object_shape[0], 2), rng.uniform(5, 14)
        phase += 0.8 * (np.hypot(y[:, None] - middle[0], x - middle[1]) < radius)
    clear = whole.transmittance(np.zeros(whole.x_shape))
    wave = np.exp(1j * phase) * clear
    frames = np.abs(whole.apply(wave)) ** 2
    counts = rng.poisson(2000 * frames) / 2000
    return fs.Acquisition(OPTICS, LEDS, counts.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("times", [2.0, -1.0])
def test_a_curvature_is_found_with_its_sign(times: float) -> None:
    fit = find_curvature(acquire(times / LEDS.height))
    assert fit is not None
    assert fit.changed
    assert fit.curvature * LEDS.height == pytest.approx(times, abs=0.4)
    assert fit.after > fit.before


@pytest.mark.slow
def test_flat_light_is_left_alone() -> None:
    fit = find_curvature(acquire(None))
    assert fit is not None
    assert not fit.changed or abs(fit.curvature * LEDS.height) < 0.3


def test_it_is_not_asked_for_where_it_cannot_be_seen_or_is_known() -> None:
    small = acquire(None, frame=64)
    assert find_curvature(small) is None
    large = acquire(None, frame=96)
    assert find_curvature(replace(large, optics=replace(OPTICS, wave_curvature=3.0))) is None
    assert find_curvature(replace(large, illumination=fs.Directions(LEDS.directions()))) is None
    assert find_curvature(replace(large, periodic=True)) is None


def test_trials_see_the_leds_as_before() -> None:
    data = replace(acquire(None, frame=160), patch_center=(50e-6, -20e-6))
    curved = with_curvature(data, 30.0)
    assert curved.optics.wave_curvature == 30.0
    assert curved.patch_center == pytest.approx((1.5 * 50e-6, 1.5 * -20e-6))
    place = most_detailed_place(data, PATCH)
    before = data.illumination.directions(center_of_patch(data, place))
    np.testing.assert_allclose(curved.illumination.directions(center_of_patch(curved, place)), before, atol=1e-12)
    # One pixel farther, directions change by c times a pixel.
    there = (place[0] + 10, *place[1:])
    moved = curved.illumination.directions(center_of_patch(curved, there))
    np.testing.assert_allclose((moved - before)[:, 0], -30.0 * 10 * OPTICS.pixel, rtol=0.15)
