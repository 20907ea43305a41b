"""Which sources a frame gets."""

from __future__ import annotations

import numpy as np

import fouriscope as fs
from fouriscope.optics.frame_sources import coarse_sources, frame_sources

OPTICS = fs.Optics(wavelength=532e-9, na=0.1, magnification=2, camera_pixel=3.45e-6)
LEDS = fs.LEDArray.square(15, pitch=4e-3, height=80e-3)


def test_coarse_sources_divide_only_leds_near_the_edge() -> None:
    large = fs.LEDArray.square(15, pitch=4e-3, height=80e-3, die=4e-3)
    whole, coarse = frame_sources(large, OPTICS, (0.0, 0.0)), coarse_sources(large, OPTICS, (0.0, 0.0))
    assert coarse is not None
    na = np.hypot(*large.directions((0.0, 0.0)).T)
    for led, radius in enumerate(na):
        parts, all_parts = coarse.na[coarse.frames == led], whole.na[whole.frames == led]
        if abs(radius - OPTICS.na) < 0.01:
            np.testing.assert_array_equal(parts, all_parts)
        elif radius > 0.15:
            np.testing.assert_allclose(parts, large.directions((0.0, 0.0))[led : led + 1], atol=1e-9)
    assert len(coarse.na) < len(whole.na) / 2
    np.testing.assert_allclose(np.bincount(coarse.frames, coarse.weights), 1)


def test_points_have_no_coarse_sources() -> None:
    assert coarse_sources(LEDS, OPTICS, (0.0, 0.0)) is None
