"""What comes out of a reconstruction."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope import metrics, plots
from fouriscope.errors import RunFolderError
from fouriscope.forward import ForwardModel
from fouriscope.run.files import atomic_write, write_json
from fouriscope.run.folder import RunFolder
from fouriscope.solvers import History


@dataclass(frozen=True, eq=False)
class Result:
    """A reconstruction, cut to the measured window.

    Attributes
    ----------
    phase
        φ in radians, up to a constant that no intensity can show.
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
    """

    phase: NDArray[Any]
    absorption: NDArray[Any] | None
    history: History
    pixel: tuple[float, float]
    stop_reason: str
    config: dict[str, Any]
    provenance: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: ForwardModel,
        x: NDArray[Any],
        history: History,
        stop_reason: str,
        config: dict[str, Any],
        provenance: dict[str, Any],
    ) -> Result:
        images = [image[model.geometry.object_window].copy() for image in model.object.images(x)]
        absorption = images[1] if len(images) > 1 else None
        return cls(images[0], absorption, history, model.object_pixel, stop_reason, config, provenance)

    @property
    def amplitude(self) -> NDArray[Any]:
        """|o| = e^{−μ}; all ones for a phase object."""
        return np.ones_like(self.phase) if self.absorption is None else np.exp(-self.absorption)

    @property
    def transmittance(self) -> NDArray[Any]:
        """o, complex."""
        return (self.amplitude * np.exp(1j * self.phase)).astype(np.result_type(self.phase.dtype, np.complex64))

    def snr(self, truth: NDArray[Any]) -> metrics.SNR:
        """SNR of the phase in dB against the truth: without the constant that cannot be observed, and raw."""
        return metrics.snr_both(self.phase, truth)

    def save(self, path: str | Path) -> Path:
        """Write a run folder: the same files that the command line writes, but for the checkpoint."""
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
        """The ``result`` folder of a run: built beside, then renamed."""
        building = folder.path / ".result.part"
        shutil.rmtree(building, ignore_errors=True)
        try:
            building.mkdir()
            self._write_files(building)
            folder.replace_result(building)
        except OSError as error:
            shutil.rmtree(building, ignore_errors=True)
            raise RunFolderError(f"{folder.path / 'result'}: cannot be written ({error.strerror or error})") from error

    def _write_files(self, target: Path) -> None:
        import zarr

        _write_tiff(target / "phase.tif", self.phase, self.pixel)
        if self.absorption is not None:
            _write_tiff(target / "amplitude.tif", self.amplitude, self.pixel)
        field = self.transmittance
        array = zarr.create_array(str(target / "object.zarr"), shape=field.shape, dtype=field.dtype, chunks=(256, 256))
        array[...] = field
        array.attrs["pixel_size_m"] = list(self.pixel)
        last = self.history.last.as_dict() if len(self.history) else {}
        write_json(
            target / "summary.json",
            {"shape": list(self.phase.shape), "pixel_size_m": list(self.pixel), "stopped": self.stop_reason} | last,
        )
        figure = plots.result_figure(
            self.phase,
            None if self.absorption is None else self.amplitude,
            {"iteration": self.history["iteration"], "misfit": self.history["misfit"]},
            pixel=self.pixel[0],
        )
        plots.save_figure(figure, target / "figure.png")


def _write_tiff(path: Path, image: NDArray[Any], pixel: tuple[float, float]) -> None:
    """A float TIFF with its pixel size, as ImageJ and Fiji read it."""
    import tifffile

    micrometres = [size * 1e6 for size in pixel]
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        image.astype(np.float32),
        imagej=True,
        resolution=(1 / micrometres[1], 1 / micrometres[0]),
        metadata={"unit": "um", "axes": "YX"},
    )
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
