"""From the sections [prior] and [prior_absorption] to priors."""

from __future__ import annotations

import copy

from fouriscope.errors import InvalidInputError
from fouriscope.priors import Prior, PriorLike, as_prior
from fouriscope.priors.registry import prior_class
from fouriscope.settings import ReconstructionConfig


def build_priors(
    config: ReconstructionConfig, channels: int, prior: Prior | None = None, prior_absorption: Prior | None = None
) -> list[Prior]:
    """One prior for each image of the object; objects (any callable, say) replace the configured ones."""
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


def check_priors(config: ReconstructionConfig) -> None:
    """Raise, as a reconstruction would, for a prior that does not exist; none is built, a network may be large."""
    for section in ("prior", "prior_absorption"):
        spec = getattr(config, section)
        if spec is not None:
            try:
                prior_class(spec)
            except InvalidInputError as error:
                raise InvalidInputError(f"[{section}]: {error}") from error


def refuse_prior(config: ReconstructionConfig, prior: Prior | None, prior_absorption: Prior | None) -> None:
    """Raise if there is a prior, for a method that takes none."""
    chosen = prior if prior is not None else build_prior(config.prior, where="[prior]")
    if chosen.name != "none" or prior_absorption is not None or config.prior_absorption is not None:
        raise InvalidInputError(
            f'EPRY takes no prior, but the prior is {chosen.name!r}: set it to None (prior.name = "none"), '
            'or use method "pnp"'
        )
