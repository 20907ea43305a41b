"""The channels of a description one after the other, each an ordinary run; finished channels are not repeated.

::

    colours/
      config.toml, provenance.json, status.json, .lock     as in every run folder; config.toml is the description
      green/, red/, blue/    run folders, the reference first
      result/                amplitude, phase and phase_flat (.ome.tif), result.ome.zarr, colour.png, figure.png,
                             summary.json
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fouriscope.acquisition.colours import Colour
from fouriscope.checks import door
from fouriscope.colour.description import ColourDescription
from fouriscope.colour.files import write_files
from fouriscope.colour.result import ColourResult
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.run import RunFolder, resume_run, start_run
from fouriscope.run.inputs import resolved
from fouriscope.run.provenance import machine_and_versions
from fouriscope.settings import Stop
from fouriscope.solvers import INTERRUPTED, Callback

# Called with the channel and its [stop]; returns the callbacks of its iterations.
Watch = Callable[[Colour, Stop], Sequence[Callback]]
Tell = Callable[[str], object]


@door
def reconstruct_colour(
    description: str | Path,
    out: str | Path,
    *,
    tell: Tell | None = None,
    watch: Watch | None = None,
    checkpoint_seconds: float | None = None,
) -> ColourResult | None:
    """Reconstruct the three wavelengths that a description has in [colour], and put them together, in ``out``.

    The reference comes first, aligned as [alignment] says. The other channels take over its LEDs and aperture, and find
    their own exposures, focus and pupil. Then the chromatic shift between the channels is found, and all are brought to
    one grid (:meth:`ColourResult.of`). docs/colour.md has more.

    If the folder was begun with the same description, it is continued: finished channels are kept, and one that was
    interrupted is resumed from its checkpoint.

    Parameters
    ----------
    description
        A TOML file with the sections of a configuration and [colour].
    out
        The folder to write.
    tell
        Called with findings in words, such as ``print``.
    watch
        Called as ``f(channel, stop)`` before each channel that is not done. It returns callbacks, which are called
        after each iteration, as in :func:`fouriscope.reconstruct`.
    checkpoint_seconds
        Seconds between checkpoints. By default 10.

    Returns
    -------
    ColourResult or None
        None if a callback stopped a channel before its end.

    Examples
    --------
    From a description on disk::

        import fouriscope as fs

        colours = fs.reconstruct_colour("colour.toml", "colours", tell=print)
        print(colours.shifts["red"], colours.focus)
    """
    described = ColourDescription.load(description)
    folder = _opened(described, Path(out))
    with folder.ending("in the middle of an iteration"):
        folder.write_status("running")
        for name in described.section.channels:
            if _channel(described, name, folder, tell, watch, checkpoint_seconds) == INTERRUPTED:
                folder.write_status("interrupted", f"in {name}")
                return None
        combined = ColourResult.load(folder.path)  # from files, so that it is the same however often it was interrupted
        if tell is not None:
            for line in combined.told():
                tell(line)
        folder.write_result(lambda building: write_files(combined, building))
        folder.write_status("finished", "all channels are done")
    return combined


def _opened(described: ColourDescription, out: Path) -> RunFolder:
    """The folder, locked: a new one, or one that was begun with the same description."""
    document = _document(described)
    if not (out / "config.toml").is_file():
        return RunFolder.create(out, document, machine_and_versions() | {"kind": "colour"})
    folder = RunFolder.open(out)
    if folder.provenance().get("kind") != "colour":
        raise RunFolderError(f"{out} holds another run; choose another folder")
    if folder.config() != document:
        raise RunFolderError(
            f"{out} was begun with another description than {described.path}; restore the old one, or choose another "
            "folder"
        )
    folder.lock()
    return folder


def _document(described: ColourDescription) -> dict[str, Any]:
    """The description of every channel, before anything is found."""
    section = described.section
    channels = {name: resolved(described.config(name), described.base) for name in section.channels}
    shared = section.model_dump(mode="json")
    for name, channel in channels.items():
        shared[name]["frames"] = channel["frames"]
    return channels[section.reference] | {"colour": shared}


def _channel(
    described: ColourDescription,
    name: Colour,
    folder: RunFolder,
    tell: Tell | None,
    watch: Watch | None,
    checkpoint_seconds: float | None,
) -> str:
    """Reconstruct one channel unless it is done; resume it if it was begun. Returns why it stopped."""
    reference = described.section.reference
    path = folder.path / name
    begun = (path / "config.toml").is_file()
    if begun and RunFolder.open(path).status()["state"] == "finished":
        return "finished"
    found = None if name == reference else RunFolder.open(folder.path / reference).config()
    config = described.config(name, found)
    watching = () if watch is None else watch(name, config.stop)
    # A channel that a callback ends is not done: the same call goes on with it.
    callbacks = [lambda solver, record, f=f: INTERRUPTED if f(solver, record) else None for f in watching]
    if begun:
        return resume_run(path, callbacks=callbacks, checkpoint_seconds=checkpoint_seconds).stop_reason
    shutil.rmtree(path, ignore_errors=True)  # what a kill left before the run began
    try:
        return start_run(
            config,
            described.base,
            path,
            callbacks=callbacks,
            checkpoint_seconds=checkpoint_seconds,
            tell=None if tell is None else lambda line: tell(f"{name}: {line}"),
        ).stop_reason
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from error
