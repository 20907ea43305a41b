from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Minibatch, Sampler, StratifiedSampler, WarmUp, make_sampler
from fouriscope.fidelity.samplers import SAMPLERS

# 20 of 29 LEDs take part, five of them bright-field.
POPULATION = np.setdiff1d(np.arange(29), np.arange(0, 27, 3))
BRIGHT = np.isin(np.arange(29), [0, 1, 2, 4, 5, 7, 9])
RANDOM = ("uniform", "epochs", "stratified")


def sampler_of(name: str, batch: int = 6, seed: int = 0) -> Sampler:
    rng = np.random.default_rng(seed)
    return make_sampler(name, population=POPULATION, batch=batch, bright_field=BRIGHT, rng=rng)


def estimate_of_the_mean(minibatch: Minibatch) -> NDArray[np.float64]:
    """The factor with which each LED enters Σ_b w_b d_b / size."""
    factors = np.zeros(29)
    np.add.at(factors, minibatch.leds, minibatch.weights / minibatch.size)
    return factors


def test_the_example_is_what_it_says() -> None:
    assert len(POPULATION) == 20
    assert BRIGHT[POPULATION].sum() == 5


@pytest.mark.parametrize("batch", [1, 2, 3, 6, 19, 20])
@pytest.mark.parametrize("name", SAMPLERS)
def test_contract(name: str, batch: int) -> None:
    sampler, rng = sampler_of(name, batch), np.random.default_rng(1)
    assert sampler.name == name
    for _ in range(30):
        minibatch = sampler.draw(rng)
        assert len(minibatch.leds) == len(minibatch.weights)
        assert minibatch.leds.dtype.kind == "i"
        assert np.isin(minibatch.leds, POPULATION).all()
        assert len(np.unique(minibatch.leds)) == len(minibatch.leds)
        assert (minibatch.weights > 0).all()
        assert minibatch.size in {"all": (20,), "warm-up": (batch, 20)}.get(name, (batch,))
        if name == "uniform":
            assert len(minibatch.leds) <= batch
        else:
            assert len(minibatch.leds) == minibatch.size
        # A constant is estimated without error.
        assert estimate_of_the_mean(minibatch).sum() == pytest.approx(1)


@pytest.mark.parametrize("batch", [1, 3, 6, 13])
@pytest.mark.parametrize("name", ["all", *RANDOM])
def test_unbiased(name: str, batch: int) -> None:
    """The mean over many draws of what each LED counts is 1/J, within five standard errors."""
    sampler, rng = sampler_of(name, batch), np.random.default_rng(2)
    draws = np.array([estimate_of_the_mean(sampler.draw(rng)) for _ in range(3000)])
    mean, standard_error = draws.mean(axis=0), draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(mean - np.isin(np.arange(29), POPULATION) / 20) <= 5 * standard_error + 1e-12).all()
    assert 5 * standard_error.max() < 0.5 / 20, "or this test could not fail"


@pytest.mark.parametrize("name", ["epochs", "stratified"])
@pytest.mark.parametrize("batch", [4, 8, 20])
def test_the_first_draw_is_unbiased_too(name: str, batch: int) -> None:
    """Not only the average over an epoch: a sampler that dealt in order would pass that."""
    draws = [estimate_of_the_mean(sampler_of(name, batch).draw(np.random.default_rng(seed))) for seed in range(2000)]
    mean, standard_error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(mean[POPULATION] - 1 / 20) <= 5 * standard_error[POPULATION] + 1e-12).all()


@pytest.mark.parametrize("batch", [4, 5, 10, 20])
def test_an_epoch_sees_every_led_once(batch: int) -> None:
    sampler, rng = sampler_of("epochs", batch), np.random.default_rng(3)
    epochs = [np.concatenate([sampler.draw(rng).leds for _ in range(20 // batch)]) for _ in range(8)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), POPULATION)
    assert not all((epoch == epochs[0]).all() for epoch in epochs), "epochs are shuffled anew"


@pytest.mark.parametrize("batch", [3, 7, 11, 19])
def test_epochs_hold_where_the_batch_does_not_divide_them(batch: int) -> None:
    sampler, rng = sampler_of("epochs", batch), np.random.default_rng(4)
    hands = [sampler.draw(rng).leds for _ in range(20 * 6)]
    for hand in hands:
        assert len(np.unique(hand)) == batch
    for epoch in np.concatenate(hands).reshape(-1, 20):
        np.testing.assert_array_equal(np.sort(epoch), POPULATION)


@pytest.mark.parametrize("batch", [2, 3, 4, 8, 19, 20])
def test_stratified_always_has_bright_field_in_its_share(batch: int) -> None:
    sampler, rng = sampler_of("stratified", batch), np.random.default_rng(5)
    bright = [int(BRIGHT[sampler.draw(rng).leds].sum()) for _ in range(50)]
    assert len(set(bright)) == 1
    assert 1 <= bright[0] <= batch - 1
    assert abs(bright[0] - batch * 5 / 20) <= 1


def test_stratified_epochs_see_every_led_of_a_stratum() -> None:
    sampler, rng = sampler_of("stratified", 4), np.random.default_rng(6)
    drawn = np.concatenate([sampler.draw(rng).leds for _ in range(5)])
    np.testing.assert_array_equal(np.sort(drawn), POPULATION)  # 1 of 5 and 3 of 15, five times


def test_stratified_without_a_second_stratum() -> None:
    rng = np.random.default_rng(7)
    for bright in (np.zeros(29, bool), np.ones(29, bool)):
        minibatch = StratifiedSampler(POPULATION, 6, bright).draw(rng)
        assert len(minibatch.leds) == 6
        np.testing.assert_array_equal(minibatch.weights, 1)


def test_fixed_never_changes_but_depends_on_the_seed() -> None:
    rng = np.random.default_rng(8)
    sampler = sampler_of("fixed", seed=1)
    first = sampler.draw(rng).leds
    for _ in range(5):
        np.testing.assert_array_equal(sampler.draw(rng).leds, first)
    np.testing.assert_array_equal(sampler_of("fixed", seed=1).draw(rng).leds, first)
    others = [sampler_of("fixed", seed=seed).draw(rng).leds for seed in range(2, 6)]
    assert any((other != first).any() for other in others)


def test_which_samplers_are_fixed() -> None:
    assert [name for name in SAMPLERS if sampler_of(name).is_fixed] == ["all", "fixed"]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_state_continues_exactly(name: str, drawn: int) -> None:
    original, rng = sampler_of(name, 6), np.random.default_rng(9)
    for _ in range(drawn):
        original.draw(rng)
    saved = {key: array.copy() for key, array in original.state_arrays().items()}
    twin, twin_rng = sampler_of(name, 6, seed=77), np.random.default_rng()
    twin_rng.bit_generator.state = rng.bit_generator.state
    twin.load_state_arrays(saved)
    for _ in range(9):
        mine, theirs = original.draw(rng), twin.draw(twin_rng)
        np.testing.assert_array_equal(mine.leds, theirs.leds)
        np.testing.assert_array_equal(mine.weights, theirs.weights)


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_leave_the_population_alone(name: str) -> None:
    population = POPULATION.copy()
    population.setflags(write=False)
    rng = np.random.default_rng(10)
    sampler = make_sampler(name, population=population, batch=7, bright_field=BRIGHT, rng=rng)
    for _ in range(5):
        sampler.draw(rng)
    np.testing.assert_array_equal(population, POPULATION)


def test_errors() -> None:
    with pytest.raises(InvalidInputError, match=r"sampler must be one of all, fixed, .*, got 'random'"):
        sampler_of("random")
    for name in ("fixed", *RANDOM):
        for batch in (0, -1, 21):
            with pytest.raises(InvalidInputError, match=f"batch must lie in 1…20 .*, got {batch}"):
                sampler_of(name, batch)
    assert sampler_of("all", batch=0).draw(np.random.default_rng(0)).size == 20


@pytest.mark.parametrize("name", SAMPLERS)
def test_peeking_tells_what_comes_and_changes_nothing(name: str) -> None:
    peeking, plain = sampler_of(name), sampler_of(name)
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(6):
        ahead = peeking.peek(rng, 3)
        assert rng.bit_generator.state == other.bit_generator.state
        drawn = peeking.draw(rng)
        expected = plain.draw(other)
        np.testing.assert_array_equal(drawn.leds, expected.leds)
        np.testing.assert_array_equal(ahead[0].leds, drawn.leds)
        np.testing.assert_array_equal(ahead[0].weights, drawn.weights)
        np.testing.assert_array_equal(ahead[1].leds, peeking.peek(rng)[0].leds)


def test_a_warm_up_is_stratified_at_first_and_then_everything() -> None:
    warming, stratified = sampler_of("warm-up"), sampler_of("stratified")
    rngs = [np.random.default_rng(3) for _ in range(2)]
    for _ in range(17):  # five passes over 20 LEDs, six at a time
        assert warming.warms_up
        assert not warming.is_fixed
        np.testing.assert_array_equal(warming.draw(rngs[0]).leds, stratified.draw(rngs[1]).leds)
    assert warming.is_fixed
    assert warming.takes_all
    assert not warming.warms_up
    np.testing.assert_array_equal(warming.draw(rngs[0]).leds, POPULATION)


def test_a_warm_up_can_be_prolonged_while_it_lasts() -> None:
    warming, rng = sampler_of("warm-up"), np.random.default_rng(5)
    assert isinstance(warming, WarmUp)
    for _ in range(40):
        warming.prolong()
        warming.draw(rng)
    assert warming.warms_up
    warming.draw(rng)
    assert warming.is_fixed
    warming.prolong()
    assert warming.is_fixed


def test_a_warm_up_goes_on_where_it_was() -> None:
    one, other = sampler_of("warm-up"), sampler_of("warm-up")
    rng = np.random.default_rng(4)
    for _ in range(16):
        one.draw(rng)
    other.load_state_arrays(one.state_arrays())
    assert not other.is_fixed
    other.draw(rng)
    assert other.is_fixed
