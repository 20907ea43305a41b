"""`fouriscope multiplex`: the frames that several LEDs at once would have given, from those of one LED each."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from fouriscope.acquisition import multiplex
from fouriscope.acquisition.pattern_table import pattern_text, read_patterns
from fouriscope.cli.options import Quiet, check_new, console_of
from fouriscope.errors import InvalidInputError
from fouriscope.loading import description_of
from fouriscope.optics import Multiplexed
from fouriscope.optics.pattern_makers import NAMES, named_patterns
from fouriscope.optics.patterns import told_of_patterns
from fouriscope.run.aligned import WITH_PATTERNS
from fouriscope.run.config import absolute_paths
from fouriscope.run.described import CAMERA, STORAGE, Described
from fouriscope.run.files import atomic_write, write_text
from fouriscope.run.microscope import without_file
from fouriscope.run.toml_lines import toml_of
from fouriscope.settings import Alignment, RunConfig, switched

# What is done to counts before they are added, and so is no longer to be done.
DONE = (
    *("bit_shift", "amplitude", "power", "offset", "dark", "flat", "exposures", "background", "floor", "gain"),
    *("saturation", "bad_pixels", "mask", "weights", "reject", "brightness", "crosstalk", "roi", "truth"),
)


def run_multiplex(
    source: Annotated[
        Path, typer.Argument(help="The configuration of frames with one LED each, or files that state everything.")
    ],
    patterns: Annotated[str, typer.Option(help=f"A file (docs/sources.md), or {NAMES}.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="New folder for the frames, the patterns and their configuration.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of random patterns.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Add up frames of single LEDs, as if several LEDs had shone at once.

    Writes frames.npy in units of the bright field, mask.npy if some pixels do not count, patterns.csv and config.toml.
    """
    console = console_of(quiet)
    check_new(out)
    config, base = description_of(source)
    seen = Described(config, base)
    if isinstance(seen.illumination, Multiplexed):
        raise InvalidInputError(f"{source} already has several LEDs per frame; give frames of one LED each")
    path = Path(patterns)
    table = (
        read_patterns(path, len(seen.illumination))
        if path.suffix
        else named_patterns(patterns, seen.illumination, seen.optics, seed)
    )
    data = multiplex(seen.acquisition(), table)
    lights = data.illumination
    assert isinstance(lights, Multiplexed)
    frames = np.stack([data.frames.frame(index) for index in range(len(data))])
    out.mkdir(parents=True, exist_ok=True)
    _write_npy(out / "frames.npy", frames)
    has_mask = data.mask is not None
    if data.mask is not None:
        _write_npy(out / "mask.npy", _common_mask(data.mask))
    write_text(out / "patterns.csv", pattern_text(np.asarray(lights.patterns)))
    write_text(out / "config.toml", toml_of(_description(config, base, seen, has_mask=has_mask)))
    _, rows, columns = frames.shape
    console.print(
        f"{escape(str(out))}: {told_of_patterns(np.asarray(table))}, {rows} × {columns} pixels\n"
        f"next: fouriscope reconstruct {escape(str(out / 'config.toml'))}"
    )


def _common_mask(mask: Any) -> NDArray[np.uint8]:
    """Where a pixel counts in every frame: a description has one mask for all."""
    if len(mask.shape) == 2:
        return np.asarray(np.asarray(mask) != 0, np.uint8)
    frames = mask if isinstance(mask, np.ndarray) else (mask.frame(index) for index in range(mask.shape[0]))
    return np.asarray(np.logical_and.reduce([np.asarray(frame) != 0 for frame in frames]), np.uint8)


def _description(config: RunConfig, base: Path, seen: Described, *, has_mask: bool) -> dict[str, Any]:
    """The sections of ``config`` for the new frames: nothing is left to correct, or to find per LED."""
    document = absolute_paths(config.model_dump(mode="json", exclude_unset=True, exclude_none=True), base)
    kept = {key: value for key, value in document["frames"].items() if key not in (*DONE, *STORAGE, *CAMERA, "path")}
    document["frames"] = kept | {"path": "frames.npy"} | ({"mask": "mask.npy"} if has_mask else {})
    document["microscope"]["patch_center"] = list(seen.place_of(config.frames.roi))
    document["illumination"] = without_file(config.illumination, base) | {"patterns": "patterns.csv"}
    if "alignment" in document:
        found = {key: config.alignment.model_dump()[key] for key in WITH_PATTERNS}
        document["alignment"] |= switched(Alignment, ()) | found
    if document.get("calibration", {}).get("leds"):
        document["calibration"]["leds"] = False
    if "zernike" in document.get("pupil", {}):
        document["pupil"]["zernike"] = {str(index): value for index, value in config.pupil.zernike.items()}
    return document


def _write_npy(path: Path, array: NDArray[Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
