"""The forward model as a ``torch.nn.Module`` through which gradients flow."""

from __future__ import annotations

from typing import Any

import torch

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.grids import LEDs
from fouriscope.forward.torch_optics import TorchOptics
from fouriscope.forward.torch_threads import Tensor


@door_class
class Microscope(torch.nn.Module):  # type: ignore[misc]
    r"""x → y_i = Σ_m w_m \|H_m o(x)\|² for each LED i, differentiable by x.

    The module has no parameters to train. It computes on the device of x, in the precision of the model. A frame of
    100 × 100 pixels takes about 0.5 MB until the gradient is computed. Gradients by autograd equal those of
    :class:`fouriscope.DataFidelity`, up to rounding.

    Parameters
    ----------
    model
        The forward model: optics, LEDs, object, pupil, gains, precision.
    leds
        Which LEDs to predict, in this order. By default, all. :meth:`forward` can use others.

    Examples
    --------
    The gradient of your own loss:

    >>> import torch, fouriscope as fs
    >>> from fouriscope.torch import Microscope
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), (32, 24))
    >>> microscope = Microscope(model, leds=[0, 12, 24])
    >>> x = torch.zeros(model.x_shape, requires_grad=True)
    >>> y = microscope(x)
    >>> y.shape
    torch.Size([3, 32, 24])
    >>> torch.nn.functional.l1_loss(y, 0.9 * torch.ones_like(y)).backward()
    >>> x.grad.shape == model.x_shape
    True
    """

    def __init__(self, model: ForwardModel, leds: LEDs = None) -> None:
        super().__init__()
        self.model = model
        self.leds = model.led_indices(leds)
        self._optics: dict[Any, TorchOptics] = {}

    def forward(self, x: Tensor, leds: LEDs = None) -> Tensor:
        """Intensities of shape (…, LEDs, rows, columns) for x of shape (…, *model.x_shape)."""
        shape = self.model.x_shape
        if not isinstance(x, torch.Tensor) or tuple(x.shape[-len(shape) :]) != shape:
            came = f"shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(type(x).__name__)
            raise InvalidInputError(f"a tensor whose last dimensions are {shape} was expected, got {came}")
        optics = self._on(x.device)
        sources, bounds = self.model.sources.of(self.leds if leds is None else self.model.led_indices(leds))
        return optics.intensities(optics.seen.of(optics.seen.object(x.to(optics.real))), sources, bounds)

    def extra_repr(self) -> str:
        return f"{len(self.leds)} of the LEDs of {self.model!r}"

    def _on(self, device: Any) -> TorchOptics:
        if device not in self._optics:
            self._optics[device] = TorchOptics(self.model, device)
        return self._optics[device]
