"""Everything in ``fs``: type checkers read this list, and so does ``__init__.py``. A new name is added here alone."""

from . import metrics as metrics
from . import plots as plots
from . import settings as settings
from .acquisition import Acquisition as Acquisition
from .acquisition import open_frames as open_frames
from .alignment import align as align
from .fidelity import AllLEDs as AllLEDs
from .fidelity import AmplitudeLoss as AmplitudeLoss
from .fidelity import DataFidelity as DataFidelity
from .fidelity import EpochSampler as EpochSampler
from .fidelity import FixedSubset as FixedSubset
from .fidelity import IntensityLoss as IntensityLoss
from .fidelity import Minibatch as Minibatch
from .fidelity import PoissonLoss as PoissonLoss
from .fidelity import StratifiedSampler as StratifiedSampler
from .fidelity import UniformSampler as UniformSampler
from .forward import ForwardModel as ForwardModel
from .forward import check_adjoint as check_adjoint
from .forward import check_gradient as check_gradient
from .live import LiveReconstruction as LiveReconstruction
from .live import stream as stream
from .loading import load as load
from .optics import Directions as Directions
from .optics import GlassSlide as GlassSlide
from .optics import LEDArray as LEDArray
from .optics import Optics as Optics
from .optics import Pupil as Pupil
from .priors import BM3D as BM3D
from .priors import L1 as L1
from .priors import NLM as NLM
from .priors import TV as TV
from .priors import Box as Box
from .priors import DeepinvDenoiser as DeepinvDenoiser
from .priors import NoPrior as NoPrior
from .priors import Prior as Prior
from .priors import SmallCNN as SmallCNN
from .priors import TorchDenoiser as TorchDenoiser
from .priors import Wavelet as Wavelet
from .reconstruction import reconstruct as reconstruct
from .run import Result as Result
from .run import RunFolder as RunFolder
from .simulation import Camera as Camera
from .simulation import simulate as simulate
from .solvers import ADMM as ADMM
from .solvers import EPRY as EPRY
from .solvers import RED as RED
from .solvers import Iterations as Iterations
from .solvers import PnP as PnP
from .solvers import Residual as Residual
from .solvers import Seconds as Seconds
from .solvers import Spectral as Spectral
from .tuning import Tuning as Tuning
from .tuning import tune as tune

__version__: str
__all__: list[str]
