"""The images of a run as the page wants them: float32, with their scale."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.run.snapshot import SNAPSHOT_NAME, Snapshot, read_snapshot
from fouriscope.viewer.folder_files import FolderFiles

FloatImage = NDArray[np.float32]
# The order in which the page offers them.
IMAGE_NAMES = ("phase", "amplitude", "spectrum", "pupil_amplitude", "pupil_phase")
METRES_TO_MICROMETRES = 1e6
MICROMETRES_IN_A_CENTIMETRE = 1e4
# Below 1e-7 of its brightest point a spectrum of float32 is noise of the arithmetic.
SPECTRUM_FLOOR = 1e-7


@dataclass(frozen=True, eq=False)
class ShownImage:
    """An image and what its pixels mean.

    ``step`` is (down, across) from pixel to pixel in ``axis_unit`` ("um", "NA", or "px" where nothing is known), and
    ``centred`` whether zero is in the middle (n//2) or in the corner. ``unit`` is that of the values.
    """

    values: FloatImage
    step: tuple[float, float]
    axis_unit: str
    unit: str
    centred: bool = False

    def as_tiff(self, title: str) -> bytes:
        """32-bit float. Lengths stand in the resolution tags; what a step in NA is, in the description."""
        import tifffile

        step_y, step_x = self.step
        scale: dict[str, object] = {}
        if self.axis_unit == "um":
            scale = {
                "resolution": (MICROMETRES_IN_A_CENTIMETRE / step_x, MICROMETRES_IN_A_CENTIMETRE / step_y),
                "resolutionunit": "CENTIMETER",
            }
        buffer = io.BytesIO()
        tifffile.imwrite(
            buffer,
            self.values,
            photometric="minisblack",
            description=(
                f"{title.encode('ascii', 'replace').decode()}; values in {self.unit or 'units of the bright field'}; "
                f"a pixel is {step_y!r} {self.axis_unit} high and {step_x!r} {self.axis_unit} wide"
            ),
            metadata=None,
            software="fouriscope",
            **scale,
        )
        return buffer.getvalue()


class RunImages:
    """Images of one run folder: of its snapshot, or of its result where it has none (one saved from Python)."""

    def __init__(self, files: FolderFiles) -> None:
        self.files = files

    def source(self) -> str | None:
        """The file that the images are made of, or None where there is nothing to see yet."""
        return next((name for name in (SNAPSHOT_NAME, "result/phase.ome.tif") if self.files.exists(name)), None)

    def names(self) -> list[str]:
        """What there is to see."""
        source = self.source()
        if source is None:
            return []
        if source == SNAPSHOT_NAME:
            snapshot = self.snapshot()
            absorbs, has_pupil = snapshot.absorption is not None, snapshot.pupil is not None
        else:
            absorbs, has_pupil = (self.files.exists(f"result/{name}") for name in ("amplitude.ome.tif", "pupil.npy"))
        wanted = {"phase": True, "amplitude": absorbs, "spectrum": True}
        wanted |= {"pupil_amplitude": has_pupil, "pupil_phase": has_pupil}
        return [name for name in IMAGE_NAMES if wanted[name]]

    def image(self, name: str) -> ShownImage:
        """One of :data:`IMAGE_NAMES`; raises if the run has none."""
        if self.source() is None:
            raise RunFolderError("this run has no picture yet; one is written after the first iteration")
        try:
            made = self._of_snapshot(name) if self.source() == SNAPSHOT_NAME else self._of_result(name)
        except FouriscopeError:
            raise
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise RunFolderError(f"{name} cannot be read: {error}") from error
        if made is None:
            raise RunFolderError(f"this run has no {name.replace('_', ' ')}")
        return made

    def snapshot(self) -> Snapshot:
        """snapshot.npz, which must be there."""
        self.files.path(SNAPSHOT_NAME)
        snapshot = read_snapshot(self.files.root)
        if snapshot is None:
            raise RunFolderError(f"{SNAPSHOT_NAME} is gone")
        if snapshot.phase.ndim != 2 or not snapshot.phase.size:
            raise RunFolderError(f"{SNAPSHOT_NAME}: the phase must be an image, it has shape {snapshot.phase.shape}")
        return snapshot

    def _of_snapshot(self, name: str) -> ShownImage | None:
        snapshot = self.snapshot()
        amplitude = None if snapshot.absorption is None else np.exp(-snapshot.absorption)
        if name.startswith("pupil"):
            return None if snapshot.pupil is None else _pupil(snapshot.pupil, snapshot.pupil_na_step, name)
        return _object(name, snapshot.phase, amplitude, snapshot.pixel, snapshot.wavelength)

    def _of_result(self, name: str) -> ShownImage | None:
        geometry = self._json("result/geometry.json") if self.files.exists("result/geometry.json") else {}
        if name.startswith("pupil"):
            if not self.files.exists("result/pupil.npy"):
                return None
            pupil = np.load(io.BytesIO(self.files.data("result/pupil.npy")), allow_pickle=False)
            return _pupil(pupil, geometry.get("pupil", {}).get("na_step", (0.0, 0.0)), name)
        pixel = self._json("result/summary.json")["pixel_size_m"]
        has_amplitude = self.files.exists("result/amplitude.ome.tif")
        amplitude = self._tiff("result/amplitude.ome.tif") if has_amplitude and name != "phase" else None
        return _object(name, self._tiff("result/phase.ome.tif"), amplitude, pixel, geometry.get("wavelength_m", 0.0))

    def _tiff(self, name: str) -> FloatImage:
        import tifffile

        image = np.squeeze(tifffile.imread(self.files.path(name)))
        if image.ndim != 2:
            raise RunFolderError(f"{name}: expected one image, got shape {image.shape}")
        return np.asarray(image, np.float32)

    def _json(self, name: str) -> dict[str, Any]:
        found = json.loads(self.files.text(name))
        if not isinstance(found, dict):
            raise RunFolderError(f"{name}: expected an object of JSON, got {type(found).__name__}")
        return found


def _object(
    name: str, phase: FloatImage, amplitude: FloatImage | None, pixel: Any, wavelength: float
) -> ShownImage | None:
    height, width = float(pixel[0]), float(pixel[1])
    step = (height * METRES_TO_MICROMETRES, width * METRES_TO_MICROMETRES)
    if name == "phase":
        return ShownImage(_float(phase), step, "um", "rad")
    if name == "amplitude":
        return None if amplitude is None else ShownImage(_float(amplitude), step, "um", "")
    rows, columns = phase.shape
    na_step = (wavelength / (rows * height), wavelength / (columns * width))
    return ShownImage(log_spectrum(phase, amplitude), na_step, "NA" if wavelength else "px", "log10", centred=True)


def _pupil(pupil: NDArray[Any], na_step: Any, name: str) -> ShownImage:
    step_y, step_x = float(na_step[0]), float(na_step[1])
    values, unit = (np.abs(pupil), "") if name == "pupil_amplitude" else (np.angle(pupil), "rad")
    if name == "pupil_phase":
        values = np.where(np.abs(pupil) > 0, values, np.nan)  # where no light passes there is no phase
    known = step_y > 0 and step_x > 0
    return ShownImage(
        _float(values), (step_y, step_x) if known else (1.0, 1.0), "NA" if known else "px", unit, centred=True
    )


def log_spectrum(phase: FloatImage, amplitude: FloatImage | None) -> FloatImage:
    """log₁₀ of |F o| over its highest value, zero frequency in the middle."""
    from scipy.fft import fft2, fftshift

    field = np.exp(1j * np.nan_to_num(phase).astype(np.float32))
    if amplitude is not None:
        field *= np.nan_to_num(amplitude)
    magnitude = np.abs(fftshift(fft2(field)))
    return _float(np.log10(np.maximum(magnitude / max(float(magnitude.max()), 1e-30), SPECTRUM_FLOOR)))


def _float(values: Any) -> FloatImage:
    return np.ascontiguousarray(values, np.float32)
