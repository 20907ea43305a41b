"""What comes out of a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope import metrics
from fouriscope.acquisition.thumbnails import image_uri, page, thinned
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray
from fouriscope.run.folder import RunFolder
from fouriscope.run.phase_background import order_of
from fouriscope.run.phases import flattened, is_continuous, unwrap, wrap
from fouriscope.run.result_figure import figure_of
from fouriscope.run.result_files import read_result_files, write_result_files
from fouriscope.run.result_geometry import ResultGeometry
from fouriscope.solvers import History
from fouriscope.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A reconstruction, cut to the measured window.

    Attributes
    ----------
    phase
        φ in radians as the solver found it, up to a constant that no intensity can show. It may go beyond ±π;
        ``wrapped_phase`` and ``unwrapped_phase`` differ from it by whole turns, ``flattened_phase`` by a background.
    absorption
        μ (amplitude = e^{−μ}), or None for a phase object.
    history
        What happened, iteration by iteration.
    pixel
        (height, width) of a pixel in metres.
    stop_reason
        Why the solver stopped.
    config, provenance
        As resolved; what :meth:`save` writes.
    pupil
        The complex pupil on the frequency grid of the frame (margins included), zero frequency at n//2: the model's,
        or as recovered (``pupil_recovered``). None in a result that was put together without a model.
    pupil_recovered
        Whether ``pupil`` was found during the reconstruction.
    pupil_na_step
        NA from bin to bin of ``pupil``, (down, across): λ·du.
    geometry
        Directions, intensities and scalars of the light, as used or as recovered.
    verdict
        Whether it is good, in numbers and one sentence; None if it was not judged.
    """

    phase: NDArray[Any]
    absorption: NDArray[Any] | None
    history: History
    pixel: tuple[float, float]
    stop_reason: str
    config: dict[str, Any]
    provenance: dict[str, Any]
    pupil: ComplexArray | None = None
    pupil_na_step: tuple[float, float] | None = None
    pupil_recovered: bool = False
    geometry: ResultGeometry | None = None
    verdict: Verdict | None = None

    @classmethod
    def of(
        cls,
        model: ForwardModel,
        x: NDArray[Any],
        history: History,
        stop_reason: str,
        config: dict[str, Any],
        provenance: dict[str, Any],
        *,
        pupil: ComplexArray | None = None,
        gains: ArrayLike | None = None,
        nominal_na: ArrayLike | None = None,
        verdict: Verdict | None = None,
    ) -> Result:
        """The result x of ``model``, which is the calibrated one if there was a calibration.

        ``pupil`` is a recovered pupil, instead of the model's, on the frame's frequency grid; ``gains`` are recovered
        intensities, one per frame; ``nominal_na`` are the directions from which a calibration started.
        """
        grid = model.geometry.grid_shape
        if nominal_na is not None and np.array_equal(nominal_na, model.geometry.na):
            nominal_na = None  # nothing was moved
        if pupil is not None and np.shape(pupil) != grid:
            raise InvalidInputError(
                f"the pupil must lie on the frame's frequency grid, margins included: expected shape {grid}, got "
                f"{np.shape(pupil)}"
            )
        window = model.geometry.object_window
        phase, absorption = model.object.phase_and_absorption(x)
        step_y, step_x = model.geometry.frequency_step
        wavelength = model.optics.wavelength
        return cls(
            phase[window].copy(),
            None if absorption is None else absorption[window].copy(),
            history,
            model.object_pixel,
            stop_reason,
            config,
            provenance,
            pupil=model.pupil_on_grid() if pupil is None else np.array(pupil, model.complex_dtype),
            pupil_na_step=(wavelength * step_y, wavelength * step_x),
            pupil_recovered=pupil is not None,
            geometry=ResultGeometry.of(model, gains=gains, nominal_na=nominal_na),
            verdict=verdict,
        )

    @classmethod
    @door
    def load(cls, path: str | Path) -> Result:
        """The result of a run folder, as :meth:`save` or the command line wrote it.

        Phase, pupil, geometry, history and verdict come back as they were. The last digit of the amplitude may differ,
        because files hold e^{−μ} and not μ. Raises :class:`~fouriscope.errors.RunFolderError` if there is no result.

        Examples
        --------
        >>> import tempfile, numpy as np, fouriscope as fs
        >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), frame_shape=(16, 16))
        >>> data = fs.simulate(model, np.eye(*model.object_shape), seed=0)
        >>> result = fs.reconstruct(data, batch=10, iterations=5, seed=0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     loaded = fs.Result.load(result.save(f"{place}/run"))
        >>> bool(np.array_equal(loaded.phase, result.phase)), loaded.stop_reason
        (True, '5 iterations')
        """
        folder = RunFolder.open(path)
        provenance, state = folder.provenance(), folder.status().get("state")
        if provenance.get("kind") == "field":
            raise RunFolderError(
                f"{folder.path} is a whole field, which may be larger than the memory; open its "
                "result/field.ome.zarr and result/object.zarr with zarr, a part at a time"
            )
        if provenance.get("kind") == "colour":
            raise RunFolderError(f"{folder.path} has three channels: load it with fs.ColourResult.load")
        if state not in ("finished", "interrupted") or not (folder.path / "result").is_dir():
            raise RunFolderError(
                f"{folder.path}: the run is {state} and has no result yet; wait for it, or continue it with: "
                f"fouriscope resume {folder.path}"
            )
        return cls(
            history=folder.history(), config=folder.config(), provenance=provenance, **read_result_files(folder.files)
        )

    def __repr__(self) -> str:
        rows, columns = self.phase.shape
        finite = self.phase[np.isfinite(self.phase)]
        span = f", from {finite.min():.3g} to {finite.max():.3g} rad" if finite.size else ""
        images = "phase" if self.absorption is None else "phase and amplitude"
        size = f"{rows} × {columns} pixels of {self.pixel[1] * 1e6:.3g} µm"
        judged = "" if self.verdict is None else f"\n{self.verdict.sentence}"
        return f"Result: {images} of {size}{span}; {self.history!r}{judged}"

    def _repr_html_(self) -> str:
        """For notebooks: phase without its background and amplitude, with the verdict below."""

        def flat() -> str:
            amplitude = None if self.absorption is None else np.exp(-thinned(self.absorption))
            return image_uri(flattened(thinned(self.phase), amplitude))

        pictures = {"phase, without its background": flat}
        if self.absorption is not None:
            pictures["amplitude"] = lambda: image_uri(np.exp(-thinned(np.asarray(self.absorption))))
        return page(repr(self), pictures)

    @property
    def wrapped_phase(self) -> NDArray[Any]:
        """The phase in (−π, π]."""
        return wrap(self.phase)

    @property
    def unwrapped_phase(self) -> NDArray[Any]:
        """The phase without jumps of 2π, where neighbours differ by less than π: see :mod:`fouriscope.run.phases`."""
        return unwrap(self.phase)

    @property
    def phase_background(self) -> str:
        """What :attr:`flattened_phase` has subtracted, as ``[output] phase_background`` of the configuration says."""
        return str(self.config.get("output", {}).get("phase_background", "curved"))

    @property
    def flattened_phase(self) -> NDArray[Any]:
        """The unwrapped phase without its background, which is at 0: for viewing, not for measuring.

        :attr:`phase_background` says what is subtracted. :meth:`flattened` lets you choose.
        """
        return self.flattened(self.phase_background)

    def flattened(self, background: str) -> NDArray[Any]:
        """The unwrapped phase without its background: "none", "constant", "plane" or "curved".

        See :func:`fouriscope.run.phase_background.background` for how it is found.

        Examples
        --------
        >>> from dataclasses import replace
        >>> import numpy as np, fouriscope as fs
        >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), frame_shape=(16, 16))
        >>> data = fs.simulate(model, np.eye(*model.object_shape), seed=0)
        >>> result = fs.reconstruct(data, batch=10, iterations=1, seed=0)
        >>> tilted = replace(result, phase=np.add.outer(np.zeros(9), np.arange(8.0)))
        >>> [round(float(np.ptp(tilted.flattened(name))), 6) for name in ("constant", "plane")]
        [7.0, 0.0]
        """
        order = order_of(background)
        if order is None:
            return self.unwrapped_phase
        return flattened(self.phase, None if self.absorption is None else self.amplitude, order=order)

    @property
    def amplitude(self) -> NDArray[Any]:
        """|o| = e^{−μ}; all ones for a phase object."""
        return np.ones_like(self.phase) if self.absorption is None else np.exp(-self.absorption)

    @property
    def transmittance(self) -> NDArray[Any]:
        """o, complex."""
        return (self.amplitude * np.exp(1j * self.phase)).astype(np.result_type(self.phase.dtype, np.complex64))

    def plot(self) -> Figure:
        """A figure of the result: phase, amplitude, spectrum, misfit, pupil, LEDs and verdict on one page.

        It is the ``figure.png`` that :meth:`save` writes. The phase is drawn without its background.

        Examples
        --------
        >>> import numpy as np, fouriscope as fs
        >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), frame_shape=(16, 16))
        >>> data = fs.simulate(model, np.eye(*model.object_shape), seed=0)
        >>> figure = fs.reconstruct(data, batch=10, iterations=5, seed=0).plot()
        >>> type(figure).__name__
        'Figure'
        """
        return figure_of(self, self.flattened_phase, jumps=not is_continuous(self.phase))

    @door
    def snr(self, truth: NDArray[Any]) -> metrics.SNR:
        """SNR of the phase in dB against the truth: without the constant that cannot be observed, and raw."""
        return metrics.snr_both(self.phase, truth)

    def save(self, path: str | Path) -> Path:
        """Write a run folder: the same files that the command line writes, except the checkpoint.

        :meth:`load` reads it again.
        """
        folder = RunFolder.create(path, self.config, self.provenance)
        try:
            for record in self.history:
                folder.append(record)
            self.write_into(folder)
            folder.write_status("finished", self.stop_reason)
        finally:
            folder.close()
        return folder.path

    def write_into(self, folder: RunFolder) -> None:
        """Make it the ``result`` of a run folder."""
        folder.write_result(lambda building: write_result_files(self, building))
