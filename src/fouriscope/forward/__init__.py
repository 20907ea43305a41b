"""H_i: object models, the forward model and its adjoint."""

from fouriscope.forward.checks import AdjointCheck, GradientCheck, check_adjoint, check_gradient
from fouriscope.forward.model import ForwardModel
from fouriscope.forward.objects import ComplexObject, ObjectModel, PhaseObject, object_model

__all__ = [
    "AdjointCheck",
    "ComplexObject",
    "ForwardModel",
    "GradientCheck",
    "ObjectModel",
    "PhaseObject",
    "check_adjoint",
    "check_gradient",
    "object_model",
]
