"""Whether an estimate still travels: drift, noise, both, and state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.solvers.pace import LOOK, PASSES_TO_FADE, Pace

SHAPE = (2, 24, 24)


def walked(drift: float, iterations: int, *, passes: float = 0.5, pace: Pace | None = None, seed: int = 0) -> Pace:
    """White noise of standard deviation 1 about a place that moves by ``drift`` per look and pixel."""
    rng = np.random.default_rng(seed)
    begun = pace or Pace()
    begun.begin_at(rng.normal(size=SHAPE))
    for k in range(1, iterations + 1):
        begun.note(drift * k / LOOK + rng.normal(size=SHAPE), passes)
    return begun


def test_noise_about_one_place_is_noticed_after_two_looks() -> None:
    assert walked(0.0, 2 * LOOK).fading == 1
    faded = walked(0.0, 2 * LOOK + 10).fading
    np.testing.assert_allclose(faded, 1 + 10 * 0.5 / PASSES_TO_FADE)


def test_a_drift_below_the_noise_keeps_steps_long() -> None:
    """The cosine is (d² − n²)/(d² + 2n²): −0.35 at d = 0.47 n."""
    assert walked(0.7, 10 * LOOK).fading == 1
    assert walked(0.3, 10 * LOOK).fading > 1


def test_a_look_takes_at_least_a_pass() -> None:
    assert walked(0.0, 4 * LOOK, passes=0.01).fading == 1


def test_an_estimate_that_stands_still_has_arrived() -> None:
    pace, place = Pace(), np.ones(SHAPE)
    pace.begin_at(place)
    for _ in range(2 * LOOK + 1):
        pace.note(place, 1.0)
    assert pace.fading > 1


def test_a_new_beginning_forgets_the_way_but_not_that_steps_fade() -> None:
    pace = walked(0.0, 3 * LOOK)
    faded = pace.fading
    pace.begin_at(np.zeros(SHAPE))
    assert pace.fading == faded > 1
    pace.note(np.zeros(SHAPE), 1.0)
    assert pace.fading > faded


def test_a_state_continues_exactly() -> None:
    def second_half(pace: Pace) -> NDArray[np.float64]:
        rng, faded = np.random.default_rng(1), []
        for _ in range(3 * LOOK):
            pace.note(rng.normal(size=SHAPE), 0.5)
            faded.append(pace.fading)
        return np.array(faded)

    one = walked(0.0, LOOK + 7)
    other = Pace()
    other.load(one.state_arrays(), one.state_values())
    np.testing.assert_array_equal(second_half(one), second_half(other))
    assert one.fading > 1


def test_a_checkpoint_of_an_earlier_version_goes_on_fading() -> None:
    pace = Pace()
    pace.begin_at(np.zeros(SHAPE))
    pace.fade_from(10.0)
    np.testing.assert_allclose(pace.fading, 1 + 10 / PASSES_TO_FADE)
