"""The images of a run as the page wants them: float32, with their scale."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.colours import COLOURS
from fouriscope.errors import RunFolderError
from fouriscope.run import schema
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.snapshot import SNAPSHOT_NAME, Snapshot, read_snapshot, snapshot_images
from fouriscope.run.stored_arrays import LARGEST_IMAGE, read_npy, read_tiff, reading

FloatImage = NDArray[np.float32]
# The order in which the page offers them.
IMAGE_NAMES = ("phase", "amplitude", "spectrum", "pupil_amplitude", "pupil_phase", "phase_flat")
# Of three wavelengths, on one grid.
COLOUR_NAMES = tuple(f"{name}_{colour}" for name in ("amplitude", "phase_flat") for colour in COLOURS)
METRES_TO_MICROMETRES = 1e6
MICROMETRES_IN_A_CENTIMETRE = 1e4
# Of some dozen images that are made at once each would have its arrays in memory.
ONE_AT_A_TIME = threading.RLock()
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
            self.files.path(SNAPSHOT_NAME)  # raises if it is a way out of the folder
            held = snapshot_images(self.files.root)
            absorbs, has_pupil = "absorption" in held, "pupil" in held
        else:
            absorbs, has_pupil = self._has("amplitude.ome.tif"), self._has("pupil.npy")
        wanted = {"phase": True, "phase_flat": self._is_flattened(), "amplitude": absorbs, "spectrum": True}
        wanted |= {"pupil_amplitude": has_pupil, "pupil_phase": has_pupil}
        return [name for name in IMAGE_NAMES if wanted[name]]

    def image(self, name: str) -> ShownImage:
        """One of :data:`IMAGE_NAMES`; raises if the run has none."""
        if self.source() is None:
            raise RunFolderError("this run has no picture yet; one is written after the first iteration")
        with ONE_AT_A_TIME, reading(name):
            if name == "phase_flat":
                made = self._flattened() if self._is_flattened() else None
            else:
                made = self._of_snapshot(name) if self.source() == SNAPSHOT_NAME else self._of_result(name)
        if made is None:
            raise RunFolderError(f"this run has no {name.replace('_', ' ')}")
        return made

    def snapshot(self) -> Snapshot:
        """snapshot.npz, which must be there."""
        self.files.path(SNAPSHOT_NAME)
        with ONE_AT_A_TIME:
            snapshot = read_snapshot(self.files.root)
        if snapshot is None:
            raise RunFolderError(f"{SNAPSHOT_NAME} is gone")
        return snapshot

    def _of_snapshot(self, name: str) -> ShownImage | None:
        snapshot = self.snapshot()
        amplitude = None if snapshot.absorption is None else np.exp(-snapshot.absorption)
        if name.startswith("pupil"):
            return None if snapshot.pupil is None else _pupil(snapshot.pupil, snapshot.pupil_na_step, name)
        return _object(name, snapshot.phase, amplitude, snapshot.pixel, snapshot.wavelength)

    def _of_result(self, name: str) -> ShownImage | None:
        geometry = self._json("result/geometry.json", schema.Geometry) if self._has("geometry.json") else {}
        if name.startswith("pupil"):
            if not self._has("pupil.npy"):
                return None
            pupil = read_npy(self.files, "result/pupil.npy")
            if pupil.ndim != 2 or pupil.dtype.kind != "c":
                raise RunFolderError(f"result/pupil.npy: expected a complex image, got {pupil.dtype} {pupil.shape}")
            return _pupil(pupil, geometry.get("pupil", {}).get("na_step", (0.0, 0.0)), name)
        pixel = self._json("result/summary.json", schema.Summary)["pixel_size_m"]
        phase = self._tiff("phase.ome.tif")
        amplitude = self._tiff("amplitude.ome.tif") if self._has("amplitude.ome.tif") and name != "phase" else None
        if amplitude is not None and amplitude.shape != phase.shape:
            raise RunFolderError(f"phase and amplitude differ in shape, {phase.shape} and {amplitude.shape}")
        return _object(name, phase, amplitude, pixel, geometry.get("wavelength_m", 0.0))

    def _is_flattened(self) -> bool:
        """Whether there is a phase without its background that belongs to the rest: not while a run goes on."""
        return self._has("phase_flat.ome.tif") and self.files.json("status.json").get("state") != "running"

    def _flattened(self) -> ShownImage | None:
        pixel = self._json("result/summary.json", schema.Summary)["pixel_size_m"]
        return _object("phase", self._tiff("phase_flat.ome.tif"), None, pixel, 0.0)

    def _has(self, name: str) -> bool:
        return self.files.exists(f"result/{name}")

    def _tiff(self, name: str) -> FloatImage:
        return read_tiff(self.files, f"result/{name}", largest=LARGEST_IMAGE)

    def _json(self, name: str, kind: type[schema.Part]) -> dict[str, Any]:
        found: dict[str, Any] = schema.checked(kind, self.files.json(name), name)
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
