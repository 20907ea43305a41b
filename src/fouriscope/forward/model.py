"""The forward model: from an object to the fields and intensities that the camera sees, and back."""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fouriscope.checks import door, door_class, numbers
from fouriscope.engines import Engine, as_engine
from fouriscope.errors import InvalidInputError
from fouriscope.forward import plain
from fouriscope.forward.clear import clear_wave
from fouriscope.forward.grids import Grids, LEDs
from fouriscope.forward.loops import kernels_of
from fouriscope.forward.objects import ComplexArray, ObjectModel, RealArray, object_model
from fouriscope.forward.pupils import LEDPupils
from fouriscope.optics import Geometry, Illumination, Optics, Pupil, Sources
from fouriscope.parallel import run_sliced, thread_count


@door_class
class ForwardModel(Grids):
    r"""y_i = Σ_m w_m \|H_m o(x)\|² over the sources m of LED i, compiled once from the optics.

    An LED that is a point is one source of weight 1, and y_i = \|H_i o(x)\|². One with a size has more sources where
    that matters (docs/sources.md). Frames, gains and ``leds`` arguments are per LED; fields, boxes and pupils per
    source.

    H_i = F⁻¹ P_i S_i F: the object's spectrum is cropped around the direction k_i of LED i, multiplied by the pupil
    and transformed back on the frame's grid. It is scaled so that an empty object (o = 1) gives unit bright-field
    intensity.

    Directions are not rounded to whole frequency bins. The crop sits at the nearest whole bin and the *pupil* moves
    by the fraction that is left, which is exact: what remains is a phase ramp on the field, invisible in \|·\|².

    Parameters
    ----------
    optics, illumination
        The microscope and its LEDs.
    frame_shape
        (rows, columns) of the measured window, in camera pixels.
    pupil
        Aberrations; a clear disc by default.
    object
        ``"phase"``: o = e^{ix}; ``"complex"``: o = e^{i(φ+iμ)} with x = (φ, μ); ``"wave"``: o = 1 + a + ib with
        x = (a, b), the complex field itself on the grid that its band needs.
    object_shape
        Pixels of the reconstruction; ``"auto"`` is the smallest multiple of the frame that holds the intensity's
        band of the synthetic aperture, or for a "wave" that of the field.
    margin
        Frame pixels around the window that are modelled but not seen by the loss, for samples that continue beyond it.
    patch_center
        (y, x) in metres of the imaged patch, from the optical axis: the angle of every LED depends on it.
    gains
        g_i > 0, the brightness of each LED compared with the others: y_i = g_i \|H_i o\|². All 1 by default.
    sources
        The coherent sources of the frames. By default they follow from the illumination: its LEDs, or parts of them.
    dtype
        float32 (default) or float64: the precision of x. Fields have the complex type that belongs to it.
    engine, device
        What computes (docs/engines.md): "auto", "numba", "scipy" or "torch", or a :class:`fouriscope.engines.Engine`;
        and for torch where: "cpu", "cuda", "cuda:1", "mps".

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    >>> model = fs.ForwardModel(optics, leds, frame_shape=(100, 100))
    >>> len(model), model.object_shape, round(model.synthetic_na, 3)
    (293, (500, 500), 0.677)
    >>> model
    ForwardModel: 293 LEDs, frames of 100 × 100, phase object of 500 × 500, NA 0.2 → 0.677, pixel 0.16 µm
    """

    def __init__(
        self,
        optics: Optics,
        illumination: Illumination,
        frame_shape: tuple[int, int],
        *,
        pupil: Pupil | None = None,
        object: Literal["phase", "complex", "wave"] | ObjectModel = "phase",
        object_shape: tuple[int, int] | Literal["auto"] = "auto",
        margin: int = 0,
        patch_center: tuple[float, float] = (0.0, 0.0),
        gains: ArrayLike | None = None,
        sources: Sources | None = None,
        dtype: DTypeLike = np.float32,
        engine: str | Engine = "auto",
        device: str = "cpu",
    ) -> None:
        self.engine = as_engine(engine, device)
        try:
            self.dtype = np.dtype(dtype)
        except TypeError:
            raise InvalidInputError(f"dtype must be float32 or float64 (the precision of x), got {dtype!r}") from None
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InvalidInputError(f"dtype must be float32 or float64 (the precision of x), got {self.dtype}")
        self.illumination = illumination
        self.object = object_model(object)
        self._place(
            Geometry.compile(
                optics,
                illumination,
                frame_shape,
                margin=margin,
                object_shape=object_shape,
                band=self.object.band,
                patch_center=patch_center,
                sources=sources,
            )
        )
        self.pupil = pupil if pupil is not None else Pupil()
        self.gains = _checked_gains(gains, len(self))
        self.complex_dtype = np.result_type(self.dtype, np.complex64)
        clear = clear_wave(self.geometry)
        self.object = self.object.lit_by(None if clear is None else clear.astype(self.complex_dtype))
        self.pupils = LEDPupils(self.geometry, self.pupil, self.complex_dtype, self.gains, self.engine)

    @door
    def revised(
        self,
        *,
        pupil: Pupil | None = None,
        illumination: Illumination | None = None,
        gains: ArrayLike | None = None,
        sources: Sources | None = None,
    ) -> ForwardModel:
        """The same model with another pupil, other directions or other gains: what a calibration makes of it.

        The object's grid does not change. Pupils are evaluated when they are used, so this costs almost nothing.
        ``sources`` replaces the sources that follow from the illumination.
        """
        revised = copy.copy(self)
        revised.pupil = self.pupil if pupil is None else pupil
        revised.gains = self.gains if gains is None else _checked_gains(gains, len(self))
        if illumination is not None or sources is not None:
            geometry = self.geometry
            revised.illumination = self.illumination if illumination is None else illumination
            if len(revised.illumination) != len(self):
                raise InvalidInputError(f"a model of {len(self)} LEDs cannot be revised to {len(revised.illumination)}")
            revised._place(
                Geometry.compile(
                    geometry.optics,
                    revised.illumination,
                    geometry.frame_shape,
                    margin=geometry.margin,
                    object_shape=geometry.object_shape,
                    patch_center=geometry.patch_center,
                    sources=sources,
                )
            )
        revised.pupils = LEDPupils(revised.geometry, revised.pupil, self.complex_dtype, revised.gains, self.engine)
        return revised

    def __repr__(self) -> str:
        margin = f" with a margin of {self.geometry.margin}" if self.geometry.margin else ""
        lights = f"{len(self.geometry.led_na)} LEDs"
        if self.geometry.is_multiplexed:
            lights += f" in {len(self)} patterns"
        return (
            "ForwardModel: {}, frames of {} × {}".format(lights, *self.frame_shape)
            + margin
            + ", {} object of {} × {}".format(self.object.name, *self.object_shape)
            + f", NA {self.optics.na:.3g} → {self.synthetic_na:.3g}, pixel {self.object_pixel[1] * 1e6:.3g} µm"
        )

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Shape of the unknown x."""
        return self.object.x_shape(self.object_shape)

    def pupil_on_grid(self) -> ComplexArray:
        """P on the frame's frequency grid (margins included), zero frequency at n//2 of each axis."""
        step_y, step_x = self.geometry.frequency_step
        rows, columns = (np.arange(size) - size // 2 for size in self.geometry.grid_shape)
        values = self.pupil.evaluate(
            (rows * step_y)[:, None], (columns * step_x)[None, :], self.optics, frequency_step=(step_y, step_x)
        )
        return np.asarray(values, self.complex_dtype)

    def check_x(self, x: RealArray, name: str = "x") -> RealArray:
        """x as a contiguous array of the model's precision; raises if its shape or its type is wrong.

        ``name`` is that of the caller's argument.
        """
        x = numbers(name, x)
        if x.shape != self.x_shape:
            raise InvalidInputError(
                f"{name}: a {self.object.name} object of this model has shape {self.x_shape}, got {x.shape}"
            )
        if x.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"{name} must be real, got {x.dtype}: give the phase (and absorption), not the complex transmittance"
            )
        return np.ascontiguousarray(x, self.dtype)

    def transmittance(self, x: RealArray) -> ComplexArray:
        """o(x)."""
        return self.object.transmittance(self.check_x(x), engine=self.engine)

    def sample(self, x: RealArray) -> ComplexArray:
        """o(x) without the curvature of the light."""
        return self.object.sample(self.transmittance(x))

    def spectrum(self, transmittance: ComplexArray, out: ComplexArray | None = None) -> ComplexArray:
        """F o: unnormalised FFT of the object, DC first; into ``out`` if it is given."""
        return self._transform(self.on_grid("transmittance", transmittance), out, forward=True)

    def inverse_spectrum(self, spectrum: ComplexArray, out: ComplexArray | None = None) -> ComplexArray:
        """F⁻¹: the inverse of :meth:`spectrum`; ``out`` may be ``spectrum`` itself."""
        return self._transform(self.on_grid("spectrum", spectrum), out, forward=False)

    def _transform(self, array: ComplexArray, out: ComplexArray | None, *, forward: bool) -> ComplexArray:
        kernels = kernels_of(self.engine)
        array = np.ascontiguousarray(array, self.complex_dtype)
        out = np.empty_like(array) if out is None else out
        kernels.fft2(array, out, forward, 1.0 if forward else 1.0 / array.size, thread_count())
        return out

    def intensity(self, x: RealArray, leds: LEDs = None) -> RealArray:
        """Σ_m w_m |H_m o(x)|² for each LED of ``leds`` (all by default), of shape (LEDs, rows, columns)."""
        kernels = kernels_of(self.engine)
        indices = self.led_indices(leds)
        spectrum = self.spectrum(self.transmittance(x))
        out = np.empty((len(indices), *self.frame_shape), self.dtype)
        size = self.pupils.at_once
        points = self.sources.are_points
        kernel = kernels.intensities if points else kernels.summed_intensities
        for part, sources, bounds in self.sources.groups(indices, size):
            arguments = (
                *(spectrum, *self.pupils(sources), self.box_rows[sources], self.box_columns[sources]),
                *(() if points else (bounds,)),
                *(*self.geometry.grid_shape, self.geometry.margin, out[part]),
            )
            run_sliced(lambda start, stop, a=arguments: kernel(*a, start, stop), len(out[part]))  # type: ignore[misc]
        return out

    def field(self, x: RealArray, leds: LEDs = None) -> ComplexArray:
        """√w_m H_m o(x): the complex fields at the camera, inside the window, one for each *source* of ``leds``.

        A frame is the sum of the |·|² of its sources' fields; ``model.sources.of(leds)`` says whose they are.
        """
        return self.apply(self.transmittance(x), leds)

    def apply(self, transmittance: ComplexArray, leds: LEDs = None) -> ComplexArray:
        """√w_m H_m o of each source of ``leds`` for a complex object o, which is linear in it."""
        return plain.apply(self, transmittance, leds)

    def adjoint(self, fields: ComplexArray, leds: LEDs = None) -> ComplexArray:
        """Σ_m √w_m H_m† fields_m: from the sources' fields at the camera back to the object."""
        return plain.adjoint(self, fields, leds)

    @door
    def coverage(self, leds: LEDs = None, weights: ArrayLike | None = None) -> RealArray:
        """Σ_i w_i |P_i|² at every frequency of the object (DC first), scaled as H: how firmly LEDs determine it.

        Without a margin H_i†H_i is diagonal in the spectrum, and this is the diagonal of Σ_i w_i H_i†H_i; with one it
        is an upper bound. It is zero outside the band, where no LED sees anything. Weights are 1 by default. For an LED
        with several sources, |P_i|² is the sum over them, each with its own weight.
        """
        kernels = kernels_of(self.engine)
        indices = self.led_indices(leds)
        factors = np.ones(len(indices)) if weights is None else np.asarray(weights, np.float64)
        if factors.shape != indices.shape:
            raise InvalidInputError(f"weights: one per LED is needed, {len(indices)}, got shape {factors.shape}")
        factors = factors * (np.prod(self.geometry.grid_shape) / np.prod(self.object_shape))
        out = np.zeros(self.object_shape, self.dtype)
        for part, sources, bounds in self.sources.groups(indices, self.pupils.at_once):
            arguments = (
                *(*self.pupils(sources), self.box_rows[sources], self.box_columns[sources]),
                *(np.repeat(factors[part], np.diff(bounds)), out),
            )
            run_sliced(lambda start, stop, a=arguments: kernels.add_coverage(*a, start, stop), out.shape[0])  # type: ignore[misc]
        return out

    def pull_back(self, transmittance: ComplexArray, derivative: ComplexArray) -> RealArray:
        """∇_x d from W = ∂d/∂ō (see :mod:`fouriscope.forward.objects`)."""
        arrays = (self.on_grid("transmittance", transmittance), self.on_grid("derivative", derivative))
        o, w = (array.astype(self.complex_dtype, copy=False) for array in arrays)
        return self.object.pull_back(o, w, self.engine)


def _checked_gains(gains: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    if gains is None:
        return None
    checked = np.array(gains, np.float64)
    if checked.shape != (count,) or not (np.isfinite(checked).all() and (checked > 0).all()):
        raise InvalidInputError(
            f"gains must be {count} positive numbers, one per LED, got shape {checked.shape}"
            + (f" from {checked.min():g} to {checked.max():g}" if checked.size else "")
        )
    checked.setflags(write=False)
    return checked
