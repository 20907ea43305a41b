"""Choosing a strength, or any other positive number of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.units import warn_of_counts
from fouriscope.checks import door, require_at_least
from fouriscope.choices import Choices, choose, leaves_object_open
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.priors import Prior
from fouriscope.run.aligned import aligned
from fouriscope.run.doubt import Doubt
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Callback
from fouriscope.tuning.bench import Bench
from fouriscope.tuning.choice import STRENGTH, Criterion, Tuning, criterion_for
from fouriscope.tuning.search import FIRST_FACTOR, Trial, log_search


@door
def tune(
    data: Acquisition,
    *,
    criterion: Criterion | None = None,
    held_out: int | None = None,
    evaluations: int = 12,
    factor: float = FIRST_FACTOR,
    on_trial: Callable[[Trial], object] | None = None,
    callbacks: Sequence[Callback] = (),
    **choices: Unpack[Choices],
) -> Tuning:
    """Choose the strength λ of the prior for an acquisition.

    With a truth (a simulation), it is the strength of the highest SNR. **Without one, a few LEDs are held out**, spread
    over bright and dark field, and it is the strength whose reconstruction predicts their frames best. A prior that is
    too weak leaves the noise of the frames it was fitted to. One that is too strong smooths away what the others show.
    The value is for the full set of frames (λ belongs to a mean over J frames, so the one found with J − h frames is
    multiplied by (J − h)/J).

    The search is golden section on log λ, from the automatic strength outwards. The first reconstruction begins at the
    start and takes ``iterations``; the trials begin where it ended, and take a third each.

    **A search may find nothing.** If the held-out frames cannot tell one strength from another, the result is
    :attr:`Tuning.flat`, and its value is no better than the one that the search began with.

    Parameters
    ----------
    data
        What was measured.
    criterion
        "truth" or "held-out"; by default the truth if ``data`` has one.
    held_out
        How many LEDs to hold out: 8 % by default.
    evaluations
        The largest number of trials.
    factor
        How far apart the first three trials are.
    on_trial
        Called with every :class:`Trial`.
    callbacks
        Called in every iteration; one that returns True ends the search with ``KeyboardInterrupt``.
    **choices
        As in :func:`fouriscope.reconstruct`, with the same recipe behind them: prior, method, batch, iterations, seed…
        For an object of two images, λ is that of both. If the second has its own prior, its strength keeps the ratio to
        that of the first (:attr:`Tuning.settings` has both).

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24))
    >>> phase = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(model, phase, snr_db=30, seed=0)
    >>> found = fs.tune(data, prior="tv", criterion="held-out", batch=20, iterations=40, evaluations=5, seed=0)
    >>> found.flat
    False
    >>> result = fs.reconstruct(data, prior=fs.TV(strength=found.value), batch=20, iterations=40, seed=0)
    """
    if not factor > 1:
        raise InvalidInputError(f"factor must be more than 1, got {factor:g}")
    require_at_least("evaluations", evaluations, 1)
    chosen = choose(data, measured=not data.periodic, **choices)
    warn_of_counts(data, stacklevel=3)
    return tune_config(
        data,
        chosen.config,
        **chosen.objects,
        criterion=criterion,
        held_out=held_out,
        evaluations=evaluations,
        factor=factor,
        on_trial=on_trial,
        callbacks=callbacks,
        doubt=Doubt() if data.periodic and leaves_object_open(choices) else None,
    )


def tune_config(
    data: Acquisition,
    config: ReconstructionConfig,
    *,
    key: str = STRENGTH,
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
    start: NDArray[Any] | None = None,
    criterion: Criterion | None = None,
    held_out: int | None = None,
    evaluations: int = 12,
    factor: float = FIRST_FACTOR,
    on_trial: Callable[[Trial], object] | None = None,
    callbacks: Sequence[Callback] = (),
    doubt: Doubt | None = None,
) -> Tuning:
    """Tune any positive number of a configuration, such as "prior.strength" or "solver.denoiser_weight".

    Parameters
    ----------
    data
        The acquisition.
    config
        How it is reconstructed.
    key
        The number to tune, as section.key.
    prior, prior_absorption, start
        Used instead of the configured ones.
    criterion
        "truth", or "held-out" for frames that the reconstruction does not use. By default the truth, if it is known.
    held_out
        How many frames are held out; by default 8 %.
    evaluations
        The largest number of trials.
    factor
        From the first value to the next one that is tried.
    on_trial
        Called after each trial.
    callbacks
        Called in every iteration of every trial. Two trials may run at once. A callback that returns True ends the
        search with ``KeyboardInterrupt``.
    doubt
        Looks at the first run, if nobody has said that the sample is a phase.
    """
    criterion = criterion_for(data, criterion)
    data = aligned(data, config.alignment).acquisition  # once: all trials look through the same microscope
    data.check_frames()
    bench = Bench(data, config, key, (prior, prior_absorption), criterion, held_out, callbacks, start, doubt=doubt)
    trials = log_search(bench.score, bench.first(), evaluations=evaluations, factor=factor, on_trial=on_trial)
    best = max(trials, key=lambda trial: trial.score)
    if not np.isfinite(best.score):
        raise DivergenceError(
            f"all {len(trials)} trials diverged, with {key} from {trials[0].value:.3g} to {trials[-1].value:.3g}: look "
            "at a plain reconstruction first, with fewer iterations or a smaller step"
        )
    value = best.value * (1 - len(bench.held) / bench.frames if key.endswith("strength") else 1)
    misfits = np.array([bench.misfits[trial.value] for trial in trials]) if len(bench.held) else None
    return Tuning(key, value, criterion, tuple(trials), bench.held, misfits, bench.settings(value))
