"""Frames and masks on a device: uploaded once where they fit, otherwise with each group. Imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fouriscope.fidelity.pipeline import Measurements
from fouriscope.forward.torch_optics import Tensor, TorchOptics

DataOf = Callable[[NDArray[np.int64]], Measurements]


class TorchFrames:
    """y_j and masks of LEDs as tensors. With ``keep`` each frame travels to the device once."""

    def __init__(self, optics: TorchOptics, *, keep: bool) -> None:
        self.optics, self.keep = optics, keep
        self._known = np.zeros(len(optics.model), bool)
        self._frames: Tensor | None = None
        self._masks: Tensor | None = None
        self._common: tuple[NDArray[Any], Tensor | None] | None = None

    def forget(self, leds: NDArray[np.int64]) -> None:
        """Frames of ``leds`` have changed: they are uploaded again when they are wanted."""
        self._known[leds] = False

    def __call__(self, leds: NDArray[np.int64], data_of: DataOf) -> tuple[Tensor, Tensor | None]:
        """(frames, masks) of ``leds``; no masks where every pixel counts."""
        if not self.keep:
            return self._upload(data_of(leds))
        missing = np.unique(leds[~self._known[leds]])
        if len(missing):
            frames, masks = self._upload(data_of(missing))
            places = self.optics.upload(missing)
            self._frames = self._kept(self._frames, frames)
            self._frames[places] = frames
            if masks is not None and masks.ndim == 3:
                self._masks = self._kept(self._masks, masks)
                self._masks[places] = masks
            self._known[missing] = True
        assert self._frames is not None
        places = self.optics.upload(leds)
        own = self._masks[places] if self._masks is not None else self._common[1] if self._common else None
        return self._frames[places], own

    def _kept(self, stack: Tensor | None, like: Tensor) -> Tensor:
        if stack is not None:
            return stack
        return torch.empty((len(self._known), *like.shape[1:]), dtype=like.dtype, device=like.device)

    def _upload(self, data: Measurements) -> tuple[Tensor, Tensor | None]:
        frames, frame_index, masks, mask_index = data
        uploaded = self.optics.upload(frames[frame_index], self.optics.real)
        if len(masks) > 1 or mask_index.any() or not self._is_common(masks):
            return uploaded, self.optics.upload(masks[mask_index], self.optics.real)
        assert self._common is not None
        return uploaded, self._common[1]

    def _is_common(self, masks: NDArray[Any]) -> bool:
        """Whether it is the mask of all frames, which is uploaded when it is first seen; None stands for all ones."""
        if self._common is None:
            tensor = None if masks.all() else self.optics.upload(masks[0], self.optics.real)
            self._common = masks, tensor
        return self._common[0] is masks
