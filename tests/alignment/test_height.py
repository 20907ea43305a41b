"""The height of the array is found from predictions of unseen frames, and a right one is left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.alignment import HeightFit, find_height, steps
from fouriscope.optics import Directions
from fouriscope.simulation import HostileMicroscope
from fouriscope.simulation.samples import SampleName

MICROSCOPE = HostileMicroscope(leds=9, frame=48, surround=24)


@pytest.mark.parametrize(("sample", "error"), [("cells", -0.12), ("target", -0.12), ("target", 0.1), ("mixed", 0.08)])
def test_a_wrong_height_is_found(sample: SampleName, error: float) -> None:
    data, _ = replace(MICROSCOPE, sample=sample, height_error=error).acquire(1)
    fit = find_height(data)
    assert fit is not None
    assert fit.changed
    assert fit.after > fit.before
    assert fit.factor == pytest.approx(1 + error, abs=0.02)


@pytest.mark.parametrize("sample", ["cells", "target", "weak", "wrapping"])
def test_a_right_height_stays(sample: SampleName) -> None:
    fit = find_height(replace(MICROSCOPE, sample=sample).acquire(1)[0])
    assert fit is not None
    assert fit.factor == 1.0
    assert not fit.changed


@pytest.mark.slow
def test_neither_aperture_nor_place_makes_up_for_a_wrong_height() -> None:
    microscope = replace(MICROSCOPE, frame=64, surround=32, height_error=-0.12)
    data, truth = microscope.acquire(0)
    found = fs.align(data, curvature=False).acquisition
    assert isinstance(found.illumination, fs.LEDArray)
    assert found.illumination.height == pytest.approx(truth.illumination.height, rel=0.015)
    assert found.optics.na == pytest.approx(0.1, rel=0.01)


def test_too_few_frames_cannot_tell() -> None:
    data, _ = MICROSCOPE.acquire(1)
    na = np.hypot(*data.illumination.directions().T)
    assert find_height(replace(data, weights=(na < np.sort(na)[12]).astype(float))) is None
    assert find_height(replace(data, weights=(na > 0.3).astype(float))) is None


def test_it_is_looked_for_at_the_described_place_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong height misleads the circles: the array may be described in the right place."""
    described, _ = MICROSCOPE.acquire(1)
    placed = replace(described, illumination=MICROSCOPE.described.moved(shift=(1e-3, 0)))

    def found(acquisition: fs.Acquisition) -> HeightFit:
        here = acquisition.illumination is described.illumination
        return HeightFit(1.1 if here else 0.9, 0.4, 0.8 if here else 0.6, 9.0)

    monkeypatch.setattr(steps, "find_height", found)
    monkeypatch.setattr(steps, "evidence_for", lambda other, here: 0.0)
    told: list[str] = []
    moved = steps.at_height(described, placed, told.append).illumination
    assert isinstance(moved, fs.LEDArray)
    assert moved.height == pytest.approx(1.1 * MICROSCOPE.height)
    assert moved.offset == (0.0, 0.0)
    assert told == [
        "height: 88 mm (was 80) predicts unseen frames better (correlation 0.400 → 0.800, by 9.0 standard errors)"
    ]


def test_another_aperture_is_used_if_it_is_clearly_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both move neighbouring pupils apart; what predicts unseen frames clearly better decides."""
    data, _ = MICROSCOPE.acquire(1)
    compared: list[tuple[float, float]] = []

    def evidence(other: fs.Acquisition, moved: fs.Acquisition) -> float:
        assert isinstance(other.illumination, fs.LEDArray)
        assert isinstance(moved.illumination, fs.LEDArray)
        compared.append((other.optics.na / moved.optics.na, moved.illumination.height / other.illumination.height))
        return 4.0

    monkeypatch.setattr(steps, "find_height", lambda acquisition: HeightFit(0.9, 0.4, 0.8, 9.0))
    monkeypatch.setattr(steps, "evidence_for", evidence)
    told: list[str] = []
    found = steps.at_height(data, data, told.append)
    np.testing.assert_allclose(compared, [(0.9, 0.9)])
    assert found.optics.na == pytest.approx(0.9 * data.optics.na)
    assert found.illumination is data.illumination
    assert "NA 0.0900 (was 0.1)" in told[0]


def test_directions_without_a_height_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = MICROSCOPE.acquire(1)
    data = replace(data, illumination=Directions(data.illumination.directions()))
    monkeypatch.setattr(steps, "find_height", lambda acquisition: HeightFit(1.1, 0.4, 0.8, 9.0))
    monkeypatch.setattr(steps, "evidence_for", lambda other, here: 0.0)
    told: list[str] = []
    moved = steps.at_height(data, data, told.append).illumination.directions()
    assert "1.100 times the one that directions were computed with" in told[0]
    inner = np.argsort(np.hypot(*data.illumination.directions().T))[1:9]
    np.testing.assert_allclose(moved[inner], data.illumination.directions()[inner] / 1.1, atol=1e-3)
