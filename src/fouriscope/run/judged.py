"""The verdict on a finished run, by :mod:`fouriscope.verdict`, with the solver of its configuration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.trials import most_detailed_patch
from fouriscope.calibration import LEDGains
from fouriscope.errors import FouriscopeError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Geometry, Pupil
from fouriscope.run.assemble import build_solver, chosen_margin
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Iterations, Seconds, Solver
from fouriscope.verdict import (
    Verdict,
    contradictions,
    gains_at_bounds,
    hold_out,
    not_judged,
    resolution_of_halves,
    share_outside_band,
    slow_background,
    verdict_of,
)

# Side of the patch on which reconstructions are repeated, in frame pixels.
PATCH = 64
# With fewer LEDs none can be spared.
LEAST_LEDS = 12
# A repeated reconstruction has as many iterations as the run, but at most this many, or this many passes over frames.
ITERATIONS, PASSES = 100, 20
# However slow the prior is, a repeated reconstruction ends after this many seconds, or this share of those that the run
# itself took if that is more, and the verdict says so.
LONGEST, SHARE = 30.0, 0.25
# Side in frame pixels from which one reconstruction for all of a frame is hardly right: directions, focus and
# vignetting change over the field, and slow phases come out as clouds.
LARGE = 640


def judge(solver: Solver, acquisition: Acquisition, config: ReconstructionConfig) -> Verdict:
    """Judge a solver that has finished, with the acquisition and the configuration that it was built from.

    Three more reconstructions with the configured method, and one with plain EPRY, are made of the patch with the most
    structure, of at most 64 × 64 frame pixels, with directions, pupil and gains as the run found them (EPRY has them as
    they were before the calibration). One is made without some LEDs, and predicts their frames for the comparison with
    EPRY. The other two have one half of the dark field each; their agreement shows the resolution.
    The rest (energy outside the band, gains, contradicting LEDs, slow phase) comes from the run's own result.

    Neither ``solver`` nor its run is changed. What cannot be judged gets a verdict that says so; nothing is raised.
    """
    try:
        return _judge(solver, acquisition, config)
    except FouriscopeError as error:
        return not_judged(str(error))
    except KeyboardInterrupt:  # the result is there; only the verdict was too slow for somebody
        return not_judged("interrupted")


def for_tiles(frame_shape: tuple[int, int], *, periodic: bool) -> bool:
    """Whether frames are too large for one reconstruction; `fouriscope field` makes one for each of their tiles.

    >>> for_tiles((1024, 1024), periodic=False), for_tiles((512, 2048), periodic=False)
    (True, False)
    """
    return not periodic and min(frame_shape) >= LARGE


def _judge(solver: Solver, acquisition: Acquisition, config: ReconstructionConfig) -> Verdict:
    model, used = solver.model, solver.fidelity.weights > 0
    dark = int(np.count_nonzero(used & ~model.geometry.bright_field))
    if np.count_nonzero(used) < LEAST_LEDS:
        return not_judged(f"{np.count_nonzero(used)} LEDs are too few to hold any of them out")
    if not dark or dark == np.count_nonzero(used):
        return not_judged(f"without {'bright' if dark else 'dark'} field there is nothing to compare")
    leds = np.flatnonzero(used)
    patch, on_patch, geometry = judged_patch(acquisition, model, config)
    repeat = _Repeat(on_patch, len(solver.history), max(LONGEST, SHARE * solver.history.last.seconds))
    suspects = contradictions(acquisition, model, solver.x, leds)
    # The calibration is part of what is judged: EPRY begins with what was known before it.
    uncalibrated = replace(
        patch,
        illumination=acquisition.illumination,
        gains=acquisition.gains,
        pupil=_on_grid(acquisition.pupil, model, geometry),
    )
    spared = [suspect.led for suspect in suspects]
    held_out = hold_out(patch, repeat, geometry, uncalibrated=uncalibrated, spared=spared)
    resolution = resolution_of_halves(patch, repeat, geometry)
    gains: dict[str, int] = {}
    if model.gains is not None and _finds_gains(solver):
        bound = config.calibration.gains_bound
        at_bounds = gains_at_bounds(model.gains, acquisition.gains, bound, used)
        gains = {"gains": len(leds), "gains_at_bounds": at_bounds}
    window = model.geometry.object_window
    notes = list(repeat.notes)
    if for_tiles(acquisition.frame_shape, periodic=acquisition.periodic):
        notes.append("light and lens change over frames as large as these; fouriscope field reconstructs them in tiles")
    return verdict_of(
        held_out,
        resolution,
        objective_half_pitch=model.optics.wavelength / (2 * model.optics.na),
        leds=len(leds),
        outside_band=share_outside_band(model, solver.x, leds),
        contradicting=suspects,
        slow_background=slow_background(model.sample(solver.x)[window]),
        notes=notes,
        **gains,
    )


def _finds_gains(solver: Solver) -> bool:
    calibration = solver.calibration
    return calibration is not None and any(isinstance(one, LEDGains) for one in calibration.calibrators)


def judged_patch(
    acquisition: Acquisition, model: ForwardModel, config: ReconstructionConfig
) -> tuple[Acquisition, ReconstructionConfig, Geometry]:
    """The patch with what the run found instead of what was described, how to reconstruct it, and its geometry.

    Gains and directions stay as found, because a small patch determines them less well. The pupil is still refined,
    because plain EPRY refines it too.
    """
    found = replace(
        acquisition,
        illumination=model.illumination,
        gains=model.gains,
        pupil=replace(model.pupil, array=None),
        truth=None,
    )
    patch = most_detailed_patch(found, PATCH)
    whole = patch.frame_shape == acquisition.frame_shape
    section = config.object if whole else config.object.model_copy(update={"shape": "auto", "margin": "auto"})
    start = "flat" if config.solver.start == "array" else config.solver.start
    on_patch = config.model_copy(
        update={
            "object": section,
            "solver": config.solver.model_copy(update={"start": start}),
            "calibration": config.calibration.model_copy(update={"gains": False, "leds": False}),
            "stop": config.stop,
        }
    )
    margin = chosen_margin(on_patch, patch.frame_shape, periodic=patch.periodic)
    geometry = Geometry.compile(
        patch.optics, patch.illumination, patch.frame_shape, margin=margin, patch_center=patch.patch_center
    )
    return replace(patch, pupil=_on_grid(model.pupil, model, geometry)), on_patch, geometry


def _on_grid(pupil: Pupil, model: ForwardModel, geometry: Geometry) -> Pupil:
    """A pupil of the model's grid, with its array (if it has one) interpolated to the grid of another frame."""
    if pupil.array is None or geometry.grid_shape == model.geometry.grid_shape:
        return pupil
    down, across = (
        (np.arange(size) - size // 2) * step
        for size, step in zip(geometry.grid_shape, geometry.frequency_step, strict=True)
    )
    alone = Pupil(array=pupil.array)
    values = alone.evaluate(down[:, None], across[None, :], model.optics, frequency_step=model.geometry.frequency_step)
    return replace(pupil, array=values)


class _Repeat:
    """The configured reconstruction of a patch, as often as it is called; ``notes`` collects what was cut short."""

    def __init__(self, config: ReconstructionConfig, iterations: int, longest: float) -> None:
        self.config, self.iterations, self.longest = config, iterations, longest
        self.notes: list[str] = []

    def __call__(self, patch: Acquisition) -> tuple[ForwardModel, NDArray[Any]]:
        solver = build_solver(patch, self.config)
        frames = len(solver.sampler.population)
        passes = math.ceil(PASSES * frames / self.config.solver.batch_of(frames))
        wanted = min(self.iterations, max(ITERATIONS, passes))
        solver.solve(Iterations(wanted) | Seconds(self.longest))
        if len(solver.history) < wanted and not self.notes:
            self.notes.append(
                f"to save time, the verdict uses reconstructions of {len(solver.history)} iterations, not {wanted}"
            )
        return solver.model, solver.x
