"""What must be called good is, what must be called bad is, and the numbers are those of closed forms."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics, Pupil
from fouriscope.run.assemble import build_solver, build_stop
from fouriscope.run.judged import judge, judged_patch
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Solver
from fouriscope.verdict import (
    Contradiction,
    HeldOut,
    Resolution,
    Verdict,
    gains_at_bounds,
    hold_out,
    share_outside_band,
    slow_background,
    verdict_of,
)
from fouriscope.verdict.heldout import contrast_left, grey_misfits, misfits

OPTICS = Optics(wavelength=513e-9, na=0.1, magnification=4, camera_pixel=3.25e-6)
LEDS = LEDArray.square(9, pitch=4e-3, height=80e-3)
CONFIG: dict[str, Any] = {
    "object": {"model": "wave", "margin": 0},
    "solver": {"method": "spectral", "loss": "amplitude", "batch": 81},
    "prior": {"name": "none"},
    "stop": {"iterations": 40},
}
DEAD = 10
UNSEEN = HeldOut((1, 2), 0.05, 0.2, 0.05, 0.25, 0.3, 0.5)
FINE = Resolution(0.62e-6, 0.53e-6, 0.7e-6)


@cache
def data(size: int = 32) -> Acquisition:
    """Frames of a complex texture that repeats itself, with photon noise."""
    model = ForwardModel(OPTICS, LEDS, (size, size), object="complex")
    rng = np.random.default_rng(0)
    phase, absorption = (gaussian_filter(rng.normal(size=model.object_shape), s, mode="wrap") for s in (1.2, 1.5))
    x = np.stack([0.4 * phase / phase.std(), 0.2 + 0.1 * absorption / absorption.std()])
    frames = rng.poisson(3000 * model.intensity(x.astype(np.float32))) / 3000
    return Acquisition(OPTICS, LEDS, ArrayFrames(frames.astype(np.float32)), periodic=True)


def frames_of(acquisition: Acquisition) -> NDArray[Any]:
    return np.stack([acquisition.frames.frame(led) for led in range(len(acquisition))])


def solved(acquisition: Acquisition, **sections: dict[str, Any]) -> tuple[Solver, ReconstructionConfig]:
    config = ReconstructionConfig.model_validate(
        {key: CONFIG.get(key, {}) | sections.get(key, {}) for key in {**CONFIG, **sections}}
    )
    solver = build_solver(acquisition, config)
    solver.solve(build_stop(config.stop))
    return solver, config


def judged(acquisition: Acquisition, **sections: dict[str, Any]) -> Verdict:
    solver, config = solved(acquisition, **sections)
    before, model = solver.x.copy(), solver.fidelity.model
    verdict = judge(solver, acquisition, config)
    np.testing.assert_array_equal(solver.x, before)
    assert solver.fidelity.model is model
    return verdict


def test_a_perfect_microscope_is_called_good() -> None:
    verdict = judged(data())
    assert verdict.level == "good"
    assert verdict.sentence.startswith("Good: unseen frames are predicted ")
    assert verdict.warnings == ()
    held_out, resolution = verdict.held_out, verdict.resolution
    assert held_out is not None
    assert resolution is not None
    assert held_out.dark is not None
    assert held_out.dark_grey is not None
    assert held_out.dark < 0.5 * held_out.dark_grey
    assert resolution.limit_m == pytest.approx(513e-9 / 2 / ForwardModel(OPTICS, LEDS, (8, 8)).synthetic_na)
    assert resolution.half_pitch_m is not None
    assert resolution.limit_m <= resolution.half_pitch_m < 1.2 * resolution.limit_m
    assert resolution.half_pitch_m < 0.7 * resolution.shared_m, "the dark field has resolved something"
    assert verdict.outside_band == pytest.approx(0, abs=1e-9), "a wave lives in its band"
    json.dumps(verdict.as_json(), allow_nan=False)


def test_the_same_run_gets_the_same_verdict() -> None:
    assert judged(data()) == judged(data())


def test_shuffled_leds_are_called_bad() -> None:
    order = np.random.default_rng(1).permutation(len(data()))
    verdict = judged(replace(data(), frames=ArrayFrames(frames_of(data())[order])))
    assert verdict.level == "bad"
    assert "no better than by a plain grey image" in verdict.sentence


@pytest.mark.parametrize("led", [DEAD, 40])
def test_a_dead_led_is_named(led: int) -> None:
    frames = frames_of(data()).copy()
    frames[led] = np.random.default_rng(0).poisson(0.5, frames[led].shape) / 3000
    verdict = judged(replace(data(), frames=ArrayFrames(frames)))
    assert [(one.led, one.guess) for one in verdict.contradicting] == [(led, "dark: a dead LED?")]
    assert f"frames contradict the model: LED {led} (dark: a dead LED?)" in verdict.warnings
    assert verdict.held_out is not None
    assert led not in verdict.held_out.leds
    assert verdict.level == "good"


def test_dark_field_of_mere_noise_condemns_nothing() -> None:
    """No method can predict noise: only frames that hold more are asked."""
    frames = frames_of(data()).copy()
    dark = np.hypot(*LEDS.directions().T) > OPTICS.na
    frames += np.random.default_rng(0).normal(0, 5 * frames[dark].mean(), frames.shape).astype(np.float32)
    verdict = judged(replace(data(), frames=ArrayFrames(frames)))
    assert verdict.held_out is not None
    assert verdict.held_out.dark is None
    assert verdict.held_out.noise > 0.9 * np.count_nonzero(dark)
    assert verdict.level != "bad"
    assert "the dark field is mostly noise" in verdict.sentence


def test_gains_that_lie_beyond_their_bounds_are_counted() -> None:
    frames = frames_of(data()).copy()
    dim = [30, 40, 50]
    frames[dim] /= 3
    verdict = judged(replace(data(), frames=ArrayFrames(frames)), calibration={"gains": True, "gains_bound": 1.5})
    assert verdict.gains == len(data())
    assert verdict.gains_at_bounds is not None
    assert verdict.gains_at_bounds >= len(dim)
    assert any("of 81 LEDs is not determined" in line for line in verdict.warnings)


def test_work_is_bounded_by_a_patch_of_64_pixels_with_the_pupil_that_was_found() -> None:
    array = np.ones((96, 96)) * np.exp(0.3j * np.linspace(-1, 1, 96))
    acquisition = Acquisition(
        OPTICS, LEDS, ArrayFrames(np.ones((81, 80, 80), np.float32)), pupil=Pupil({5: 0.2}, array=array)
    )
    model = ForwardModel(OPTICS, LEDS, (80, 80), pupil=acquisition.pupil, margin=8, gains=np.full(81, 2.0))
    config = ReconstructionConfig.model_validate(CONFIG | {"object": {"model": "wave", "shape": (400, 400)}})
    patch, on_patch, geometry = judged_patch(acquisition, model, config)
    assert patch.frame_shape == (64, 64)
    assert on_patch.object.shape == "auto"
    np.testing.assert_array_equal(patch.gains, model.gains)
    # The same pupil at the same frequency, on either grid.
    place = (0.3 * OPTICS.cutoff, 0.5 * OPTICS.cutoff)
    found = patch.pupil.evaluate(*place, OPTICS, frequency_step=geometry.frequency_step)
    expected = model.pupil.evaluate(*place, OPTICS, frequency_step=model.geometry.frequency_step)
    assert complex(found) == pytest.approx(complex(expected), abs=1e-3)


@pytest.mark.parametrize(("kept", "reason"), [(9, "9 LEDs are too few"), (13, "without dark field")])
def test_what_cannot_be_judged_says_why(kept: int, reason: str) -> None:
    sizes = np.hypot(*LEDS.directions().T)
    weights = np.zeros(len(LEDS))
    weights[np.argsort(sizes, kind="stable")[:kept]] = 1
    verdict = judged(replace(data(), weights=weights), stop={"iterations": 2})
    assert verdict.level == "not judged"
    assert verdict.sentence.startswith(f"Not judged: {reason}")
    json.dumps(verdict.as_json(), allow_nan=False)


# The numbers ---------------------------------------------------------------------------------------------------------


def test_the_share_outside_the_band_is_that_of_two_plane_waves() -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32), object="wave", object_shape=(160, 160), dtype=np.float64)
    column = np.arange(160) / 160
    inside, outside = (0.3 * np.exp(2j * np.pi * 3 * column), 0.1 * np.exp(2j * np.pi * 75 * column))
    field = (inside + outside) * np.ones((160, 1))
    x = np.stack([field.real, field.imag])
    assert share_outside_band(model, x, np.arange(81)) == pytest.approx(0.1**2 / (0.3**2 + 0.1**2))
    band_limited = np.stack([inside.real * np.ones((160, 1)), inside.imag * np.ones((160, 1))])
    assert share_outside_band(model, band_limited, np.arange(81)) < 1e-20


def test_gains_are_measured_from_where_they_began() -> None:
    began = np.array([1.0, 12.0, 12.0])
    used = np.ones(3, bool)
    assert gains_at_bounds(np.array([1.0, 12.0, 35.9]), began, 3.0, used) == 1
    assert gains_at_bounds(np.array([1.0, 12.0, 35.0]), began, 3.0, used) == 0


def test_slow_background_counts_turns_and_no_mean() -> None:
    row = np.arange(256) / 256
    steep = 8 * np.cos(2 * np.pi * row) * np.ones((256, 1)) + 1
    assert slow_background(np.exp(1j * steep)) == pytest.approx(8 / np.sqrt(2), rel=0.01)
    fast = 0.5 * np.cos(2 * np.pi * 5 * row) * np.ones((256, 1)) + 1
    assert slow_background(np.exp(1j * fast)) == pytest.approx(0, abs=1e-3)


def test_a_perfect_prediction_has_no_misfit_whatever_its_brightness() -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32), object="wave", dtype=np.float64)
    x = np.random.default_rng(0).normal(0, 0.1, model.x_shape)
    brightness = np.linspace(0.5, 2, 81)[:, None, None]
    exact = Acquisition(OPTICS, LEDS, ArrayFrames(model.intensity(x) * brightness))
    for found in misfits(exact, model, x, np.array([0, 40, 41])):
        assert found == pytest.approx(0, abs=1e-9)


def test_what_is_held_out_is_not_seen() -> None:
    """The frames that are predicted and those that are used have none in common, and together they are all."""
    solver, config = solved(data(), stop={"iterations": 2})
    patch, _, geometry = judged_patch(data(), solver.fidelity.model, config)
    seen: list[NDArray[Any]] = []

    def reconstruct(acquisition: Acquisition) -> tuple[ForwardModel, NDArray[Any]]:
        assert acquisition.weights is not None
        seen.append(np.flatnonzero(acquisition.weights > 0))
        return solver.fidelity.model, solver.x

    held = hold_out(patch, reconstruct, geometry, spared=[DEAD]).leds
    assert len(held) >= 10
    assert set(held).isdisjoint(seen[0].tolist())
    assert set(held) | set(seen[0].tolist()) == set(range(81))
    assert DEAD not in held


def test_epry_begins_with_what_was_known_before_the_calibration() -> None:
    """Gains that a calibration found are part of what is judged: EPRY without them predicts as if they were unknown."""
    brightness = np.random.default_rng(1).uniform(0.3, 3, 81)
    frames = ArrayFrames((frames_of(data()) * brightness[:, None, None]).astype(np.float32))
    known = replace(data(), frames=frames, gains=brightness)
    solver, config = solved(known, stop={"iterations": 5})
    patch, _, geometry = judged_patch(known, solver.fidelity.model, config)

    def held(uncalibrated: Acquisition | None) -> HeldOut:
        return hold_out(patch, lambda _: (solver.fidelity.model, solver.x), geometry, uncalibrated=uncalibrated)

    told, untold = held(None), held(replace(patch, gains=None))
    assert (told.bright, told.dark) == (untold.bright, untold.dark)
    assert told.dark_epry is not None
    assert untold.dark_epry is not None
    assert untold.dark_epry > 1.2 * told.dark_epry


def test_what_is_left_of_the_contrast_does_not_depend_on_brightness_or_on_a_constant() -> None:
    """As it should be: noise lifts √y of faint frames by a constant, and a misfit counts that as an error."""
    patch, solver = data(), solved(data())[0]
    model, x = solver.fidelity.model, solver.x
    dark = np.flatnonzero(~model.geometry.bright_field)[:4]
    frames = frames_of(patch).copy()
    roots = np.sqrt(np.asarray(model.intensity(x, dark), np.float64))
    noise = np.random.default_rng(0).normal(size=roots.shape) * roots.std(axis=(1, 2), keepdims=True)
    frames[dark] = (3 * roots.max() + 2 * roots + noise) ** 2
    faint = replace(patch, frames=ArrayFrames(frames))
    likeness = [
        np.corrcoef(np.sqrt(frames[led]).ravel(), root.ravel())[0, 1] for led, root in zip(dark, roots, strict=True)
    ]
    bright, left = contrast_left(faint, model, x, dark)
    assert bright is None
    assert left == pytest.approx(np.sqrt(np.mean(1 - np.square(likeness))), abs=1e-4)
    assert left == pytest.approx(1 / np.sqrt(5), rel=0.05), "the signal has twice the amplitude of the noise"
    ours, grey = misfits(faint, model, x, dark)[1], grey_misfits(faint, dark, np.zeros(99, bool))[1]
    assert ours is not None
    assert grey is not None
    assert ours > grey, "the misfit would say that nothing was predicted"


def test_a_prediction_of_the_opposite_is_none() -> None:
    patch, solver = data(), solved(data())[0]
    model, x = solver.fidelity.model, solver.x
    frames = 10 - frames_of(patch)
    left = contrast_left(replace(patch, frames=ArrayFrames(frames)), model, x, np.arange(len(patch)))
    assert left == (1.0, 1.0)


# The sentence --------------------------------------------------------------------------------------------------------


def said(**changed: Any) -> Verdict:
    given: dict[str, Any] = {"held_out": UNSEEN, "resolution": FINE, "objective_half_pitch": 1.3e-6, "leds": 100}
    given |= changed
    return verdict_of(given.pop("held_out"), given.pop("resolution"), **given)


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({}, "good", "11 % better than by plain EPRY; resolved to 0.62 µm (limit 0.53 µm)."),
        ({"held_out": replace(UNSEEN, dark_epry=0.2)}, "good", "predicted as well as by plain EPRY"),
        ({"held_out": replace(UNSEEN, dark_epry=0.16)}, "doubtful", "12 % worse than by plain EPRY"),
        ({"held_out": replace(UNSEEN, dark_epry=0.05)}, "bad", "100 % worse than by plain EPRY"),
        ({"held_out": replace(UNSEEN, dark=0.1, dark_epry=0.05)}, "good", "41 % worse"),  # of next to nothing
        (
            {"held_out": replace(UNSEEN, dark=0.47, dark_epry=0.6)},
            "doubtful",
            "little better than by a plain grey image",
        ),
        ({"held_out": replace(UNSEEN, dark=0.5, dark_epry=0.6)}, "bad", "no better than by a plain grey image"),
        ({"held_out": replace(UNSEEN, dark=0.51, dark_epry=0.6, dark_left=0.7)}, "good", "8 % better than"),
        (
            {"held_out": replace(UNSEEN, dark=0.61, dark_epry=0.6, dark_left=0.92)},
            "doubtful",
            "1 % worse than by plain EPRY, and little better than by a plain grey image",
        ),
        ({"held_out": replace(UNSEEN, dark_left=0.99)}, "bad", "no better than by a plain grey image"),
        (
            {"held_out": HeldOut((1,), 0.05, None, 0.1, None, 0.3, None, noise=60)},
            "good",
            "so the resolution is not tested",
        ),
        ({"held_out": HeldOut((), None, None, None, None, None, None)}, "doubtful", "no frame could be held out"),
        ({"resolution": replace(FINE, half_pitch_m=0.9e-6)}, "good", "resolved to 0.9 µm (limit 0.53 µm)"),
        ({"resolution": replace(FINE, half_pitch_m=1.1e-6)}, "doubtful", "resolved to 1.1 µm (limit 0.53 µm)"),
        ({"resolution": replace(FINE, half_pitch_m=None)}, "bad", "agree on no detail"),
        ({"outside_band": 0.12}, "doubtful", "12 % of the object's spectrum lies where no LED sees anything"),
        ({"contradicting": [Contradiction(k, 0.9, 0.2, "…") for k in range(7)]}, "doubtful", "7 of 100 LEDs"),
    ],
)
def test_the_sentence(changed: dict[str, Any], level: str, words: str) -> None:
    verdict = said(**changed)
    assert verdict.level == level, verdict.sentence
    assert verdict.sentence.startswith(f"{level.capitalize()}: ")
    assert words in verdict.sentence


def test_what_does_not_decide_is_a_warning() -> None:
    verdict = said(slow_background=0.8, gains=100, gains_at_bounds=60, resolution=replace(FINE, half_pitch_m=0.9e-6))
    assert verdict.level == "good"
    expected = (
        "the dark field adds little",
        "the brightness of 60 of 100 LEDs",
        "the phase has a slow background of 0.8",
    )
    assert [line.startswith(words) for line, words in zip(verdict.warnings, expected, strict=True)] == [True] * 3
    named = said(contradicting=[Contradiction(k, 0.9, 0.2, "…") for k in range(7)]).warnings
    assert named == ("frames contradict the model: " + ", ".join(f"LED {k} (…)" for k in range(5)) + " and 2 more",)
