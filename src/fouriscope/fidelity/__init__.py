"""d_j and its gradient: losses, the data fidelity, samplers."""

from fouriscope.fidelity.arriving import ArrivingSampler
from fouriscope.fidelity.camera_noise import CameraNoise, camera_noise
from fouriscope.fidelity.data import DataFidelity, ValueAndGradient
from fouriscope.fidelity.decks import EpochSampler, StratifiedSampler, WarmUp
from fouriscope.fidelity.losses import AmplitudeLoss, CameraLoss, IntensityLoss, Loss, LossName, PoissonLoss, as_loss
from fouriscope.fidelity.minibatch import Minibatch, Sampler
from fouriscope.fidelity.pipeline import Contributions, Observer
from fouriscope.fidelity.samplers import AllLEDs, FixedSubset, UniformSampler, make_sampler

__all__ = [
    "AllLEDs",
    "AmplitudeLoss",
    "ArrivingSampler",
    "CameraLoss",
    "CameraNoise",
    "Contributions",
    "DataFidelity",
    "EpochSampler",
    "FixedSubset",
    "IntensityLoss",
    "Loss",
    "LossName",
    "Minibatch",
    "Observer",
    "PoissonLoss",
    "Sampler",
    "StratifiedSampler",
    "UniformSampler",
    "ValueAndGradient",
    "WarmUp",
    "as_loss",
    "camera_noise",
    "make_sampler",
]
