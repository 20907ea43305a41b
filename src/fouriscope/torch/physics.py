"""The microscope with the methods of a ``deepinv.physics`` operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.grids import LEDs
from fouriscope.forward.torch_threads import Tensor
from fouriscope.torch.microscope import Microscope


@door_class
class Physics(torch.nn.Module):  # type: ignore[misc]
    """y = N(A(x)): images of shape (batch, channels, rows, columns) to frames of shape (batch, LEDs, rows, columns).

    The methods are those that deepinv's data fidelities, solvers and losses call: ``A``, ``A_vjp``, ``forward``,
    ``noise``, ``sensor``. deepinv itself is not needed. If it can be imported, :meth:`as_deepinv` returns a
    ``deepinv.physics.Physics``. A is not linear in x, so there is no ``A_adjoint``, but A_vjp(x, v) = (∂A/∂x)ᵀ v.

    Parameters
    ----------
    model, leds
        As in :class:`Microscope`. Channels are those of the object: one for "phase", two for "complex" and "wave".
    noise_model
        A function of the frames, such as ``deepinv.physics.PoissonNoise``. By default, there is no noise.

    Examples
    --------
    A gradient step of the squared misfit:

    >>> import torch, fouriscope as fs
    >>> from fouriscope.torch import Physics
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), (32, 32))
    >>> physics = Physics(model)
    >>> x = torch.zeros(2, 1, *model.object_shape)
    >>> y = physics(x + 0.1)
    >>> y.shape
    torch.Size([2, 25, 32, 32])
    >>> step = physics.A_vjp(x, 2 * (physics.A(x) - y))
    >>> step.shape == x.shape
    True
    """

    def __init__(self, model: ForwardModel, leds: LEDs = None, noise_model: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.microscope = Microscope(model, leds)
        self.channels = len(model.object.channels)
        self.noise_model = noise_model

    def A(self, x: Tensor, **_: Any) -> Tensor:  # noqa: N802 - deepinv's name
        """Frames without noise."""
        shape = (self.channels, *self.microscope.model.object_shape)
        if not isinstance(x, torch.Tensor) or tuple(x.shape[1:]) != shape:
            came = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
            raise InvalidInputError(f"a tensor of shape (batch, {', '.join(map(str, shape))}) was expected, got {came}")
        return self.microscope(x[:, 0] if self.microscope.model.object.name == "phase" else x)

    def A_vjp(self, x: Tensor, v: Tensor) -> Tensor:  # noqa: N802 - deepinv's name
        """(∂A/∂x)ᵀ v at x."""
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            return torch.autograd.grad(self.A(at), at, v)[0]

    def noise(self, y: Tensor, **options: Any) -> Tensor:
        """N(y)."""
        return y if self.noise_model is None else self.noise_model(y, **options)

    def sensor(self, y: Tensor) -> Tensor:
        """What the camera does to the light besides noise: nothing here."""
        return y

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        """N(A(x))."""
        return self.sensor(self.noise(self.A(x), **options))

    def as_deepinv(self) -> Any:
        """The same as a ``deepinv.physics.Physics``. Raises if deepinv cannot be imported."""
        try:
            import deepinv
        except (ImportError, RuntimeError, OSError, AttributeError) as error:
            raise InvalidInputError(
                f"deepinv cannot be imported ({error}); install a torchvision that matches your torch, or use this "
                "object as it is: it has the same methods"
            ) from error
        return deepinv.physics.Physics(A=self.A, noise_model=self.noise_model)
