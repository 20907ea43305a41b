"""Before the first tile: everything that must be the same for all tiles is found once, from whole frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import CorrectedFrames, Frames, find_bad_pixels
from fouriscope.acquisition.byte_sizes import format_bytes
from fouriscope.acquisition.pedestals import automatic_background
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.alignment.trials import most_detailed_corner
from fouriscope.errors import InvalidInputError
from fouriscope.field.costs import read_bytes
from fouriscope.field.identity import identity
from fouriscope.field.plan import FieldPlan
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.field.tiling import Tile
from fouriscope.priors import as_prior
from fouriscope.run.aligned import aligned, with_alignment
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described, open_stored
from fouriscope.run.execute import close_stream
from fouriscope.run.image_files import load_image
from fouriscope.run.inputs import input_files, resolved
from fouriscope.run.provenance import file_checksums, machine_and_versions
from fouriscope.run.rehearsal import rehearsed
from fouriscope.settings import RunConfig
from fouriscope.solvers import Iterations

Tell = Callable[[str], object]

# The temperature of the noise is taken at the 30th; it changes little after that, and every worker waits meanwhile.
STRENGTH_ITERATIONS = 40
# Tiles that overlap, in chunks of 64 pixels, read frames some three times over; much more is worth a word.
MUCH = 6
# Pixels along a side of the region that is aligned. How directions change over the field shows at its edge.
ALIGNED_REGION = 512


class Prepared(NamedTuple):
    """A field that is ready to begin: the configuration of its tiles, and images that go beside it."""

    document: dict[str, Any]
    provenance: dict[str, Any]
    plan: FieldPlan
    images: dict[str, NDArray[Any]]


def prepare(
    config: RunConfig, base: Path, folder: Path, *, tile: int | None, overlap: float | None, tell: Tell | None = None
) -> Prepared:
    """Plan the tiles, settle what [frames] leaves to be found "auto", and align.

    Bad input is reported here, before anything is written.
    """
    build_stop(config.stop)
    frames_identity = identity(open_stored(config, base))  # before anything is found from them
    plan = FieldPlan.of(config, base, tile=tile, overlap=overlap)
    request = resolved(config, base)
    frames, images = settled_frames(config, base, folder)
    settled = parse_config(request | {"frames": frames}, where="after a look at the frames")
    if images:
        settled = _unmasked(settled)
    _dry_run(plan.tile_config(settled, plan.tiling[len(plan.tiling) // 2]), base, plan.margin)
    document: dict[str, Any] = request | {"frames": frames}
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if tell is not None:
            tell(line)

    _say_if_read_often(config, base, plan, say)
    if config.alignment.is_wanted:
        region = _most_detailed_region(settled, base)
        acquisition = build_acquisition(region, base)
        alignment = aligned(acquisition, config.alignment, say, tiles=True)
        document = with_alignment(document, alignment)
        close_stream(acquisition)
        # Another aperture and other directions reach other frequencies.
        plan = FieldPlan.of(parse_config(document, where="after the alignment"), base, tile=tile, overlap=overlap)
    document |= settled_choices(parse_config(document, where="after the alignment"), base, plan, images, say)
    provenance = machine_and_versions() | {
        "kind": "field",
        "request": request,
        "found": notes,
        "input": {
            "frames": frames_identity,
            "files": file_checksums(input_files(config, base)),
        },
    }
    return Prepared(document, provenance, plan, images)


def settled_frames(config: RunConfig, base: Path, folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """[frames] with numbers in place of "auto", and the mask that then belongs into the field's folder.

    A tile shows too little to judge by: its darkest and brightest pixels are not those of the frame.
    """
    section = config.frames
    document: dict[str, Any] = resolved(config, base)["frames"]
    wanted = {key for key in ("saturation", "reject", "bad_pixels", "background") if getattr(section, key) == "auto"}
    if not wanted:
        return document, {}
    seen = Described(config, base)
    stored = seen.stored
    if wanted & {"saturation", "reject"}:
        survey = seen.survey()
        if section.saturation == "auto":
            document.pop("saturation")
            document |= {} if survey.saturation is None else {"saturation": float(survey.saturation)}
        document["reject"] = sorted(seen.rejected(survey))
    if section.background == "auto":
        corrected = CorrectedFrames(stored, replace(seen.corrections(), background=None, floor=0.0))
        levels = (automatic_background(corrected.frame(led), 1.0) * section.gain for led in range(stored.shape[0]))
        document["background"] = [float(level) for level in levels]
    if section.bad_pixels != "auto":
        return document, {}
    document.pop("bad_pixels")
    document["mask"] = str((folder / "mask.npy").resolve())
    return document, {"mask.npy": _whole_mask(find_bad_pixels(seen.counts()), stored, base, section.mask)}


def settled_choices(
    config: RunConfig, base: Path, plan: FieldPlan, images: dict[str, NDArray[Any]], say: Tell
) -> dict[str, Any]:
    """Sections with what a run would choose by itself: the strength where it is "auto", ``long_steps``, ``gains_by``.

    They are those of the tile with the most contrast, after the same rehearsal as before a run
    (:func:`~fouriscope.run.rehearsal.rehearsed`). If each tile chose its own strength, it would be stronger in tiles
    that show less, and the texture of a field would change from tile to tile.
    """
    named = {"prior": config.prior, "prior_absorption": config.prior_absorption}
    wanted = [spec for spec in named.values() if spec is not None and as_prior(spec).strength == "auto"]
    if not config.solver.takes_prior or not wanted or config.prior.get("name") == "none":
        return {}
    plain = _unmasked(config) if images else config
    tile = _most_detailed_tile(plain, base, plan)
    as_described = plan.tile_config(plain, tile)
    acquisition = tile_acquisition(as_described, base, plan.margin)
    on_tile = rehearsed(acquisition, as_described, tell=say)
    solver = build_solver(acquisition, on_tile)
    solver.solve(build_stop(config.stop) | Iterations(STRENGTH_ITERATIONS))
    close_stream(acquisition)
    found = solver.strengths
    sections: dict[str, Any] = {}
    for name, number in zip(("prior", "prior_absorption"), found, strict=False):
        spec = as_prior(named[name] or config.prior).spec()
        sections[name] = spec | ({"strength": number} if spec["strength"] == "auto" else {})
    chosen = ", ".join(f"{name} {spec['strength']:.4g}" for name, spec in sections.items())
    say(f"strength of the prior for all tiles: {chosen}, from tile {tile.index}, which has the most contrast")
    for name, key in (("solver", "long_steps"), ("calibration", "gains_by")):
        choice = getattr(getattr(on_tile, name), key, None)
        if choice != getattr(getattr(config, name), key, None):
            sections[name] = getattr(config, name).model_dump(mode="json", exclude_none=True) | {key: choice}
    return sections


def _most_detailed_tile(config: RunConfig, base: Path, plan: FieldPlan) -> Tile:
    whole = build_acquisition(config, base)
    top, left = most_detailed_corner(whole, *plan.tiling.tile_shape)
    close_stream(whole)
    return min(plan.tiling, key=lambda tile: (tile.top - top) ** 2 + (tile.left - left) ** 2)


def _unmasked(config: RunConfig) -> RunConfig:
    """Without a mask that is found but not written yet; it is not needed here."""
    return config.model_copy(update={"frames": config.frames.model_copy(update={"mask": None})})


def _whole_mask(working: NDArray[np.bool_], stored: Frames, base: Path, given: str | None) -> NDArray[np.bool_]:
    """The mask of whole frames, of which each tile cuts its window."""
    if not isinstance(stored, StoredFrames) or stored.stored_shape == working.shape:
        whole = working.copy()
    else:
        whole = np.ones(stored.stored_shape, bool)
        whole[stored.rows, stored.columns] = working
    if given is not None:
        mask = load_image(base / given) != 0
        if mask.shape != whole.shape:
            raise InvalidInputError(
                f"frames.mask must have the shape of whole frames, {whole.shape}, in a field, got {mask.shape}"
            )
        whole &= mask
    return whole


def _say_if_read_often(config: RunConfig, base: Path, plan: FieldPlan, say: Tell) -> None:
    stored = open_stored(config, base)
    itemsize = np.dtype(getattr(stored, "dtype", np.float64)).itemsize
    read = read_bytes(plan, stored, stored.shape[0], itemsize)
    once = stored.shape[0] * math.prod(plan.tiling.frame_shape) * itemsize
    if read > MUCH * once:
        say(
            f"tiles will read {format_bytes(read)} although the frames have {format_bytes(once)}, because each tile "
            "must decode whole frames for its window; `fouriscope import --to-zarr` stores them for tiles"
        )


def _dry_run(config: RunConfig, base: Path, margin: int) -> None:
    """Build the solver of one tile, so that a mistake is reported in seconds, and not by every worker."""
    acquisition = tile_acquisition(config, base, margin)
    try:
        build_solver(acquisition, config)
        acquisition.check_frames()
    finally:
        close_stream(acquisition)


def _most_detailed_region(config: RunConfig, base: Path) -> RunConfig:
    """The configuration of the part of the frames where a bright-field frame varies most.

    In a whole field each LED is seen from many directions, and circles in its spectra would be blurred.
    """
    whole = build_acquisition(config, base)
    rows, columns = whole.frame_shape
    height, width = min(rows, ALIGNED_REGION), min(columns, ALIGNED_REGION)
    top, left = most_detailed_corner(whole, height, width)
    close_stream(whole)
    row, column = (0, 0) if config.frames.roi is None else config.frames.roi[:2]
    region = (row + top, column + left, height, width)
    return config.model_copy(update={"frames": config.frames.model_copy(update={"roi": region, "truth": None})})
