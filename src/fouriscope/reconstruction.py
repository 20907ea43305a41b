"""The front door: an acquisition in, a picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fouriscope.acquisition import Acquisition
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Loss, PoissonLoss, as_loss
from fouriscope.priors import Prior, PriorLike
from fouriscope.run import ReconstructionConfig, Result
from fouriscope.run.aligned import aligned
from fouriscope.run.assemble import build_prior, build_solver, build_stop
from fouriscope.run.config import explain
from fouriscope.run.provenance import FrameDigest, provenance
from fouriscope.run.recipe import AUTO, completed, is_auto
from fouriscope.run.sections import AlignmentSection, CalibrationSection, Section
from fouriscope.solvers import Callback


def reconstruct(
    data: Acquisition,
    *,
    method: Literal["auto", "pnp", "admm", "red", "spectral", "epry"] = "auto",
    prior: PriorLike = "auto",
    prior_absorption: PriorLike = None,
    batch: int | Literal["auto"] | None = "auto",
    iterations: int | Literal["auto"] | None = "auto",
    seconds: float | None = None,
    residual: float | None = None,
    sampler: Literal["auto", "stratified", "epochs", "uniform", "fixed", "all"] = "auto",
    loss: Literal["auto", "intensity", "amplitude", "poisson"] | Loss = "auto",
    object: Literal["auto", "phase", "complex", "wave"] = "auto",
    object_shape: tuple[int, int] | Literal["auto"] = "auto",
    margin: int | Literal["auto"] = "auto",
    align: str | Sequence[str] = "auto",
    calibrate: str | Sequence[str] = "auto",
    step: float | Literal["auto"] = "auto",
    acceleration: bool = True,
    steps_per_denoising: int | Literal["auto"] = 1,
    data_steps: int = 5,
    restart: bool = True,
    denoiser_weight: float | Literal["auto"] = "auto",
    balance: bool = True,
    epry_order: Literal["random", "na", "sampler"] = "random",
    epry_step: float = 1.0,
    epry_pupil_step: float | Literal["auto"] = "auto",
    epry_decay: float | Literal["auto"] = "auto",
    start: Literal["auto", "flat", "linear", "epry"] | NDArray[Any] = "auto",
    precision: Literal["single", "double"] = "single",
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Reconstruct a high-resolution image from the frames of an acquisition, a few frames an iteration.

    Nothing needs tuning: the step size, the strength of the prior and the size of the object are found from the data,
    and what is left "auto" follows a recipe. For measured frames that is the one that ``fouriscope import`` writes: the
    microscope is aligned and calibrated from the frames, and the wave behind the sample is found by "spectral" steps
    with the amplitude loss, TV and a start by EPRY, in 150 iterations. For a simulated field that repeats itself
    (``data.periodic``), whose microscope is known exactly, it is the paper's: a phase object, "pnp" steps with the
    intensity loss, TV and a flat start, in 300 iterations, and neither alignment nor calibration.

    What you set stands, and the rest stays the recipe's, with two exceptions. With another object or loss than those of
    "spectral" the method is "pnp"; "epry" takes no prior, and for measured frames it begins flat, recovers the pupil
    itself (``epry_pupil_step=1, epry_decay=0.3``, no calibration) and ends after 20 sweeps.

    Parameters
    ----------
    data
        What was measured.
    method
        "pnp" (ISTA, FISTA, SGD: :class:`fouriscope.solvers.PnP`), "admm", "red", "spectral" (for object="wave" and
        loss="amplitude") or "epry" (without a prior).
    prior
        What is known about the image: ``None``, a name ("tv", "l1", "box"), a prior such as ``fs.TV(strength=1e-6)``,
        or any denoiser ``f(image, sigma)``.
    prior_absorption
        The prior of the second image, if it is to differ from that of the first: of the absorption of a "complex"
        object, of the imaginary part of a "wave".
    batch, sampler
        Frames per iteration, and how they are chosen: 60, "stratified"; for "epry" all. ``batch=None`` uses all in
        every iteration.
    iterations, seconds, residual
        Stop at whichever comes first.
    loss
        "intensity" for additive noise, "poisson" for photon noise (``PoissonLoss(background)`` to set its ε), or
        "amplitude"; docs/solver.md says which suits what.
    object, object_shape, margin, precision
        See :class:`fouriscope.ForwardModel`. The automatic margin is none for periodic simulations and 16 frame
        pixels or a few more for measured frames, whose field goes on beyond them.
    align
        What to find from the frames beforehand: "circles", "exposure", "focus", "na", "array", "edge", some of them,
        "all", or ``()`` for nothing; see :func:`fouriscope.alignment.align`.
    calibrate
        What to refine beside the object: "zernike", "pixels", "gains", "leds", some of them, or ``()`` for nothing; see
        :mod:`fouriscope.calibration`. What was found is in ``result.pupil`` and ``result.geometry``.
    step, acceleration, start, seed
        See :class:`fouriscope.solvers.PnP`.
    steps_per_denoising, data_steps, restart, denoiser_weight
        Of "pnp" (the first), "admm" (two) and "red"; see :class:`fouriscope.solvers.PnP`,
        :class:`~fouriscope.solvers.ADMM` and :class:`~fouriscope.solvers.RED`. An iteration of "pnp" takes
        ``steps_per_denoising`` minibatches, so a prior that costs more than a gradient (BM3D) is faster with some six,
        and needs fewer ``iterations``.
    epry_order, epry_step, epry_pupil_step, epry_decay
        See :class:`fouriscope.solvers.EPRY`: order, α, β and decay.
    callbacks
        Called as ``f(solver, record)`` after every iteration; return True to stop.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, frame_shape=(32, 32))
    >>> y, x = np.indices(model.object_shape) / model.object_shape[0] - 0.5
    >>> phase = 0.3 * (np.hypot(y, x) < 0.25)
    >>> data = fs.simulate(model, phase, snr_db=40, seed=0)
    >>> result = fs.reconstruct(data, prior=fs.TV(), batch=20, iterations=60, seed=0)
    >>> bool(result.snr(phase).aligned > 10)
    True
    """
    config, priors = configure(
        data,
        measured=not data.periodic,
        method=method,
        prior=prior,
        prior_absorption=prior_absorption,
        batch=batch,
        iterations=iterations,
        seconds=seconds,
        residual=residual,
        sampler=sampler,
        loss=loss,
        object=object,
        object_shape=object_shape,
        margin=margin,
        align=align,
        calibrate=calibrate,
        step=step,
        acceleration=acceleration,
        steps_per_denoising=steps_per_denoising,
        data_steps=data_steps,
        restart=restart,
        denoiser_weight=denoiser_weight,
        balance=balance,
        epry_order=epry_order,
        epry_step=epry_step,
        epry_pupil_step=epry_pupil_step,
        epry_decay=epry_decay,
        start="array" if isinstance(start, np.ndarray) else start,
        precision=precision,
        seed=seed,
    )
    nominal = data.illumination.directions(data.patch_center)
    data = aligned(data, config.alignment).acquisition
    digest = FrameDigest(data.frames.shape)
    solver = build_solver(
        data,
        config,
        **priors,
        start=start if isinstance(start, np.ndarray) else None,
        watch=digest.add,
    )
    history = solver.solve(build_stop(config.stop), callbacks)
    return Result.of(
        solver.fidelity.model,
        solver.x,
        history,
        solver.stop_reason or "",
        config.model_dump(mode="json", exclude_none=True),
        provenance(data, digest=digest),
        pupil=solver.recovered_pupil,
        nominal_na=nominal,
    )


class Priors(TypedDict):
    """The priors of a reconstruction as objects: a configuration can name them, but not hold any callable."""

    prior: Prior
    prior_absorption: Prior | None


def configure(
    data: Acquisition,
    *,
    measured: bool,
    prior: PriorLike = AUTO,
    prior_absorption: PriorLike = None,
    batch: int | str | None = AUTO,
    iterations: int | str | None = AUTO,
    seconds: float | None = None,
    residual: float | None = None,
    sampler: str = AUTO,
    loss: str | Loss = AUTO,
    object: str = AUTO,
    object_shape: tuple[int, int] | str = "auto",
    margin: int | str = "auto",
    align: str | Sequence[str] = AUTO,
    calibrate: str | Sequence[str] = AUTO,
    precision: str = "single",
    method: str = AUTO,
    start: str = AUTO,
    epry_pupil_step: float | str = AUTO,
    epry_decay: float | str = AUTO,
    **solver: Any,
) -> tuple[ReconstructionConfig, Priors]:
    """The arguments of :func:`reconstruct` as the configuration that a file would hold, checked, and the priors.

    With ``measured``, the recipe is that of measured frames.
    """
    grid = {"shape": object_shape, "margin": margin, "precision": precision}
    decided = {"method": method, "start": start, "epry_pupil_step": epry_pupil_step, "epry_decay": epry_decay}
    frames = {"sampler": sampler, "batch": batch} if batch is not None else {"sampler": "all", "batch": len(data)}
    document = {
        "object": grid | _set(model=object),
        "solver": solver | _set(**decided, **frames) | _loss_keys(loss),
        "stop": _set(iterations=iterations) | {"seconds": seconds, "residual": residual},
    }
    if not is_auto(align):
        document["alignment"] = _switches(AlignmentSection, align, everything="all")
    if not is_auto(calibrate):
        document["calibration"] = _switches(CalibrationSection, calibrate)
    document = completed(document, measured=measured)
    try:
        config = ReconstructionConfig.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(explain(error, ReconstructionConfig, document)) from error
    first = build_prior(config.prior if is_auto(prior) else prior, where="prior")
    second = None if prior_absorption is None else build_prior(prior_absorption, where="prior_absorption")
    specs = {"prior": first.spec(), "prior_absorption": None if second is None else second.spec()}
    return config.model_copy(update=specs), {"prior": first, "prior_absorption": second}


def _set(**keys: Any) -> dict[str, Any]:
    """The keys that are not left to the recipe."""
    return {key: value for key, value in keys.items() if not is_auto(value)}


def _loss_keys(loss: str | Loss) -> dict[str, Any]:
    if is_auto(loss):
        return {}
    chosen = as_loss(loss)
    background = {"poisson_background": chosen.background} if isinstance(chosen, PoissonLoss) else {}
    return {"loss": chosen.name, **background}


def _switches(section: type[Section], names: str | Sequence[str], *, everything: str | None = None) -> dict[str, bool]:
    """All switches of a section, so that the recipe adds none: on are those named, or all if that is ``everything``."""
    switches = [key for key, field in section.model_fields.items() if field.annotation is bool]
    on = [names] if isinstance(names, str) else names
    return dict.fromkeys(switches, False) | dict.fromkeys(switches if names == everything else on, True)
