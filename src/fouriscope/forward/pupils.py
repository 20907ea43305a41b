"""The pupil as each source sees it: moved by the fraction of a bin that the whole-bin crop leaves over."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.engines import Engine, as_engine
from fouriscope.forward.loops import pupil_kernels_of
from fouriscope.optics import Geometry, Pupil
from fouriscope.optics.objective import EDGE_TOLERANCE
from fouriscope.parallel import run_sliced

# Of more pupils than this, those are kept that were asked for last.
KEEP_AT_MOST_BYTES = 32 * 2**20
# Those that are not kept are computed for this many at a time.
AT_ONCE, AT_ONCE_AT_LEAST, AT_ONCE_BYTES = 64, 8, 24 * 2**20


def kept_count(geometry: Geometry, dtype: np.dtype[Any]) -> int:
    """How many pupils a model keeps: all of them, or as many as fit into some bytes."""
    return min(len(geometry.sources), KEEP_AT_MOST_BYTES // _bytes_of_one(geometry, dtype))


def kept_bytes(geometry: Geometry, dtype: np.dtype[Any]) -> int:
    """Bytes of the pupils that a model keeps."""
    return kept_count(geometry, dtype) * _bytes_of_one(geometry, dtype)


def all_kept(geometry: Geometry, dtype: np.dtype[Any]) -> bool:
    """Whether a model keeps all pupils."""
    return kept_count(geometry, dtype) == len(geometry.sources)


def _bytes_of_one(geometry: Geometry, dtype: np.dtype[Any]) -> int:
    box = geometry.support_box
    return box.height * box.width * dtype.itemsize


class _Kept:
    """Pupils that were asked for, and where in the stack that of each source lies; −1 is nowhere."""

    def __init__(self, count: int, sources: int, box_shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.stack = np.empty((count, *box_shape), dtype)  # takes memory only as it is filled
        self.places = np.full(sources, -1)
        self._filled = 0

    @property
    def room(self) -> int:
        return len(self.stack) - self._filled

    def missing(self, sources: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of ``sources`` that are not kept, each once."""
        return np.unique(sources[self.places[sources] < 0])

    def keep(self, sources: NDArray[np.int64], pupils: NDArray[Any]) -> bool:
        """Keep the pupils of ``sources``; False if there is no room."""
        if len(sources) > self.room:
            return False
        places = np.arange(self._filled, self._filled + len(sources))
        self.stack[self._filled : self._filled + len(sources)] = pupils
        # The places last: a thread that finds one must find the pupil there.
        self.places[sources] = places
        self._filled += len(sources)
        return True


class LEDPupils:
    """√(g_i w_m) · P((k − fraction_m) · du) on the support box, for every source m of weight w_m and LED i of gain g_i.

    The disc is evaluated at the exact sub-bin coordinates and its edge is hard, so a source just outside the pupil
    stays dark. A pupil is computed when it is asked for, so a model that a calibration replaces after each minibatch
    costs only what it uses. It is then kept, because the gradient of a minibatch, the calibrations that watch it and
    the coverage ask for the same pupils in turn. If they are more than ``KEEP_AT_MOST_BYTES`` in all, keeping begins
    anew when that is full.
    """

    def __init__(
        self,
        geometry: Geometry,
        pupil: Pupil,
        dtype: np.dtype[Any],
        gains: NDArray[np.float64] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.geometry = geometry
        self.engine = engine or as_engine()
        self.pupil = pupil
        self.dtype = dtype
        box = geometry.support_box
        self.box_shape = (box.height, box.width)
        sources = geometry.sources
        brightness = np.ones(len(geometry.na)) if gains is None else gains
        self._roots = np.sqrt(brightness[sources.frames] * sources.weights)
        self._reserve()
        self._constants = self._compile()

    def __getstate__(self) -> dict[str, Any]:
        """To another process, or into a copy, go neither the lock nor what can be computed again."""
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_kept")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._reserve()

    def _reserve(self) -> None:
        self._lock = threading.Lock()
        self._kept = self._nothing_kept()

    def _nothing_kept(self) -> _Kept:
        count = kept_count(self.geometry, self.dtype)
        return _Kept(count, len(self.geometry.sources), self.box_shape, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept once every source has been asked for."""
        return self._kept.stack.nbytes

    @property
    def all_kept(self) -> bool:
        return all_kept(self.geometry, self.dtype)

    @property
    def at_once(self) -> int:
        """Sources whose pupils should be asked for together: 64, or as many as fit into some bytes, but 8."""
        one = _bytes_of_one(self.geometry, self.dtype)
        return min(AT_ONCE, max(AT_ONCE_AT_LEAST, AT_ONCE_BYTES // one))

    def __call__(self, sources: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """(stack, index) such that ``stack[index[b]]`` is the pupil of ``sources[b]``."""
        kept = self._kept
        missing = kept.missing(sources)
        if not len(missing):
            return kept.stack, kept.places[sources]
        if len(missing) > kept.room:
            # Other threads may still read what was kept so far, so it is not overwritten.
            kept, missing = self._nothing_kept(), np.unique(sources)
            if len(missing) > kept.room:
                return self._evaluate(sources), np.arange(len(sources))
        pupils = self._evaluate(missing)
        with self._lock:  # models are shared by threads
            if kept.keep(missing, pupils):
                self._kept = kept
                return kept.stack, kept.places[sources]
        return self._evaluate(sources), np.arange(len(sources))  # another thread has filled the room meanwhile

    def on_frame_grid(self, box_values: NDArray[Any]) -> NDArray[Any]:
        """Values on the support box as an array on the frame's frequency grid, zero frequency at n//2."""
        values = np.zeros(self.geometry.grid_shape, box_values.dtype)
        values[self._places()] = box_values
        return values

    def from_frame_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """The part of an array on the frame's frequency grid that lies on the support box."""
        return np.asarray(values[self._places()])

    def _places(self) -> tuple[NDArray[np.intp], ...]:
        grid, box = self.geometry.grid_shape, self.geometry.support_box
        # A disc as wide as an even grid may reach its bin +n/2, which is its bin −n/2.
        rows = (grid[0] // 2 + box.row0 + np.arange(box.height)) % grid[0]
        columns = (grid[1] // 2 + box.col0 + np.arange(box.width)) % grid[1]
        return np.ix_(rows, columns)

    def _evaluate(self, sources: NDArray[np.int64]) -> NDArray[Any]:
        evaluate_pupils, evaluate_coloured_pupils = pupil_kernels_of(self.engine)
        stack = np.empty((len(sources), *self.box_shape), self.dtype)
        box = self.geometry.support_box
        own = (self.geometry.fractions[sources], self._roots[sources])
        if self.geometry.sources.have_one_colour:
            arguments = (*own, box.row0, box.col0, *self._constants, self.dtype == np.complex64, stack)
            run_sliced(lambda start, stop: evaluate_pupils(*arguments, start, stop), len(sources))
        else:
            coloured = (*own, self.geometry.sources.scales[sources], box.row0, box.col0, *self._constants, stack)
            run_sliced(lambda start, stop: evaluate_coloured_pupils(*coloured, start, stop), len(sources))
        return stack

    def _compile(self) -> tuple[Any, ...]:
        """What all sources share, as the kernel wants it."""
        geometry, pupil, optics = self.geometry, self.pupil, self.geometry.optics
        steps = np.asarray(geometry.frequency_step) / optics.cutoff
        table = np.ones((1, 1), np.complex128)
        if pupil.array is not None:
            table = pupil.table(optics, geometry.frequency_step)
        return (
            *(steps, (1 + EDGE_TOLERANCE) ** 2, pupil.phase_in_powers()),
            2 * np.pi * pupil.defocus * optics.medium_index / optics.wavelength,
            (optics.na / optics.medium_index) ** 2,
            table,
        )
