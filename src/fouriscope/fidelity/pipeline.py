"""Takes LEDs in groups through the compiled loop, and owns the memory that this needs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity.loops import gradient_kernels
from fouriscope.fidelity.losses import Loss
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.optics import Geometry
from fouriscope.parallel import run_sliced

# LEDs whose contributions wait in memory before they are added up, in order, to the object's spectrum: enough that
# handing work to the threads costs little, few enough that memory does not grow with the minibatch or, for large
# frames, beyond some bytes. Sums are in the order of the LEDs, so the result does not depend on it.
GROUP = 64
GROUP_BYTES = 24 * 2**20
GROUP_AT_LEAST = 8


class Contributions(NamedTuple):
    """What a group of LEDs adds to a gradient, on its way there.

    ``boxes[b]`` is what ``sources[b]``, one of the sources of ``leds[b]``, adds to the derivative of d by the object's
    spectrum: with the weight ``weights[b]`` of its frame, on the support box. All sources of a frame are in one group.
    An LED that is a point has one source, of its own number.

    Attributes
    ----------
    model, loss
        Those of the data fidelity.
    spectrum
        The object's spectrum at the estimate.
    leds, weights
        For each box, the LED that it belongs to and the weight of its frame.
    boxes
        What each source adds to the derivative of d by the spectrum, on the support box.
    sources
        The number of the source of each box.
    """

    model: ForwardModel
    loss: Loss
    spectrum: ComplexArray
    leds: NDArray[np.int64]
    weights: NDArray[np.float64]
    boxes: ComplexArray
    sources: NDArray[np.int64]


Observer = Callable[[Contributions], None]
"""Called with the contributions to a gradient while it is computed, such as a calibration of the pupil."""

Measurements = tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]]
"""(frames, index, masks, index): ``frames[index[b]]`` and ``masks[index[b]]`` belong to the b-th LED of a group."""


def group_size(geometry: Geometry, itemsize: int) -> int:
    """LEDs in flight: 64, or for large frames as many as fit into :data:`GROUP_BYTES` with their boxes, at least 8.

    >>> from fouriscope.paper import paper_model
    >>> group_size(paper_model().geometry, itemsize=4)
    64
    """
    rows, columns = geometry.frame_shape
    box = geometry.support_box
    one = rows * columns * itemsize + 2 * box.height * box.width * 2 * itemsize  # a frame, the box, and its pupil
    return min(GROUP, max(GROUP_AT_LEAST, GROUP_BYTES // one))


class Pipeline(Protocol):
    """What an engine does: misfits of LEDs at an estimate and, if wanted, the gradient of their weighted sum.

    A data fidelity has one. ``model`` may be set to a revised model of the same frames and object.
    """

    model: ForwardModel

    def run(
        self,
        x: RealArray,
        leds: NDArray[np.int64],
        weights: NDArray[np.float64],
        data_of: Callable[[NDArray[np.int64]], Measurements],
        loss: Loss,
        *,
        with_gradient: bool,
        observer: Observer | None = None,
    ) -> tuple[NDArray[np.float64], RealArray | None]:
        """(d_b for each LED, ∇ Σ_b weights[b] d_b or None); ``observer`` is shown each group on its way."""

    def forget(self, leds: NDArray[np.int64]) -> None:
        """The frames of ``leds`` have changed: keep nothing of them."""


def make_pipeline(model: ForwardModel, *, own_masks: bool) -> Pipeline:
    """The pipeline of the model's engine; ``own_masks`` says whether each frame has a mask of its own."""
    if model.engine.name == "torch":
        from fouriscope.fidelity.torch_pipeline import TorchPipeline

        return TorchPipeline(model, own_masks=own_masks)
    return LEDPipeline(model)


class _Buffers(threading.local):
    """Scratch memory per thread, kept from call to call (fresh pages would cost a third of a small gradient)."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        array = self.arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self.arrays[name] = np.empty(shape, dtype)
        return array


class LEDPipeline:
    """The :class:`Pipeline` of loops on the host, compiled or plain.

    Threads take different LEDs of a group and write their boxes side by side; then they take different *rows* of the
    object's spectrum and add the boxes to it in the order of the LEDs. Every sum has one order, so the result does not
    depend on the number of threads.
    """

    def __init__(self, model: ForwardModel) -> None:
        self.model = model
        self._buffers = _Buffers()

    def forget(self, leds: NDArray[np.int64]) -> None:
        """Nothing is kept of any frame."""

    def run(
        self,
        x: RealArray,
        leds: NDArray[np.int64],
        weights: NDArray[np.float64],
        data_of: Callable[[NDArray[np.int64]], Measurements],
        loss: Loss,
        *,
        with_gradient: bool,
        observer: Observer | None = None,
    ) -> tuple[NDArray[np.float64], RealArray | None]:
        """(d_b for each LED, ∇ Σ_b weights[b] d_b or None)."""
        model, kind = self.model, self.model.complex_dtype
        transmittance = model.object.transmittance(
            model.check_x(x), self._buffers("transmittance", model.object_shape, kind), model.engine
        )
        spectrum = model.spectrum(transmittance, out=self._buffers("spectrum", model.object_shape, kind))
        if with_gradient:
            derivative = self._buffers("derivative", model.object_shape, kind)
            derivative[...] = 0
        size = max(group_size(model.geometry, model.dtype.itemsize), model.sources.most)
        boxes = self._buffers("boxes", (size, *model.pupils.box_shape), kind)
        misfits = np.empty(len(leds))
        points = model.sources.are_points
        kernel, add_boxes = gradient_kernels(model.engine, loss, points=points)

        for part, sources, bounds in model.sources.groups(leds, size):
            rows, columns = model.box_rows[sources], model.box_columns[sources]
            arguments = (
                *(spectrum, *model.pupils(sources), rows, columns, *(() if points else (bounds,))),
                *(*model.geometry.grid_shape, model.geometry.margin),
                *(*data_of(leds[part]), weights[part]),
                *(loss.epsilon, with_gradient, boxes, misfits[part]),
            )
            work = _bound(kernel, arguments)
            run_sliced(work if points else _by_source(work, bounds), len(sources))
            if with_gradient:
                run_sliced(_bound(add_boxes, (boxes, rows, columns, len(rows), derivative)), model.object_shape[0])
                if observer is not None:
                    counts = np.diff(bounds)
                    owners, worth = np.repeat(leds[part], counts), np.repeat(weights[part], counts)
                    observer(Contributions(model, loss, spectrum, owners, worth, boxes[: len(rows)], sources))
        if not with_gradient:
            return misfits, None
        return misfits, model.pull_back(transmittance, model.inverse_spectrum(derivative, out=derivative))


def _by_source(work: Callable[[int, int], None], bounds: NDArray[np.int64]) -> Callable[[int, int], None]:
    """``work`` on frames, for slices of their sources: what threads share out is the sources, because they cost."""
    return lambda start, stop: work(int(np.searchsorted(bounds, start)), int(np.searchsorted(bounds, stop)))


def _bound(kernel: Callable[..., None], arguments: tuple[Any, ...]) -> Callable[[int, int], None]:
    """The kernel with everything but its slice."""
    return lambda start, stop: kernel(*arguments, start, stop)
