"""Whether more frames help, said before they are used."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fouriscope.live import Outlook, Ring
from fouriscope.live.outlook import Foresight
from tests.live.problems import COUNT, acquisition, from_the_axis, live_reconstruction, model
from tests.live.test_reconstruction import played


def outlook(change: float, *rings: Ring) -> Outlook:
    return Outlook(change, 0.1, 10, rings)


BRIGHT = Ring("bright field", 9, 9, 0.2, 0.9)


@pytest.mark.parametrize(
    ("seen", "helps", "said"),
    [
        (outlook(math.nan, Ring("bright field", 2, 9, math.nan, math.nan)), None, "too early"),
        (outlook(0.05, Ring("bright field", 5, 9, 0.05, 0.5)), True, "by 5 %: more of them help"),
        (outlook(0.001, Ring("bright field", 5, 9, 0.001, 0.0)), False, "by 0.1 % each: more like them would hardly"),
        (outlook(0.001, BRIGHT, Ring("dark field", 0, 7, math.nan, math.nan)), True, "7 frames of dark field"),
        (outlook(0.001, BRIGHT, Ring("dark field", 2, 7, 0.1, 0.5)), True, "5 frames of dark field"),
        (outlook(0.001, BRIGHT, Ring("dark field", 2, 7, 0.001, 0.0)), False, "would hardly help"),
    ],
)
def test_what_is_said(seen: Outlook, helps: bool | None, said: str) -> None:
    assert seen.more_would_help is helps
    assert said in seen.sentence
    assert "\n" not in seen.sentence


def test_rings_go_outwards_and_hold_every_led() -> None:
    foresight = Foresight(model())
    everything = np.ones(COUNT, bool)
    rings = foresight.outlook(~everything, everything).rings
    assert rings[0].name == "bright field"
    assert rings[0].expected == 37
    assert sum(ring.expected for ring in rings) == COUNT
    assert not any(ring.arrived for ring in rings)


def test_a_frame_that_is_known_brings_nothing_and_an_unknown_one_does() -> None:
    """Frames of an object that was found without them are no news; those of another object are."""
    data, other = acquisition(seed=0), acquisition(seed=1)
    live = played(data, from_the_axis(), live_reconstruction(truth=data.truth))
    live.advance(iterations=200)
    assert live.solver is not None
    known, unknown = Foresight(live.model), Foresight(live.model)
    everything = np.ones(COUNT, bool)
    for led in from_the_axis()[:10]:
        live.add(other.frames.frame(led), led)  # the same object, taken again with other noise
        known.look_at(live.solver.fidelity, live.x, led)
        live.add(other.frames.frame(led)[:, ::-1].copy(), led)
        unknown.look_at(live.solver.fidelity, live.x, led)
    before, after = known.outlook(everything, everything), unknown.outlook(everything, everything)
    assert before.change < 0.05  # not 0: what the prior holds back is news to the frames
    assert after.change > 5 * before.change
    assert after.news > before.news + 0.5


def test_an_acquisition_changes_from_helpful_to_not() -> None:
    """Of frames taken again and again of the same LEDs the first ones help, the last ones do not."""
    live, data = live_reconstruction(), acquisition()
    order = from_the_axis()
    helped: list[bool | None] = []
    for led in order:
        live.add(data.frames.frame(led), led)
        live.advance(iterations=20)
        helped.append(live.outlook().more_would_help)
    assert helped[0] is None
    assert helped[5] is True
    assert live.outlook().sentence == "all frames have arrived"
