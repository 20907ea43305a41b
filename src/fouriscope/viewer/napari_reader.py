"""A reader for napari: a run folder as image layers with their scale in micrometres.

napari finds it through ``napari.yaml`` and is not needed to use it: layers are plain tuples of arrays and options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fouriscope.errors import RunFolderError
from fouriscope.viewer.images import IMAGE_NAMES, ShownImage
from fouriscope.viewer.runs import ViewedRun

Layer = tuple[Any, dict[str, Any], str]
COLOURS = {"spectrum": "inferno", "pupil_phase": "twilight_shifted"}


def napari_get_reader(path: str | Sequence[str]) -> Callable[[str | Sequence[str]], list[Layer]] | None:
    """A reader for ``path`` if that is one run folder (or several), and None if not, so that napari asks other readers.

    The folder ``result`` of a run, and ``result.ome.zarr`` in it, open the run.
    """
    folders = [path] if isinstance(path, str) else list(path)
    if not folders or any(_run_of(Path(folder)) is None for folder in folders):
        return None
    return read_layers


def read_layers(path: str | Sequence[str]) -> list[Layer]:
    """The images of one or several run folders, the phase on top and visible."""
    layers: list[Layer] = []
    for folder in [path] if isinstance(path, str) else path:
        place = _run_of(Path(folder).absolute())
        if place is None:
            raise RunFolderError(f"{folder} is neither a run folder nor the result of one")
        run = ViewedRun(place, place.name)
        names = run.images.names()
        if not names:
            raise RunFolderError(f"{folder} has no picture yet; one is written after the first iteration")
        ordered = sorted(names, key=IMAGE_NAMES.index, reverse=True)
        layers += [_layer(run.name, name, run.images.image(name)) for name in ordered]
    return layers


def _layer(run: str, name: str, image: ShownImage) -> Layer:
    options: dict[str, Any] = {
        "name": f"{run} {name.replace('_', ' ')}",
        "colormap": COLOURS.get(name, "gray"),
        "visible": name == "phase",
        "metadata": {"unit": image.unit, "axis_unit": image.axis_unit},
    }
    if image.axis_unit == "um":
        options |= {"scale": image.step, "units": ("µm", "µm")}
    else:
        # A spectrum has no length, so it lies beside nothing: as pixels, its middle at zero.
        options |= {"translate": tuple(-(size // 2) for size in image.values.shape)}
    return image.values, options, "image"


def _run_of(path: Path) -> Path | None:
    """The run folder that ``path`` is, or lies in as its result."""
    inside = {"result": path.parent, "result.ome.zarr": path.parent.parent}
    run = inside.get(path.name, path)
    return run if (run / "config.toml").is_file() and (run / "status.json").is_file() else None
