"""From a configuration to the things it names: acquisition, model, fidelity, sampler, priors, solver."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.calibration import Calibration, Calibrator, LEDGains, LEDPositions, PixelPupil, ZernikePupil
from fouriscope.calibration.positions import REACH
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import (
    AmplitudeLoss,
    DataFidelity,
    IntensityLoss,
    Loss,
    PoissonLoss,
    Sampler,
    as_loss,
    make_sampler,
)
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import object_model
from fouriscope.optics import (
    Adjusted,
    Geometry,
    Multiplexed,
    automatic_margin,
)
from fouriscope.priors import Prior
from fouriscope.run.described import Described
from fouriscope.run.engine import build_engine
from fouriscope.run.memory import check_memory
from fouriscope.run.priors import build_priors, refuse_prior
from fouriscope.settings import ReconstructionConfig, RunConfig
from fouriscope.solvers import (
    ADMM,
    EPRY,
    RED,
    Descent,
    Iterations,
    PnP,
    Residual,
    Seconds,
    Settled,
    Solver,
    Spectral,
    StopRule,
)
from fouriscope.solvers.start import Start, StartName, first_sweeps

SOLVERS: dict[str, type[Descent]] = {"pnp": PnP, "admm": ADMM, "red": RED, "spectral": Spectral}


def build_acquisition(config: RunConfig, folder: Path) -> Acquisition:
    """The acquisition of a configuration whose relative paths start at ``folder``."""
    return Described(config, folder).acquisition()


def build_geometry(config: RunConfig, folder: Path) -> Geometry:
    """What the microscope of a configuration sees; only the shape of the frames is used, from the file or [frames]."""
    seen = Described(config, folder)
    if not seen.is_planned:
        Acquisition(seen.optics, seen.illumination, seen.stored)  # counts that do not fit must be told here too
    return Geometry.compile(
        seen.optics,
        seen.illumination,
        seen.frame_shape,
        margin=chosen_margin(config, seen.frame_shape),
        object_shape=config.object.shape,
        band=object_model(config.object.model).band,
        patch_center=seen.patch_center,
    )


def build_model(acquisition: Acquisition, config: ReconstructionConfig) -> ForwardModel:
    """The forward model of an acquisition; raises if the reconstruction would not fit into memory."""
    section = config.object
    dtype = np.dtype(np.float32 if section.precision == "single" else np.float64)
    margin = chosen_margin(config, acquisition.frame_shape, periodic=acquisition.periodic)
    check_memory(acquisition, config, margin)
    return ForwardModel(
        acquisition.optics,
        acquisition.illumination,
        acquisition.frame_shape,
        pupil=acquisition.pupil,
        object=section.model,
        object_shape=section.shape,
        margin=margin,
        patch_center=acquisition.patch_center,
        gains=acquisition.gains,
        dtype=dtype,
        engine=build_engine(config.engine),
    )


def chosen_margin(config: ReconstructionConfig, frame_shape: tuple[int, int], *, periodic: bool = False) -> int:
    """[object] margin as a number: automatically none for periodic fields, else that of the frames."""
    if config.object.margin != "auto":
        return config.object.margin
    return 0 if periodic else automatic_margin(frame_shape)


def build_calibration(section: settings.Calibration, *, early: bool = False) -> Calibration | None:
    """What the section [calibration] refines, the coarsest first; None if that is nothing.

    ``early``: the object explains the dark field from the beginning, so that gains need not wait for it.
    """
    wanted: list[Calibrator] = []
    if section.zernike:
        wanted.append(ZernikePupil(section.zernike_modes))
    if section.pixels:
        wanted.append(PixelPupil())
    if section.gains:
        pace: dict[str, Any] = {"every": 2, "start": 2.0, "dark_share": 0.5} if early else {}
        by = section.gains_by
        wanted.append(LEDGains(by="contrast" if by == "auto" else by, bound=section.gains_bound, **pace))
    if section.leds:
        wanted.append(LEDPositions(bound=section.leds_bound))
    return Calibration(wanted) if wanted else None


def build_stop(section: settings.Stop) -> StopRule:
    """Whichever comes first of what the section [stop] names."""
    rules: list[StopRule] = []
    if section.limit is not None:
        rules.append(Iterations(section.limit))
    if section.seconds is not None:
        rules.append(Seconds(section.seconds))
    if section.residual is not None:
        rules.append(Residual(section.residual))
    if not rules:
        raise InvalidInputError("without a limit the run would never stop: give iterations, seconds or residual")
    if section.settled:
        rules.append(Settled())  # no limit: with all frames in each iteration there is no mean
    combined = rules[0]
    for rule in rules[1:]:
        combined = combined | rule
    return combined


def build_solver(
    acquisition: Acquisition,
    config: ReconstructionConfig,
    *,
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
    start: NDArray[Any] | None = None,
) -> Solver:
    """The solver, ready to run; nothing is read or computed. ``priors`` and ``start`` replace what a file cannot hold.

    Frames that may hold anything are checked beforehand: :meth:`~fouriscope.Acquisition.check_frames`.
    """
    method = config.solver
    beginning = beginning_of(config, start)
    fidelity = DataFidelity.of(acquisition, build_model(acquisition, config), loss=build_loss(config))
    population = np.flatnonzero(fidelity.weights > 0)
    batch = method.batch_of(len(population))
    sampler = make_sampler(
        # Without replacement, a minibatch of everything is everything.
        "all" if batch == len(population) and method.sampler != "uniform" else method.sampler,
        population=population,
        batch=batch,
        bright_field=fidelity.model.geometry.bright_field,
        # The subset of a fixed sampler must not move the random numbers of the iterations.
        rng=np.random.default_rng((method.seed, 1)),
    )
    return solver_with(fidelity, sampler, acquisition, config, beginning, prior, prior_absorption)


def solver_with(
    fidelity: DataFidelity,
    sampler: Sampler,
    acquisition: Acquisition,
    config: ReconstructionConfig,
    start: Start,
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
) -> Solver:
    """The configured solver over a fidelity and a sampler, with its calibration."""
    if config.calibration.leds:
        _require_room(fidelity.model, config.calibration.leds_bound)
    early = config.solver.method == "spectral" and config.solver.start == "epry"
    calibration = build_calibration(config.calibration, early=early)
    if isinstance(start, str) and start == "epry" and config.calibration.zernike and config.solver.method != "epry":
        # A pupil to refine, found beside it.
        start = partial(first_sweeps, modes=config.calibration.zernike_modes, seed=config.solver.seed)
    common: dict[str, Any] = {"start": start, "seed": config.solver.seed, "truth": acquisition.truth}
    solver = _build_method(config, fidelity, sampler, common, prior, prior_absorption)
    solver.calibration = calibration
    return solver


def build_loss(config: ReconstructionConfig) -> Loss:
    """The configured loss."""
    method = config.solver
    if method.loss == "auto":  # until a solver has found it from the noise
        return IntensityLoss() if method.loss_from_noise else AmplitudeLoss()
    return PoissonLoss(method.poisson_background) if method.loss == "poisson" else as_loss(method.loss)


def beginning_of(config: ReconstructionConfig, start: NDArray[Any] | None) -> StartName | NDArray[Any]:
    """Where the solver starts: what Python was given, or what the configuration names."""
    if start is not None:
        return start
    if config.solver.start != "array":
        return config.solver.start
    raise InvalidInputError(
        'solver.start = "array" only records that the start was given in Python; it is in no file; '
        'use "flat", "linear" or "epry", or call fouriscope.reconstruct with the array'
    )


def _require_room(model: ForwardModel, bound: float) -> None:
    """Raise now, not in the middle of a run, if LEDs that move by ``bound`` bins would leave the object's spectrum."""
    if isinstance(model.illumination, Multiplexed):
        raise InvalidInputError(
            "calibration.leds moves each LED by its own frame, but these frames have several LEDs: leave it out"
        )
    reach = (bound + REACH) * np.asarray(model.geometry.frequency_step) * model.optics.wavelength
    for side in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        try:
            model.revised(illumination=Adjusted(model.illumination, np.tile(reach * side, (len(model), 1))))
        except InvalidInputError as error:
            raise InvalidInputError(f"calibration.leds needs room to move LEDs by {bound:g} bins: {error}") from error


def _build_method(
    config: ReconstructionConfig,
    fidelity: DataFidelity,
    sampler: Sampler,
    common: dict[str, Any],
    prior: Prior | None,
    prior_absorption: Prior | None,
) -> Solver:
    method = config.solver
    if isinstance(method, settings.EPRY):
        refuse_prior(config, prior, prior_absorption)
        if config.calibration.zernike or config.calibration.pixels:
            raise InvalidInputError(
                "EPRY recovers the pupil in its own way: set pupil_step (1 is usual) instead of a calibration of the "
                "pupil, or use another method"
            )
        return EPRY(fidelity, sampler, **method.options, **common)
    priors = build_priors(config, len(fidelity.model.object.channels), prior, prior_absorption)
    if method.loss_from_noise:
        common |= {"loss_from_noise": True}
    return SOLVERS[method.method](fidelity, sampler, priors, **method.options, **common)
