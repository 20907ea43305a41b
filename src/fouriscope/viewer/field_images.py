"""The picture of a whole field: its thumbnail while tiles are done, the fitting level of its pyramid afterwards."""

from __future__ import annotations

import io
import json

import numpy as np

from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.field.plan import FieldPlan
from fouriscope.viewer.folder_files import FolderFiles
from fouriscope.viewer.images import METRES_TO_MICROMETRES, ShownImage

LONGEST_SIDE = 1400
PYRAMID, THUMBNAIL = "result/field.ome.zarr", "thumbnail.png"


class FieldImages:
    """Images of one field folder, by the names of :data:`~fouriscope.viewer.images.IMAGE_NAMES`."""

    def __init__(self, files: FolderFiles) -> None:
        self.files = files

    def source(self) -> str | None:
        return next((name for name in (PYRAMID, THUMBNAIL) if self.files.exists(name)), None)

    def names(self) -> list[str]:
        if self.source() == PYRAMID:
            return [label for label in self._labels() if label in ("phase", "amplitude")]
        return [] if self.source() is None else ["phase"]

    def image(self, name: str) -> ShownImage:
        source = self.source()
        if source is None:
            raise RunFolderError("this field has no picture yet; one is drawn when the first tile is done")
        try:
            return self._level(name) if source == PYRAMID else self._thumbnail(name)
        except FouriscopeError:
            raise
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise RunFolderError(f"{name} cannot be read: {error}") from error

    def tiles(self) -> tuple[int, int]:
        """How many tiles are done, and how many there are."""
        done = sum(1 for _ in self.files.path("tiles").glob("[0-9]*.json")) if self.files.exists("tiles") else 0
        return done, len(self._plan().tiling)

    def _plan(self) -> FieldPlan:
        try:
            return FieldPlan.from_dict(json.loads(self.files.text("plan.json")))
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"plan.json is not what a field writes ({error})") from error

    def _labels(self) -> list[str]:
        attributes = json.loads(self.files.text(f"{PYRAMID}/zarr.json"))["attributes"]["ome"]
        return [str(channel["label"]) for channel in attributes["omero"]["channels"]]

    def _level(self, name: str) -> ShownImage:
        import zarr

        labels = self._labels()
        if name not in labels:
            raise RunFolderError(f"this field has no {name.replace('_', ' ')}")
        scale = json.loads(self.files.text(f"{PYRAMID}/zarr.json"))["attributes"]["ome"]["multiscales"][0]["datasets"]
        for number, dataset in enumerate(scale):
            array = zarr.open_array(str(self.files.path(f"{PYRAMID}/{number}")), mode="r")
            if max(array.shape[1:]) <= LONGEST_SIDE or number == len(scale) - 1:
                self.files.whole_folder(f"{PYRAMID}/{number}")
                _, step_y, step_x = dataset["coordinateTransformations"][0]["scale"]
                values = np.ascontiguousarray(array[labels.index(name)], np.float32)
                return ShownImage(values, (float(step_y), float(step_x)), "um", "rad" if name == "phase" else "")
        raise RunFolderError(f"{PYRAMID} holds no level")

    def _thumbnail(self, name: str) -> ShownImage:
        from PIL import Image

        if name != "phase":
            raise RunFolderError(f"this field has no {name.replace('_', ' ')} until it is stitched")
        with Image.open(io.BytesIO(self.files.data(THUMBNAIL))) as picture:
            grey = np.asarray(picture.convert("L"), np.float32)
        plan = self._plan()
        step = max(plan.field_shape) * plan.pixel / max(grey.shape) * METRES_TO_MICROMETRES
        values = np.where(grey > 0, grey, np.nan).astype(np.float32)  # black is where no tile is done
        return ShownImage(values, (step, step), "um", "grey")
