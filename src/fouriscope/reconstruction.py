"""``fs.reconstruct``: from an acquisition to a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from rich.console import Console

from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.digest import check_unchanged
from fouriscope.acquisition.units import warn_of_counts
from fouriscope.checks import door_but
from fouriscope.choices import Auto, Choices, MethodName, ObjectName, StartName, choose, leaves_object_open
from fouriscope.engines import EngineName
from fouriscope.fidelity import Loss, LossName
from fouriscope.priors import PriorLike
from fouriscope.run import Result
from fouriscope.run.aligned import aligned
from fouriscope.run.assemble import build_solver, build_stop
from fouriscope.run.doubt import AS_A_WAVE, BEGINS_AGAIN, Doubt
from fouriscope.run.first_look import why_no_phase
from fouriscope.run.progress import shown_progress
from fouriscope.run.provenance import FrameDigest, provenance
from fouriscope.run.rehearsal import rehearsed
from fouriscope.solvers import Callback


@door_but(*Choices.__annotations__)
def reconstruct(
    data: Acquisition,
    *,
    method: Auto | MethodName | settings.Method = "auto",
    prior: PriorLike = "auto",
    prior_absorption: PriorLike = None,
    object: Auto | ObjectName | settings.Object = "auto",
    loss: Auto | LossName | Loss = "auto",
    batch: Auto | int | None = "auto",
    align: str | Sequence[str] | settings.Alignment | None = "auto",
    calibrate: str | Sequence[str] | settings.Calibration | None = "auto",
    start: Auto | StartName | NDArray[Any] = "auto",
    iterations: Auto | int = "auto",
    stop: settings.Stop | None = None,
    seed: Auto | int = "auto",
    engine: Auto | EngineName | settings.Engine = "auto",
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
) -> Result:
    """Reconstruct a high-resolution image from the frames of an acquisition, a few frames per iteration.

    Nothing needs tuning: the step size, the strength of the prior and the size of the object are found from the data,
    and what is left "auto" follows a recipe. For measured frames that is the one that ``fouriscope import`` writes: the
    microscope is aligned and calibrated from the frames, and the wave behind the sample is found by "spectral" steps
    with the amplitude loss, TV and a start by EPRY, in 150 iterations, or in 600 if unseen frames show that this pays.
    For a simulated field that repeats itself (``data.periodic``), whose microscope is known exactly, it is a phase
    object, "pnp" steps with the loss that fits the noise, TV and a flat start, in 300 iterations, and neither alignment
    nor calibration. If two sweeps of EPRY show a sample that absorbs, or a phase with whole turns, it is a wave with
    "spectral" steps, a warm-up and Zernike modes of the pupil, until it no longer moves. If only the run shows that a
    phase leaves much more of the frames than noise, it begins again in this way. (Callbacks see both.)

    What you set is used, and the rest follows the recipe, with two exceptions. With another object or loss than those
    of "spectral", the method is "pnp". "epry" takes no prior, and for measured frames it begins flat, recovers the
    pupil itself (``settings.EPRY(pupil_step=1, decay=0.3)``, no calibration) and ends after 20 sweeps.

    If a name does not say enough, pass an object of :mod:`fouriscope.settings`, which has the keys of the configuration
    file: ``method=fs.settings.PnP(step=0.1)``, ``object=fs.settings.Object(model="wave", margin=8)``.

    Parameters
    ----------
    data
        What was measured.
    method
        "pnp" (ISTA, FISTA, SGD: :class:`fouriscope.solvers.PnP`), "admm", "red", "spectral" (for object="wave" and
        loss="amplitude") or "epry" (without a prior); or :class:`fouriscope.settings.PnP` and its like.
    prior
        What is known about the image: ``None``, a name ("tv", "l1", "box"), a prior such as ``fs.TV(strength=1e-6)``,
        any denoiser ``f(image, sigma)``, or an object with a method ``denoise(image, sigma)``.
    prior_absorption
        The prior of the second image, if it differs from that of the first. The second image is the absorption of a
        "complex" object, or the imaginary part of a "wave".
    object
        "phase", "complex" or "wave" (:class:`fouriscope.ForwardModel`), or :class:`fouriscope.settings.Object` with
        shape, margin and precision. The automatic margin is none for periodic simulations and 16 frame pixels or a few
        more for measured frames, whose field continues beyond them.
    loss
        "auto" finds the loss from the noise in the frames, or is "amplitude" for measured ones. By hand: "intensity"
        for additive noise, "poisson" for photon noise (``fs.PoissonLoss(background)`` to set its ε), or "amplitude";
        docs/solver.md says which loss suits which noise.
    batch
        Frames per iteration. By default a third of them (20 to 60) for "spectral", a tenth (30 to 60) if the loss is
        found from the noise, otherwise 60, and all for "epry". ``None`` uses all of them in every iteration.
    align
        What to find from the frames beforehand: "circles", "exposure", "focus", "response", "na", "array", "die",
        "edge", "curvature", some of them, "all", or ``()`` for nothing; see :func:`fouriscope.align`.
    calibrate
        What to refine during the run: "zernike", "pixels", "gains", "leds", some of them, or ``()`` for nothing; see
        :mod:`fouriscope.calibration`. What was found is in ``result.pupil`` and ``result.geometry``.
    start
        "flat", "linear", "epry", or an array of the object's shape.
    iterations, stop
        How many iterations; or, with :class:`fouriscope.settings.Stop`, seconds or a residual.
    seed
        Seed of all random numbers, by default 0.
    engine
        What computes: "auto" (numba where it is installed, otherwise scipy), "numba", "scipy" or "torch"; or
        :class:`fouriscope.settings.Engine` with the device of torch: ``Engine(name="torch", device="cuda")``.
    callbacks
        Called as ``f(solver, record)`` after every iteration; return True, or a reason in words, to stop.
        ``result.stop_reason`` then says so.
    progress
        Show the stage, the iteration and the time left: a bar in a terminal, a line in a notebook, and elsewhere a line
        every half minute. Terminal and log get it on stderr.

    Warns
    -----
    fouriscope.errors.UnitsWarning
        If the frames are clearly not in units of the empty bright field (:meth:`Acquisition.from_counts`).

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
    choices: Choices = {
        "method": method,
        "prior": prior,
        "prior_absorption": prior_absorption,
        "object": object,
        "loss": loss,
        "batch": batch,
        "align": align,
        "calibrate": calibrate,
        "start": start,
        "iterations": iterations,
        "stop": stop,
        "seed": seed,
        "engine": engine,
    }
    chosen = choose(data, measured=not data.periodic, **choices)
    config = chosen.config
    warn_of_counts(data, stacklevel=3)
    nominal = data.illumination.directions(data.patch_center)
    rule = build_stop(config.stop)
    with shown_progress(Console(stderr=True, quiet=not progress, highlight=False), rule, "reconstructing") as shown:
        shown.stage("aligning the microscope")
        data = aligned(data, config.alignment, stage=shown.stage).acquisition
        shown.stage("reading the frames")
        digest = FrameDigest(data.frames.shape)
        data.check_frames(digest.add)
        may_be_doubted = data.periodic and config.object.model == "phase" and leaves_object_open(choices)
        if may_be_doubted and (reason := why_no_phase(data, config.engine)) is not None:
            shown.stage(f"{reason}: {AS_A_WAVE}")
            chosen = choose(data, measured=False, unexplained=True, **choices)
            config, rule, may_be_doubted = chosen.config, build_stop(chosen.config.stop), False
        config = rehearsed(data, config, **chosen.objects, stage=shown.stage)
        rule = build_stop(config.stop)
        solver = build_solver(data, config, **chosen.objects)
        shown.stage("starting the solver (on a new machine it is compiled first)")
        doubt = Doubt() if may_be_doubted else None
        history = solver.solve(rule, [shown, *callbacks] if doubt is None else [shown, *callbacks, doubt])
        if doubt is not None and doubt.asks_again(solver, rule):
            shown.stage(BEGINS_AGAIN)
            chosen = choose(data, measured=False, unexplained=True, **choices)
            config = chosen.config
            solver = build_solver(data, config, **chosen.objects)
            history = solver.solve(build_stop(config.stop), [shown, *callbacks])
    check_unchanged(data.frames, digest.checksum)
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
