"""Frames and masks on a device: uploaded once where they fit, otherwise with each group. Imports torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from fouriscope.fidelity.pipeline import Measurements
from fouriscope.forward.torch_optics import TorchOptics
from fouriscope.forward.torch_spectra import Workspace
from fouriscope.forward.torch_threads import Tensor

DataOf = Callable[[NDArray[np.int64]], Measurements]
Take = Callable[[Workspace], tuple[Tensor, Tensor | None]]


class TorchFrames:
    """y_j and masks of LEDs as tensors. With ``keep`` each frame travels to the device once."""

    def __init__(self, optics: TorchOptics, *, own_masks: bool, keep: bool) -> None:
        self.optics, self.own_masks, self.keep = optics, own_masks, keep
        self._known = np.zeros(len(optics.model), bool)
        self._frames: Tensor | None = None
        self._masks: Tensor | None = None
        self._common: Tensor | None = None
        self._knows_common = False

    def forget(self, leds: NDArray[np.int64]) -> None:
        """Frames of ``leds`` have changed: they are uploaded again when they are wanted."""
        self._known[leds] = False

    def __call__(self, leds: NDArray[np.int64], data_of: DataOf) -> Take:
        """What gives (frames, masks) of ``leds``; no masks where every pixel counts. Here they are uploaded, if they
        are not there; taking them out of what is kept is left to the thread that wants them."""
        if not self.keep:
            uploaded = self._upload(data_of(leds))
            return lambda _: uploaded
        if not self._known[leds].all():
            missing = np.unique(leds[~self._known[leds]])
            frames, masks = self._upload(data_of(missing))
            places = self.optics.upload(missing)
            self._frames = self._kept(self._frames, frames)
            self._frames[places] = frames
            if self.own_masks and masks is not None:
                self._masks = self._kept(self._masks, masks)
                self._masks[places] = masks
            self._known[missing] = True
        return lambda space: self._taken(leds, space)

    def _taken(self, leds: NDArray[np.int64], space: Workspace) -> tuple[Tensor, Tensor | None]:
        assert self._frames is not None
        places = self.optics.upload(leds)
        room = self.optics.room(space, "frames", (len(leds), *self._frames.shape[1:]), self._frames.dtype)
        masks = self._common if self._masks is None else self._masks.index_select(0, places)
        return torch.index_select(self._frames, 0, places, out=room), masks

    def _kept(self, stack: Tensor | None, like: Tensor) -> Tensor:
        if stack is not None:
            return stack
        return torch.empty((len(self._known), *like.shape[1:]), dtype=like.dtype, device=like.device)

    def _upload(self, data: Measurements) -> tuple[Tensor, Tensor | None]:
        frames, frame_index, masks, mask_index = data
        uploaded = self.optics.upload(frames[frame_index], self.optics.real)
        if self.own_masks:
            return uploaded, self.optics.upload(masks[mask_index], self.optics.real)
        if not self._knows_common:  # None stands for all ones
            self._common = None if masks.all() else self.optics.upload(masks[0], self.optics.real)
            self._knows_common = True
        return uploaded, self._common
