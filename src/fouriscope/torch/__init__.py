"""The microscope for users of torch: a differentiable module, and an operator like those of deepinv.

Importing a name from this package imports torch: ``pip install "fouriscope[torch]"``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fouriscope.engines import import_torch

if TYPE_CHECKING:
    from fouriscope.torch.microscope import Microscope
    from fouriscope.torch.physics import Physics

__all__ = ["Microscope", "Physics"]

_HOMES = {"Microscope": "microscope", "Physics": "physics"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_torch("fouriscope.torch")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
