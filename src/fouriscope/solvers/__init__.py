"""x^k: one loop, and a step() for each method."""

from fouriscope.solvers.admm import ADMM
from fouriscope.solvers.base import BY_CALLBACK, INTERRUPTED, Callback, Solver, SolverState, StepReport, reason_of
from fouriscope.solvers.descent import Descent
from fouriscope.solvers.epry import EPRY
from fouriscope.solvers.history import History, Record
from fouriscope.solvers.pnp import PnP
from fouriscope.solvers.red import RED
from fouriscope.solvers.spectral import Spectral
from fouriscope.solvers.start import bright_field_deconvolution, starting_point
from fouriscope.solvers.stopping import AllOf, AnyOf, Iterations, Residual, Seconds, Settled, StopRule

__all__ = [
    "ADMM",
    "BY_CALLBACK",
    "EPRY",
    "INTERRUPTED",
    "RED",
    "AllOf",
    "AnyOf",
    "Callback",
    "Descent",
    "History",
    "Iterations",
    "PnP",
    "Record",
    "Residual",
    "Seconds",
    "Settled",
    "Solver",
    "SolverState",
    "Spectral",
    "StepReport",
    "StopRule",
    "bright_field_deconvolution",
    "reason_of",
    "starting_point",
]
