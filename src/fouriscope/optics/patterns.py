"""Several LEDs at once: which of them shine in which frame, and how brightly (docs/sources.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray, told_of_directions
from fouriscope.optics.illumination import Illumination
from fouriscope.optics.objective import Optics
from fouriscope.optics.sources import Sources

# |na| that differ by less are the same: LEDs of a lattice lie on circles, and rounding must not choose among them.
_SAME_NA = 1e-9


@door_class
@dataclass(frozen=True, eq=False, init=False, repr=False)
class Multiplexed:
    r"""LEDs of which several shine at once: y_j = Σ_m patterns[j, m] \|H_m o\|² over the LEDs m.

    A frame has no direction of its own. If one is needed, it is that of its LED nearest to the axis, which says whether
    the frame is bright field. With one LED per frame, everything is the same as without patterns.

    Parameters
    ----------
    leds
        Where the LEDs are: an :class:`~fouriscope.LEDArray` or :class:`~fouriscope.Directions`.
    patterns
        (frames, LEDs) weights, at least 0: how bright each LED is in each frame. 1 is the brightness with which an
        LED inside the pupil gives a frame of intensity 1.

    Examples
    --------
    >>> from fouriscope.optics.illumination import LEDArray
    >>> leds = LEDArray.square(3, pitch=4e-3, height=70e-3)
    >>> halves = Multiplexed(leds, [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]])
    >>> halves
    Multiplexed: 2 frames of 3 LEDs each, of 9 LEDs up to NA 0.0805
    >>> halves.directions().round(3).tolist()
    [[-0.057, 0.0], [0.057, 0.0]]
    """

    leds: Illumination
    patterns: FloatArray

    def __init__(self, leds: Illumination, patterns: ArrayLike) -> None:
        if isinstance(leds, Multiplexed):
            raise InvalidInputError(
                "leds of patterns must be single LEDs, got an illumination that already has patterns"
            )
        object.__setattr__(self, "leds", leds)
        object.__setattr__(self, "patterns", checked_patterns(patterns, len(leds)))

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.patterns)

    def __repr__(self) -> str:
        return f"Multiplexed: {told_of_patterns(self.patterns)}, of {told_of_directions(self.leds.directions())}"

    @property
    def height(self) -> float | None:
        """The height of the LEDs, which patches off the axis need."""
        height: float | None = getattr(self.leds, "height", None)
        return height

    @property
    def lit(self) -> NDArray[np.bool_]:
        """(LEDs,) which of them shine in some frame."""
        return np.asarray((self.patterns > 0).any(axis=0))

    def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(frames, 2) array of (na_y, na_x): the direction of each frame's LED nearest to the axis."""
        na = self.leds.directions(patch_center)
        sizes = np.rint(np.hypot(na[:, 0], na[:, 1]) / _SAME_NA)
        # Of several that are as near, their places decide, not their numbers.
        outwards = np.lexsort((na[:, 1].round(9), na[:, 0].round(9), sizes))
        first = np.argmax(self.patterns[:, outwards] > 0, axis=1)
        return np.asarray(na[outwards[first]])

    def summed(self, sources: Sources) -> Sources:
        """The sources of the frames, from those of the LEDs: each with its own weight times that of its LED."""
        frames, leds = np.nonzero(self.patterns)
        chosen, bounds = sources.of(leds)
        brightness = np.repeat(self.patterns[frames, leds], np.diff(bounds))
        offsets = bounds[np.searchsorted(frames, np.arange(len(self) + 1))]
        return Sources(sources.na[chosen], sources.weights[chosen] * brightness, offsets, sources.scales[chosen])


def lit_leds(illumination: Illumination) -> tuple[Illumination, NDArray[np.bool_]]:
    """The LEDs of an illumination one by one, and which of them shine at all: all, unless there are patterns."""
    if isinstance(illumination, Multiplexed):
        return illumination.leds, illumination.lit
    return illumination, np.ones(len(illumination), bool)


def direct_light(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> FloatArray:
    """(frames,) the weight of each frame's LEDs whose (middles') direct light passes the pupil: 1 or 0 of one LED."""
    leds, _ = lit_leds(illumination)
    passes = optics.passes(np.hypot(*leds.directions(patch_center).T)).astype(np.float64)
    return np.asarray(illumination.patterns @ passes) if isinstance(illumination, Multiplexed) else passes


def frame_levels(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> FloatArray:
    """(frames,) how bright each frame is compared with that of one LED: the weight of its bright-field LEDs, or of all
    LEDs if it has none."""
    if not isinstance(illumination, Multiplexed):
        return np.ones(len(illumination))
    bright = direct_light(illumination, optics, patch_center)
    return np.where(bright > 0, bright, illumination.patterns.sum(axis=1))


def checked_patterns(patterns: ArrayLike, leds: int) -> FloatArray:
    """``patterns`` as a read-only copy (frames, LEDs), or say what is wrong with them."""
    try:
        matrix = np.array(patterns, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"patterns must be an array (frames, LEDs) of weights: {error}") from error
    if matrix.ndim != 2 or not len(matrix):
        raise InvalidInputError(f"patterns must be an array (frames, LEDs) of weights, got shape {matrix.shape}")
    if matrix.shape[1] != leds:
        raise InvalidInputError(f"patterns must have a column for each of {leds} LEDs, got {matrix.shape[1]} columns")
    wrong = ~(np.isfinite(matrix) & (matrix >= 0))
    if wrong.any():
        frame, led = (int(place[0]) for place in np.nonzero(wrong))
        raise InvalidInputError(
            f"weights of patterns must be finite and at least 0, but that of LED {led} in frame {frame} is "
            f"{matrix[frame, led]:g}"
        )
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise InvalidInputError(f"every frame needs an LED, but the pattern of frame {empty[0]} is empty")
    _, first, inverse = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    twins = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(matrix)))
    if len(twins):
        twin = int(twins[0])
        raise InvalidInputError(
            f"frames {int(first[inverse.reshape(-1)[twin]])} and {twin} have the same pattern; leave one of them out, "
            "or add their frames"
        )
    matrix.setflags(write=False)
    return matrix


def told_of_patterns(patterns: FloatArray) -> str:
    """How many frames there are, and of how many LEDs, in words.

    >>> told_of_patterns(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]]))
    '2 frames of one LED, 1 of 3 LEDs'
    """
    sizes, counts = np.unique((patterns > 0).sum(axis=1), return_counts=True)
    if len(sizes) == 1:
        return f"{counts[0]} frames of {'one LED' if sizes[0] == 1 else f'{sizes[0]} LEDs'} each"
    if len(sizes) > 3:
        return f"{len(patterns)} frames of {sizes[0]} to {sizes[-1]} LEDs"
    named = ["one LED" if size == 1 else f"{size} LEDs" for size in sizes]
    return f"{counts[0]} frames of {named[0]}, " + ", ".join(
        f"{count} of {name}" for count, name in zip(counts[1:], named[1:], strict=True)
    )
