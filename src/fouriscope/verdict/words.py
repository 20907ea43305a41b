"""From numbers to one sentence: the only place that decides what is good, doubtful and bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fouriscope.verdict.halves import Resolution
from fouriscope.verdict.heldout import HeldOut
from fouriscope.verdict.suspects import Contradiction

Level = Literal["good", "doubtful", "bad", "not judged"]
LEVELS: tuple[Level, ...] = ("good", "doubtful", "bad")

# Each pair is (doubtful, bad): from the first on a reconstruction is doubted, from the second on it is not believed.
#
# What the prediction leaves of the contrast of unseen frames. At 1 nothing was predicted at all; photon noise alone may
# bring dark-field frames to 0.9.
BESIDE_GREY = (0.9, 0.98)
# Misfit of unseen frames beside that of plain EPRY. Where less than BEYOND_DOUBT of their contrast is left, it does not
# matter that EPRY may do still better: nothing is wrong.
BESIDE_EPRY = (1.05, 1.3)
BEYOND_DOUBT = 0.3
# Half-pitch beside what bright-field LEDs alone would resolve: above the first, not even they are used well. Bad is
# what the objective resolves by itself.
BESIDE_BRIGHT = 1.5
# Half-pitch beside the limit of the synthetic NA that is worth a word: the dark field is too faint to add much. In the
# corners of a square array half of the disc's rim is empty, and half of the dark field resolves less than all of it.
BESIDE_LIMIT = 1.5
# Share of the spectral energy outside the band: sharp edges of a phase object have some percent.
OUTSIDE = (0.1, 0.3)
# Share of the LEDs that contradict the model.
CONTRADICTING = (0.05, 0.25)
# Slow phase, in radians, that is worth a word; it may be the sample, so it never decides.
SLOW = 0.5
# As many LEDs are named, the others counted.
NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """What a run says about itself, as in ``summary.json``.

    Attributes
    ----------
    level, sentence
        "good", "doubtful", "bad" or "not judged", and one sentence for people that begins with it.
    warnings
        What to look at, one line each.
    held_out, resolution
        Unseen frames compared with plain EPRY, and the resolution of two halves, both on one patch; None if not judged.
    outside_band
        Share of the object's spectral energy (its mean left out) that no pupil sees.
    gains_at_bounds, gains
        How many of the recovered gains are at their bounds, of how many; None if none were recovered.
    contradicting
        LEDs whose frames the model does not explain, with a guess.
    slow_background_rad
        Root mean square of the phase with less than 3 cycles over the field.
    """

    level: Level
    sentence: str
    warnings: tuple[str, ...] = ()
    held_out: HeldOut | None = None
    resolution: Resolution | None = None
    outside_band: float | None = None
    gains_at_bounds: int | None = None
    gains: int | None = None
    contradicting: tuple[Contradiction, ...] = ()
    slow_background_rad: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Verdict:
        """The verdict that :meth:`as_json` gave, also after JSON made lists of its tuples.

        >>> verdict = Verdict("good", "Good: all.", ("a warning",), resolution=Resolution(0.6e-6, 0.5e-6, 0.7e-6))
        >>> Verdict.from_json(verdict.as_json()) == verdict
        True
        """
        held_out, resolution = values["held_out"], values["resolution"]
        parts = {
            "warnings": tuple(values["warnings"]),
            "held_out": None if held_out is None else HeldOut(**{**held_out, "leds": tuple(held_out["leds"])}),
            "resolution": None if resolution is None else Resolution(**resolution),
            "contradicting": tuple(Contradiction(**one) for one in values["contradicting"]),
        }
        return cls(**{**values, **parts})


def not_judged(reason: str) -> Verdict:
    """A verdict that says why there is none.

    Parameters
    ----------
    reason
        Why there is no verdict.

    Examples
    --------
    >>> not_judged("9 LEDs are too few").sentence
    'Not judged: 9 LEDs are too few.'
    """
    return Verdict("not judged", f"Not judged: {reason.rstrip('.')}.")


def verdict_of(
    held_out: HeldOut,
    resolution: Resolution,
    *,
    objective_half_pitch: float,
    leds: int,
    outside_band: float = 0.0,
    gains_at_bounds: int | None = None,
    gains: int | None = None,
    contradicting: Sequence[Contradiction] = (),
    slow_background: float = 0.0,
    notes: Sequence[str] = (),
) -> Verdict:
    """The verdict that follows from the numbers; the worst of them decides.

    Parameters
    ----------
    held_out, resolution
        What :func:`hold_out` and :func:`resolution_of_halves` found.
    objective_half_pitch
        λ/(2 NA), in metres.
    leds
        Number of LEDs.
    outside_band
        What :func:`share_outside_band` found.
    gains_at_bounds, gains
        How many gains are at their bounds, and how many there are; None if gains were not calibrated.
    contradicting
        What :func:`contradictions` found.
    slow_background
        What :func:`slow_background` found.
    notes
        Warnings from elsewhere.

    Examples
    --------
    >>> seen = HeldOut((1, 2), 0.05, 0.2, 0.05, 0.25, 0.3, 0.5)
    >>> verdict_of(seen, Resolution(0.62e-6, 0.53e-6, 0.7e-6), objective_half_pitch=1.3e-6, leds=200).sentence
    'Good: unseen frames are predicted 11 % better than by plain EPRY; resolved to 0.62 µm (limit 0.53 µm).'
    """
    grades = [0]
    told, warnings = [_told_of_unseen(held_out)], list(notes)
    grades.append(_grade_of_unseen(held_out))
    half_pitch = resolution.half_pitch_m
    if held_out.noise:
        warnings.append(f"{held_out.noise} of {leds} frames are mostly noise")
    if held_out.noise and held_out.dark is None:
        # Both halves are then the bright field and the prior, whose agreement means nothing.
        told.append("the dark field is mostly noise, so the resolution is not tested")
    else:
        told.append(_told_of_resolution(resolution))
        if half_pitch is None or half_pitch > objective_half_pitch:
            grades.append(2)
        elif half_pitch > BESIDE_BRIGHT * resolution.shared_m:
            grades.append(1)
        elif half_pitch > BESIDE_LIMIT * resolution.limit_m:
            warnings.append("the dark field adds little detail: longer exposures of it would resolve more")

    def count(share: float, limits: tuple[float, float], words: str) -> None:
        grade = _grade(share, limits)
        grades.append(grade)
        if grade:
            told.append(words)
            warnings.append(words)

    count(
        outside_band,
        OUTSIDE,
        f"{outside_band:.0%} of the object's spectrum lies where no LED sees anything".replace("%", " %"),
    )
    if gains_at_bounds and gains:
        # It never decides: dark frames that are mostly noise say little about their LED's brightness.
        warnings.append(
            f"the brightness of {gains_at_bounds} of {gains} LEDs is not determined: their gains are at their bounds"
        )
    if contradicting:
        number = len(contradicting)
        words = f"{number} of {leds} LEDs contradict the model"
        count(number / leds, CONTRADICTING, words)
        named = ", ".join(map(str, contradicting[:NAMED])) + (f" and {number - NAMED} more" if number > NAMED else "")
        warnings = [line for line in warnings if line != words] + [f"frames contradict the model: {named}"]
    if slow_background > SLOW:
        warnings.append(
            f"the phase has a slow background of {slow_background:.2g} rad rms, which the frames hardly determine"
        )
    level = LEVELS[max(grades)]
    return Verdict(
        level,
        f"{level.capitalize()}: {'; '.join(told)}.",
        tuple(warnings),
        held_out,
        resolution,
        outside_band,
        gains_at_bounds,
        gains,
        tuple(contradicting),
        slow_background,
    )


def _grade(value: float, limits: tuple[float, float]) -> int:
    """0 is good, 1 doubtful, 2 bad."""
    return sum(value >= limit for limit in limits)


def _grade_of_unseen(held_out: HeldOut) -> int:
    grey, epry = held_out.beside_grey, held_out.beside_epry
    if grey is None or epry is None:
        return 1  # nothing could be held out: nobody knows
    return max(_grade(grey, BESIDE_GREY), _grade(epry, BESIDE_EPRY) if grey > BEYOND_DOUBT else 0)


def _told_of_unseen(held_out: HeldOut) -> str:
    grey, epry = held_out.beside_grey, held_out.beside_epry
    if grey is None or epry is None:
        return "no frame could be held out for a prediction"
    if grey >= BESIDE_GREY[1]:
        return "unseen frames are predicted no better than by a plain grey image"
    percent = round(100 * abs(1 - epry))
    which = "unseen bright-field frames" if held_out.dark is None else "unseen frames"
    doubt = (
        f", {'but' if epry < 1 else 'and'} little better than by a plain grey image" if grey >= BESIDE_GREY[0] else ""
    )
    if percent == 0:
        return f"{which} are predicted as well as by plain EPRY{doubt}"
    return f"{which} are predicted {percent} % {'better' if epry < 1 else 'worse'} than by plain EPRY{doubt}"


def _told_of_resolution(resolution: Resolution) -> str:
    limit = f"limit {resolution.limit_m * 1e6:.2g} µm"
    if resolution.half_pitch_m is None:
        return f"two halves of the LEDs agree on no detail ({limit})"
    return f"resolved to {resolution.half_pitch_m * 1e6:.2g} µm ({limit})"
