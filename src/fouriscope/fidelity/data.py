"""The data fidelity d(x) = (1/J) Σ_j w_j d_j(x), its value and its gradient over any set of LEDs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, Frames, stream_below
from fouriscope.acquisition.masks import mask_of
from fouriscope.checks import door, door_class, is_count, told
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.losses import Loss, as_loss
from fouriscope.fidelity.minibatch import Minibatch
from fouriscope.fidelity.pipeline import Measurements, Observer, make_pipeline
from fouriscope.forward import ForwardModel
from fouriscope.forward.grids import LEDs
from fouriscope.forward.objects import RealArray


class ValueAndGradient(NamedTuple):
    """d and ∇d, both means over the measurements used.

    Attributes
    ----------
    value
        d.
    gradient
        ∇d, of the shape of the object.
    """

    value: float
    gradient: RealArray


@door_class
class DataFidelity:
    r"""d(x) = (1/J) Σ_j w_j d_j(x), with d_j one of the losses of :mod:`fouriscope.fidelity.losses`.

    The *mean* over measurements (not the sum), as in eq. (9) of the paper, so that a step size suits any number of
    them. With Ψ_j = H_j o(x), o = e^{ix} and the intensity loss the gradient is

        ∇d = (4/J) Im{ ō ⊙ Σ_j H_j†[Ψ_j ⊙ (\|Ψ_j\|² − y_j)] },

    which corrects the one printed in the paper.

    LEDs pass one at a time through crop × pupil → inverse FFT → loss → FFT → box, in compiled code; memory is the
    object and some sixty boxes of the pupil's size, whatever the number of frames, and the result does not depend on
    the number of threads.

    Parameters
    ----------
    model, frames
        The forward model, and measured frames in the order of its LEDs.
    loss
        "intensity" (the paper's), "amplitude", "poisson", or a loss object.
    weights
        w_j ≥ 0, one per frame. A frame of weight 0 is left out, whatever it holds, and J does not count it.
    mask
        (rows, columns) or (frames, rows, columns); True or 1 where a pixel counts. Masked pixels may hold NaN.
        Masks of single frames may be given on demand, as anything with ``shape`` and ``frame(i)``.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(3, pitch=4e-3, height=70e-3), (32, 32))
    >>> flat = np.zeros(model.object_shape, np.float32)
    >>> fidelity = fs.DataFidelity(model, model.intensity(flat))
    >>> fidelity.value(flat) < 1e-6
    True
    >>> fidelity
    DataFidelity: intensity loss of 9 frames of 32 × 32
    """

    def __init__(
        self,
        model: ForwardModel,
        frames: Frames | NDArray[Any],
        *,
        loss: str | Loss = "intensity",
        weights: NDArray[Any] | None = None,
        mask: Frames | NDArray[Any] | None = None,
    ) -> None:
        self.model = model
        self.frames: Frames = frames if isinstance(frames, Frames) else ArrayFrames(frames)
        self.loss = as_loss(loss)
        expected = (len(model), *model.frame_shape)
        if tuple(self.frames.shape) != expected:
            raise InvalidInputError(
                f"this model needs frames of shape {expected} (LEDs, rows, columns), got {tuple(self.frames.shape)}"
            )
        self.weights = self._checked_weights(weights)
        self.mask = self._checked_mask(mask)
        # One mask for all is kept as the loop wants it; masks of single frames are made when their frame is.
        self._common: NDArray[Any] | None = None
        if self.mask is None or len(self.mask.shape) == 2:
            ones = np.ones(model.frame_shape, bool) if self.mask is None else mask_of(self.mask, 0)
            self._common = ones[None].astype(model.dtype)
        self._pipeline = make_pipeline(model, own_masks=self._common is None)
        self._stream = stream_below(self.frames)
        self._upcoming: list[int] = []
        # Frames that lie in memory as the loop wants them are used where they are.
        self._stack: NDArray[Any] | None = None
        if isinstance(self.frames, ArrayFrames):
            array = self.frames.array
            if array.dtype == model.dtype and array.flags.c_contiguous and self.mask is None:
                self._stack = array

    @classmethod
    @door
    def of(cls, acquisition: Acquisition, model: ForwardModel, *, loss: str | Loss = "intensity") -> DataFidelity:
        """The fidelity of an acquisition, with its weights and mask."""
        return cls(model, acquisition.frames, loss=loss, weights=acquisition.weights, mask=acquisition.mask)

    def use(self, model: ForwardModel) -> None:
        """Go on with a revised model of the same frames and object (see :meth:`ForwardModel.revised`)."""
        for what in ("frame_shape", "x_shape", "dtype"):
            now, new = getattr(self.model, what), getattr(model, what)
            if now != new or len(model) != len(self.model):
                raise InvalidInputError(
                    f"a revised model must keep frames, object and precision: {len(self.model)} LEDs with {what} {now} "
                    f"were expected, got {len(model)} with {new}"
                )
        self.model = self._pipeline.model = model

    def look_at(self, frames: Frames) -> None:
        """Go on with other frames of the same shape, such as corrected ones."""
        if tuple(frames.shape) != tuple(self.frames.shape):
            raise InvalidInputError(f"frames of shape {self.frames.shape} were expected, got {frames.shape}")
        self.frames, self._stack, self._stream = frames, None, stream_below(frames)
        self._pipeline.forget(np.arange(len(self)))

    def reweigh(self, weights: NDArray[Any]) -> None:
        """Other w_j from now on: a frame that was left out because it had not arrived counts when it has."""
        self.weights = self._checked_weights(weights)

    def frames_changed(self, leds: NDArray[np.int64]) -> None:
        """Frames of ``leds`` arrived or were replaced: an engine that keeps frames on a device reads them again."""
        self._pipeline.forget(leds)

    def __len__(self) -> int:
        """J, the number of measurements."""
        return len(self.model)

    def __repr__(self) -> str:
        left_out = int(np.count_nonzero(self.weights == 0))
        return (
            "DataFidelity: {} loss of {} frames of {} × {}".format(self.loss.name, *self.frames.shape)
            + (f", {left_out} left out" if left_out else "")
            + (", masked" if self.mask is not None else "")
        )

    def value(self, x: RealArray, leds: LEDs | Minibatch = None) -> float:
        """d(x) over ``leds`` (all by default)."""
        batch = self._batch(leds)
        misfits, _ = self._evaluate(x, batch, with_gradient=False)
        return self.mean(misfits, batch)

    def misfits(self, x: RealArray, leds: LEDs = None) -> NDArray[np.float64]:
        """d_j(x), unweighted, for each LED of ``leds``: which frames fit and which do not."""
        everything = np.arange(len(self)) if leds is None else leds
        return self._evaluate(x, self._batch(everything), with_gradient=False)[0]

    def gradient(
        self, x: RealArray, leds: LEDs | Minibatch = None, observer: Observer | None = None
    ) -> ValueAndGradient:
        """d(x) and ∇d(x) over ``leds``, or over a weighted :class:`Minibatch`.

        ``observer`` is called with each LED's contribution, from which derivatives with respect to the pupil follow at
        almost no cost.
        """
        if observer is not None and not callable(observer):
            raise InvalidInputError(f"observer must be a function, got {told(observer)}")
        batch = self._batch(leds)
        misfits, gradient = self._evaluate(x, batch, with_gradient=True, observer=observer)
        assert gradient is not None
        return ValueAndGradient(self.mean(misfits, batch), gradient)

    def _batch(self, leds: LEDs | Minibatch) -> Minibatch:
        if leds is None:
            leds = np.flatnonzero(self.weights > 0)  # J counts the frames that count
        indices = self.model.led_indices(leds.leds if isinstance(leds, Minibatch) else leds)
        if not indices.size:
            raise InvalidInputError("at least one LED is needed to compute a misfit, got none")
        if not isinstance(leds, Minibatch):
            return Minibatch(indices, np.ones(len(indices)), len(indices))
        if np.shape(leds.weights) != indices.shape or np.asarray(leds.weights).dtype.kind not in "fiu":
            raise InvalidInputError(f"a minibatch needs one weight for each of its leds, got {told(leds.weights)}")
        if not (is_count(leds.size) and leds.size > 0):
            raise InvalidInputError(f"size of a minibatch must be a whole number above 0, got {told(leds.size)}")
        return leds

    def mean(self, misfits: NDArray[np.float64], batch: Minibatch) -> float:
        """(1/J) Σ_b w_b d_b from the d_b of a minibatch."""
        weights = self._total_weights(batch)
        counts = weights != 0  # a frame left out may hold NaN, and NaN × 0 would still be NaN
        return float(np.dot(misfits[counts], weights[counts]) / batch.size)

    def _total_weights(self, batch: Minibatch) -> NDArray[np.float64]:
        return batch.weights * self.weights[batch.leds]

    def _evaluate(
        self, x: RealArray, batch: Minibatch, *, with_gradient: bool, observer: Observer | None = None
    ) -> tuple[NDArray[np.float64], RealArray | None]:
        weights = self._total_weights(batch) / batch.size
        self.read_ahead(batch.leds)
        return self._pipeline.run(
            *(x, batch.leds, weights, self.data_of, self.loss), with_gradient=with_gradient, observer=observer
        )

    def release_memory(self) -> None:
        """Forget what can be computed or read again: when a run has ended, its pictures need the room."""
        self._pipeline = make_pipeline(self.model, own_masks=self._common is None)
        if self._stream is not None:
            self._stream.close()

    @property
    def wants_hints(self) -> bool:
        """Whether it pays to say which LEDs come next: frames are streamed from disk, and not all are in memory."""
        return self._stream is not None and self._stream.wants_hints

    def expect(self, batches: Sequence[Minibatch]) -> None:
        """The minibatches after the next one: their frames are read while that one is computed, as memory allows.

        A hint alone: results do not depend on it.
        """
        self._upcoming = [int(led) for batch in batches for led in batch.leds]

    def read_ahead(self, leds: NDArray[np.int64]) -> None:
        """Begin to read the frames of ``leds``, in this order, and then those that :meth:`expect` named."""
        if self._stream is not None and self.wants_hints:
            self._stream.prefetch([*leds.tolist(), *self._upcoming])

    def mask_of(self, led: int) -> NDArray[np.bool_]:
        """(rows, columns): True where a pixel of the LED's frame counts."""
        return np.ones(self.model.frame_shape, bool) if self.mask is None else mask_of(self.mask, led)

    def data_of(self, leds: NDArray[np.int64]) -> Measurements:
        """(frames, index, masks, other index) such that ``frames[index[b]]`` is the frame of ``leds[b]``, masked pixels
        set to 0, and ``masks[other_index[b]]`` its mask, 1 where a pixel counts."""
        own, none = np.arange(len(leds)), np.zeros_like(leds)
        if self._stack is not None:
            assert self._common is not None
            return self._stack, leds, self._common, none
        shape = (len(leds), *self.model.frame_shape)
        frames = np.empty(shape, self.model.dtype)
        masks = np.empty(shape, self.model.dtype) if self._common is None else self._common
        for b, led in enumerate(leds):
            frames[b] = self.frames.frame(int(led))
            if self.mask is not None:
                counts = self.mask_of(int(led))
                frames[b][~counts] = 0  # NaN × 0 would still be NaN
                if self._common is None:
                    masks[b] = counts
        return frames, own, masks, own if self._common is None else none

    def _checked_weights(self, weights: NDArray[Any] | None) -> NDArray[np.float64]:
        if weights is None:
            return np.ones(len(self.model))
        checked = np.asarray(weights, np.float64)
        if checked.shape != (len(self.model),):
            raise InvalidInputError(f"weights: one per frame is needed, {len(self.model)}, got shape {checked.shape}")
        if not (np.all(np.isfinite(checked)) and np.all(checked >= 0) and np.any(checked > 0)):
            raise InvalidInputError("frame weights must be finite, not negative, and not all zero")
        return checked

    def _checked_mask(self, mask: Frames | NDArray[Any] | None) -> Frames | NDArray[Any] | None:
        if mask is None:
            return None
        shape = self.model.frame_shape
        checked = mask if isinstance(mask, Frames) else np.asarray(mask)
        if isinstance(checked, np.ndarray) and checked.shape == (1, *shape):
            checked = checked[0]
        if tuple(checked.shape) not in {shape, (len(self.model), *shape)}:
            raise InvalidInputError(
                f"a mask must have the shape {shape} or {(len(self.model), *shape)}, got {checked.shape}"
            )
        # Acquisition.check_frames checks masks on demand.
        if isinstance(checked, np.ndarray) and not np.any(checked):
            raise InvalidInputError("the mask leaves no pixel; check the mask")
        return checked
