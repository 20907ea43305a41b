"""The loop over LEDs on the host, as the engine says: compiled for the loss, or in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fouriscope.engines import Engine
from fouriscope.fidelity.losses import Loss

Kernel = Callable[..., None]


def gradient_kernels(engine: Engine, loss: Loss, *, points: bool) -> tuple[Kernel, Kernel]:
    """(misfits and boxes of LEDs, boxes added to the object's spectrum)."""
    if engine.is_compiled:
        from fouriscope.fidelity.kernels import for_loss, led_gradients, sum_gradients
        from fouriscope.forward.kernels import add_boxes

        return for_loss(led_gradients if points else sum_gradients, type(loss)), add_boxes
    from fouriscope.fidelity import plain_kernels
    from fouriscope.fidelity.array_losses import pixels_of
    from fouriscope.forward.plain_kernels import add_boxes as add_plainly

    plain = plain_kernels.led_gradients if points else plain_kernels.sum_gradients
    return partial(plain, pixels_of(loss)), add_plainly
