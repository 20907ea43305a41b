"""``fs.load``: data on disk, from a description, a run, or anything that `fouriscope import` understands."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.run.config import absolute_paths, load_config, parse_config
from fouriscope.run.described import Described
from fouriscope.run.doubt import repeats_itself
from fouriscope.run.importing import import_acquisition
from fouriscope.run.microscope import without_file
from fouriscope.settings import FramesSection, MicroscopeSection, PupilSection, RunConfig, Section

# Files that describe a folder completely: the description that `import` wrote, or that of a run.
DESCRIPTIONS = ("acquisition.toml", "config.toml")


# The sections that describe frames; an illumination has many kinds.
DESCRIBING: dict[str, type[Section] | None] = {
    "frames": FramesSection,
    "microscope": MicroscopeSection,
    "illumination": None,
    "pupil": PupilSection,
}


@door
def load(path: str | Path, **sections: dict[str, Any] | Section) -> Acquisition:
    """Load an acquisition: its frames, and what is known about the microscope. Frames stay on disk until they are used.

    Parameters
    ----------
    path
        A description (``acquisition.toml``), a folder that holds one, a run folder, or a file or folder of frames that
        ``fouriscope import`` understands: its formats are in docs/formats.md. In the last case the frames are surveyed
        as by ``import``, and what they suggest (offset, gain, saturation, stray light) is used.
    **sections
        What the files do not say, by the sections of a configuration (docs/configuration.md).

    Examples
    --------
    >>> import tempfile, numpy as np, fouriscope as fs
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(f"{folder.name}/frames.npy", np.random.default_rng(0).poisson(100.0, (9, 16, 16)).astype(np.uint16))
    >>> scope = {"wavelength": 523e-9, "na": 0.1, "magnification": 4, "camera_pixel": 6.5e-6}
    >>> leds = {"kind": "square", "shape": [3, 3], "pitch": 4e-3, "height": 0.09}
    >>> data = fs.load(f"{folder.name}/frames.npy", microscope=scope, illumination=leds)
    >>> len(data), data.frame_shape
    (9, (16, 16))
    >>> folder.cleanup()
    """
    config, folder = description_of(path, **sections)
    return replace(Described(config, folder).acquisition(), periodic=repeats_itself(config))


def description_of(path: str | Path, **sections: dict[str, Any] | Section) -> tuple[RunConfig, Path]:
    """The configuration of what lies at ``path``, as :func:`load` finds it, and where its relative paths start.

    Parameters
    ----------
    path
        What :func:`load` takes.
    **sections
        As in :func:`load`.
    """
    path = Path(path).expanduser().resolve()  # frames are read later, from wherever the user then is
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file or folder")
    described = next((path / name for name in DESCRIPTIONS if (path / name).is_file()), path)
    if described.suffix == ".toml":
        if sections:
            raise InvalidInputError(
                f"{described} already describes the frames; change {', '.join(sections)} there, or load the frames "
                "themselves"
            )
        return load_config(described), described.parent
    with tempfile.TemporaryDirectory(prefix="fouriscope_") as folder:
        out = Path(folder) / "acquisition.toml"
        missing = import_acquisition(path, out, chosen=absolute_paths(_plain(sections), Path())).missing
        if missing:
            first = missing[0]
            section, key = first.key.split(".")
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InvalidInputError(
                f"{path} does not say {first.key} ({first.meaning}){more}: give what is missing as "
                f"fs.load(path, {section}={{{key!r}: {first.example}, …}}), or write it down with `fouriscope import`"
            )
        config = load_config(out)
        document = absolute_paths(config.model_dump(mode="json", exclude_unset=True), out.parent)
        document["illumination"] = without_file(config.illumination, out.parent)  # the file goes with the folder
        return parse_config(document, where=str(path)), Path()


def _plain(sections: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sections as a file would hold them: of settings objects, arrays and paths what they say."""
    plain: dict[str, dict[str, Any]] = {}
    for name, keys in sections.items():
        if name not in DESCRIBING:
            where = next((section for section, kind in DESCRIBING.items() if kind and name in kind.model_fields), None)
            hint = f"write {where}={{{name!r}: …}}" if where else f"known are {', '.join(DESCRIBING)}"
            raise InvalidInputError(f"{name} is not a section that describes frames; {hint}")
        if isinstance(keys, Section):
            plain[name] = keys.model_dump(mode="json", exclude_unset=True)
        elif isinstance(keys, dict):
            plain[name] = {key: _plain_value(value) for key, value in keys.items() if value is not None}
        else:
            raise InvalidInputError(f"{name} must be a dict of keys, such as {{'na': 0.1}}, got {keys!r}")
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
