"""fouriscope: Fourier ptychographic microscopy with plug-and-play priors, solved online.

Names are loaded when they are first used, so that ``import fouriscope`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Optics": "optics",
    "LEDArray": "optics",
    "Directions": "optics",
    "GlassSlide": "optics",
    "Pupil": "optics",
    "Acquisition": "acquisition",
    "open_frames": "acquisition",
    "ForwardModel": "forward",
    "check_adjoint": "forward",
    "check_gradient": "forward",
    "DataFidelity": "fidelity",
    "Minibatch": "fidelity",
    "Camera": "simulation",
    "simulate": "simulation",
    "Prior": "priors",
    "NoPrior": "priors",
    "Box": "priors",
    "L1": "priors",
    "TV": "priors",
    "BM3D": "priors",
    "NLM": "priors",
    "Wavelet": "priors",
    "SmallCNN": "priors",
    "TorchDenoiser": "priors",
    "DeepinvDenoiser": "priors",
    "PnP": "solvers",
    "Spectral": "solvers",
    "ADMM": "solvers",
    "EPRY": "solvers",
    "RED": "solvers",
    "Result": "run",
    "RunFolder": "run",
    "reconstruct": "reconstruction",
    "LiveReconstruction": "live",
    "stream": "live",
    "Tuning": "tuning",
    "tune": "tuning",
    "metrics": "",
    "plots": "",
    "settings": "",
}

__all__ = [
    "ADMM",
    "BM3D",
    "EPRY",
    "L1",
    "NLM",
    "RED",
    "TV",
    "Acquisition",
    "Box",
    "Camera",
    "DataFidelity",
    "DeepinvDenoiser",
    "Directions",
    "ForwardModel",
    "GlassSlide",
    "LEDArray",
    "LiveReconstruction",
    "Minibatch",
    "NoPrior",
    "Optics",
    "PnP",
    "Prior",
    "Pupil",
    "Result",
    "RunFolder",
    "SmallCNN",
    "Spectral",
    "TorchDenoiser",
    "Tuning",
    "Wavelet",
    "__version__",
    "check_adjoint",
    "check_gradient",
    "metrics",
    "open_frames",
    "plots",
    "reconstruct",
    "settings",
    "simulate",
    "stream",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fouriscope' has no attribute {name!r}")
    home = _HOME[name]
    if not home:
        return import_module(f"fouriscope.{name}")
    value = getattr(import_module(f"fouriscope.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


if TYPE_CHECKING:
    from fouriscope import metrics, plots
    from fouriscope.acquisition import Acquisition, open_frames
    from fouriscope.fidelity import DataFidelity, Minibatch
    from fouriscope.forward import ForwardModel, check_adjoint, check_gradient
    from fouriscope.live import LiveReconstruction, stream
    from fouriscope.optics import Directions, GlassSlide, LEDArray, Optics, Pupil
    from fouriscope.priors import (
        BM3D,
        L1,
        NLM,
        TV,
        Box,
        DeepinvDenoiser,
        NoPrior,
        Prior,
        SmallCNN,
        TorchDenoiser,
        Wavelet,
    )
    from fouriscope.reconstruction import reconstruct
    from fouriscope.run import Result, RunFolder
    from fouriscope.simulation import Camera, simulate
    from fouriscope.solvers import ADMM, EPRY, RED, PnP, Spectral
    from fouriscope.tuning import Tuning, tune
