"""How well a reconstruction predicts frames that it has not seen, compared with a plain EPRY of the same frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import amplitudes
from fouriscope.alignment.prediction import correlations as correlations_with
from fouriscope.alignment.prediction import measured_amplitudes
from fouriscope.alignment.structure import telling
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import Geometry
from fouriscope.solvers import EPRY, Iterations

# From an acquisition, some of whose weights are 0, to the model that was used in the end and its x.
Reconstruct = Callable[[Acquisition], tuple[ForwardModel, NDArray[Any]]]

# At most this many LEDs are held out, and never more than a quarter of those there are.
BRIGHT, DARK = 3, 17
# LEDs nearer than this to the edge of the pupil, in bins, are not held out: a fraction of a bin decides whether their
# direct light passes, and that one pixel of the pupil decides their misfit.
EDGE = 1.0
# Of plain EPRY.
SWEEPS, DECAY, PUPIL_START = 20, 0.3, 2


@dataclass(frozen=True)
class HeldOut:
    """Misfits of unseen frames, separately for bright and dark field; None if no such frame could be held out.

    A misfit is the root mean square over frames of ‖g|u| − √y‖/‖√y‖, with the brightness g that fits a frame best: 0 is
    a perfect prediction.

    Attributes
    ----------
    leds
        The LEDs that were held out.
    bright, dark
        Misfits of the reconstruction.
    bright_epry, dark_epry
        Misfits of plain EPRY.
    bright_grey, dark_grey
        Misfits of an image without any structure. A misfit that is not below this predicts nothing.
    noise
        Number of dark-field frames that are mostly noise. They show nothing and are not held out.
    bright_left, dark_left
        What the prediction leaves of the contrast of a frame, its brightness and a constant fitted: 1 predicts nothing.
        None in runs of older versions.
    """

    leds: tuple[int, ...]
    bright: float | None
    dark: float | None
    bright_epry: float | None
    dark_epry: float | None
    bright_grey: float | None
    dark_grey: float | None
    noise: int = 0
    bright_left: float | None = None
    dark_left: float | None = None

    @property
    def beside_epry(self) -> float | None:
        """Our misfit in units of EPRY's: the geometric mean of bright and dark field. Below 1 is better than EPRY.

        >>> HeldOut((3, 9), 0.1, 0.2, 0.1, 0.8, 0.3, 0.5).beside_epry
        0.5
        """
        pairs = ((self.bright, self.bright_epry), (self.dark, self.dark_epry))
        ratios = [ours / other for ours, other in pairs if ours is not None and other]
        return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-12))))) if ratios else None

    @property
    def beside_grey(self) -> float | None:
        """What a prediction leaves of the frames' contrast, in bright or dark field, whichever is worse.

        A grey image leaves all of it: 1. Noise lifts √y of a faint frame by a constant that no prediction holds, so its
        misfit does not tell whether anything was predicted.
        """
        pairs = ((self.bright, self.bright_grey), (self.dark, self.dark_grey))
        left = [value for value in (self.bright_left, self.dark_left) if value is not None]
        return max(left or [ours / grey for ours, grey in pairs if ours is not None and grey], default=None)


def hold_out(
    patch: Acquisition,
    reconstruct: Reconstruct,
    geometry: Geometry,
    *,
    uncalibrated: Acquisition | None = None,
    spared: Sequence[int] = (),
    seed: int = 0,
) -> HeldOut:
    """Reconstruct a patch without some LEDs, by the method of the run and by plain EPRY, and predict their frames.

    EPRY runs as in laboratories: LEDs in random order, fading steps, the pupil recovered from the second sweep on.

    Parameters
    ----------
    patch
        The part of the acquisition that is reconstructed.
    reconstruct
        The method of the run.
    geometry
        Where the LEDs are.
    uncalibrated
        The same frames before a calibration changed directions, pupil and gains: EPRY begins with these. By default
        ``patch``.
    spared
        LEDs that are known to be wrong, so that nobody could predict them. They are not held out.
    seed
        Draws the LEDs.
    """
    held = drawn(patch, geometry, np.random.default_rng(seed), spared)
    weights = patch.frame_weights
    weights[held] = 0
    seen = replace(patch, weights=weights)
    model, x = reconstruct(seen)
    ours, left = misfits(patch, model, x, held), contrast_left(patch, model, x, held)
    plain = seen if uncalibrated is None else replace(uncalibrated, weights=weights)
    epry = misfits(patch, *plain_epry(plain, geometry.margin), held)
    grey = grey_misfits(patch, held, geometry.bright_field)
    noise = int(np.count_nonzero((patch.frame_weights > 0) & ~telling(patch, geometry.bright_field)))
    return HeldOut(tuple(map(int, held)), ours[0], ours[1], epry[0], epry[1], grey[0], grey[1], noise, *left)


def drawn(
    patch: Acquisition, geometry: Geometry, rng: np.random.Generator, spared: Sequence[int] = (), *, least: int = 0
) -> NDArray[np.int64]:
    """LEDs to hold out: not near the pupil's edge, not without weight, and no dark-field frame of mere noise.

    Of each field, at most a quarter of these; or ``least``, if twice as many remain.
    """
    bin_na = max(geometry.frequency_step) * geometry.optics.wavelength
    clear = np.abs(geometry.illumination_na - geometry.optics.na) > EDGE * bin_na
    clear &= patch.frame_weights > 0
    clear[list(spared)] = False
    clear &= telling(patch, geometry.bright_field)
    chosen = []
    for field, count in ((geometry.bright_field, BRIGHT), (~geometry.bright_field, DARK)):
        free = np.flatnonzero(field & clear)
        # One of a few bright-field LEDs may carry half of the low frequencies.
        share = max(len(free) // 4, least if len(free) >= 3 * least else 0)
        chosen.append(rng.choice(free, min(count, share), replace=False))
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def plain_epry(data: Acquisition, margin: int) -> tuple[ForwardModel, NDArray[Any]]:
    """EPRY of the frames that have a weight: the model with the pupil that was found, and x."""
    model = ForwardModel(
        data.optics,
        data.illumination,
        data.frame_shape,
        pupil=data.pupil,
        object="wave",
        margin=margin,
        patch_center=data.patch_center,
        gains=data.gains,
    )
    fidelity = DataFidelity.of(data, model, loss="amplitude")
    leds = AllLEDs(np.flatnonzero(fidelity.weights > 0))
    solver = EPRY(fidelity, leds, order="random", pupil_step=1.0, pupil_start=PUPIL_START, decay=DECAY, seed=0)
    solver.solve(Iterations(SWEEPS))
    return solver.model, solver.x


def misfits(
    data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """Misfits of ``leds`` in bright and in dark field (see :class:`HeldOut`)."""
    return _misfits(data, leds, model.intensity(x, leds), model.geometry.bright_field)


def grey_misfits(
    data: Acquisition, leds: NDArray[np.int64], bright: NDArray[np.bool_]
) -> tuple[float | None, float | None]:
    """Those of an image that is grey everywhere; ``bright`` says which frames are bright field."""
    return _misfits(data, leds, np.ones((len(leds), *data.frame_shape)), bright)


def _misfits(
    data: Acquisition, leds: NDArray[np.int64], intensities: NDArray[Any], bright: NDArray[np.bool_]
) -> tuple[float | None, float | None]:
    found: dict[bool, list[float]] = {True: [], False: []}
    for led, measured, predicted in amplitudes(data, leds, intensities):
        if measured.any():
            light = float(np.sum(predicted**2))
            scale = float(np.sum(measured * predicted)) / light if light else 0.0
            misfit = np.linalg.norm(scale * predicted - measured) / np.linalg.norm(measured)
            found[bool(bright[led])].append(float(misfit))
    return _root_mean_squares(found)


def contrast_left(
    data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """√(1 − r²) of ``leds`` in bright and in dark field, r their :func:`correlations` if positive, otherwise 0.

    That is the standard deviation of what the best a√I + b leaves of √y, in units of that of √y.
    """
    left = np.sqrt(1 - np.maximum(correlations(data, model, x, leds), 0) ** 2)
    bright = model.geometry.bright_field[leds]
    return _root_mean_squares({True: left[bright].tolist(), False: left[~bright].tolist()})


def correlations(
    data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The correlation of √y and √I of each LED; 0 where one of them is constant."""
    if not len(leds):
        return np.zeros(0)
    measured, counts = measured_amplitudes(data, leds)
    return correlations_with(measured, np.asarray(model.intensity(x, leds), np.float64), counts)


def _root_mean_squares(found: dict[bool, list[float]]) -> tuple[float | None, float | None]:
    """In bright and in dark field; None where there is nothing."""
    bright, dark = (
        float(np.sqrt(np.mean(np.square(values)))) if values else None for values in (found[True], found[False])
    )
    return bright, dark
