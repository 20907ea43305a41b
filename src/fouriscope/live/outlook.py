"""Whether more frames would help, from what those that have just arrived would change before they are used."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import norm, spread

# Frames over which an outlook is the median, and of which it needs some to say anything.
RECENT = 10
FEWEST = 3
# Frames of the same ring, used before, whose misfit says how well a frame can be explained at all.
COMPANIONS = 8
# An object that a frame would change by less than this part of its spread is finished as far as that frame goes.
HARDLY = 0.01
# Rings of dark-field LEDs are this part of the objective's NA wide.
RING_WIDTH = 0.5


@dataclass(frozen=True)
class Ring:
    """LEDs that ask the same of an object: the bright field, or dark field between two NA.

    Attributes
    ----------
    name
        "bright field", or "dark field, NA 0.20 to 0.30".
    arrived, expected
        Frames that are there, and LEDs.
    change
        What a frame would change, relative to the object's spread: the median of the last ten; NaN if not known.
    surprise
        The misfit of a frame before it is used, beside that of frames that are in use: 1 if the object already
        predicts it; the median of the last ten.
    """

    name: str
    arrived: int
    expected: int
    change: float
    surprise: float

    @property
    def is_complete(self) -> bool:
        return self.arrived == self.expected


@dataclass(frozen=True)
class Outlook:
    """What more frames would change, as far as frames that have just arrived can tell.

    Attributes
    ----------
    change, surprise
        As in :class:`Ring`, of the last ten frames, whatever their ring; NaN before there are three.
    looked_at
        Of how many frames that is.
    rings
        From the axis outwards.
    """

    change: float
    surprise: float
    looked_at: int
    rings: tuple[Ring, ...]

    @property
    def more_would_help(self) -> bool | None:
        """False if neither frames like the last ones nor any other ring promises anything; None if it is too early."""
        if math.isnan(self.change):
            return None
        return self.change >= HARDLY or any(not ring.is_complete and not ring.change < HARDLY for ring in self.rings)

    @property
    def sentence(self) -> str:
        """For an operator who wants to know when to stop."""
        if all(ring.is_complete for ring in self.rings):
            return "all frames have arrived"
        if math.isnan(self.change):
            return "too early to say whether more frames help"
        change = f"{100 * self.change:.2g} %"
        if self.change >= HARDLY:
            return f"a frame like the last {self.looked_at} changes the object by {change}: more of them help"
        said = f"the last {self.looked_at} frames would have changed the object by {change} each: more like them "
        others = [ring for ring in self.rings if not ring.is_complete and not ring.change < HARDLY]
        if not others:
            return said + "would hardly help"
        missing = sum(ring.expected - ring.arrived for ring in others)
        return said + (
            f"would hardly help, but {missing} frames of {others[0].name}"
            f"{' and beyond' if len(others) > 1 else ''} are missing, and what they bring nothing so far predicts"
        )


class Foresight:
    r"""Looks at each frame that arrives before it is used.

    The present object x predicts the frame of LED i with the misfit d_i(x). Frames that are in use, of the same ring,
    are left with a misfit d₀ that noise and model explain. The excess d_i − d₀ is what the frame has to say; a step
    down ∇d_i that removes it has the length

        δ = (d_i(x) − d₀) / ‖∇d_i(x)‖

    (Polyak's step), and δ/‖x − mean‖ is by how much the frame would change the object, if no other frame held against
    it: an estimate from above. No misfit predicts what LEDs of a higher NA will show that no frame has shown yet, so
    frames are compared with those of their own ring only, and a ring of which none is in use has no outlook.
    """

    def __init__(self, model: ForwardModel) -> None:
        na, own = np.hypot(*model.geometry.na.T), model.optics.na
        dark = np.maximum(np.floor((na - own) / (RING_WIDTH * own)), 0).astype(np.int64) + 1
        self.ring_of = np.where(model.geometry.bright_field, 0, dark)
        self._edges = {
            int(ring): (own * (1 + RING_WIDTH * (ring - 1)), own * (1 + RING_WIDTH * ring))
            for ring in np.unique(self.ring_of)
        }
        self._seen: list[tuple[int, float, float]] = []  # ring, change, surprise

    def look_at(self, fidelity: DataFidelity, x: RealArray, led: int, in_use: NDArray[np.int64]) -> None:
        """Compare the frame of ``led``, which has arrived and was not used, with those that were used for long."""
        ring = int(self.ring_of[led])
        same = in_use[self.ring_of[in_use] == ring]
        scale = spread(x)
        if not len(same) or not scale > 0:
            return
        companions = same[np.linspace(0, len(same) - 1, min(COMPANIONS, len(same))).astype(np.int64)]
        usual = float(np.median(fidelity.misfits(x, companions)))
        misfit, gradient = fidelity.gradient(x, np.array([led]))
        slope = norm(gradient)
        if slope > 0 and usual > 0:
            self._seen.append((ring, max(misfit - usual, 0.0) / slope / scale, misfit / usual))

    def outlook(self, arrived: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> Outlook:
        """From what was seen so far; ``wanted`` are the LEDs of which a frame would be used."""
        rings = []
        for ring in sorted(self._edges):
            own = wanted & (self.ring_of == ring)
            change, surprise, _ = _median([seen for seen in self._seen if seen[0] == ring])
            rings.append(Ring(self._name(ring), int((arrived & own).sum()), int(own.sum()), change, surprise))
        change, surprise, count = _median(self._seen)
        return Outlook(change, surprise, count, tuple(rings))

    def _name(self, ring: int) -> str:
        low, high = self._edges[ring]
        return f"dark field, NA {low:.2f} to {high:.2f}" if ring else "bright field"


def _median(seen: list[tuple[int, float, float]]) -> tuple[float, float, int]:
    recent = seen[-RECENT:]
    if len(recent) < FEWEST:
        return math.nan, math.nan, len(recent)
    _, changes, surprises = zip(*recent, strict=True)
    return float(np.median(changes)), float(np.median(surprises)), len(recent)
