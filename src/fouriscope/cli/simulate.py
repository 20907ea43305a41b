"""`fouriscope simulate`: an acquisition to try things on, with the configuration that reconstructs it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics
from fouriscope.run.files import atomic_write, write_text
from fouriscope.simulation import Camera, simulate

PAPER_MICROSCOPE = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}
PAPER_LEDS = {"pitch": 4e-3, "height": 70e-3}


def paper_model(frame: int = 100, radius: float = 9.5) -> ForwardModel:
    """The microscope of the paper: 293 LEDs within 9.5 pitches, NA 0.2, 513 nm."""
    leds = LEDArray.disc(PAPER_LEDS["pitch"], PAPER_LEDS["height"], radius)
    return ForwardModel(Optics(**PAPER_MICROSCOPE), leds, (frame, frame))


def phase_image(shape: tuple[int, int], phase_range: float, path: Path | None = None) -> NDArray[np.float32]:
    """A grey image as a phase in [0, phase_range] rad, resampled to ``shape``."""
    from skimage.transform import resize

    image = _read_grey(path) if path is not None else _camera()
    image = np.asarray(resize(image, shape, anti_aliasing=True), np.float64)
    low, high = float(image.min()), float(image.max())
    if not high > low:
        raise InvalidInputError(f"{path}: the image is constant; a constant phase cannot be observed")
    return ((image - low) / (high - low) * phase_range).astype(np.float32)


def _camera() -> NDArray[np.float64]:
    from skimage.data import camera

    return np.asarray(camera(), np.float64)


def _read_grey(path: Path) -> NDArray[np.float64]:
    from skimage.io import imread

    if not path.is_file():
        raise InvalidInputError(f"{path}: no such image")
    try:
        image = np.load(path, allow_pickle=False) if path.suffix == ".npy" else imread(path)
    except (ValueError, OSError, SyntaxError) as error:
        raise InvalidInputError(f"{path}: cannot be read as an image ({error})") from error
    if image.ndim == 3 and image.shape[2] in (3, 4):
        image = image[..., :3].mean(axis=2)
    if image.ndim != 2 or min(image.shape) < 2:
        raise InvalidInputError(f"{path}: a grey or colour image was expected, got shape {image.shape}")
    if not np.all(np.isfinite(image)):
        raise InvalidInputError(f"{path}: the image holds NaN or infinite pixels")
    return np.asarray(image, np.float64)


def run_simulation(
    out: Path,
    *,
    image: Path | None,
    phase_range: float,
    snr: float,
    noise: str,
    photons: float | None,
    frame: int,
    radius: float,
    seed: int,
    console: Console,
) -> None:
    """Write frames.tif, truth.tif and config.toml into ``out``."""
    if noise not in ("stack", "frame"):
        raise InvalidInputError(f"--noise must be 'stack' or 'frame', got {noise!r}")
    if not (np.isfinite(phase_range) and phase_range > 0):
        raise InvalidInputError(f"--phase-range must be positive, got {phase_range}")
    if np.isnan(snr):
        raise InvalidInputError("--snr must be a number of decibels, got nan")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out} exists and is not empty; choose another folder")
    model = paper_model(frame, radius)
    truth = phase_image(model.object_shape, phase_range, image)
    if photons is None:
        data = simulate(model, truth, snr_db=snr, noise="stack" if noise == "stack" else "frame", seed=seed)
    else:
        data = simulate(model, truth, camera=Camera(photons, offset=100), seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    write_acquisition(out, data, {"kind": "disc", **PAPER_LEDS, "radius": radius})
    console.print(
        f"{escape(str(out))}: {len(data)} frames of {frame} × {frame}, object {truth.shape[0]} × {truth.shape[1]}\n"
        f"next: fouriscope reconstruct {escape(str(out / 'config.toml'))}"
    )


def write_acquisition(out: Path, data: Acquisition, illumination: dict[str, Any]) -> None:
    """frames.tif (one page a frame), truth.tif, and the configuration that names them, which comes last."""
    frames = data.frames
    section: dict[str, Any] = {"path": "frames.tif"}
    if isinstance(frames, CalibratedFrames):
        section |= {"offset": frames.offset, "gain": frames.gain}
        frames = frames.frames
    stack = np.stack([frames.frame(index) for index in range(len(data))])
    _write_tiff(out / "frames.tif", stack)
    if data.truth is not None:
        _write_tiff(out / "truth.tif", data.truth)
        section["truth"] = "truth.tif"
    document = {
        "frames": section,
        "microscope": PAPER_MICROSCOPE,
        "illumination": illumination,
        "prior": {"name": "tv", "strength": "auto"},
        "solver": {"batch": min(60, len(data)), "seed": 0},
        "stop": {"iterations": 300},
    }
    write_text(out / "config.toml", tomli_w.dumps(document))


def _write_tiff(path: Path, array: NDArray[Any]) -> None:
    import tifffile

    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, photometric="minisblack")
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
