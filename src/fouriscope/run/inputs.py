"""What a run was started with: its resolved configuration, its files, and whether they are still the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fouriscope.errors import RunFolderError
from fouriscope.priors import as_prior
from fouriscope.run.config import absolute_paths
from fouriscope.run.folder import RunFolder
from fouriscope.run.provenance import FrameDigest, file_checksums
from fouriscope.settings import RunConfig


def resolved(config: RunConfig, base: Path) -> dict[str, Any]:
    """The configuration with its defaults and absolute paths, as ``config.toml`` of a run folder holds it."""
    document = absolute_paths(config.model_dump(mode="json", exclude_none=True), base)
    document["prior"] = as_prior(config.prior).spec()
    if config.prior_absorption is not None:
        document["prior_absorption"] = as_prior(config.prior_absorption).spec()
    document["pupil"]["zernike"] = {str(index): value for index, value in config.pupil.zernike.items()}
    return document


def input_files(config: RunConfig, base: Path) -> dict[str, Path]:
    """The files beside the frames that a configuration names, by their keys."""
    darks = (config.frames.dark,) if isinstance(config.frames.dark, str) else config.frames.dark or ()
    named = {
        **{f"frames.dark.{number}": path for number, path in enumerate(darks)},
        "frames.flat": config.frames.flat,
        "frames.mask": config.frames.mask,
        "frames.truth": config.frames.truth,
        "illumination.path": getattr(config.illumination, "path", None),
        "illumination.patterns": config.illumination.patterns,
        "pupil.array": config.pupil.array,
        "prior.weights": config.prior.get("weights"),
        "prior_absorption.weights": (config.prior_absorption or {}).get("weights"),
    }
    return {key: base / path for key, path in named.items() if path is not None}


def check_same_files(run: RunFolder, config: RunConfig) -> None:
    known = run.provenance().get("input", {})
    files = input_files(config, run.path)
    for key, now in file_checksums(files).items():
        if known.get("files", {}).get(key) != now:
            raise RunFolderError(
                f"{files[key]} ({key}) is not the file that {run.path} was started with; "
                "restore the old one, or start a new run"
            )


def check_same_frames(run: RunFolder, digest: FrameDigest) -> None:
    before, now = run.provenance().get("input", {}).get("checksum"), digest.checksum
    if before != now:
        raise RunFolderError(
            f"the frames are not those that {run.path} was started with (checksum {now[:19]}…, was "
            f"{str(before)[:19]}…); restore the old ones, or start a new run"
        )
