"""Objects in torch: o(x) and its derivative. Importing this module imports torch."""

from __future__ import annotations

import torch

from fouriscope.errors import InvalidInputError
from fouriscope.forward.torch_threads import Tensor


def transmittance(name: str, x: Tensor) -> Tensor:
    """o(x) of the object model called ``name``."""
    if name == "phase":
        return torch.complex(torch.cos(x), torch.sin(x))
    if name == "complex":
        return torch.polar(torch.exp(-x[..., 1, :, :]), x[..., 0, :, :])
    if name == "wave":
        return torch.complex(1 + x[..., 0, :, :], x[..., 1, :, :])
    raise InvalidInputError(f'the engine "torch" knows the objects phase, complex and wave, got {name!r}')


def pull_back(name: str, o: Tensor, w: Tensor) -> Tensor:
    """∇_x d from W = ∂d/∂ō (see :mod:`fouriscope.forward.objects`)."""
    if name == "wave":
        return 2 * torch.stack([w.real, w.imag])
    product = o.conj_physical() * w
    return 2 * product.imag if name == "phase" else 2 * torch.stack([product.imag, -product.real])
