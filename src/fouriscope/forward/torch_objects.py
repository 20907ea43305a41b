"""Objects in torch: o(x) and its derivative. Importing this module imports torch."""

from __future__ import annotations

import torch

from fouriscope.errors import InvalidInputError
from fouriscope.forward.torch_threads import Tensor


def transmittance(name: str, x: Tensor, out: Tensor | None = None) -> Tensor:
    """o(x) of the object model called ``name``; into ``out`` without derivatives."""
    if name == "phase":
        if out is None:
            return torch.complex(torch.cos(x), torch.sin(x))
        torch.cos(x, out=out.real)
        torch.sin(x, out=out.imag)
        return out
    if name == "complex":
        return torch.polar(torch.exp(-x[..., 1, :, :]), x[..., 0, :, :], out=out)
    if name == "wave":
        return torch.complex(1 + x[..., 0, :, :], x[..., 1, :, :], out=out)
    raise InvalidInputError(f'the engine "torch" knows the objects phase, complex and wave, got {name!r}')


def pull_back(name: str, o: Tensor, w: Tensor, out: Tensor) -> None:
    """∇_x d from W = ∂d/∂ō (see :mod:`fouriscope.forward.objects`). ``o`` and ``w`` are overwritten."""
    if name == "wave":
        torch.mul(w.real, 2, out=out[0])
        torch.mul(w.imag, 2, out=out[1])
        return
    w *= o.conj_physical_()
    torch.mul(w.imag, 2, out=out if name == "phase" else out[0])
    if name == "complex":
        torch.mul(w.real, -2, out=out[1])
