"""The front door: an acquisition in, a picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

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
from fouriscope.run.result import recovered_pupil
from fouriscope.solvers import Callback


def reconstruct(
    data: Acquisition,
    *,
    method: Literal["pnp", "admm", "red", "spectral", "epry"] = "pnp",
    prior: PriorLike = "tv",
    prior_absorption: PriorLike = None,
    batch: int | None = 60,
    iterations: int | None = 300,
    seconds: float | None = None,
    residual: float | None = None,
    sampler: Literal["stratified", "epochs", "uniform", "fixed", "all"] = "stratified",
    loss: Literal["intensity", "amplitude", "poisson"] | Loss = "intensity",
    object: Literal["phase", "complex", "wave"] = "phase",
    object_shape: tuple[int, int] | Literal["auto"] = "auto",
    margin: int | Literal["auto"] = "auto",
    align: str | Sequence[str] = (),
    calibrate: str | Sequence[str] = (),
    step: float | Literal["auto"] = "auto",
    acceleration: bool = True,
    steps_per_denoising: int | Literal["auto"] = 1,
    data_steps: int = 5,
    restart: bool = True,
    denoiser_weight: float = 0.25,
    balance: bool = True,
    epry_order: Literal["na", "random", "sampler"] = "na",
    epry_step: float = 1.0,
    epry_pupil_step: float = 0.0,
    epry_decay: float = 0.0,
    start: Literal["flat", "linear", "epry"] | NDArray[Any] = "flat",
    precision: Literal["single", "double"] = "single",
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Reconstruct a high-resolution image from the frames of an acquisition, a few frames an iteration.

    Nothing needs tuning: the step size, the strength of the prior and the size of the object are found from the data.

    Parameters
    ----------
    data
        What was measured.
    method
        "pnp" (ISTA, FISTA, SGD: :class:`fouriscope.solvers.PnP`), "admm", "red", or "epry" (which needs prior=None).
    prior
        What is known about the image: ``None``, a name ("tv", "l1", "box"), a prior such as ``fs.TV(strength=1e-6)``,
        or any denoiser ``f(image, sigma)``.
    prior_absorption
        For complex objects, the prior of the absorption, if it is to differ from that of the phase.
    batch, sampler
        Frames an iteration, and how they are chosen. ``batch=None`` uses all in every iteration.
    iterations, seconds, residual
        Stop at whichever comes first.
    loss
        "intensity" for additive noise, "poisson" for photon noise (``PoissonLoss(background)`` to set its ε), or
        "amplitude"; docs/solver.md says which suits what.
    object, object_shape, margin, precision
        See :class:`fouriscope.ForwardModel`. The automatic margin is none for periodic simulations and 16 frame
        pixels or a few more for measured frames, whose field goes on beyond them.
    align
        What to find from the frames beforehand: "circles", "exposure", "focus", "na", "array", "edge", some of them or
        "all"; see
        :func:`fouriscope.alignment.align`.
    calibrate
        What to refine beside the object: "zernike", "pixels", "gains", "leds", or some of them; see
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
    chosen = build_prior(prior, where="prior")
    chosen_absorption = None
    if prior_absorption is not None:
        chosen_absorption = build_prior(prior_absorption, where="prior_absorption")
    config = configure(
        data,
        method=method,
        prior=chosen,
        prior_absorption=chosen_absorption,
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
        prior=chosen,
        prior_absorption=chosen_absorption,
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
        pupil=recovered_pupil(solver),
        nominal_na=nominal,
    )


def configure(
    data: Acquisition,
    *,
    prior: Prior,
    prior_absorption: Prior | None = None,
    batch: int | None = 60,
    iterations: int | None = 300,
    seconds: float | None = None,
    residual: float | None = None,
    sampler: str = "stratified",
    loss: str | Loss = "intensity",
    object: str = "phase",
    object_shape: tuple[int, int] | str = "auto",
    margin: int | str = "auto",
    align: str | Sequence[str] = (),
    calibrate: str | Sequence[str] = (),
    precision: str = "single",
    **solver: Any,
) -> ReconstructionConfig:
    """The arguments of :func:`reconstruct` as the configuration that a file would hold, checked."""
    chosen_loss = as_loss(loss)
    document: dict[str, Any] = {
        "object": {"model": object, "shape": object_shape, "margin": margin, "precision": precision},
        "alignment": _switches(("circles", "exposure", "focus", "na", "array", "edge") if align == "all" else align),
        "calibration": _switches(calibrate),
        "solver": {
            **solver,
            "loss": chosen_loss.name,
            **({"poisson_background": chosen_loss.background} if isinstance(chosen_loss, PoissonLoss) else {}),
            "sampler": sampler if batch is not None else "all",
            "batch": len(data) if batch is None else batch,
        },
        "stop": {"iterations": iterations, "seconds": seconds, "residual": residual},
        "prior": prior.spec(),
        "prior_absorption": None if prior_absorption is None else prior_absorption.spec(),
    }
    try:
        return ReconstructionConfig.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(explain(error, ReconstructionConfig, document)) from error


def _switches(names: str | Sequence[str]) -> dict[str, bool]:
    """The keys of a section that are to be true."""
    return dict.fromkeys([names] if isinstance(names, str) else names, True)
