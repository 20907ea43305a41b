"""From a configuration to the things it names: acquisition, model, fidelity, sampler, priors, solver."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, Frames
from fouriscope.acquisition.led_table import LEDTable, read_led_table
from fouriscope.calibration import Calibration, Calibrator, LEDGains, LEDPositions, PixelPupil, ZernikePupil
from fouriscope.calibration.positions import REACH
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Loss, PoissonLoss, Sampler, as_loss, make_sampler
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import object_model
from fouriscope.optics import (
    Adjusted,
    Geometry,
    GlassSlide,
    Illumination,
    LEDArray,
    Optics,
    Pupil,
    automatic_margin,
)
from fouriscope.priors import Prior, PriorLike, as_prior
from fouriscope.run.measured import load_image, measured, open_stored, roi_displacement
from fouriscope.run.memory import check_memory
from fouriscope.run.sections import (
    CalibrationSection,
    DirectionsSection,
    DiscSection,
    FileSection,
    PupilSection,
    ReconstructionConfig,
    RingsSection,
    RunConfig,
    SpiralSection,
    SquareSection,
    StopSection,
)
from fouriscope.solvers import ADMM, EPRY, RED, Iterations, PnP, Residual, Seconds, Solver, Spectral, StopRule
from fouriscope.solvers.start import StartName, starting_point


def build_illumination(section: Any, folder: Path = Path()) -> Illumination:
    """The LEDs that the section [illumination] describes; a file in it is looked for in ``folder``."""
    if isinstance(section, DirectionsSection):
        table = LEDTable("na", np.array(section.na))
        return table.illumination(height=section.height, rotation=section.rotation, offset=section.offset)
    slide = GlassSlide(section.slide_thickness, section.slide_index) if section.slide_thickness else None
    common: dict[str, Any] = {"rotation": section.rotation, "offset": section.offset, "slide": slide}
    if isinstance(section, FileSection):
        table = read_led_table(folder / section.path)
        try:
            return table.illumination(height=section.height, pitch=section.pitch, **common)
        except InvalidInputError as error:
            raise InvalidInputError(f"{folder / section.path}: {error}") from error
    if isinstance(section, SquareSection):
        return LEDArray.square(section.shape, section.pitch, section.height, **common)
    if isinstance(section, DiscSection):
        return LEDArray.disc(section.pitch, section.height, section.radius, **common)
    if isinstance(section, SpiralSection):
        order: dict[str, Any] = {"count": section.count, "start": section.start, "clockwise": section.clockwise}
        return LEDArray.spiral(section.size, section.pitch, section.height, **order, **common)
    if isinstance(section, RingsSection):
        return LEDArray.rings(section.radii, section.counts, section.height, start_angle=section.start_angle, **common)
    return LEDArray.at(np.array(section.positions), section.height, **common)


def build_acquisition(config: RunConfig, folder: Path) -> Acquisition:
    """The acquisition of a configuration whose relative paths start at ``folder``.

    Frames are read only where a correction is to be found "auto".
    """
    source, optics = config.frames, build_optics(config)
    stored = open_stored(source, folder)
    illumination = build_illumination(config.illumination, folder)
    data = measured(source, stored, folder, optics, illumination)
    return Acquisition(
        optics,
        illumination,
        data.frames,
        pupil=build_pupil(config.pupil, folder),
        patch_center=patch_center_of(config, stored, illumination),
        weights=data.weights,
        mask=data.mask,
        gains=None if source.brightness is None else np.array(source.brightness),
        truth=None if source.truth is None else load_image(folder / source.truth),
    )


def build_geometry(config: RunConfig, folder: Path) -> Geometry:
    """What the microscope of a configuration sees; of the frames only the shape is asked, from the file or [frames]."""
    illumination = build_illumination(config.illumination, folder)
    shape, center = config.frames.shape, config.microscope.patch_center
    if config.frames.path is not None:
        stored = open_stored(config.frames, folder)
        # With what belongs to it, because counts that do not fit must be told here too.
        Acquisition(build_optics(config), illumination, stored)
        shape, center = stored.shape[1:], patch_center_of(config, stored, illumination)
    assert shape is not None  # checked with the configuration
    return Geometry.compile(
        build_optics(config),
        illumination,
        shape,
        margin=chosen_margin(config, shape),
        object_shape=config.object.shape,
        band=object_model(config.object.model).band,
        patch_center=center,
    )


def patch_center_of(config: RunConfig, stored: Frames, illumination: Illumination) -> tuple[float, float]:
    """[microscope] places the centre of whole frames; a region of interest lies beside it.

    Directions without a height are the same everywhere, so there nothing moves.
    """
    y, x = config.microscope.patch_center
    if getattr(illumination, "height", None) is None:
        return y, x
    down, right = roi_displacement(config.frames, stored, build_optics(config).pixel)
    return y + down, x + right


def build_optics(config: RunConfig) -> Optics:
    """The microscope of the section [microscope]."""
    scope = config.microscope
    return Optics(scope.wavelength, scope.na, scope.magnification, scope.camera_pixel, scope.medium_index)


def build_pupil(section: PupilSection, folder: Path) -> Pupil:
    """The aberrations of the section [pupil]; an array in it is looked for in ``folder``."""
    array = None if section.array is None else load_image(folder / section.array)
    return Pupil(zernike=section.zernike, defocus=section.defocus, array=array)


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
    )


def chosen_margin(config: ReconstructionConfig, frame_shape: tuple[int, int], *, periodic: bool = False) -> int:
    """[object] margin as a number: automatically none for periodic fields, else that of the frames."""
    if config.object.margin != "auto":
        return config.object.margin
    return 0 if periodic else automatic_margin(frame_shape)


def build_calibration(section: CalibrationSection, *, early: bool = False) -> Calibration | None:
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
        wanted.append(LEDGains(bound=section.gains_bound, **pace))
    if section.leds:
        wanted.append(LEDPositions(bound=section.leds_bound))
    return Calibration(wanted) if wanted else None


def build_priors(
    config: ReconstructionConfig, channels: int, prior: Prior | None = None, prior_absorption: Prior | None = None
) -> list[Prior]:
    """One prior for each image of the object; objects stand in for the configured ones (any callable, say)."""
    first = prior if prior is not None else build_prior(config.prior, where="[prior]")
    second = prior_absorption
    if second is None and config.prior_absorption is not None:
        second = build_prior(config.prior_absorption, where="[prior_absorption]")
    if channels == 1:
        if second is not None:
            raise InvalidInputError("prior_absorption was given, but a phase object has no absorption: use 'complex'")
        return [first]
    return [first, copy.deepcopy(first) if second is None else second]


def build_prior(prior: PriorLike, *, where: str) -> Prior:
    """The prior that a file or an argument describes; a parameter of the wrong kind is an error of ``where``."""
    try:
        return as_prior(prior)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{where}: {error}") from error


def build_stop(section: StopSection) -> StopRule:
    """Whichever comes first of what the section [stop] names."""
    rules: list[StopRule] = []
    if section.iterations is not None and section.iterations != "unlimited":
        rules.append(Iterations(section.iterations))
    if section.seconds is not None:
        rules.append(Seconds(section.seconds))
    if section.residual is not None:
        rules.append(Residual(section.residual))
    if not rules:
        raise InvalidInputError("a run without a limit would never stop: give iterations, seconds or residual")
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
    watch: Callable[[NDArray[Any], NDArray[Any] | None], object] | None = None,
) -> Solver:
    """The solver, ready to run; priors and ``start`` stand in for what a file cannot hold.

    ``watch`` is shown each frame and its own mask while they are checked.
    """
    settings = config.solver
    beginning = beginning_of(config, start)
    fidelity = DataFidelity.of(acquisition, build_model(acquisition, config), loss=build_loss(config))
    acquisition.check_frames(watch)  # now that weights and mask are known to have the right shapes
    population = np.flatnonzero(fidelity.weights > 0)
    batch = min(settings.batch, len(population))
    sampler = make_sampler(
        # Without replacement, a minibatch of everything is everything.
        "all" if batch == len(population) and settings.sampler != "uniform" else settings.sampler,
        population=population,
        batch=batch,
        bright_field=fidelity.model.geometry.bright_field,
        # The subset of a fixed sampler must not move the random numbers of the iterations.
        rng=np.random.default_rng((settings.seed, 1)),
    )
    return solver_with(fidelity, sampler, acquisition, config, beginning, prior, prior_absorption)


def solver_with(
    fidelity: DataFidelity,
    sampler: Sampler,
    acquisition: Acquisition,
    config: ReconstructionConfig,
    start: StartName | NDArray[Any],
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
) -> Solver:
    """The configured solver over a fidelity and a sampler, with its calibration."""
    if config.calibration.leds:
        _require_room(fidelity.model, config.calibration.leds_bound)
    early = config.solver.method == "spectral" and config.solver.start == "epry"
    calibration = build_calibration(config.calibration, early=early)
    if isinstance(start, str) and start == "epry" and config.calibration.zernike and config.solver.method != "epry":
        start = starting_point(start, fidelity, sampler.population, modes=config.calibration.zernike_modes)
    common: dict[str, Any] = {"start": start, "seed": config.solver.seed, "truth": acquisition.truth}
    solver = _build_method(config, fidelity, sampler, common, prior, prior_absorption)
    solver.calibration = calibration
    return solver


def build_loss(config: ReconstructionConfig) -> Loss:
    """The configured loss."""
    settings = config.solver
    return PoissonLoss(settings.poisson_background) if settings.loss == "poisson" else as_loss(settings.loss)


def beginning_of(config: ReconstructionConfig, start: NDArray[Any] | None) -> StartName | NDArray[Any]:
    """Where the solver starts: what Python was given, or what the configuration names."""
    if start is not None:
        return start
    if config.solver.start != "array":
        return config.solver.start
    raise InvalidInputError(
        'solver.start = "array" is a note of a starting point that Python was given and no file holds; '
        'use "flat", "linear" or "epry", or call fouriscope.reconstruct with the array'
    )


def _require_room(model: ForwardModel, bound: float) -> None:
    """Raise now, not in the middle of a run, if LEDs that move by ``bound`` bins would leave the object's spectrum."""
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
    settings = config.solver
    if settings.method == "epry":
        _refuse_prior(config, prior, prior_absorption)
        if config.calibration.zernike or config.calibration.pixels:
            raise InvalidInputError(
                "EPRY recovers the pupil in its own way: set epry_pupil_step (1 is usual) instead of a calibration "
                "of the pupil, or use another method"
            )
        return EPRY(
            fidelity,
            sampler,
            order=settings.epry_order,
            object_step=settings.epry_step,
            pupil_step=settings.epry_pupil_step,
            decay=settings.epry_decay,
            **common,
        )
    priors = build_priors(config, len(fidelity.model.object.channels), prior, prior_absorption)
    common |= {"step": settings.step, "acceleration": settings.acceleration}
    if settings.method in ("red", "spectral") and settings.denoiser_weight != "auto":
        common |= {"denoiser_weight": settings.denoiser_weight}
    if settings.method == "spectral":
        return Spectral(fidelity, sampler, priors, balance=settings.balance, **common)
    if settings.method == "admm":
        return ADMM(fidelity, sampler, priors, data_steps=settings.data_steps, restart=settings.restart, **common)
    if settings.method == "red":
        return RED(fidelity, sampler, priors, **common)
    return PnP(fidelity, sampler, priors, steps_per_denoising=settings.steps_per_denoising, **common)


def _refuse_prior(config: ReconstructionConfig, prior: Prior | None, prior_absorption: Prior | None) -> None:
    chosen = prior if prior is not None else build_prior(config.prior, where="[prior]")
    if chosen.name != "none" or prior_absorption is not None or config.prior_absorption is not None:
        raise InvalidInputError(
            f'EPRY has no place for a prior, but the prior is {chosen.name!r}: set it to None (prior.name = "none"), '
            'or use method "pnp"'
        )
