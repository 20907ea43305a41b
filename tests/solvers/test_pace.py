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
    assert not one.is_known
    other = Pace()
    other.load(one.state_arrays(), one.state_values())
    np.testing.assert_array_equal(second_half(one), second_half(other))
    assert one.fading > 1


def test_a_checkpoint_of_an_earlier_version_goes_on_fading() -> None:
    pace = Pace()
    pace.begin_at(np.zeros(SHAPE))
    pace.fade_from(10.0)
    np.testing.assert_allclose(pace.fading, 1 + 10 / PASSES_TO_FADE)


def test_it_strides_where_the_common_way_is_longer_than_the_trembling() -> None:
    """The way of a look trembles by √2 n: the cosine is 1/4 at d = √2 n."""
    assert not walked(2.0, LOOK).is_known
    for drift, expected in ((2.0, True), (1.1, False), (0.0, False)):
        pace = walked(drift, 2 * LOOK)
        assert pace.is_known
        assert pace.strides == expected
    pace.begin_at(np.zeros(SHAPE))
    assert pace.is_known  # steps fade for good
    striding = walked(2.0, 2 * LOOK)
    striding.begin_at(np.zeros(SHAPE))
    assert not striding.is_known
    assert not striding.strides


def test_it_heads_on_as_long_as_two_looks_go_the_same_way() -> None:
    assert not walked(2.0, LOOK).heads_on, "there is nothing to compare with yet"
    assert walked(2.0, 2 * LOOK).heads_on
    assert not walked(0.0, 2 * LOOK).heads_on


def test_only_the_window_counts() -> None:
    rng, inner = np.random.default_rng(0), (slice(None), slice(6, 18), slice(6, 18))
    paces = Pace(), Pace(inner)
    for pace in paces:
        pace.begin_at(np.zeros(SHAPE))
    for k in range(2 * LOOK):
        x = np.full(SHAPE, 3.0 * k)
        x[inner] = 0.0
        x += rng.normal(size=SHAPE)
        for pace in paces:
            pace.note(x, 0.5)
    assert [pace.strides for pace in paces] == [True, False]
