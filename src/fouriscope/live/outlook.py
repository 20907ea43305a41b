"""Whether more frames would help, judged by how much newly arrived frames would change the object."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import dot, norm, spread
from fouriscope.solvers.step_size import hessian_product

# Frames over which an outlook is the mean, and the fewest that it needs.
RECENT = 10
FEWEST = 3
# If a frame would change an object by less than this part of its spread, more frames like it would not help.
HARDLY = 0.01
# Rings of dark-field LEDs are this part of the objective's NA wide.
RING_WIDTH = 0.5


@dataclass(frozen=True)
class Ring:
    """LEDs that show similar parts of an object: the bright field, or dark field between two NA.

    Attributes
    ----------
    name
        "bright field", or "dark field, NA 0.20 to 0.30".
    arrived, expected
        Frames that are there, and LEDs.
    change
        How much a frame would change, relative to the object's spread: the mean of the last ten; NaN if not known.
    news
        The part of a frame's gradient that is not the noise of its pixels: 0 if the object already predicts all that
        can be seen in it, 1 if all of it is new; the mean of the last ten.
    """

    name: str
    arrived: int
    expected: int
    change: float
    news: float

    @property
    def is_complete(self) -> bool:
        return self.arrived == self.expected


@dataclass(frozen=True)
class Outlook:
    """What more frames would change, as far as frames that have just arrived can tell.

    Attributes
    ----------
    change, news
        As in :class:`Ring`, for the last ten frames, whatever their ring; NaN before there are three.
    looked_at
        The number of frames behind these means.
    rings
        From the axis outwards.
    """

    change: float
    news: float
    looked_at: int
    rings: tuple[Ring, ...]

    @property
    def more_would_help(self) -> bool | None:
        """False if neither frames like the last ones nor any other ring would help; None if it is too early to say."""
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
        which = f"{missing} frames of {others[0].name}{' and beyond' if len(others) > 1 else ''}"
        if any(math.isnan(ring.change) for ring in others):
            return said + f"would hardly help, but {which} are missing, and it is not known what they will show"
        return said + f"would hardly help, but {which} are missing, and earlier ones still changed it"


class Foresight:
    r"""Looks at frames that arrive before they are used.

    At the present object x the frame of LED i has the gradient g = ∇d_i(x). Some of it is new information, the rest is
    the noise of its pixels. A misfit cannot tell them apart if it is mostly noise, as in dark field. Two halves of the
    frame's pixels can: their noise is independent, so what g_A and g_B have in common is new. With the correlation
    ρ = ⟨g_A, g_B⟩/(‖g_A‖‖g_B‖) of the halves, the new information is the part

        s = 2ρ/(1 + ρ)

    of the energy of the whole g (Spearman and Brown), and the step down g that suits the frame's own curvature,
    ‖g‖²/⟨g, ∇²d_i g⟩, would change the object by

        δ = √s · ‖g‖ · ‖g‖²/⟨g, ∇²d_i g⟩ / ‖x − mean(x)‖,

    if neither other frames nor the prior held against it: an upper estimate. δ² is averaged over frames, negative
    values too, so that noise averages out. No frame can tell what LEDs of a higher NA will show: frames speak only for
    their own ring of NA, and a ring from which no frame has come has no outlook.
    """

    def __init__(self, model: ForwardModel) -> None:
        na, own = np.hypot(*model.geometry.na.T), model.optics.na
        dark = np.maximum(np.floor((na - own) / (RING_WIDTH * own)), 0).astype(np.int64) + 1
        self.ring_of = np.where(model.geometry.bright_field, 0, dark)
        self._edges = {
            int(ring): (own * (1 + RING_WIDTH * (ring - 1)), own * (1 + RING_WIDTH * ring))
            for ring in np.unique(self.ring_of)
        }
        self._half = np.random.default_rng(0).random(model.frame_shape) < 0.5
        self._seen: list[tuple[int, float, float]] = []  # ring, δ², s

    def look_at(self, fidelity: DataFidelity, x: RealArray, led: int) -> None:
        """What the frame of ``led``, which has arrived and was not used, would change."""
        frame, counts = Minibatch(np.array([led]), np.ones(1), 1), fidelity.mask_of(led)
        first, second = (
            DataFidelity(
                fidelity.model, fidelity.frames, loss=fidelity.loss, weights=fidelity.weights, mask=counts & half
            )
            .gradient(x, frame)
            .gradient
            for half in (self._half, ~self._half)
        )
        gradient, scale = fidelity.gradient(x, frame).gradient, spread(x)
        lengths = norm(first) * norm(second)
        if not (lengths > 0 and scale > 0):
            return
        bending = dot(gradient, hessian_product(fidelity, x, gradient, frame))
        common = dot(first, second) / lengths
        news = 2 * common / (1 + abs(common))
        if bending > 0:
            change = min(1.0, norm(gradient) ** 3 / bending / scale)  # of a flat object everything is yet to come
            self._seen.append((int(self.ring_of[led]), news * change**2, news))

    def outlook(self, arrived: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> Outlook:
        """From what was seen so far; ``wanted`` are the LEDs of which a frame would be used."""
        rings = []
        for ring in sorted(self._edges):
            own = wanted & (self.ring_of == ring)
            change, news, _ = _recent([seen for seen in self._seen if seen[0] == ring])
            rings.append(Ring(self._name(ring), int((arrived & own).sum()), int(own.sum()), change, news))
        return Outlook(*_recent(self._seen), tuple(rings))

    def _name(self, ring: int) -> str:
        low, high = self._edges[ring]
        return f"dark field, NA {low:.2f} to {high:.2f}" if ring else "bright field"


def _recent(seen: list[tuple[int, float, float]]) -> tuple[float, float, int]:
    """(δ, s, number) of the last frames."""
    recent = seen[-RECENT:]
    if len(recent) < FEWEST:
        return math.nan, math.nan, len(recent)
    _, squares, news = zip(*recent, strict=True)
    return math.sqrt(max(0.0, float(np.mean(squares)))), float(np.mean(news)), len(recent)
