"""H_m in torch: batches of sources on a device, each step differentiable. Importing this module imports torch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward.model import ForwardModel
from fouriscope.forward.torch_spectra import SeenSpectrum, Workspace
from fouriscope.forward.torch_threads import Tensor

REAL = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
COMPLEX = {np.dtype(np.float32): torch.complex64, np.dtype(np.float64): torch.complex128}


def squared(fields: Tensor, parts: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """|fields|². All parts are squared in one go: a sum that takes every other number is slow enough once."""
    values = torch.view_as_real(fields)
    parts = torch.mul(values, values, out=parts)
    return torch.add(parts[..., 0], parts[..., 1], out=out)


def add_boxes(boxes: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64], total: Tensor) -> None:
    """total += Σ_m S_mᵀ boxes[m], one after the other, so that every sum has one order on every device."""
    shape, strides = boxes.shape[-2:], total.stride()
    if total.device.type == "cpu" and total.dim() == 2:  # in one go: threads that call torch often wait for each other
        height, width = (np.arange(side) * stride for side, stride in zip(shape, strides, strict=True))
        starts = rows * strides[0] + columns * strides[1]
        places = torch.from_numpy(starts[:, None] + (height[:, None] + width).ravel())
        total.view(-1).scatter_add_(0, places.view(-1), boxes.reshape(-1))
        return
    starts = total.storage_offset() + rows * strides[-2] + columns * strides[-1]
    for box, start in zip(boxes.unbind(-3), starts.tolist(), strict=True):
        total.as_strided((*total.shape[:-2], *shape), strides, start).add_(box)


def cropped(
    spectrum: Tensor,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    box: tuple[int, int],
    out: Tensor | None = None,
) -> Tensor:
    """The boxes of sources out of a spectrum."""
    length = spectrum.shape[-1]
    starts = (rows * length + columns)[:, None] + length * np.arange(box[0])
    places = torch.from_numpy(starts.ravel()).to(spectrum.device)
    lines = spectrum.flatten(-2).unfold(-1, box[1], 1)
    flat = None if out is None else out.view(-1, box[1])
    return torch.index_select(lines, -2, places, out=flat).unflatten(-2, starts.shape)


class Crop(torch.autograd.Function):  # type: ignore[misc]
    """:func:`cropped`, and back by :func:`add_boxes`: torch's own derivative of a window would fill a tensor of all
    windows that there are."""

    generate_vmap_rule = False

    @staticmethod
    def forward(spectrum: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64], box: tuple[int, int]) -> Tensor:
        return cropped(spectrum, rows, columns, box)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.shape, (_, ctx.rows, ctx.columns, _) = inputs[0].shape, inputs

    @staticmethod
    def backward(ctx: Any, boxes: Tensor) -> tuple[Tensor | None, ...]:
        total = torch.zeros(ctx.shape, dtype=boxes.dtype, device=boxes.device)
        add_boxes(boxes, ctx.rows, ctx.columns, total)
        return total, None, None, None


class TorchOptics:
    """What H_m needs of a model, on a device: where each source's box lies, the pupils, and the transforms.

    The box lies in the corner of a frame's spectrum, as in the compiled loops, and boxes are cut out of the part of the
    object's spectrum that is seen, from its lowest frequency on, so that none has to be put together at the edges.

    Fields are transformed in two dimensions at once, zeros included. To transform only the columns of a box before the
    rows of its frame, as the compiled loops do, takes half as long again on the CPU: torch has to turn around what is
    between them.
    """

    def __init__(self, model: ForwardModel, device: Any) -> None:
        self.device = torch.device(device)
        if self.device.type == "mps" and model.dtype == np.float64:
            raise InvalidInputError('device "mps" has no double precision: use precision "single", or device="cpu"')
        self.real, self.complex = REAL[model.dtype], COMPLEX[model.dtype]
        self.box: tuple[int, int] = model.pupils.box_shape
        self.use(model)

    def use(self, model: ForwardModel) -> None:
        """Go on with a revised model; pupils that were uploaded are forgotten if it has others."""
        self.model = model
        self.shape, self.grid, self.margin = model.object_shape, model.geometry.grid_shape, model.geometry.margin
        self.box = model.pupils.box_shape
        self.seen = SeenSpectrum(model, self.device, self.real, self.complex)
        # Where boxes begin in what is seen: the lowest of them at 0.
        self._rows, self._columns = (bins - bins.min() for bins in model.geometry.whole_bins.T)
        self._pupils: Tensor | None = None
        self._known = np.zeros(len(model.sources), bool)

    def upload(self, array: NDArray[Any], dtype: Any = None) -> Tensor:
        """An array as a tensor on the device; to a card it goes pinned and without waiting."""
        plain = array if array.flags.carray else np.require(array, requirements=["C", "W"])  # read-only ones are copied
        tensor = torch.from_numpy(plain)
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, dtype, non_blocking=self.device.type == "cuda")

    def pupils(self, sources: NDArray[np.int64]) -> Tensor:
        """√w_m P_m of ``sources``; all are kept on the device where the model keeps them, too."""
        return self.load_pupils(sources)(None)

    def load_pupils(self, sources: NDArray[np.int64]) -> Callable[[Workspace | None], Tensor]:
        """What gives a copy of the pupils of ``sources``. Here those that are kept are evaluated and uploaded, which
        shares out work to threads itself; copying, or evaluating others, is left to the thread that wants them."""
        if not self.model.pupils.all_kept:
            return lambda _: self._evaluated(sources)
        if self._pupils is None:
            self._pupils = torch.empty((len(self.model.sources), *self.box), dtype=self.complex, device=self.device)
        kept = self._pupils
        if not self._known[sources].all():
            missing = np.unique(sources[~self._known[sources]])
            kept[self.upload(missing)] = self._evaluated(missing)
            self._known[missing] = True

        def taken(space: Workspace | None) -> Tensor:
            out = None if space is None else self.room(space, "pupils", (len(sources), *self.box))
            return torch.index_select(kept, 0, self.upload(sources), out=out)

        return taken

    def room(self, space: Workspace, name: Hashable, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Memory that stays, of complex numbers unless told otherwise."""
        return space(name, shape, dtype or self.complex, self.device)

    def _evaluated(self, sources: NDArray[np.int64]) -> Tensor:
        stack, index = self.model.pupils(sources)
        return self.upload(stack[index])

    def fields(self, spectrum: Tensor, sources: NDArray[np.int64], pupils: Tensor) -> Tensor:
        """√w_m H_m o of each source, on the frame's grid, up to a phase ramp that |·|² does not see."""
        boxes = Crop.apply(spectrum, self._rows[sources], self._columns[sources], self.box) * pupils
        return torch.fft.ifft2(boxes, s=self.grid, norm="forward")

    def fields_into(self, space: Workspace, spectrum: Tensor, sources: NDArray[np.int64], pupils: Tensor) -> Tensor:
        """:meth:`fields` without derivatives, padded in memory that stays where it is and zero where it was."""
        (height, width), count = self.box, len(sources)
        boxes = self.room(space, "boxes", (count, height, width))
        cropped(spectrum, self._rows[sources], self._columns[sources], self.box, out=boxes)
        padded = self.room(space, ("padded", self.box), (count, *self.grid))
        torch.mul(boxes, pupils, out=padded[..., :height, :width])
        return torch.fft.ifft2(padded, norm="forward")

    def boxes(self, space: Workspace, fields: Tensor, pupils: Tensor) -> Tensor:
        """P̄ ⊙ F(fields) on the support box: the adjoint of what :meth:`fields` does with boxes. ``pupils`` become P̄."""
        height, width = self.box
        boxes = self.room(space, "boxes", (len(fields), height, width))
        return torch.mul(torch.fft.fft2(fields)[..., :height, :width], pupils.conj_physical_(), out=boxes)

    def add(self, boxes: Tensor, sources: NDArray[np.int64], total: Tensor) -> None:
        """total += Σ_m S_mᵀ boxes[m], in the order of the sources."""
        add_boxes(boxes, self._rows[sources], self._columns[sources], total)

    def in_window(self, fields: Tensor) -> Tensor:
        """The measured window of fields on the frame's grid."""
        margin = self.margin
        return fields[..., margin : self.grid[0] - margin, margin : self.grid[1] - margin]

    def intensities(self, spectrum: Tensor, sources: NDArray[np.int64], bounds: NDArray[np.int64]) -> Tensor:
        """Σ_m |√w_m H_m o|² over the sources of each frame."""
        fields = self.in_window(self.fields(spectrum, sources, self.pupils(sources)))
        return self.summed(squared(fields), bounds)

    def summed(self, values: Tensor, bounds: NDArray[np.int64]) -> Tensor:
        """Values of sources, summed over each frame's."""
        count = len(bounds) - 1
        if count == values.shape[-3]:
            return values
        owners = self.upload(np.repeat(np.arange(count), np.diff(bounds)))
        sums = torch.zeros((*values.shape[:-3], count, *values.shape[-2:]), dtype=values.dtype, device=self.device)
        return sums.index_add(-3, owners, values)
