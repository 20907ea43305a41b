"""H_m in torch: batches of sources on a device, each step differentiable. Importing this module imports torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward.model import ForwardModel
from fouriscope.forward.torch_threads import Tensor

REAL = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
COMPLEX = {np.dtype(np.float32): torch.complex64, np.dtype(np.float64): torch.complex128}


def transmittance(name: str, x: Tensor) -> Tensor:
    """o(x) of the object model called ``name``."""
    if name == "phase":
        return torch.complex(torch.cos(x), torch.sin(x))
    if name == "complex":
        return torch.polar(torch.exp(-x[..., 1, :, :]), x[..., 0, :, :])
    if name == "wave":
        return torch.complex(1 + x[..., 0, :, :], x[..., 1, :, :])
    raise InvalidInputError(f'the engine "torch" knows the objects phase, complex and wave, got {name!r}')


def pull_back(name: str, o: Tensor, w: Tensor) -> Tensor:
    """∇_x d from W = ∂d/∂ō (see :mod:`fouriscope.forward.objects`)."""
    if name == "wave":
        return 2 * torch.stack([w.real, w.imag])
    product = o.conj() * w
    return 2 * product.imag if name == "phase" else 2 * torch.stack([product.imag, -product.real])


def squared(fields: Tensor) -> Tensor:
    """|fields|². A complex product is faster than the sum of two squares of every other number."""
    return (fields * fields.conj()).real


def add_boxes(boxes: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64], total: Tensor) -> None:
    """total += Σ_m S_mᵀ boxes[m], one after the other, so that every sum has one order on every device."""
    height, width = boxes.shape[-2:]
    for box, row, column in zip(boxes.unbind(-3), rows.tolist(), columns.tolist(), strict=True):
        total.narrow(-2, row, height).narrow(-1, column, width).add_(box)


class Crop(torch.autograd.Function):  # type: ignore[misc]
    """The boxes of sources out of a spectrum, and back by :func:`add_boxes`: torch's own derivative of a window would
    fill a tensor of all windows that there are."""

    generate_vmap_rule = False

    @staticmethod
    def forward(spectrum: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64], box: tuple[int, int]) -> Tensor:
        windows = spectrum.unfold(-2, box[0], 1).unfold(-2, box[1], 1)
        first, second = (torch.from_numpy(places).to(spectrum.device) for places in (rows, columns))
        return windows[..., first, second, :, :]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.shape, (_, ctx.rows, ctx.columns, _) = inputs[0].shape, inputs

    @staticmethod
    def backward(ctx: Any, boxes: Tensor) -> tuple[Tensor | None, ...]:
        total = torch.zeros(ctx.shape, dtype=boxes.dtype, device=boxes.device)
        add_boxes(boxes, ctx.rows, ctx.columns, total)
        return total, None, None, None


class Workspace(threading.local):
    """Padded boxes of a group, one set for each thread: filling them with zeros anew costs as much as a product."""

    def __init__(self) -> None:
        self._known: tuple[Any, ...] = ()
        self._padded: tuple[Tensor, Tensor] | None = None

    def padded(self, optics: TorchOptics, count: int) -> tuple[Tensor, Tensor]:
        """Zeros for transposed boxes padded to the grid's rows, and for what becomes of them padded to its columns."""
        known = (optics.grid, optics.box, optics.complex, optics.device)
        if self._padded is None or self._known != known or len(self._padded[0]) < count:
            (rows, columns), (_, width) = optics.grid, optics.box
            self._known = known
            self._padded = (
                torch.zeros((count, width, rows), dtype=optics.complex, device=optics.device),
                torch.zeros((count, rows, columns), dtype=optics.complex, device=optics.device),
            )
        return self._padded


class TorchOptics:
    """What H_m needs of a model, on a device: where each source's box lies, the pupils, and the transforms.

    The box lies in the corner of a frame's spectrum, as in the compiled loops, and boxes are cut out of a spectrum that
    is continued periodically, so that none has to be put together at the edges.

    Spectra, boxes and pupils lie *transposed*, column after column. A transform along columns wants each column in one
    piece: so the columns of a box do, then the rows of its frame, and only what is between them is turned around. On
    the CPU a gradient took 6 to 23 % longer the other way.
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
        self._pupils: Tensor | None = None
        self._known = np.zeros(len(model.sources), bool)

    def upload(self, array: NDArray[Any], dtype: Any = None) -> Tensor:
        """An array as a tensor on the device; to a card it goes pinned and without waiting."""
        tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))  # read-only ones are copied
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, dtype, non_blocking=self.device.type == "cuda")

    def pupils(self, sources: NDArray[np.int64]) -> Tensor:
        """√w_m P_m of ``sources``, transposed; all are kept on the device where the model keeps them, too."""
        return self.load_pupils(sources)()

    def load_pupils(self, sources: NDArray[np.int64]) -> Callable[[], Tensor]:
        """What gives the pupils of ``sources``. Here they are evaluated and uploaded, which shares out work to threads
        itself; taking them out of what is kept is left to the thread that wants them."""
        if not self.model.pupils.nbytes:
            stack, index = self.model.pupils(sources)
            uploaded = self.upload(stack[index].swapaxes(-1, -2))
            return lambda: uploaded
        if self._pupils is None:
            self._pupils = torch.empty(
                (len(self.model.sources), *self.box[::-1]), dtype=self.complex, device=self.device
            )
        kept, missing = self._pupils, np.unique(sources[~self._known[sources]])
        if len(missing):
            stack, index = self.model.pupils(missing)
            kept[self.upload(missing)] = self.upload(stack[index].swapaxes(-1, -2))
            self._known[missing] = True
        return lambda: kept.index_select(0, self.upload(sources))

    def spectrum(self, o: Tensor) -> Tensor:
        """F o / size, continued periodically by a box beyond its last row and column; transposed."""
        spectrum = torch.fft.fft2(o, norm="forward").transpose(-2, -1)
        spectrum = torch.cat([spectrum, spectrum[..., : self.box[1], :]], dim=-2)
        return torch.cat([spectrum, spectrum[..., : self.box[0]]], dim=-1)

    def spectrum_now(self, o: Tensor) -> Tensor:
        """:meth:`spectrum` without derivatives, written once."""
        (rows, columns), (height, width) = self.shape, self.box
        out = torch.empty((columns + width, rows + height), dtype=self.complex, device=self.device)
        out[:columns, :rows] = torch.fft.fft2(o, norm="forward").T
        out[columns:, :rows] = out[:width, :rows]
        out[:, rows:] = out[:, :height]
        return out

    def _crop(self, crop: Callable[..., Tensor], spectrum: Tensor, sources: NDArray[np.int64]) -> Tensor:
        height, width = self.box
        return crop(spectrum, self.model.box_columns[sources], self.model.box_rows[sources], (width, height))

    def fields(self, spectrum: Tensor, sources: NDArray[np.int64], pupils: Tensor) -> Tensor:
        """√w_m H_m o of each source, on the frame's grid, up to a phase ramp that |·|² does not see."""
        boxes = self._crop(Crop.apply, spectrum, sources) * pupils
        half = torch.fft.ifft(boxes, n=self.grid[0], norm="forward")
        return torch.fft.ifft(half.transpose(-2, -1), n=self.grid[1], norm="forward")

    def fields_into(self, space: Workspace, spectrum: Tensor, sources: NDArray[np.int64], pupils: Tensor) -> Tensor:
        """:meth:`fields` without derivatives, padded in memory that stays where it is and zero where it was."""
        tall, wide = (padded[: len(sources)] for padded in space.padded(self, len(sources)))
        torch.mul(self._crop(Crop.forward, spectrum, sources), pupils, out=tall[..., : self.box[0]])
        wide[..., : self.box[1]] = torch.fft.ifft(tall, norm="forward").transpose(-2, -1)
        return torch.fft.ifft(wide, norm="forward")

    def boxes(self, fields: Tensor, pupils: Tensor) -> Tensor:
        """P̄ ⊙ F(fields) on the support box: the adjoint of what :meth:`fields` does with boxes."""
        half = torch.fft.fft(fields)[..., : self.box[1]].transpose(-2, -1)
        return torch.fft.fft(half)[..., : self.box[0]] * pupils.conj()

    def add(self, boxes: Tensor, sources: NDArray[np.int64], total: Tensor) -> None:
        """total += Σ_m S_mᵀ boxes[m], in the order of the sources; ``total`` is continued as a spectrum is."""
        add_boxes(boxes, self.model.box_columns[sources], self.model.box_rows[sources], total)

    def empty_total(self) -> Tensor:
        """Zeros to :meth:`add` to."""
        rows, columns = (size + side for size, side in zip(self.shape, self.box, strict=True))
        return torch.zeros((columns, rows), dtype=self.complex, device=self.device)

    def folded(self, total: Tensor) -> Tensor:
        """F⁻¹ of what was added, its continuation put back to where it belongs."""
        (rows, columns), (height, width) = self.shape, self.box
        total[:width] += total[columns:]
        total[:, :height] += total[:, rows:]
        return torch.fft.ifft2(total[:columns, :rows].T)

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
