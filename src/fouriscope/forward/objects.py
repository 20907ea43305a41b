"""Object models: how the unknown x becomes a complex transmittance o(x), and how derivatives come back.

With W = ∂d/∂ō (the Wirtinger derivative of a real d with respect to the conjugate transmittance) the chain rule is
∇d(x) = 2 Re{ conj(∂o/∂x) ⊙ W }; each model writes that out.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fouriscope.engines import Engine, as_engine
from fouriscope.errors import InvalidInputError
from fouriscope.forward.loops import kernels_of
from fouriscope.optics.grid_shapes import Band
from fouriscope.parallel import run_sliced
from fouriscope.placement import namespace

RealArray = NDArray[Any]
ComplexArray = NDArray[Any]
ObjectName = Literal["phase", "complex", "wave"]
Limits = tuple[float, float] | None

# Amplitudes that a sample can have, beside the empty bright field; frames in a wrong unit included. Beyond them nothing
# is measured, and a pixel that a step threw there would never come back: e^{−μ} has no slope where it is zero.
BRIGHTEST = 5.0
DARKEST = 1e-3
# The absorption of an opaque pixel would be infinite; it is that of this amplitude (1 is the empty bright field).
AMPLITUDE_FLOOR = 1e-4


class ObjectModel(ABC):
    """x → o(x). ``channels`` names the real images that x is made of, in order; ``limits`` bounds them.

    ``clear`` is the wave behind a clear sample, o(0): None is 1, a plane wave. Light of an LED that is near is curved
    (:mod:`fouriscope.forward.clear`).
    """

    name: ClassVar[ObjectName]
    channels: ClassVar[tuple[str, ...]]
    limits: ClassVar[tuple[Limits, ...]]
    band: ClassVar[Band] = "intensity"
    """What an automatic grid must hold: the band of |o|², or of o alone."""
    clear: ComplexArray | None = None

    def lit_by(self, clear: ComplexArray | None) -> Self:
        """The same model of a sample that is lit by another wave."""
        lit = copy.copy(self)
        lit.clear = clear
        return lit

    def sample(self, o: ComplexArray) -> ComplexArray:
        """o as a plane wave would show it: without the phase of ``clear``."""
        if self.clear is None:
            return o
        return np.asarray(o * (self.clear.conj() / np.abs(self.clear)))

    @abstractmethod
    def x_shape(self, object_shape: tuple[int, int]) -> tuple[int, ...]:
        """Shape of x for an object of ``object_shape`` pixels."""

    @abstractmethod
    def transmittance(
        self, x: RealArray, out: ComplexArray | None = None, engine: Engine | None = None
    ) -> ComplexArray:
        """o(x), in the complex type that belongs to the precision of x; into ``out`` if it is given."""

    @abstractmethod
    def pull_back(
        self, transmittance: ComplexArray, derivative: ComplexArray, engine: Engine | None = None
    ) -> RealArray:
        """∇_x d from W = ∂d/∂ō at o = ``transmittance``."""

    @abstractmethod
    def of_transmittance(self, o: ComplexArray) -> RealArray:
        """x of a complex transmittance; what the object cannot hold (its amplitude, say) is left out."""

    def phase_and_absorption(self, x: RealArray) -> tuple[RealArray, RealArray | None]:
        """φ and μ of o = e^{iφ − μ}, for viewing; no μ for an object that has none."""
        images = self.images(x)
        return images[0], images[1] if len(images) > 1 else None

    def phase(self, x: RealArray) -> RealArray:
        """φ alone, for who asks in every iteration."""
        return self.images(x)[0]

    def tempered(self, x: RealArray, gradient: RealArray) -> RealArray:
        """∇d, shortened in pixels where |o| > 1: there the curvature of d is |o|² times that of a clear pixel.

        One step size for all pixels is as long as a clear one allows. In a bright one it would overshoot, and the next
        step from where it lands still more: a spike grows out of noise. Divided by |o|² the direction still leads down.
        """
        return gradient

    def _lit(self, o: ComplexArray) -> ComplexArray:
        """o under the clear wave, in place."""
        if self.clear is not None:
            o *= self.clear
        return o

    def images(self, x: RealArray) -> list[RealArray]:
        """The 2-D images of x, one for each channel, as views: what a prior denoises."""
        return list(x.reshape((len(self.channels), *x.shape[-2:])))


def _complex_of(real: RealArray) -> np.dtype[Any]:
    return np.result_type(real.dtype, np.complex64)


class PhaseObject(ObjectModel):
    """o = e^{ix}, x real: a transparent sample. x has the shape of the object.

    Examples
    --------
    >>> import numpy as np
    >>> PhaseObject().transmittance(np.array([[0.0, np.pi / 2]])).round(6)
    array([[1.+0.j, 0.+1.j]])
    """

    name = "phase"
    channels = ("phase",)
    limits = (None,)

    def x_shape(self, object_shape: tuple[int, int]) -> tuple[int, ...]:
        return object_shape

    def transmittance(
        self, x: RealArray, out: ComplexArray | None = None, engine: Engine | None = None
    ) -> ComplexArray:
        kernels = kernels_of(engine or as_engine())
        out = np.empty(x.shape, _complex_of(x)) if out is None else out
        single = x.dtype == np.float32
        kernel = kernels.phase_transmittance_single if single else kernels.phase_transmittance_double
        run_sliced(lambda start, stop: kernel(x, out, start, stop), x.shape[0])
        return self._lit(out)

    def pull_back(
        self, transmittance: ComplexArray, derivative: ComplexArray, engine: Engine | None = None
    ) -> RealArray:
        kernels = kernels_of(engine or as_engine())
        gradient = np.empty(transmittance.shape, transmittance.real.dtype)
        run_sliced(
            lambda start, stop: kernels.phase_pull_back(transmittance, derivative, gradient, start, stop),
            gradient.shape[0],
        )
        return gradient

    def of_transmittance(self, o: ComplexArray) -> RealArray:
        return np.asarray(np.angle(self.sample(o)), o.real.dtype)


class ComplexObject(ObjectModel):
    """o = e^{i(φ + iμ)} = e^{−μ} e^{iφ}: phase φ and absorption μ. x has shape (2, rows, columns): (φ, μ)."""

    name = "complex"
    channels = ("phase", "absorption")
    limits = (None, (-math.log(BRIGHTEST), math.log(1 / DARKEST)))

    def x_shape(self, object_shape: tuple[int, int]) -> tuple[int, ...]:
        return (2, *object_shape)

    def transmittance(
        self, x: RealArray, out: ComplexArray | None = None, engine: Engine | None = None
    ) -> ComplexArray:
        kernels = kernels_of(engine or as_engine())
        out = np.empty(x.shape[1:], _complex_of(x)) if out is None else out
        run_sliced(lambda start, stop: kernels.complex_transmittance(x, out, start, stop), x.shape[1])
        return self._lit(out)

    def pull_back(
        self, transmittance: ComplexArray, derivative: ComplexArray, engine: Engine | None = None
    ) -> RealArray:
        kernels = kernels_of(engine or as_engine())
        gradient = np.empty((2, *transmittance.shape), transmittance.real.dtype)
        run_sliced(
            lambda start, stop: kernels.complex_pull_back(transmittance, derivative, gradient, start, stop),
            gradient.shape[1],
        )
        return gradient

    def of_transmittance(self, o: ComplexArray) -> RealArray:
        absorption = -np.log(np.maximum(np.abs(o), AMPLITUDE_FLOOR))
        return np.asarray(np.stack([np.angle(self.sample(o)), absorption]), o.real.dtype)

    def tempered(self, x: RealArray, gradient: RealArray) -> RealArray:
        xp = namespace(x)
        return gradient * xp.exp(2 * xp.clip(x[1], None, 0))  # type: ignore[no-any-return]


class WaveObject(ObjectModel):
    """o = 1 + a + ib: the wave behind the sample itself. x has shape (2, rows, columns): (a, b).

    With a ``clear`` wave, that stands in place of 1.

    H_i o is linear in x, so nothing depends on where the phase winds or the amplitude vanishes, and no gradient leaves
    the band of the LEDs' pupils: an object that starts in its band stays there. The grid need not hold more than that
    band, a quarter of the pixels that |o|² asks for. ``images`` are real and imaginary part, which have the same
    units and the same noise; phase and absorption are :meth:`phase_and_absorption`.

    Examples
    --------
    >>> import numpy as np
    >>> wave = WaveObject()
    >>> x = wave.of_transmittance(np.array([[1 + 0j, 0.5j]]))
    >>> phase, absorption = wave.phase_and_absorption(x)
    >>> np.round(np.exp(-absorption), 6).tolist()
    [[1.0, 0.5]]
    """

    name = "wave"
    channels = ("real", "imaginary")
    limits = (None, None)
    band = "field"

    def x_shape(self, object_shape: tuple[int, int]) -> tuple[int, ...]:
        return (2, *object_shape)

    def transmittance(
        self, x: RealArray, out: ComplexArray | None = None, engine: Engine | None = None
    ) -> ComplexArray:
        out = np.empty(x.shape[1:], _complex_of(x)) if out is None else out
        if self.clear is None:
            np.add(x[0], 1, out=out.real)
            out.imag = x[1]
        else:
            np.add(x[0], self.clear.real, out=out.real)
            np.add(x[1], self.clear.imag, out=out.imag)
        return out

    def pull_back(
        self, transmittance: ComplexArray, derivative: ComplexArray, engine: Engine | None = None
    ) -> RealArray:
        gradient = np.empty((2, *derivative.shape), derivative.real.dtype)
        np.multiply(derivative.real, 2, out=gradient[0])
        np.multiply(derivative.imag, 2, out=gradient[1])
        return gradient

    def of_transmittance(self, o: ComplexArray) -> RealArray:
        o = o - (1 if self.clear is None else self.clear)
        return np.stack([o.real, o.imag])

    def phase_and_absorption(self, x: RealArray) -> tuple[RealArray, RealArray]:
        """The phase is measured from the direction of the mean of o, so that a weak one does not wrap around."""
        o = self._turned(x)
        return np.angle(o), -np.log(np.maximum(np.abs(o), x.dtype.type(AMPLITUDE_FLOOR)))

    def phase(self, x: RealArray) -> RealArray:
        o = self._turned(x)
        phase = np.empty(o.shape, o.real.dtype)

        def angle(start: int, stop: int) -> None:
            np.arctan2(o.imag[start:stop], o.real[start:stop], out=phase[start:stop])

        run_sliced(angle, o.shape[0])
        return phase

    def _turned(self, x: RealArray) -> ComplexArray:
        """The sample alone, with a real and positive mean."""
        o = self.sample(self.transmittance(x))
        mean = complex(o.mean(dtype=np.complex128))
        o *= o.dtype.type(mean.conjugate() / abs(mean) if abs(mean) > 0 else 1.0)
        return o


def object_model(name: str | ObjectModel) -> ObjectModel:
    """The object model called ``name``: "phase", "complex" or "wave".

    Parameters
    ----------
    name
        "phase", "complex" or "wave", or an object model, which is returned as it is.
    """
    if isinstance(name, ObjectModel):
        return name
    known: dict[str, type[ObjectModel]] = {"phase": PhaseObject, "complex": ComplexObject, "wave": WaveObject}
    if name not in known:
        raise InvalidInputError(f"object model must be one of {', '.join(known)}, got {name!r}")
    return known[name]()
