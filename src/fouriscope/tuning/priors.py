"""Which prior: the one whose reconstruction predicts held-out frames best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.units import warn_of_counts
from fouriscope.checks import door
from fouriscope.choices import Choices, choose, leaves_object_open
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.priors import Prior, PriorLike
from fouriscope.run.aligned import aligned
from fouriscope.run.doubt import Doubt
from fouriscope.run.priors import build_prior
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Callback
from fouriscope.tuning.bench import Bench
from fouriscope.tuning.choice import STRENGTH, Criterion, criterion_for, indistinguishable


@dataclass(frozen=True, eq=False, repr=False)
class PriorComparison:
    """What several priors are worth on the same frames.

    Attributes
    ----------
    priors
        The priors, in the order in which they were given.
    scores
        Of each: minus the mean misfit of the held-out frames, or the SNR in dB with a truth. −inf: its run diverged.
    as_good
        For each, whether it cannot be told from the best.
    criterion
        "truth" or "held-out".
    held_out
        The LEDs that were set aside; empty with a truth.
    """

    priors: tuple[Prior, ...]
    scores: tuple[float, ...]
    as_good: tuple[bool, ...]
    criterion: Criterion
    held_out: NDArray[np.int64]

    @property
    def best(self) -> Prior | None:
        """The prior that is better than all others, or None if two or more are as good: a tie."""
        leading = [prior for prior, good in zip(self.priors, self.as_good, strict=True) if good]
        return leading[0] if len(leading) == 1 else None

    @property
    def sentence(self) -> str:
        """The result in words."""
        leading = [prior.name for prior, good in zip(self.priors, self.as_good, strict=True) if good]
        what = "is nearest to the truth" if self.criterion == "truth" else "predicts held-out frames best"
        if len(leading) == 1:
            return f"{leading[0]!r} {what}"
        those = (
            "come equally near to the truth" if self.criterion == "truth" else "predict held-out frames equally well"
        )
        others = "" if all(self.as_good) else ", and better than the others"
        return f"a tie: {' and '.join(map(repr, leading))} {those}{others}"

    def __repr__(self) -> str:
        by = "the truth" if self.criterion == "truth" else f"{len(self.held_out)} held-out frames"
        return f"PriorComparison of {len(self.priors)} priors by {by}: {self.sentence}"


@door
def compare_priors(
    data: Acquisition,
    priors: Sequence[PriorLike],
    *,
    criterion: Criterion | None = None,
    held_out: int | None = None,
    on_prior: Callable[[Prior, float], object] | None = None,
    callbacks: Sequence[Callback] = (),
    **choices: Unpack[Choices],
) -> PriorComparison:
    """Find the prior that suits an acquisition.

    A few LEDs are held out, spread over bright and dark field. With each prior, the others are reconstructed, from the
    start to the end and with the prior's own strength, which is automatic unless you give a number. The prior that
    predicts the held-out frames best is the best. Two priors are as good if the difference between the misfits of their
    frames is smaller than its standard error, or than half a percent: **a tie is said to be a tie**.

    Held-out frames tell what was measured, and nothing about details that no frame shows.

    Parameters
    ----------
    data
        What was measured.
    priors
        Two priors or more: names, priors or denoisers, as in :func:`fouriscope.reconstruct`.
    criterion
        "truth" or "held-out"; by default the truth if ``data`` has one.
    held_out
        How many LEDs to hold out: 8 % by default.
    on_prior
        Called with every prior and its score.
    callbacks
        Called in every iteration; one that returns True ends the comparison with ``KeyboardInterrupt``.
    **choices
        As in :func:`fouriscope.reconstruct`: method, batch, iterations, seed…

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24))
    >>> phase = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(model, phase, snr_db=25, seed=0)
    >>> fs.compare_priors(data, ["none", "tv"], iterations=60, seed=0).sentence  # a simulation knows its truth
    "'tv' is nearest to the truth"
    """
    chosen = choose(data, measured=not data.periodic, **choices)
    warn_of_counts(data, stacklevel=3)
    return compare_priors_config(
        data,
        chosen.config,
        priors,
        start=chosen.objects["start"],
        criterion=criterion,
        held_out=held_out,
        on_prior=on_prior,
        callbacks=callbacks,
        doubt=data.periodic and leaves_object_open(choices),
    )


def compare_priors_config(
    data: Acquisition,
    config: ReconstructionConfig,
    priors: Sequence[PriorLike],
    *,
    start: NDArray[Any] | None = None,
    criterion: Criterion | None = None,
    held_out: int | None = None,
    on_prior: Callable[[Prior, float], object] | None = None,
    callbacks: Sequence[Callback] = (),
    doubt: bool = False,
) -> PriorComparison:
    """Compare priors in the place of the one that a configuration names.

    Parameters
    ----------
    data, config
        The acquisition, and how it is reconstructed.
    priors
        Two or more.
    start
        Used instead of the configured one.
    criterion, held_out, on_prior, callbacks
        As in :func:`compare_priors`.
    doubt
        Whether nobody has said that the sample is a phase.
    """
    if len(priors) < 2:
        raise InvalidInputError(f"two priors or more are needed to compare them, got {priors!r}")
    built = tuple(build_prior(prior, where="priors") for prior in priors)
    chosen = criterion_for(data, criterion)
    data = aligned(data, config.alignment).acquisition  # once: all see the same microscope
    data.check_frames()
    scores, misfits, held = [], [], np.empty(0, np.int64)
    worth: NDArray[np.float64] | None = None
    for prior in built:
        look = Doubt() if doubt else None
        bench = Bench(data, config, STRENGTH, (prior, None), chosen, held_out, callbacks, start, doubt=look)
        score, own, worth = bench.whole_run(worth)
        scores.append(score)
        misfits.append(own)
        held = bench.held
        if on_prior is not None:
            on_prior(prior, score)
    if not np.isfinite(scores).any():
        raise DivergenceError("the runs with all priors diverged: look at a plain reconstruction first")
    as_good = indistinguishable(scores, np.array(misfits) if chosen == "held-out" else None)
    return PriorComparison(built, tuple(scores), tuple(as_good), chosen, held)
