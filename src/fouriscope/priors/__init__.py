"""Priors: what is known about an image, as a denoiser or a proximal operator. One contract, one file each."""

from __future__ import annotations

from fouriscope.priors.base import Prior
from fouriscope.priors.box import Box
from fouriscope.priors.from_callable import CallablePrior
from fouriscope.priors.l1 import L1
from fouriscope.priors.none import NoPrior
from fouriscope.priors.registry import PriorLike, as_prior, available_priors, prior_from_spec
from fouriscope.priors.tv import TV

__all__ = [
    "L1",
    "TV",
    "Box",
    "CallablePrior",
    "NoPrior",
    "Prior",
    "PriorLike",
    "as_prior",
    "available_priors",
    "prior_from_spec",
]
