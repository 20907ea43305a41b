"""Frames and samplers that grow."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.acquisition import ArrivingFrames, Frames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import ArrivingSampler, StratifiedSampler
from fouriscope.fidelity.arriving import CATCH_UP

BRIGHT = np.arange(20) < 6


def sampler_of(*leds: int, batch: int | None = 8) -> ArrivingSampler:
    sampler = ArrivingSampler(BRIGHT, batch)
    sampler.admit(list(leds))
    return sampler


class TestFrames:
    def test_a_frame_is_there_when_it_was_added(self) -> None:
        frames = ArrivingFrames((3, 4, 5))
        assert isinstance(frames, Frames)
        image = np.arange(20, dtype=np.uint16).reshape(4, 5)
        frames.add(image, 1)
        image[:] = 0
        assert frames.arrived.tolist() == [False, True, False]
        assert frames.frame(1)[3, 4] == 19, "a copy was taken"
        assert frames.frame(1).dtype == np.uint16
        with pytest.raises(InvalidInputError, match="frame 0 of 3 has not arrived"):
            frames.frame(0)

    def test_what_is_fresh_is_told_once_in_the_order_of_arrival(self) -> None:
        frames = ArrivingFrames((4, 2, 2))
        for led in (3, 0, 2):
            frames.add(np.ones((2, 2)), led)
        assert frames.take_fresh() == [3, 0, 2]
        assert frames.take_fresh() == []
        frames.add(np.full((2, 2), 7.0), 0)
        assert frames.take_fresh() == [0], "a frame that is replaced counts as new"
        assert frames.frame(0)[0, 0] == 7

    @pytest.mark.parametrize(
        ("image", "led", "message"),
        [
            (np.ones((4, 4)), 0, r"must be real and of shape \(4, 5\).*got float64 of shape \(4, 4\)"),
            (np.ones((4, 5), complex), 0, "must be real"),
            (np.full((4, 5), np.nan), 0, "holds 20 NaN or infinite pixels of 20"),
            (np.ones((4, 5)), 3, "LEDs are 0 to 2, got a frame of LED 3"),
            (np.ones((4, 5)), -1, "got a frame of LED -1"),
            (np.ones((4, 5), np.float32), 0, "is float32, but the first was float64"),
        ],
    )
    def test_what_is_no_frame_is_refused_and_changes_nothing(
        self, image: np.ndarray[tuple[int, ...], np.dtype[np.float64]], led: int, message: str
    ) -> None:
        frames = ArrivingFrames((3, 4, 5))
        frames.add(np.ones((4, 5)), 2)
        frames.take_fresh()
        with pytest.raises(InvalidInputError, match=message):
            frames.add(image, led)
        assert frames.arrived.tolist() == [False, False, True]
        assert frames.take_fresh() == []

    def test_threads_may_add_at_once(self) -> None:
        frames = ArrivingFrames((200, 8, 8))

        def camera(first: int) -> None:
            for led in range(first, 200, 4):
                frames.add(np.full((8, 8), led), led)

        threads = [threading.Thread(target=camera, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert frames.arrived.all()
        assert sorted(frames.take_fresh()) == list(range(200))
        assert all(np.all(frames.frame(led) == led) for led in range(200))


class TestSampler:
    @settings(max_examples=40, deadline=None)
    @given(st.permutations(range(20)), st.integers(1, 25), st.integers(0, 5), st.integers(0, 2**31))
    def test_only_what_has_arrived_is_drawn(self, order: list[int], batch: int, draws: int, seed: int) -> None:
        sampler, rng, arrived = ArrivingSampler(BRIGHT, batch), np.random.default_rng(seed), set[int]()
        for led in order:
            sampler.admit([led])
            arrived.add(led)
            for _ in range(draws):
                drawn = sampler.draw(rng)
                assert set(drawn.leds.tolist()) <= arrived
                assert len(drawn.leds) == len(set(drawn.leds.tolist())) <= batch
                assert np.all(drawn.weights > 0)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(2, 20), st.integers(0, 2**31))
    def test_each_field_weighs_as_many_leds_as_it_has(self, batch: int, seed: int) -> None:
        """Also while some catch up: bright field must not gain weight, or the step would be too long."""
        sampler, rng = sampler_of(*range(0, 20, 2), batch=batch), np.random.default_rng(seed)
        for _ in range(10):
            sampler.draw(rng)
        sampler.admit([1, 3, 19])
        for _ in range(5):
            drawn = sampler.draw(rng)
            weights = drawn.weights / drawn.size
            assert weights.sum() == pytest.approx(1)
            assert weights[BRIGHT[drawn.leds]].sum() == pytest.approx(BRIGHT[sampler.population].mean())

    def test_late_ones_catch_up(self) -> None:
        sampler, rng = sampler_of(0, 1, 2, *range(6, 19)), np.random.default_rng(0)
        for _ in range(40):
            sampler.draw(rng)
        early = sampler.visits.copy()
        sampler.admit([5, 19])
        for count in range(1, 5):
            sampler.draw(rng)
            assert sampler.visits[5] == sampler.visits[19] == count, "they are in every minibatch"
        for _ in range(60):
            sampler.draw(rng)
        assert sampler.visits[[5, 19]].min() >= CATCH_UP
        assert np.all((sampler.visits - early)[[0, 1, 2, *range(6, 19)]] > 0), "the others are not forgotten meanwhile"

    def test_when_none_is_behind_it_is_a_stratified_sampler(self) -> None:
        everything = np.arange(20)
        sampler, plain = sampler_of(*everything), StratifiedSampler(everything, 8, BRIGHT)
        first, second = np.random.default_rng(3), np.random.default_rng(3)
        for _ in range(30):
            ours, theirs = sampler.draw(first), plain.draw(second)
            order = np.argsort(theirs.leds)
            by_led = np.argsort(ours.leds)
            np.testing.assert_array_equal(ours.leds[by_led], theirs.leds[order])
            np.testing.assert_allclose(ours.weights[by_led], theirs.weights[order])

    def test_an_arrival_does_not_deal_the_same_leds_again(self) -> None:
        sampler, rng = sampler_of(*range(6, 18), batch=4), np.random.default_rng(0)
        first = set(sampler.draw(rng).leds.tolist())
        sampler.admit([19])
        second = set(sampler.draw(rng).leds.tolist())
        assert not first & second

    def test_a_replaced_frame_is_late_again(self) -> None:
        sampler, rng = sampler_of(*range(20)), np.random.default_rng(0)
        for _ in range(40):
            sampler.draw(rng)
        sampler.admit([7])
        assert 7 in sampler.draw(rng).leds
        assert sampler.visits[7] == 1

    def test_the_same_arrivals_and_seed_give_the_same_draws(self) -> None:
        def draws() -> list[list[int]]:
            sampler, rng, drawn = sampler_of(3, 8), np.random.default_rng(5), []
            for led in (1, 12, 4, 19, 7):
                sampler.admit([led])
                drawn += [sampler.draw(rng).leds.tolist() for _ in range(4)]
            return drawn

        assert draws() == draws()

    def test_a_state_goes_on_also_in_a_plain_sampler(self) -> None:
        sampler, rng = sampler_of(*range(20)), np.random.default_rng(0)
        for _ in range(7):
            sampler.draw(rng)
        state = sampler.state_arrays()
        again, plain = sampler_of(*range(20)), StratifiedSampler(np.arange(20), 8, BRIGHT)
        again.load_state_arrays(state)
        plain.load_state_arrays(state)
        draws = [set(s.draw(np.random.default_rng(1)).leds.tolist()) for s in (sampler, again, plain)]
        assert draws[0] == draws[1] == draws[2]

    def test_a_state_with_leds_that_are_not_there_draws_none_of_them(self) -> None:
        sampler, rng = sampler_of(*range(20)), np.random.default_rng(0)
        sampler.draw(rng)
        fewer = sampler_of(0, 1, 10, 11, 12)
        fewer.load_state_arrays(sampler.state_arrays())
        for _ in range(10):
            assert set(fewer.draw(rng).leds.tolist()) <= {0, 1, 10, 11, 12}

    def test_nothing_to_draw_is_said(self) -> None:
        with pytest.raises(InvalidInputError, match="no frame has arrived"):
            ArrivingSampler(BRIGHT, 4).draw(np.random.default_rng(0))
        with pytest.raises(InvalidInputError, match="batch must be"):
            ArrivingSampler(BRIGHT, 0)
