"""How large the LEDs are: the size with which short reconstructions explain the frames best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.sides import sides
from fouriscope.alignment.trials import Trials
from fouriscope.optics import Illumination
from fouriscope.optics.die import smallest_distance

# Sizes that are tried, in units of the objective's NA: an LED of 0.3 mm at 90 mm and NA 0.1 has 0.03, a bulb or a bare
# white LED near the sample 0.5. Each is this many times as large as the one before.
LEAST, FACTOR, MOST_STEPS = 0.02, 2**0.5, 11
# How finely the best one is looked for in the end, as a factor.
FINEST = 1.06
# A size must explain the frames this much better than points do. A size can also make up in part for LEDs near the
# pupil's edge that are described in a slightly wrong place.
LEAST_GAIN = 0.25
# Larger dies are not tried once the misfit has grown by so much from its least.
GROWN = 1.5


@dataclass(frozen=True, eq=False)
class DieFit:
    """What the search for the size of the LEDs found.

    Attributes
    ----------
    die
        The best of ``tried`` in metres, or the described size.
    illumination
        The LEDs with this size.
    tried, misfits
        The sizes that were tried, and the misfit of each.
    misfit_before, misfit_after
        At the described size and at ``die``.
    at_end
        Whether the best was at the end of the range. It is then not a minimum, and the described size is kept.
    """

    die: float
    illumination: Illumination
    tried: NDArray[np.float64]
    misfits: NDArray[np.float64]
    misfit_before: float
    misfit_after: float
    at_end: bool = False

    @property
    def changed(self) -> bool:
        return self.misfit_after < self.misfit_before


def find_die(acquisition: Acquisition) -> DieFit:
    """Side of the square that shines in each LED, from 0.02 to 0.64 NA, or 0 for points.

    A die moves the pupil over the object's spectrum and blurs its edge. LEDs that lie across the edge send a part of
    their direct light through the pupil, and dark-field frames lose contrast. No object lit by points explains
    either. A size cannot fit noise, so the misfit of a short reconstruction has its minimum at the right
    one. Frames in the penumbra are the best evidence and are used, unless they contradict the side of the edge on
    which their LED is believed to be. Points stay points unless a size explains the frames by 25 % better.

    The illumination must have a height, and the rest of the geometry should be known.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from dataclasses import replace
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, replace(leds, die=1e-3), (64, 64))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_die(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(0.8e-3 < found.die < 1.2e-3)
    True
    """
    array = as_array(acquisition.illumination)
    trials = Trials.of(replace(acquisition, weights=_of_witnesses(acquisition)), every_edge=True, whole_dies=True)
    unit = acquisition.optics.na * array.height
    seen: dict[float, float] = {}

    def lights(die: float) -> Illumination:
        return with_array(acquisition.illumination, replace(array, die=die))

    def look(die: float) -> float:
        if die not in seen:
            seen[die] = trials.misfit(illumination=lights(die))
        return seen[die]

    before = look(array.die)
    look(0.0)
    # LEDs do not overlap.
    largest = smallest_distance(array.positions)
    sizes = [size for step in range(MOST_STEPS) if (size := LEAST * unit * FACTOR**step) < largest]
    for size in sizes:
        if look(size) > GROWN * min(seen.values()):
            break
    best = min(seen, key=lambda die: seen[die])
    step = FACTOR
    while best > 0 and step > FINEST:
        step = step**0.5
        for size in (best / step, best * step):
            if size < largest:
                look(size)
        best = min(seen, key=lambda die: seen[die])
    at_end = bool(sizes) and best >= sizes[-1]
    better = not at_end and seen[best] < (1 - LEAST_GAIN) * before
    dies = np.array(sorted(seen))
    return DieFit(
        best if better else array.die,
        lights(best) if better else acquisition.illumination,
        dies,
        np.array([seen[float(die)] for die in dies]),
        before,
        seen[best] if better else before,
        at_end,
    )


def _of_witnesses(acquisition: Acquisition) -> NDArray[np.float64]:
    """The weights, 0 for frames that are bright though their LED lies outside the pupil, or dark though inside."""
    bright, dark = sides(acquisition)
    inside = acquisition.bright_field
    return np.where((bright & ~inside) | (dark & inside), 0.0, acquisition.frame_weights)
