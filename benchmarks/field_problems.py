"""One simulated field of 512² frames as users would have it, as Zarr for tiles, and configurations that look at it."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from benchmarks import microscope
from benchmarks.online_run import peak_bytes
from fouriscope.acquisition import ArrayFrames
from fouriscope.acquisition.tiled_store import write_tiled
from fouriscope.field.dispatch import run_all
from fouriscope.field.local import LocalWorkers
from fouriscope.field.reconstruct import FieldResult, reconstruct_tiles
from fouriscope.field.simulated import FieldSimulation, field_curvature, simulate_field
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, paper_leds
from fouriscope.run import load_config
from fouriscope.simulation import Camera

SIDE = 512
RADIUS = 4.5  # pitches: 69 LEDs
PHOTONS = 10_000
PHASE_RANGE = 1.0
CURVATURE = 20e-6  # of the field, in metres of defocus at its corner
# Object pixels per pixel of a picture. The microscope resolves a period of some five object pixels, so most of what is
# in the pictures can be found.
ENLARGED = 2
LARGEST_DETAIL = 24  # object pixels, sigma of a Gaussian: 6 µm
PICTURES = ("camera", "brick", "gravel", "moon", "grass", "coins")


@dataclass(frozen=True)
class Recorded:
    """A field on disk, and what is known of it."""

    folder: Path
    frames: Path
    truth: NDArray[np.float32]
    scale: int
    offset: float
    gain: float
    leds: int
    seconds: float

    def configuration(
        self,
        name: str,
        *,
        iterations: int,
        roi: tuple[int, int, int, int] | None = None,
        stored: Path | None = None,
        side: int = SIDE,
        **sections: dict[str, Any],
    ) -> Path:
        """Write ``name``.toml: what `fouriscope simulate --field` proposes, of a part of the frames, or of others.

        The scale is told, so that the object's pixels are the truth's.
        """
        size = (side, side) if roi is None else roi[2:]
        section = {"path": str(stored or self.frames), "offset": self.offset, "gain": self.gain}
        document: dict[str, Any] = {
            "frames": section if roi is None else section | {"roi": list(roi)},
            "microscope": PAPER_MICROSCOPE,
            "illumination": {"kind": "disc", **PAPER_LEDS, "radius": RADIUS},
            "object": {"model": "phase", "shape": [self.scale * pixels for pixels in size]},
            "prior": {"name": "tv", "strength": "auto"},
            "solver": {"batch": min(60, self.leds), "start": "epry", "seed": 0},
            "stop": {"iterations": iterations},
        }
        for key, values in copy.deepcopy(sections).items():
            document[key] = document.get(key, {}) | values
        path = self.folder / f"{name}.toml"
        path.write_text(tomli_w.dumps(document), encoding="utf-8")
        return path


def mosaic(shape: tuple[int, int]) -> NDArray[np.float32]:
    """A phase with detail everywhere: pictures of scikit-image side by side."""
    import skimage.data
    from skimage.transform import resize

    side = 512 * ENLARGED
    rows, columns = (-(-size // side) for size in shape)
    image = np.empty((rows * side, columns * side), np.float32)
    for place in range(rows * columns):
        row, column = divmod(place, columns)
        picture = np.asarray(getattr(skimage.data, PICTURES[place % len(PICTURES)])(), np.float32)
        large = resize(picture, (side, side), order=3, anti_aliasing=False)
        low, high = large.min(), large.max()
        image[row * side : (row + 1) * side, column * side : (column + 1) * side] = (large - low) / (high - low)
    return image[: shape[0], : shape[1]] * np.float32(PHASE_RANGE)


def on_flat_ground(shape: tuple[int, int]) -> NDArray[np.float32]:
    """The detail of the pictures without their large areas of light and dark, as cells lie on a slide.

    Phases that change over much more than a point spread function hardly change any frame, and solvers find them last.
    """
    from scipy.ndimage import gaussian_filter

    pictures = mosaic(shape)
    detail = pictures - gaussian_filter(pictures, LARGEST_DETAIL, mode="reflect")
    low, high = detail.min(), detail.max()
    return np.asarray((detail - low) * np.float32(PHASE_RANGE) / (high - low), np.float32)


def record(
    folder: Path,
    phase: Callable[[tuple[int, int]], NDArray[np.float32]] = on_flat_ground,
    *,
    curvature: float = 0.0,
    side: int = SIDE,
    die: float = 0.0,
) -> Recorded:
    """Simulate a field whose angles, and focus with ``curvature``, change over it, and write it to ``folder``; LEDs are
    squares of side ``die``."""
    began = time.perf_counter()
    optics = microscope.optics()
    simulation = simulate_field(
        optics,
        replace(paper_leds(RADIUS), die=die),
        (side, side),
        phase,
        camera=Camera(PHOTONS, offset=100),
        seed=0,
        pupil=field_curvature(optics, (side, side), curvature) if curvature else None,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_tiled(ArrayFrames(_stack(simulation)), folder / "frames.zarr")
    return Recorded(
        folder=folder,
        frames=folder / "frames.zarr",
        truth=simulation.truth,
        scale=simulation.model.scale,
        offset=simulation.offset,
        gain=simulation.gain,
        leds=simulation.shape[0],
        seconds=time.perf_counter() - began,
    )


def _stack(simulation: FieldSimulation) -> NDArray[Any]:
    stack = np.empty(simulation.shape, simulation.dtype)
    for place, frame in zip(stack, simulation.frames(), strict=True):
        place[:] = frame
    return stack


def copies(recorded: Recorded, times: int) -> Path:
    """Frames ``times`` as large along a side, of copies side by side: as much to hold, with nothing simulated."""
    import zarr

    stack = np.asarray(zarr.open_array(str(recorded.frames), mode="r")[...])
    path = recorded.folder / f"frames{times}.zarr"
    write_tiled(ArrayFrames(np.tile(stack, (1, times, times))), path)
    return path


def run(configuration: Path, out: Path, client: Any, **options: Any) -> FieldResult:
    """`fouriscope field` on a cluster that is there; a tile that fails is an error."""
    result = reconstruct_tiles(load_config(configuration), configuration.parent, out, client, **options)
    if result.failed:
        raise RuntimeError(f"tiles of {configuration.name} failed: {result.failed}")
    return result


def stitched(out: Path) -> NDArray[np.float32]:
    """The phase of the whole field."""
    import zarr

    return np.asarray(zarr.open_group(str(out / "result" / "field.ome.zarr"), mode="r")["0"][0])


def fingerprint(out: Path) -> str:
    """A checksum of the complex object and of every level of the pyramid."""
    import zarr

    digest = hashlib.sha256(np.asarray(zarr.open_array(str(out / "result" / "object.zarr"), mode="r")[...]).tobytes())
    group = zarr.open_group(str(out / "result" / "field.ome.zarr"), mode="r")
    for name in sorted(group.array_keys()):
        digest.update(np.asarray(group[name]).tobytes())
    return digest.hexdigest()


def peak_of_workers(workers: LocalWorkers) -> int:
    """The peak memory of the largest of them, in bytes."""
    return max(int(peak) for _, peak in run_all(workers, [(number, _own_peak, ()) for number in range(workers.wanted)]))


def _own_peak() -> int:
    time.sleep(1.0)  # so that each worker gets one such task
    return peak_bytes()
