"""Takes LEDs in groups through the compiled loop, and owns the memory that this needs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity.losses import Loss
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.parallel import run_sliced

# LEDs whose contributions wait in memory before they are added up, in order, to the object's spectrum: enough that
# handing work to the threads costs little, few enough that memory does not grow with the minibatch.
GROUP = 64


class Contributions(NamedTuple):
    """What a group of LEDs adds to a gradient, on its way there.

    ``boxes[b]`` is what ``leds[b]`` adds to the derivative of d by the object's spectrum: with the weight
    ``weights[b]``, on the support box.
    """

    model: ForwardModel
    loss: Loss
    spectrum: ComplexArray
    leds: NDArray[np.int64]
    weights: NDArray[np.float64]
    boxes: ComplexArray


Observer = Callable[[Contributions], None]
"""Whoever wants to learn from a gradient while it is computed: a calibration of the pupil."""

Indexed = tuple[NDArray[Any], NDArray[np.int64]]
"""(stack, index): ``stack[index[b]]`` belongs to the b-th LED of a group."""


class _Buffers(threading.local):
    """Scratch memory, kept from call to call (fresh pages would cost a third of a small gradient), one set a thread."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        array = self.arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self.arrays[name] = np.empty(shape, dtype)
        return array


class LEDPipeline:
    """Misfits of LEDs and, if wanted, the gradient of their weighted sum.

    Threads take different LEDs of a group and write their boxes side by side; then they take different *rows* of the
    object's spectrum and add the boxes to it in the order of the LEDs. Every sum has one order, so the result does not
    depend on the number of threads.
    """

    def __init__(self, model: ForwardModel) -> None:
        self.model = model
        self._buffers = _Buffers()

    def run(
        self,
        x: RealArray,
        leds: NDArray[np.int64],
        weights: NDArray[np.float64],
        frames_of: Callable[[NDArray[np.int64]], Indexed],
        masks_of: Callable[[NDArray[np.int64]], Indexed],
        loss: Loss,
        *,
        with_gradient: bool,
        observer: Observer | None = None,
    ) -> tuple[NDArray[np.float64], RealArray | None]:
        """(d_b for each LED, ∇ Σ_b weights[b] d_b or None)."""
        from fouriscope.fidelity.kernels import led_gradients
        from fouriscope.forward.kernels import add_boxes

        model, kind = self.model, self.model.complex_dtype
        transmittance = model.object.transmittance(
            model.check_x(x), out=self._buffers("transmittance", model.object_shape, kind)
        )
        spectrum = model.spectrum(transmittance, out=self._buffers("spectrum", model.object_shape, kind))
        if with_gradient:
            derivative = self._buffers("derivative", model.object_shape, kind)
            derivative[...] = 0
        boxes = self._buffers("boxes", (GROUP, *model.pupils.box_shape), kind)
        misfits = np.empty(len(leds))

        for first in range(0, len(leds), GROUP):
            group = slice(first, first + GROUP)
            rows, columns = model.box_rows[leds[group]], model.box_columns[leds[group]]
            arguments = (
                *(spectrum, *model.pupils(leds[group]), rows, columns),
                *(*model.geometry.grid_shape, model.geometry.margin),
                *(*frames_of(leds[group]), *masks_of(leds[group]), weights[group]),
                *(loss.code, loss.epsilon, with_gradient, boxes, misfits[group]),
            )
            run_sliced(_bound(led_gradients, arguments), len(rows))
            if with_gradient:
                run_sliced(_bound(add_boxes, (boxes, rows, columns, len(rows), derivative)), model.object_shape[0])
                if observer is not None:
                    observer(Contributions(model, loss, spectrum, leds[group], weights[group], boxes[: len(rows)]))
        if not with_gradient:
            return misfits, None
        return misfits, model.pull_back(transmittance, model.inverse_spectrum(derivative, out=derivative))


def _bound(kernel: Callable[..., None], arguments: tuple[Any, ...]) -> Callable[[int, int], None]:
    """The kernel with everything but its slice."""
    return lambda start, stop: kernel(*arguments, start, stop)
