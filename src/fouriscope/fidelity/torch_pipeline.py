"""Misfits and gradients by torch: groups of LEDs through batched FFTs on a device. Importing this module imports torch.

An estimate that is an array travels to the device and its gradient back, once for each gradient. Frames, pupils and
everything that is computed in between stay there.
"""

from __future__ import annotations

from collections.abc import Callable
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
from fouriscope.fidelity.torch_frames import Take, TorchFrames
from fouriscope.fidelity.torch_memory import (
    CARD_FIELDS,
    CPU_FIELDS,
    Shares,
    TorchMemory,
    even_groups,
    shares,
    torch_memory,
)
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.forward.torch_optics import TorchOptics, squared
from fouriscope.forward.torch_spectra import Workspace
from fouriscope.forward.torch_threads import Tensor, as_asked, in_turn
from fouriscope.freed_memory import handle_freed_memory
from fouriscope.optics.sources import SourceGroup
from fouriscope.parallel import thread_count

# Of a device's free memory, what is used where [engine] has no ``memory``.
SHARE_OF_FREE = 0.75

# On the CPU what is freed is kept if there is so much more room than the formula says, because then a process grows.
ROOMY = 1.5


class TorchPipeline:
    """The pipeline of the engine "torch": see :class:`fouriscope.fidelity.pipeline.Pipeline`."""

    def __init__(self, model: ForwardModel, *, own_masks: bool) -> None:
        self.engine, self.own_masks = model.engine, own_masks
        self.optics = TorchOptics(model, model.engine.device)
        self.frames = TorchFrames(self.optics, own_masks=own_masks, keep=False)
        self._space = Workspace()
        self._keeps_freed = self.optics.device.type == "cpu"
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
        """(d_b for each LED, ∇ Σ_b weights[b] d_b or None). Where memory runs out, groups are halved.

        The gradient of an x that lies on the device stays there.
        """
        x = x if isinstance(x, torch.Tensor) else self.model.check_x(x)
        while True:
            group = self._group_size(leds)
            try:
                with torch.no_grad(), as_asked(self.engine.deterministic, self.optics.device):
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
            self.frames = TorchFrames(self.optics, own_masks=self.own_masks, keep=False)
        self._shares = Shares(max(group // 2, self.model.sources.most), keeps_frames=False)
        if self.optics.device.type == "cuda":
            torch.cuda.empty_cache()

    def _group_size(self, leds: NDArray[np.int64]) -> int:
        """Sources of a group; on the CPU such that threads get as many groups as each other."""
        size = self._found_shares().group
        if self.optics.device.type != "cpu":
            return size
        return even_groups(int(np.diff(self.model.sources.offsets)[leds].sum()), size, thread_count())

    def needed(self) -> TorchMemory:
        """What the device needs, by the formula."""
        model, on_cpu = self.model, self.optics.device.type == "cpu"
        return torch_memory(
            model.geometry,
            channels=len(model.object.channels),
            itemsize=model.dtype.itemsize,
            own_masks=self.own_masks,
            freed=2 if self._keeps_freed else 1,
            at_once=min((thread_count() if on_cpu else 1) / self.optics.seen.pieces, 1.0),
        )

    def _found_shares(self) -> Shares:
        """How memory is used: found when the first gradient is asked for, from what is free then."""
        if self._shares is None:
            on_cpu = self.optics.device.type == "cpu"
            field = int(np.prod(self.model.geometry.grid_shape)) * 2 * self.model.dtype.itemsize
            limit = self.engine.memory or int(SHARE_OF_FREE * free_memory(self.optics.device))
            side_by_side = thread_count() if on_cpu else 1
            wanted = (CPU_FIELDS if on_cpu else CARD_FIELDS) // field
            if on_cpu:
                most = self.needed().total(side_by_side * max(wanted, self.model.sources.most), keeps_frames=True)
                self._keeps_freed = limit >= ROOMY * most
                handle_freed_memory(keep=self._keeps_freed)
            needed = self.needed()
            self._shares = shares(needed, limit, wanted, self.model.sources.most, side_by_side)
            least = needed.total(self._shares.group * side_by_side, keeps_frames=False)
            if self.engine.memory is not None and least > limit:
                raise InsufficientMemoryError(
                    f"engine.memory of {format_bytes(limit)} is less than the {format_bytes(least)} that this object "
                    "and one group of LEDs need; give more, or a smaller object"
                )
            self.frames = TorchFrames(self.optics, own_masks=self.own_masks, keep=self._shares.keeps_frames)
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
        uploaded = x if isinstance(x, torch.Tensor) else optics.upload(x)
        o, spectrum = optics.seen.at(self._space, uploaded)
        total = optics.seen.zeros(self._space) if with_gradient else None
        misfits, worth, common = [], weights.astype(model.dtype), 1.0
        if observer is None and len(weights) and weights[0] > 0 and (weights == weights[0]).all():
            worth, common = np.ones_like(worth), float(weights[0])  # once for the sum, not for every pixel
        on_host = torch.fft.fft2(o).cpu().numpy() if observer is not None else None

        groups = [(group, optics.load_pupils(group.sources)) for group in model.sources.groups(leds, size)]

        def load(item: tuple[SourceGroup, Callable[..., Tensor]]) -> tuple[SourceGroup, Callable[..., Tensor], Take]:
            return *item, self.frames(leds[item[0].part], data_of)

        def work(loaded: tuple[SourceGroup, Callable[..., Tensor], Take]) -> tuple[Tensor, Tensor]:
            group, pupils, take = loaded
            data = (pupils(self._space), *take(self._space))
            weighed = worth[group.part] if with_gradient else None
            return group_gradient(optics, self._space, spectrum, group, *data, pixels, loss.epsilon, weighed)

        def use(item: tuple[SourceGroup, Any], result: tuple[Tensor, Tensor]) -> None:
            (group, _), (d, boxes) = item, result
            misfits.append(d)
            if total is None:
                return
            optics.add(boxes, group.sources, total)
            if observer is not None:
                counts = np.diff(group.bounds)
                owners, shares = (np.repeat(values[group.part], counts) for values in (leds, weights))
                seen = boxes.cpu().numpy()
                observer(Contributions(model, loss, on_host, owners, shares, seen, group.sources))  # type: ignore[arg-type]

        in_turn(groups, load, work, use, optics.device)
        values = torch.cat(misfits).cpu().numpy().astype(np.float64)
        if total is None:
            return values, None
        gradient = optics.seen.gradient(self._space, o, total.mul_(common))
        return values, gradient if uploaded is x else gradient.cpu().numpy()


def group_gradient(
    optics: TorchOptics,
    space: Workspace,
    spectrum: Tensor,
    group: SourceGroup,
    pupils: Tensor,
    frames: Tensor,
    masks: Tensor | None,
    pixels: Pixels,
    epsilon: float,
    weights: NDArray[np.float64] | None,
) -> tuple[Tensor, Tensor]:
    """(d_b, boxes of each source) of a group of LEDs; no boxes without weights. All of it on the device."""
    fields = optics.fields_into(space, spectrum, group.sources, pupils)
    window = optics.in_window(fields)
    parts = optics.room(space, "parts", (*window.shape, 2), optics.real)
    lights = optics.room(space, "lights", tuple(window.shape), optics.real)
    intensity = optics.summed(squared(window, parts, out=lights), group.bounds)
    d, q = pixels(torch, intensity, frames, epsilon)
    if masks is not None:
        d, q = d.mul_(masks), q.mul_(masks)
    wide = torch.float32 if optics.device.type == "mps" else torch.float64
    misfits = d.sum(dim=-1).sum(dim=-1, dtype=wide)  # a row in the precision of the data, as the compiled loops do
    if weights is None:
        return misfits, None
    del d, intensity
    if (weights != 1).any():
        q = q.mul_(optics.upload(weights, optics.real)[:, None, None])
    if len(weights) < len(fields):
        q = q.repeat_interleave(optics.upload(np.diff(group.bounds)), dim=0, output_size=len(fields))
    factors = torch.view_as_complex(parts).copy_(q)
    del q
    weighed = factors
    if optics.margin:  # zero where nothing is measured
        weighed = optics.room(space, ("weighed", optics.margin), tuple(fields.shape))
    torch.mul(window, factors, out=optics.in_window(weighed))
    del fields, window  # the next transform takes their memory
    boxes = optics.boxes(space, weighed, pupils)
    if not weights.all():  # left out, even if it holds NaN
        left_out = np.repeat(weights == 0, np.diff(group.bounds))
        boxes[optics.upload(np.flatnonzero(left_out))] = 0
    return misfits, boxes


def free_memory(device: Any) -> int:
    """Bytes that are free on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.current_allocated_memory())
    return memory_available()


def _is_out_of_memory(error: BaseException) -> bool:
    """Torch on the CPU raises a plain RuntimeError where memory ends."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or "can't allocate memory" in str(error) or "not enough memory" in str(error)
