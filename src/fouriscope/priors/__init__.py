"""Priors: what is known about an image, as a denoiser or a proximal operator. One contract, one file each."""

from __future__ import annotations

from fouriscope.priors.base import Prior
from fouriscope.priors.bm3d import BM3D, BM3DParameters, StageParameters
from fouriscope.priors.box import Box
from fouriscope.priors.cnn import SmallCNN
from fouriscope.priors.deepinv_named import DeepinvDenoiser
from fouriscope.priors.from_callable import CallablePrior
from fouriscope.priors.l1 import L1
from fouriscope.priors.nlm import NLM
from fouriscope.priors.none import NoPrior
from fouriscope.priors.registry import (
    PriorInfo,
    PriorLike,
    as_prior,
    available_priors,
    installed_priors,
    prior_from_spec,
)
from fouriscope.priors.torch_module import TorchDenoiser
from fouriscope.priors.tv import TV
from fouriscope.priors.wavelet import Wavelet

__all__ = [
    "BM3D",
    "L1",
    "NLM",
    "TV",
    "BM3DParameters",
    "Box",
    "CallablePrior",
    "DeepinvDenoiser",
    "NoPrior",
    "Prior",
    "PriorInfo",
    "PriorLike",
    "SmallCNN",
    "StageParameters",
    "TorchDenoiser",
    "Wavelet",
    "as_prior",
    "available_priors",
    "installed_priors",
    "prior_from_spec",
]
