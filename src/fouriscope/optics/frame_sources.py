"""From an illumination to the sources of its frames: LEDs with a size and a bandwidth, and several LEDs at once."""

from __future__ import annotations

import numpy as np

from fouriscope.optics.bandwidth import coloured_sources, has_bandwidth
from fouriscope.optics.die import across_edge, die_in_points, die_sources, farthest_na, has_die
from fouriscope.optics.illumination import Illumination
from fouriscope.optics.objective import Optics
from fouriscope.optics.patterns import Multiplexed, lit_leds
from fouriscope.optics.sources import Sources

# For a simulation: points along each axis of a die, more for one across the pupil's edge (there the share of direct
# light, which is most of a frame, comes in steps of a point), and wavelengths. More would change frames by less than a
# percent.
FINE_POINTS, FINEST_POINTS, FINE_MODES = 9, 27, 11


def frame_sources(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> Sources:
    """As many sources as each frame needs."""
    leds, _ = lit_leds(illumination)
    return _summed(illumination, coloured_sources(die_sources(leds, optics, patch_center), optics))


def coarse_sources(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> Sources | None:
    """As many sources as each frame needs if its LED lies near the pupil's edge, and one for every other LED.

    For short reconstructions that only compare guesses: of LEDs with a size, they take a third of the time. None if
    there is nothing to save.
    """
    leds, _ = lit_leds(illumination)
    if not has_die(leds):
        return None
    sources = die_sources(leds, optics, patch_center, only_near_edge=True)
    return _summed(illumination, coloured_sources(sources, optics))


def fine_sources(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> Sources | None:
    """9 × 9 points of every LED with a size, 27 × 27 of one across the pupil's edge, in 11 wavelengths if there is a
    bandwidth, whatever a frame needs.

    They are slow, and serve as the truth of a simulation. None if LEDs are points of one wavelength.
    """
    leds, _ = lit_leds(illumination)
    if not has_die(leds) and not has_bandwidth(optics):
        return None
    points = die_in_points(
        leds, patch_center, np.where(across_edge(leds, optics, patch_center), FINEST_POINTS, FINE_POINTS)
    )
    return _summed(illumination, coloured_sources(points, optics, FINE_MODES))


def largest_na(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> float:
    """|na| of the outermost LED that shines, or of the outermost point of its die; more if shorter wavelengths reach
    farther in spatial frequency."""
    leds, lit = lit_leds(illumination)
    largest = float(farthest_na(leds, patch_center)[lit].max())
    if not has_bandwidth(optics):
        return largest
    outermost = Sources.points(np.array([[0.0, largest]]))
    return (largest + optics.na) * float(coloured_sources(outermost, optics).scales.max()) - optics.na


def _summed(illumination: Illumination, sources: Sources) -> Sources:
    return illumination.summed(sources) if isinstance(illumination, Multiplexed) else sources
