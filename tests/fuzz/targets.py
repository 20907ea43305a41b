"""What is fuzzed: a valid folder for each format, configuration and run, and the commands that it is handed to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import tifffile
import tomli_w
import zarr
from PIL import Image

from fouriscope.run import RunFolder, load_config, start_run
from tests.acquisition.test_readers import COUNTS, FORMATS, SCALARS, micro_manager
from tests.acquisition.test_storage import folder_of
from tests.run.problems import document, write_acquisition

Command = list[str]


@dataclass(frozen=True)
class Target:
    """``build`` writes a valid input into an empty folder and returns what the command is given.

    ``commands`` are run one after the other, as long as they succeed, in the folder's own working directory. A target
    that takes seconds has its turn in ``every`` n-th round only.
    """

    name: str
    build: Callable[[Path], Path]
    commands: Callable[[Path], list[Command]]
    asks_page: bool = False
    every: int = 1

    @property
    def group(self) -> str:
        """The row of the short table."""
        kind = self.name.partition(":")[0]
        named = {"description": "descriptions, looked at", "reconstruction": "descriptions, reconstructed"}
        return named.get(
            kind, "run folders" if self.asks_page else f"files of {len(SELF_DESCRIBED) + len(PLAIN_FILES)} kinds"
        )


# What a plain stack of frames does not say.
PLAIN = (
    "microscope.wavelength=513e-9", "microscope.na=0.2", "microscope.magnification=8.1485",
    "microscope.camera_pixel=6.5e-6", "illumination.kind=square", "illumination.shape=[3, 6]",
    "illumination.pitch=4e-3", "illumination.height=70e-3",
)  # fmt: skip


def _import_and_look(path: Path, sets: tuple[str, ...] = ()) -> list[Command]:
    said = [part for value in sets for part in ("--set", value)]
    return [["import", str(path), "-o", "out/acquisition.toml", *said], ["info", "out/acquisition.toml"]]


def _complete_and_look(path: Path) -> list[Command]:
    return _import_and_look(path, PLAIN)


def _tiff(folder: Path, **options: Any) -> Path:
    tifffile.imwrite(folder / "a.tif", COUNTS, **options)
    return folder / "a.tif"


def _ome(folder: Path) -> Path:
    tifffile.imwrite(folder / "a.ome.tif", COUNTS, metadata={"axes": "TYX", "PhysicalSizeX": 0.8})
    return folder / "a.ome.tif"


def _zarr(folder: Path) -> Path:
    zarr.save_array(str(folder / "a.zarr"), COUNTS)
    return folder / "a.zarr"


def _png(folder: Path) -> Path:
    (folder / "f").mkdir()
    for number, image in enumerate(COUNTS):
        Image.fromarray(image).save(folder / "f" / f"l_{number:02d}.png")
    return folder / "f"


def _npy(folder: Path) -> Path:
    np.save(folder / "a.npy", COUNTS)
    return folder / "a.npy"


def _uconn(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    stack = (0.01 * rng.poisson(40, (24, 20, 9))) ** 0.75
    scipy.io.savemat(
        folder / "u.mat", {"imlow_HDR": stack.astype(np.float32), "wlength": 5.32e-7, "theta": 0, "z": 1e-5}
    )
    return folder / "u.mat"


def _scalars(name: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        SCALARS[name](folder / name)
        return folder / name

    return build


SELF_DESCRIBED = FORMATS | {"UConn MATLAB": _uconn}
PLAIN_FILES: dict[str, Callable[[Path], Path]] = {
    "Micro-Manager": micro_manager,
    "TIFF": _tiff,
    "TIFF, deflate": lambda folder: _tiff(folder, compression="zlib", predictor=True),
    "TIFF, tiles": lambda folder: _tiff(folder, tile=(16, 16)),
    "OME-TIFF": _ome,
    "Zarr": _zarr,
    "folder of png": _png,
    "folder of npy": lambda folder: folder_of(folder / "f", ".npy", COUNTS),
    "npy": _npy,
    **{f"scalars in {name}": _scalars(name) for name in SCALARS},
}

# Two descriptions that together use most keys of the reference.
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "phase, PnP": document(
        frames={"truth": "truth.npy"},
        prior={"name": "tv", "strength": 1e-3},
        stop={"iterations": 3, "seconds": 5.0},
        calibration={"gains": True, "zernike": True, "zernike_modes": [4, 5, 7]},
        solver={"method": "pnp", "batch": 12, "seed": 3, "step": 0.5},
        pupil={"defocus": 1e-6, "zernike": {"5": 0.2}},
    ),
    "wave, spectral": document(
        frames={"truth": None, "roi": [0, 0, 24, 24], "offset": 0.0, "reject": "auto"},
        object={"model": "wave", "margin": 2},
        solver={"method": "spectral", "batch": 12, "loss": "amplitude"},
        stop={"iterations": 3},
    ),
    "EPRY": document(
        frames={"truth": None},
        prior={"name": "none"},
        object={"model": "complex"},
        solver={"method": "epry"},
        stop={"iterations": 2},
    ),
}


def _description(sections: dict[str, Any]) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        write_acquisition(folder)
        (folder / "config.toml").write_text(tomli_w.dumps(sections), encoding="utf-8")
        return folder / "config.toml"

    return build


def _look(path: Path) -> list[Command]:
    return [["info", str(path)]]


def _check_and_run(path: Path) -> list[Command]:
    return [["info", str(path)], ["reconstruct", str(path), "--out", "out/run"]]


def _run(*, whole: bool) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = write_acquisition(folder, stop={"iterations": 6}, calibration={"gains": True})
        start_run(load_config(path), folder, folder / "run")
        if not whole:
            RunFolder.open(folder / "run").write_status("interrupted")
        return folder / "run"

    return build


TARGETS = [
    *(Target(name, build, _import_and_look) for name, build in SELF_DESCRIBED.items()),
    *(Target(name, build, _complete_and_look) for name, build in PLAIN_FILES.items()),
    *(Target(f"description: {name}", _description(x), _look) for name, x in DESCRIPTIONS.items()),
    *(Target(f"reconstruction: {name}", _description(x), _check_and_run, every=5) for name, x in DESCRIPTIONS.items()),
    Target(
        "run, finished",
        _run(whole=True),
        lambda path: [["resume", str(path), "--iterations", "8"]],
        asks_page=True,
        every=3,
    ),
    Target("run, interrupted", _run(whole=False), lambda path: [["resume", str(path)]], asks_page=True, every=3),
]
