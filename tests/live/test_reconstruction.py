"""A reconstruction while frames arrive comes to the same as one that had them all."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope import metrics
from fouriscope.acquisition import Acquisition
from fouriscope.errors import InvalidInputError
from fouriscope.live import LiveReconstruction
from fouriscope.solvers import History
from tests.live.problems import COUNT, SHAPE, acquisition, from_the_axis, live_reconstruction, stack


@pytest.fixture(scope="module")
def data() -> Acquisition:
    return acquisition()


def played(data: Acquisition, order: list[int], live: LiveReconstruction, *, steps: int = 2) -> LiveReconstruction:
    for led in order:
        live.add(data.frames.frame(led), led)
        for _ in range(steps):
            live.step()
    return live


def orders() -> dict[str, list[int]]:
    return {
        "outwards": from_the_axis(),
        "inwards": from_the_axis()[::-1],
        "random": np.random.default_rng(7).permutation(COUNT).tolist(),
    }


@pytest.mark.parametrize("order", orders())
def test_any_order_ends_where_all_frames_at_once_end(data: Acquisition, order: str) -> None:
    """To the same minimiser: the prior is so strong that there is only one, and given, as random probes would not."""
    prior = fs.TV(strength=1e-4)
    expected = fs.reconstruct(data, prior=prior, batch=None, iterations=400, seed=0).phase
    live = played(data, orders()[order], live_reconstruction(prior=fs.TV(strength=1e-4), batch=None))
    live.advance(iterations=400)
    assert metrics.snr_both(live.result().phase, expected).aligned > 50


@pytest.mark.parametrize("method", ["pnp", "admm", "red", "epry"])
def test_every_method_gets_as_good_live(data: Acquisition, method: Any) -> None:
    options: dict[str, Any] = {"method": method, "batch": None, "prior": "tv"}
    if (
        method == "epry"
    ):  # in random order, and with noise, one sweep differs from the next by as much as is allowed here
        options |= {"prior": None, "method": fs.settings.EPRY(order="na")}
    at_once = fs.reconstruct(data, **options, iterations=200, seed=0).history.last
    live = played(data, from_the_axis(), live_reconstruction(**options, truth=data.truth)).advance(iterations=200)
    assert live.snr > at_once.snr - 0.5
    assert live.step == pytest.approx(at_once.step, rel=0.1)


@pytest.mark.parametrize("calibrate", ["zernike", "pixels", "gains", "leds"])
def test_every_calibration_can_be_live(data: Acquisition, calibrate: str) -> None:
    live = live_reconstruction(calibrate=calibrate, prior=fs.TV())
    played(data, from_the_axis(), live, steps=3)
    assert live.solver is not None
    before = live.solver.fidelity.value(np.zeros_like(live.x))
    live.advance(iterations=40)
    assert live.solver.fidelity.value(live.x) < 0.3 * before


def test_it_begins_with_the_first_bright_field_frame(data: Acquisition) -> None:
    live = live_reconstruction()
    dark = [led for led in range(COUNT) if not live.model.geometry.bright_field[led]]
    for led in dark[:3]:
        live.add(data.frames.frame(led), led)
        assert live.step() is None
    with pytest.raises(InvalidInputError, match="no bright-field frame has arrived yet"):
        live.advance(iterations=1)
    with pytest.raises(InvalidInputError, match="no result yet"):
        live.result()
    np.testing.assert_array_equal(live.x, 0)
    live.add(data.frames.frame(COUNT // 2), COUNT // 2)
    record = live.step()
    assert record is not None
    assert record.frames_arrived == 4
    assert live.arrived.sum() == 4


def test_the_same_arrivals_give_the_same_picture_to_the_last_bit(data: Acquisition) -> None:
    first, second = (played(data, from_the_axis(), live_reconstruction(seed=4)) for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)


def test_a_replaced_frame_is_used(data: Acquisition) -> None:
    """A frame of noise spoils the picture until the right one takes its place."""
    live, order = live_reconstruction(truth=data.truth, batch=None), from_the_axis()
    wrong = order[0]
    frames = stack(data)
    spoilt = frames[wrong] * np.float32(3)
    for led in order:
        live.add(spoilt if led == wrong else frames[led], led)
    bad = live.advance(iterations=80).snr
    live.add(frames[wrong], wrong)
    assert live.advance(iterations=150).snr > bad + 1
    expected = played(data, order, live_reconstruction(truth=data.truth, batch=None)).advance(iterations=150).snr
    assert live.history.last.snr == pytest.approx(expected, abs=0.5)


def test_a_frame_that_is_none_is_refused_and_the_others_go_on(data: Acquisition) -> None:
    live = live_reconstruction()
    live.add(data.frames.frame(24), 24)
    live.advance(iterations=2)
    for wrong in (np.ones((5, 5)), np.full(SHAPE, np.nan, np.float32)):
        with pytest.raises(InvalidInputError):
            live.add(wrong, 25)
    assert live.advance(iterations=2).frames_arrived == 1


def test_frames_of_weight_zero_are_not_waited_for(data: Acquisition) -> None:
    weights = np.ones(COUNT)
    weights[[3, 24]] = 0
    live = live_reconstruction(weights=weights)
    for led in range(COUNT):
        if led != 3:
            live.add(np.full(SHAPE, 1e9, np.float32) if led == 24 else data.frames.frame(led), led)
    live.advance(iterations=3)
    assert live.is_complete
    assert live.solver is not None
    assert not {3, 24} & set(live.solver.sampler.population.tolist())


def test_another_thread_may_add(data: Acquisition) -> None:
    live, order = live_reconstruction(truth=data.truth), from_the_axis()
    live.add(data.frames.frame(order[0]), order[0])

    def take() -> None:
        for led in order[1:]:
            live.add(data.frames.frame(led), led)

    camera = threading.Thread(target=take)
    camera.start()
    while not live.is_complete:
        live.step()
    camera.join()
    assert live.advance(iterations=100).snr > 15


def test_a_mask_of_each_frame_is_used_as_it_arrives(data: Acquisition) -> None:
    masks = np.ones((COUNT, *SHAPE), bool)
    masks[:, :6, :6] = False
    spoilt = stack(data)
    spoilt[:, :6, :6] = 1e3
    live = live_reconstruction(mask=masks, truth=data.truth)
    for led in from_the_axis():
        live.add(spoilt[led], led)
        live.step()
    assert live.advance(iterations=100).snr > 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": fs.settings.PnP(sampler="fixed")}, '"stratified" or "all"'),
        ({"align": "focus"}, "an alignment needs all frames"),
        ({"batches": 3}, "unknown choice 'batches'; did you mean 'batch'"),
        ({"start": np.zeros((3, 3), np.float32)}, "shape"),
    ],
)
def test_what_cannot_be_live_is_said(data: Acquisition, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        played(data, from_the_axis()[:1], live_reconstruction(**options))


def test_advance_needs_an_end() -> None:
    with pytest.raises(InvalidInputError, match="iterations, seconds or both"):
        live_reconstruction().advance()


def test_a_result_is_saved_with_what_had_arrived(data: Acquisition, tmp_path: Any) -> None:
    live = played(data, from_the_axis()[:20], live_reconstruction())
    result = live.result()
    assert result.provenance["live"]["arrived"] == 20
    result.save(tmp_path / "run")
    assert fs.RunFolder.open(tmp_path / "run").history().last.frames_arrived == 20
    whole = played(data, from_the_axis()[20:], live).result()
    at_once = fs.reconstruct(data, iterations=1, batch=12)
    assert whole.provenance["input"]["checksum"] == at_once.provenance["input"]["checksum"]


class TestWhatGoesWithTheFrames:
    def test_step_and_strength_are_those_of_all_frames_at_once(self, data: Acquisition) -> None:
        at_once = fs.reconstruct(data, prior="tv", batch=None, iterations=110, seed=0).history.last
        live = played(data, from_the_axis(), live_reconstruction(batch=None)).advance(iterations=110)
        assert live.step == pytest.approx(at_once.step, rel=0.05)
        assert live.strength == pytest.approx(at_once.strength, rel=0.15)

    def test_a_single_dark_field_frame_lengthens_the_step_by_its_share(self, data: Acquisition) -> None:
        order = from_the_axis()
        live = played(data, order[:37], live_reconstruction(batch=None))
        before = live.history.last.step
        assert live.solver is not None
        live.add(data.frames.frame(order[37]), order[37])
        live.step()
        assert live.history.last.step == pytest.approx(before * 38 / 37)

    def test_a_step_of_the_users_stays(self, data: Acquisition) -> None:
        live = played(data, from_the_axis(), live_reconstruction(method=fs.settings.PnP(step=0.5)))
        assert set(live.history["step"]) == {0.5}

    def test_a_checkpoint_goes_on(self, data: Acquisition) -> None:
        live = played(data, from_the_axis()[:30], live_reconstruction(truth=data.truth))
        assert live.solver is not None
        state, records = live.solver.state(), list(live.history)
        again = live_reconstruction(truth=data.truth, seed=9)
        for led in from_the_axis()[:35]:
            again.add(data.frames.frame(led), led)
        again.restore(state, History(records))
        np.testing.assert_array_equal(again.x, live.x)
        played(data, from_the_axis()[35:], again)
        again.advance(iterations=100)
        assert len(again.history) == len(records) + 2 * (COUNT - 35) + 100
        assert again.history.records[: len(records)] == records
        assert again.history.last.snr > records[-1].snr + 1
