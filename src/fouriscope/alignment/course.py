"""The searches of the alignment in their order, and what is repeated when one of them changes what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.straightening import straightened
from fouriscope.alignment.array import Motion
from fouriscope.alignment.brightness import bright_gains, holds_direct_light
from fouriscope.alignment.edge import explained
from fouriscope.alignment.haze import hazy
from fouriscope.alignment.sides import sides
from fouriscope.alignment.steps import (
    Tell,
    aperture,
    at_height,
    bent,
    better_of,
    by_trials,
    clearly_better,
    curved,
    exposed,
    focused,
    likelier,
    looked_around,
    polished,
    predicted_better,
    sized,
)
from fouriscope.alignment.trials import PATCH
from fouriscope.alignment.unevenness import uneven, unevenly_lit
from fouriscope.alignment.ways import Way, right_way_round, ways_round
from fouriscope.optics.die import across_edge
from fouriscope.optics.frame_sources import frame_sources

# The searches in their order, in words.
SEARCHES = {
    "circles": "place of the LED array",
    "exposure": "exposure of the dark field",
    "focus": "focus",
    "response": "response of the camera",
    "array": "rotation and height of the LED array",
    "na": "aperture",
    "die": "size of the LEDs",
    "edge": "LEDs at the pupil's edge",
    "curvature": "change of directions over the field",
}

# Height and place are found in turn so often at most.
HEIGHTS = 3


@dataclass(frozen=True, eq=False)
class Course:
    """Which searches :func:`~fouriscope.alignment.align` makes, who is told, what was said so far (``notes``), and how
    far the last search has moved the LEDs (``ways``, in bins)."""

    circles: bool
    exposure: bool
    focus: bool
    focus_reach: float
    response: bool
    array: bool
    na: bool
    die: bool
    edge: bool
    curvature: bool
    motions: Sequence[Motion]
    tiles: bool
    tell: Tell | None
    stage: Tell | None
    notes: list[str] = field(default_factory=list)
    ways: list[float] = field(default_factory=list)

    @property
    def way(self) -> float:
        return max(self.ways, default=0.0)

    def begin(self, name: str) -> None:
        if self.stage is not None:
            searches = [search for search in SEARCHES if getattr(self, search)]
            place = f"{searches.index(name) + 1} of {len(searches)}"
            self.stage(f"aligning the microscope: {SEARCHES[name]} ({place})")

    def say(self, line: str) -> None:
        self.notes.append(line)
        if self.tell is not None:
            self.tell(line)

    def search(self, given: Acquisition) -> tuple[Acquisition, float]:
        """The microscope as found, all frames of the searches included, and the power of the intensity."""
        described, power = self.with_bright_gains(given), 1.0
        described, data = self.at_height(described, self.placed(described))
        if self.response:
            self.begin("response")
            power = bent(data, self.say, exposure=self.exposure)
            if power != 1.0:
                straight = replace(described, frames=straightened(given.frames, power), gains=given.gains)
                described = self.with_bright_gains(straight)
                data = self.placed(described)
        data = self.compared(self.refined(data, described), described)
        if power != 1.0 and not self.confirmed(data, given):
            return replace(self, response=False).search(given)
        return data, power

    def end(self, data: Acquisition, given: Acquisition) -> Acquisition:
        """Without the frames at the pupil's edge that the microscope as found does not explain, and with curvature."""
        if self.edge:
            self.begin("edge")
            data = self.without_penumbra(_weighed(data, given.frame_weights))
            data = self.without_haze(data if self.tiles else self.with_even_light(data))
        if self.curvature:
            self.begin("curvature")
            data = curved(data, self.say)
        return data

    def at_height(self, described: Acquisition, placed: Acquisition) -> tuple[Acquisition, Acquisition]:
        """``described`` and ``placed`` with the height that unseen frames show.

        At a wrong height the place is wrong, too, and with a wrong place the height: they are found in turn.
        """
        for _ in range(HEIGHTS if self.array and "height" in self.motions else 0):
            self.begin("array")
            found = at_height(described, placed, self.say)
            if found is described:
                break
            described, placed = found, self.placed(found)
        return described, placed

    def with_bright_gains(self, data: Acquisition) -> Acquisition:
        gains = bright_gains(data) if self.exposure else data.gains
        return data if gains is data.gains else replace(data, gains=gains)

    def placed(self, data: Acquisition) -> Acquisition:
        """With place, exposure and focus; while it is open which way round the array is, they are found for each."""
        if not self.circles:
            return self.explored(data)
        self.begin("circles")
        ways, likelier = ways_round(data, self.say)
        if len(ways) == 1:
            return self.explored(ways[0].acquisition)
        courses = [replace(self, tell=None, notes=[]) for _ in ways]
        found = [
            Way(way.orientation, course.explored(way.acquisition)) for way, course in zip(ways, courses, strict=True)
        ]
        chosen = right_way_round(found, likelier, data, self.say)
        for line in courses[chosen].notes:
            self.say(line)
        return found[chosen].acquisition

    def explored(self, data: Acquisition) -> Acquisition:
        """With exposure and focus, and the array up to a pitch away."""
        if self.circles:
            data = looked_around(data, self.say)
        if self.edge:  # for the searches; which frames are left out in the end is decided when all else is known
            data = _weighed(data, _weights_without_penumbra(data))
        if self.exposure:
            self.begin("exposure")
            data = exposed(data, data.gains, self.say)
        if self.focus:
            self.begin("focus")
            data = focused(data, self.focus_reach, self.say)
        return data

    def turned(self, data: Acquisition) -> Acquisition:
        """With rotation and height."""
        if self.array:
            self.begin("array")
            data = by_trials(data, self.motions, self.say)
        return data

    def refined(self, data: Acquisition, described: Acquisition) -> Acquisition:
        """With rotation, height, aperture and what is found with them; of two apertures both are carried to the end."""
        data, rival = self.turned(data), None
        if self.na:
            self.begin("na")
            found = aperture(data, described.illumination, self.say)
            if found != described.optics.na:
                other = replace(described, optics=replace(described.optics, na=found))
                data, rival = likelier(self.turned(self.placed(other)), data)
        data = self.finished(data, described)
        return data if rival is None else predicted_better(self.finished(rival, described), data, self.say)

    def finished(self, data: Acquisition, described: Acquisition) -> Acquisition:
        """With the size of the LEDs, then exposure, focus and place again, with what is known by now."""
        if self.die:
            self.begin("die")
            data = sized(data, described, self.say)
        gains_before = data.gains
        if self.exposure:
            self.begin("exposure")
            data = exposed(data, described.gains, self.say, certain=self.focus and self.array)
        if self.focus and (data.illumination is not described.illumination or data.gains is not gains_before):
            self.begin("focus")
            depth = data.optics.wavelength / data.optics.na**2
            data = focused(data, min(depth, self.focus_reach), self.say)
        if self.array:
            self.begin("array")
            before = data
            data = polished(data, self.motions, described.pupil.defocus, self.say, focus=self.focus)
            self.ways.append(_bins_between(before, data))
        return data

    def compared(self, data: Acquisition, described: Acquisition) -> Acquisition:
        """If something misled the searches: once more from the description, with those that do not move the LEDs."""
        if not self.array or clearly_better(data, described):
            return data
        other = exposed(described, described.gains, self.say) if self.exposure else described
        other = focused(other, self.focus_reach, self.say) if self.focus else other
        other = polished(other, self.motions, described.pupil.defocus, self.say, focus=self.focus)
        best = better_of(data, other, described, self.say)
        if best is other:
            self.ways.append(_bins_between(described, other))
        return best

    def confirmed(self, data: Acquisition, given: Acquisition) -> bool:
        """Whether a power is still certain, with LEDs and focus as found."""
        self.begin("response")
        as_given = replace(data, frames=given.frames, gains=given.gains)
        certain = bent(as_given, lambda line: None, exposure=self.exposure) != 1.0
        if not certain:
            self.say(
                "response: with LEDs and focus as found, no power is certain; all searches are repeated without one"
            )
        return certain

    def without_penumbra(self, data: Acquisition) -> Acquisition:
        weights = _weights_without_penumbra(data, certain=True)
        between = np.flatnonzero(data.frame_weights != weights)
        if len(between):
            kept = explained(data, between)
            weights[kept] = data.frame_weights[kept]
            between = np.setdiff1d(between, kept)
        if len(between):
            self.say(
                f"edge: {_frames(between)} left out: part of the direct light is missing, or the LED lies on the wrong "
                f"side of the pupil's edge ({_listed(between)})"
            )
            data = _weighed(data, weights)
        return data

    def with_even_light(self, data: Acquisition) -> Acquisition:
        changing = uneven(data)
        doubtful = np.setdiff1d(unevenly_lit(data), changing)
        if len(doubtful):
            changing = np.union1d(changing, np.setdiff1d(doubtful, explained(_without(data, changing), doubtful)))
        if len(changing):
            self.say(
                f"edge: {_frames(changing)} left out: direct light passes the pupil in a part of the field only "
                f"({_listed(changing)})"
            )
            data = _without(data, changing)
        return data

    def without_haze(self, data: Acquisition) -> Acquisition:
        leaking = hazy(data)
        if len(leaking):
            self.say(
                f"edge: {_frames(leaking)} left out beside the pupil's edge: some direct light leaks into the dark "
                f"field, and bright-field frames are predicted better without it ({_listed(leaking)})"
            )
            data = _without(data, leaking)
        return data


def _bins_between(one: Acquisition, other: Acquisition) -> float:
    """How far apart both have the LEDs, in bins of the patch of trials, root mean square."""
    optics = one.optics
    bin_na = optics.wavelength / (min(PATCH, *one.frame_shape) * optics.pixel)
    apart = other.illumination.directions(one.patch_center) - one.illumination.directions(one.patch_center)
    return float(np.sqrt(np.mean(np.sum(apart**2, axis=1)))) / bin_na


def _frames(leds: NDArray[np.int64]) -> str:
    return "1 frame is" if len(leds) == 1 else f"{len(leds)} frames are"


def _listed(leds: NDArray[np.int64]) -> str:
    return f"LED{'s' if len(leds) > 1 else ''} " + ", ".join(map(str, leds[:8])) + ("…" if len(leds) > 8 else "")


def _weighed(acquisition: Acquisition, weights: NDArray[np.float64]) -> Acquisition:
    same = np.array_equal(acquisition.frame_weights, weights)
    return acquisition if same else replace(acquisition, weights=weights)


def _without(acquisition: Acquisition, leds: NDArray[np.int64]) -> Acquisition:
    weights = acquisition.frame_weights
    weights[leds] = 0
    return replace(acquisition, weights=weights)


def _weights_without_penumbra(acquisition: Acquisition, *, certain: bool = False) -> NDArray[np.float64]:
    """0 for frames in the penumbra; once the geometry is ``certain``, also for those on the wrong side of the edge.

    With LEDs of a known size, a frame whose LED lies across the edge is kept if it holds as much direct light as the
    size says. If not, its LED is in the wrong place, or its exposure is wrong.
    """
    bright, dark = sides(acquisition)
    kept = bright | dark
    if certain:
        place = (acquisition.optics, acquisition.patch_center)
        inside = acquisition.bright_field
        across = across_edge(acquisition.illumination, *place)
        share = frame_sources(acquisition.illumination, *place).direct_light(acquisition.optics)
        kept = np.where(across, holds_direct_light(acquisition, share), (bright & inside) | (dark & ~inside))
    return np.where(kept, acquisition.frame_weights, 0.0)
