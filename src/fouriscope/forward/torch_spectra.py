"""The part of an object's spectrum that some source sees, in torch. Importing this module imports torch.

An object may be sampled more finely than it is seen. Boxes then reach a part of its spectrum only, 205² of 500² for the
microscope of the paper. The rest is neither computed nor kept.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fouriscope.forward.grids import seen_bins
from fouriscope.forward.model import ForwardModel
from fouriscope.forward.torch_objects import pull_back, transmittance
from fouriscope.forward.torch_threads import Tensor, by_pieces, pieces_of


@dataclass(frozen=True)
class Band:
    """The frequencies lowest, …, stop − 1 along a side of ``size``. An FFT has them in up to two runs."""

    lowest: int
    stop: int
    size: int

    def __len__(self) -> int:
        return self.stop - self.lowest

    def _runs(self) -> list[tuple[int, int]]:
        """(where it begins, its length) of each run in the layout of an FFT."""
        runs = range(self.lowest, min(self.stop, 0)), range(max(self.lowest, 0), self.stop)
        return [(run.start % self.size, len(run)) for run in runs if run]

    def of(self, spectrum: Tensor, dim: int) -> Tensor:
        """The band of a spectrum, from its lowest frequency on."""
        return torch.cat([spectrum.narrow(dim, start, length) for start, length in self._runs()], dim)

    def take(self, spectrum: Tensor, dim: int, out: Tensor) -> None:
        """:meth:`of` into ``out``."""
        for here, there in self._pairs(out, spectrum, dim):
            here.copy_(there)

    def put(self, band: Tensor, dim: int, out: Tensor) -> None:
        """The band back to its place in the spectrum ``out``, whose other frequencies stay as they are."""
        for here, there in self._pairs(band, out, dim):
            there.copy_(here)

    def _pairs(self, band: Tensor, spectrum: Tensor, dim: int) -> Iterator[tuple[Tensor, Tensor]]:
        taken = 0
        for start, length in self._runs():
            yield band.narrow(dim, taken, length), spectrum.narrow(dim, start, length)
            taken += length


class Workspace(threading.local):
    """Tensors that stay from gradient to gradient, each thread its own: fresh pages cost as much as a product."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, dict[int, Tensor]]] = {}

    def __call__(self, name: Hashable, shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
        """Zeros when it is first asked for, and then what was left in it."""
        kind, count = (shape[1:], dtype, device), shape[0]
        known, views = self._kept.get(name, (None, {}))
        if kind != known or count > max(views):
            views = {count: torch.zeros(shape, dtype=dtype, device=device)}
            self._kept[name] = kind, views
        if count not in views:
            views[count] = views[max(views)][:count]
        return views[count]


class SeenSpectrum:
    """Between an object and the part of its spectrum that is seen. What is between rows and columns lies transposed."""

    def __init__(self, model: ForwardModel, device: Any, real: Any, complex_: Any) -> None:
        self.name, self.shape, self.x_shape = model.object.name, model.object_shape, model.x_shape
        self.device, self.real, self.complex = device, real, complex_
        clear = model.object.clear
        self.clear = None if clear is None else torch.as_tensor(clear, dtype=complex_, device=device)
        self.pieces = pieces_of(2 * model.dtype.itemsize * math.prod(self.shape), device)
        self.rows, self.columns = (
            Band(*ends, size) for ends, size in zip(seen_bins(model.geometry), self.shape, strict=True)
        )

    def object(self, x: Tensor) -> Tensor:
        """o(x), differentiable."""
        o = transmittance(self.name, x)
        if self.clear is None:
            return o
        return o + (self.clear - 1) if self.name == "wave" else o * self.clear  # autograd needs o as it was

    def _lit(self, o: Tensor, part: slice) -> Tensor:
        """The object under the wave behind a clear sample, in place, for a part of its rows."""
        if self.clear is None:
            return o
        return o.add_(self.clear[part] - 1) if self.name == "wave" else o.mul_(self.clear[part])

    def of(self, o: Tensor) -> Tensor:
        """F o / size, differentiable."""
        return self.rows.of(self.columns.of(torch.fft.fft2(o, norm="forward"), -1), -2)

    def at(self, space: Workspace, x: Tensor) -> tuple[Tensor, Tensor]:
        """(o(x), what is seen of its spectrum) without derivatives. On the CPU our threads share rows and columns."""
        o = space("o", self.shape, self.complex, self.device)
        half = space("half spectrum", (len(self.columns), self.shape[0]), self.complex, self.device)
        out = self._empty(space, "spectrum")

        def transform_rows(part: slice) -> None:
            rows = self._lit(transmittance(self.name, x[..., part, :], out=o[part]), part)
            self.columns.take(torch.fft.fft(rows, norm="forward"), -1, out=half.T[part])

        def transform_columns(part: slice) -> None:
            self.rows.take(torch.fft.fft(half[part], norm="forward"), -1, out=out.T[part])

        by_pieces(transform_rows, self.shape[0], self.pieces, self.device)
        by_pieces(transform_columns, len(self.columns), self.pieces, self.device)
        return o, out

    def zeros(self, space: Workspace) -> Tensor:
        """An empty sum of boxes."""
        return self._empty(space, "total").zero_()

    def gradient(self, space: Workspace, o: Tensor, total: Tensor) -> Tensor:
        """∇_x d at o(x) from the sum of boxes."""
        half = space("half spectrum", (len(self.columns), self.shape[0]), self.complex, self.device)
        out = torch.empty(self.x_shape, dtype=self.real, device=self.device)

        def transform_columns(part: slice) -> None:
            half[part] = torch.fft.ifft(self._alone(space, self.rows, total.T[part]))

        def transform_rows(part: slice) -> None:
            w = torch.fft.ifft(self._alone(space, self.columns, half.T[part]))
            pull_back(self.name, o[part], w, out=out[..., part, :])

        by_pieces(transform_columns, len(self.columns), self.pieces, self.device)
        by_pieces(transform_rows, self.shape[0], self.pieces, self.device)
        return out

    def _alone(self, space: Workspace, band: Band, lines: Tensor) -> Tensor:
        """Spectra of nothing but the band. The memory is the band's own, so it stays zero elsewhere."""
        spectra = space(band, (len(lines), band.size), self.complex, self.device)
        band.put(lines, -1, out=spectra)
        return spectra

    def _empty(self, space: Workspace, name: str) -> Tensor:
        return space(name, (len(self.rows), len(self.columns)), self.complex, self.device)
