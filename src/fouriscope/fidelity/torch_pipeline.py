"""Misfits and gradients by torch: groups of LEDs through batched FFTs on a device. Importing this module imports torch.

The estimate travels to the device and the gradient back, once for each gradient. Frames, pupils and everything that is
computed in between stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fouriscope.acquisition.byte_sizes import format_bytes
from fouriscope.acquisition.machine_memory import memory_available
from fouriscope.errors import InsufficientMemoryError
from fouriscope.fidelity.array_losses import Pixels, pixels_of
from fouriscope.fidelity.losses import Loss
from fouriscope.fidelity.pipeline import Contributions, Measurements, Observer
from fouriscope.fidelity.torch_frames import TorchFrames
from fouriscope.fidelity.torch_memory import CARD_FIELDS, CPU_FIELDS, Shares, shares, torch_memory
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.forward.torch_optics import Tensor, TorchOptics, pull_back, transmittance
from fouriscope.optics.sources import SourceGroup
from fouriscope.parallel import thread_count

# Of a device's free memory, what is used where [engine] has no ``memory``.
SHARE_OF_FREE = 0.75


class TorchPipeline:
    """The pipeline of the engine "torch": see :class:`fouriscope.fidelity.pipeline.Pipeline`."""

    def __init__(self, model: ForwardModel) -> None:
        self.engine = model.engine
        self.optics = TorchOptics(model, model.engine.device)
        self.frames = TorchFrames(self.optics, keep=False)
        self._shares: Shares | None = None

    @property
    def model(self) -> ForwardModel:
        return self.optics.model

    @model.setter
    def model(self, model: ForwardModel) -> None:
        self.optics.use(model)

    def forget(self, leds: NDArray[np.int64]) -> None:
        self.frames.forget(leds)

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
        """(d_b for each LED, ∇ Σ_b weights[b] d_b or None). Where memory runs out, groups are halved."""
        x = self.model.check_x(x)
        while True:
            group = self._shares_of(leds, data_of).group
            try:
                with torch.no_grad(), _as_asked(self.engine.deterministic, self.optics.device):
                    return self._run(x, leds, weights, data_of, loss, group, with_gradient, observer)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                self._retreat(group, error)

    def _retreat(self, group: int, error: BaseException) -> None:
        """Half the group, frames no longer kept; or a sentence, where a group is one source."""
        if group <= self.model.sources.most:
            raise InsufficientMemoryError(
                f'device "{self.engine.device}" has no room for a group of {group} LEDs beside an object of '
                '{} × {} pixels; give a smaller object, or use the engine "numba" on the CPU'.format(
                    *self.model.object_shape
                )
            ) from error
        if self.frames.keep:
            self.frames = TorchFrames(self.optics, keep=False)
        self._shares = Shares(max(group // 2, self.model.sources.most), keeps_frames=False)
        if self.optics.device.type == "cuda":
            torch.cuda.empty_cache()

    def _shares_of(self, leds: NDArray[np.int64], data_of: Callable[..., Measurements]) -> Shares:
        """Found when the first gradient is asked for: by then it is known whether frames have masks of their own."""
        if self._shares is None:
            geometry, itemsize = self.model.geometry, self.model.dtype.itemsize
            own_masks = len(data_of(leds[:2])[2]) > 1
            needed = torch_memory(
                geometry, channels=len(self.model.object.channels), itemsize=itemsize, own_masks=own_masks
            )
            fields = CPU_FIELDS if self.optics.device.type == "cpu" else CARD_FIELDS
            field = int(np.prod(geometry.grid_shape)) * 2 * itemsize
            limit = self.engine.memory or int(SHARE_OF_FREE * free_memory(self.optics.device))
            self._shares = shares(needed, limit, fields, field, self.model.sources.most)
            least = needed.total(self._shares.group, keeps_frames=False)
            if self.engine.memory is not None and least > limit:
                raise InsufficientMemoryError(
                    f"engine.memory of {format_bytes(limit)} is less than the {format_bytes(least)} that this object "
                    "and one group of LEDs need; give more, or a smaller object"
                )
            self.frames = TorchFrames(self.optics, keep=self._shares.keeps_frames)
        return self._shares

    def _run(
        self,
        x: RealArray,
        leds: NDArray[np.int64],
        weights: NDArray[np.float64],
        data_of: Callable[[NDArray[np.int64]], Measurements],
        loss: Loss,
        size: int,
        with_gradient: bool,
        observer: Observer | None,
    ) -> tuple[NDArray[np.float64], RealArray | None]:
        optics, model, pixels = self.optics, self.model, pixels_of(loss)
        o = transmittance(model.object.name, optics.upload(x))
        spectrum = optics.spectrum(o)
        total = optics.empty_total() if with_gradient else None
        misfits = []
        on_host = _host_spectrum(spectrum, model) if observer is not None else None
        for group in model.sources.groups(leds, size):
            frames, masks = self.frames(leds[group.part], data_of)
            d, boxes = group_gradient(
                *(optics, spectrum, group, frames, masks, pixels, loss.epsilon),
                weights[group.part] if with_gradient else None,
            )
            misfits.append(d)
            if total is None:
                continue
            optics.add(boxes, group.sources, total)
            if observer is not None:
                counts = np.diff(group.bounds)
                owners, worth = (np.repeat(values[group.part], counts) for values in (leds, weights))
                seen = boxes.resolve_conj().cpu().numpy()
                observer(Contributions(model, loss, on_host, owners, worth, seen, group.sources))  # type: ignore[arg-type]
        values = torch.cat(misfits).cpu().numpy().astype(np.float64)
        if total is None:
            return values, None
        del spectrum
        gradient = pull_back(model.object.name, o, optics.folded(total))
        return values, gradient.cpu().numpy()


def group_gradient(
    optics: TorchOptics,
    spectrum: Tensor,
    group: SourceGroup,
    frames: Tensor,
    masks: Tensor | None,
    pixels: Pixels,
    epsilon: float,
    weights: NDArray[np.float64] | None,
) -> tuple[Tensor, Tensor]:
    """(d_b, boxes of each source) of a group of LEDs; no boxes without weights. All of it on the device."""
    pupils = optics.pupils(group.sources)
    fields = optics.fields(spectrum, group.sources, pupils)
    window = optics.in_window(fields)
    intensity = optics.summed(window.real.square() + window.imag.square(), group.bounds)
    d, q = pixels(torch, intensity, frames, epsilon)
    del intensity
    if masks is not None:
        d, q = d * masks, q * masks
    wide = torch.float32 if optics.device.type == "mps" else torch.float64
    misfits = d.sum(dim=(-2, -1), dtype=wide)
    if weights is None:
        return misfits, None
    del d
    q = q * optics.upload(weights, optics.real)[:, None, None]
    counts = np.diff(group.bounds)
    if len(counts) < len(fields):
        q = q.repeat_interleave(optics.upload(counts), dim=0, output_size=len(fields))
    if optics.margin:
        seen = torch.zeros_like(fields)
        optics.in_window(seen).copy_(window * q)
        fields = seen
    else:
        fields *= q
    boxes = optics.boxes(fields, pupils)
    left_out = np.repeat(weights == 0, counts)
    if left_out.any():  # even if it holds NaN
        boxes[optics.upload(np.flatnonzero(left_out))] = 0
    return misfits, boxes


def free_memory(device: Any) -> int:
    """Bytes that are free on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.current_allocated_memory())
    return memory_available()


def _host_spectrum(spectrum: Tensor, model: ForwardModel) -> NDArray[Any]:
    rows, columns = model.object_shape
    scaled: NDArray[Any] = (spectrum[:rows, :columns] * (rows * columns)).cpu().numpy()
    return scaled


def _is_out_of_memory(error: BaseException) -> bool:
    """Torch on the CPU raises a plain RuntimeError where memory ends."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or "can't allocate memory" in str(error) or "not enough memory" in str(error)


@contextmanager
def _as_asked(deterministic: bool, device: Any) -> Iterator[None]:
    """As many threads as fouriscope uses, and deterministic algorithms if they are asked for; then as before."""
    strict, threads = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    wanted = thread_count() if device.type == "cpu" else threads
    if wanted != threads:
        torch.set_num_threads(wanted)
    if deterministic and not strict:
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        if deterministic and not strict:
            torch.use_deterministic_algorithms(False)
        if wanted != threads:
            torch.set_num_threads(threads)
