"""How well frames are predicted that were held out: the default recipe beside EPRY, on the same part of a real set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.masks import mask_of
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.fidelity.noise import frame_noise
from fouriscope.forward import ForwardModel
from fouriscope.optics import Illumination, LEDArray, automatic_margin
from fouriscope.optics.die import across_edge
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop
from fouriscope.run.rehearsal import rehearsed
from fouriscope.settings import RunConfig, Spectral
from fouriscope.solvers import EPRY, Iterations

BRIGHT, DARK = 3, 17
REGION = 64
SWEEPS, DECAY = 20, 0.3
# LEDs nearer than this to the edge of the pupil, in bins, are not held out: a fraction of a bin decides whether their
# direct light passes, and that one pixel of the pupil decides their misfit.
EDGE = 1.0


@dataclass(frozen=True)
class HeldOut:
    """Relative amplitude misfit of frames that were not seen, bright and dark field apart, of each draw.

    ``plain`` is EPRY with directions and exposures as aligned, ``epry`` that or one with the directions and gains that
    our run found beside the object, whichever predicts better. ``perfect`` is what noise alone leaves.
    """

    ours: list[tuple[float, float]]
    epry: list[tuple[float, float]]
    plain: list[tuple[float, float]]
    perfect: list[tuple[float, float]]

    @property
    def means(self) -> tuple[float, float, float, float]:
        """Ours in bright and in dark field, EPRY's in both."""
        return (*map(float, np.mean(self.ours, axis=0)), *map(float, np.mean(self.epry, axis=0)))  # type: ignore[return-value]

    @property
    def ratios(self) -> tuple[float, float]:
        """Ours beside EPRY's, in bright and in dark field: the mean over the draws."""
        return _mean_ratios(self.ours, self.epry)

    @property
    def plain_ratios(self) -> tuple[float, float]:
        """The same beside EPRY that knows nothing of our calibration."""
        return _mean_ratios(self.ours, self.plain)

    @property
    def perfect_ratios(self) -> tuple[float, float]:
        """What a perfect prediction would have beside EPRY: nobody can predict noise."""
        return _mean_ratios(self.perfect, self.epry)


def _mean_ratios(ours: list[tuple[float, float]], others: list[tuple[float, float]]) -> tuple[float, float]:
    bright, dark = np.mean(np.array(ours) / np.array(others), axis=0)
    return float(bright), float(dark)


def held_out(config: RunConfig, folder: Path, draws: Sequence[int]) -> HeldOut:
    """Both methods on the middle, 64 × 64 pixels, of the run whose resolved ``config`` has its alignment behind it.

    Three bright-field and 17 dark-field LEDs have weight 0.
    """
    data = build_acquisition(in_the_middle(config, folder, REGION), folder)
    ours, epry, plain, perfect = [], [], [], []
    # The strength of the prior must not have been chosen with frames that are held out now.
    unrehearsed = config
    if isinstance(config.solver, Spectral):
        auto = config.solver.model_copy(update={"strength_factor": "auto", "long_steps": "auto"})
        unrehearsed = config.model_copy(update={"solver": auto})
    for draw in draws:
        held = drawn(data, np.random.default_rng(draw))
        weights = np.ones(len(data)) if data.weights is None else np.array(data.weights, np.float64)
        weights[held] = 0
        seen = replace(data, weights=weights)
        solver = build_solver(seen, rehearsed(seen, unrehearsed))
        solver.solve(build_stop(config.stop))
        model = solver.fidelity.model
        ours.append(misfits(data, model, solver.x, held))
        perfect.append(misfits_of_noise(data, model, solver.x, held, np.random.default_rng(draw)))
        tried = [
            misfits(data, *plain_epry(seen, illumination, gains), held)
            for illumination, gains in ((data.illumination, data.gains), (model.illumination, model.gains))
        ]
        plain.append(tried[0])
        epry.append(min(tried, key=lambda pair: math.log(pair[0]) + math.log(pair[1])))
    return HeldOut(ours, epry, plain, perfect)


def edge_beside_points(config: RunConfig, folder: Path) -> float | None:
    """Misfit of held-out frames whose LEDs stand across the pupil's edge, beside that with LEDs taken for points.

    None where no such frame is used, as with points.
    """
    data = build_acquisition(in_the_middle(config, folder, REGION), folder)
    held = np.flatnonzero(across_edge(data.illumination, data.optics, data.patch_center) & (data.frame_weights > 0))
    if not len(held) or not isinstance(data.illumination, LEDArray):
        return None
    weights = data.frame_weights
    weights[held] = 0
    found = []
    for lights in (data.illumination, replace(data.illumination, die=0.0)):
        solver = build_solver(replace(data, illumination=lights, weights=weights), config)
        solver.solve(build_stop(config.stop))
        of_frames = [misfits(data, solver.fidelity.model, solver.x, np.array([led])) for led in held]
        found.append(float(np.sqrt(np.nanmean(np.square(of_frames)))))
    return found[0] / found[1]


def in_the_middle(config: RunConfig, folder: Path, side: int) -> RunConfig:
    """The configuration with a region of interest of at most ``side`` pixels in the middle of its frames."""
    whole = build_acquisition(config, folder).frame_shape
    top, left = (0, 0) if config.frames.roi is None else config.frames.roi[:2]
    rows, columns = (min(side, size) for size in whole)
    roi = (top + (whole[0] - rows) // 2, left + (whole[1] - columns) // 2, rows, columns)
    return config.model_copy(update={"frames": config.frames.model_copy(update={"roi": roi})})


def drawn(data: Acquisition, rng: np.random.Generator) -> NDArray[np.int64]:
    """LEDs to hold out, none of them near the pupil's edge and none that has no weight anyway."""
    geometry = field_model(data, data.illumination).geometry
    bin_na = max(geometry.frequency_step) * geometry.optics.wavelength
    clear = np.abs(geometry.illumination_na - geometry.optics.na) > EDGE * bin_na
    if data.weights is not None:
        clear &= np.asarray(data.weights) > 0
    chosen = []
    for field, count in ((geometry.bright_field, BRIGHT), (~geometry.bright_field, DARK)):
        free = np.flatnonzero(field & clear)
        chosen.append(rng.choice(free, min(count, max(1, len(free) // 4)), replace=False))
    return np.sort(np.concatenate(chosen))


def plain_epry(
    data: Acquisition, illumination: Illumination, gains: NDArray[np.float64] | None = None, sweeps: int = SWEEPS
) -> tuple[ForwardModel, NDArray[Any]]:
    """Our own EPRY: random order, decay 0.3, pupil recovered. The model, with the pupil that was found, and x."""
    model = field_model(data, illumination, gains)
    fidelity = DataFidelity.of(data, model, loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    solver = EPRY(fidelity, AllLEDs(population), order="random", pupil_step=1.0, decay=DECAY, seed=0)
    solver.solve(Iterations(sweeps))
    return solver.model, solver.x


def field_model(
    data: Acquisition, illumination: Illumination, gains: NDArray[np.float64] | None = None
) -> ForwardModel:
    """The model on the smallest multiple of the frame that holds the field's band, with the usual margin."""
    optics, margin = data.optics, 0 if data.periodic else automatic_margin(data.frame_shape)
    reach = float(np.abs(illumination.directions(data.patch_center)).max()) + optics.na
    grid = [size + 2 * margin for size in data.frame_shape]
    factor = max(math.ceil((2 * reach / optics.wavelength * size * optics.pixel + 3) / size) for size in grid)
    return ForwardModel(
        optics,
        illumination,
        data.frame_shape,
        pupil=data.pupil,
        object="complex",
        object_shape=(factor * grid[0], factor * grid[1]),
        margin=margin,
        patch_center=data.patch_center,
        gains=gains,
    )


def misfits(data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]) -> tuple[float, float]:
    """Root mean square over frames of ‖g|u| − √y‖ / ‖√y‖ with the best brightness g, in bright and in dark field."""

    def misfit(led: int) -> float:
        counts = pixels_of(data, led)
        return _misfit(model.intensity(x, [led])[0][counts], np.asarray(data.frames.frame(led))[counts])

    return _in_both_fields(model, leds, misfit)


def misfits_of_noise(
    data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64], rng: np.random.Generator
) -> tuple[float, float]:
    """The misfits that would be left if the predictions were the truth, and frames differed from it by their noise.

    The noise of a frame is that in the corners of its spectrum, the same everywhere in the frame. Pixels have the
    values that occur in the frame: most of a faint frame of whole counts is 0 or 1.
    """

    def misfit(led: int) -> float:
        counts, measured = pixels_of(data, led), np.asarray(data.frames.frame(led), np.float64)
        predicted = np.asarray(model.intensity(x, [led])[0], np.float64)
        light = float(predicted[counts].sum())
        if not light:
            return math.nan
        truth = predicted * (measured[counts].sum() / light)
        levels = np.unique(measured[counts])
        step = float(np.median(np.diff(levels))) if len(levels) > 1 else 0.0
        unquantised = math.sqrt(max(frame_noise(measured, counts) ** 2 - step**2 / 12, 0.0))
        noisy = truth[counts] + rng.normal(0.0, unquantised, int(counts.sum()))
        return _misfit(truth[counts], levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, noisy)])

    return _in_both_fields(model, leds, misfit)


def _misfit(predicted: NDArray[Any], measured: NDArray[Any]) -> float:
    """‖g√I − √y‖ / ‖√y‖ with the best g; NaN if there is no light in one of them."""
    u, root = (np.sqrt(np.maximum(np.asarray(image, np.float64), 0)) for image in (predicted, measured))
    if not (u.any() and root.any()):
        return math.nan
    return float(np.linalg.norm(np.sum(root * u) / np.sum(u**2) * u - root) / np.linalg.norm(root))


def _in_both_fields(
    model: ForwardModel, leds: NDArray[np.int64], misfit: Callable[[int], float]
) -> tuple[float, float]:
    """The root mean square over bright-field and over dark-field LEDs; NaN where there is none."""
    bright = model.geometry.bright_field[leds]
    of_leds = np.array([misfit(int(led)) for led in leds])
    fields = (of_leds[field & np.isfinite(of_leds)] for field in (bright, ~bright))
    found = [float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan for values in fields]
    return found[0], found[1]


def pixels_of(data: Acquisition, led: int) -> NDArray[np.bool_]:
    """The pixels of a frame that count."""
    if data.mask is None:
        return np.ones(data.frame_shape, bool)
    if len(data.mask.shape) == 2:
        return np.asarray(data.mask, bool)
    return np.asarray(mask_of(data.mask, led), bool)
