"""The picture of a whole field: its thumbnail while tiles are done, the fitting level of its pyramid afterwards."""

from __future__ import annotations

import math

import numpy as np

from fouriscope.errors import RunFolderError
from fouriscope.field.plan import FieldPlan
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.stored_arrays import reading
from fouriscope.viewer.images import METRES_TO_MICROMETRES, ONE_AT_A_TIME, ShownImage
from fouriscope.viewer.pyramid_images import LONGEST_SIDE, PyramidImages

PYRAMID, THUMBNAIL = "result/field.ome.zarr", "thumbnail.png"


class FieldImages(PyramidImages):
    """Images of one field folder, by the names of :data:`~fouriscope.viewer.images.IMAGE_NAMES`."""

    def __init__(self, files: FolderFiles) -> None:
        super().__init__(files, PYRAMID, ("phase", "amplitude", "phase_flat"))

    def source(self) -> str | None:
        return next((name for name in (PYRAMID, THUMBNAIL) if self.files.exists(name)), None)

    def names(self) -> list[str]:
        return ["phase"] if self.source() == THUMBNAIL else super().names()

    def image(self, name: str) -> ShownImage:
        source = self.source()
        if source is None:
            raise RunFolderError("this field has no picture yet; one is drawn when the first tile is done")
        with ONE_AT_A_TIME, reading(self.files.root / source):
            return self._level(name) if source == PYRAMID else self._thumbnail(name)

    def tiles(self) -> tuple[int, int]:
        """How many tiles are done, and how many there are."""
        done = sum(1 for _ in self.files.path("tiles").glob("[0-9]*.json")) if self.files.exists("tiles") else 0
        return done, len(self._plan().tiling)

    def _plan(self) -> FieldPlan:
        return FieldPlan.from_dict(self.files.json("plan.json"), "plan.json")

    def _thumbnail(self, name: str) -> ShownImage:
        from PIL import Image

        if name != "phase":
            raise RunFolderError(f"this field has no {name.replace('_', ' ')} until it is stitched")
        with self.files.open(THUMBNAIL) as file, Image.open(file, formats=["PNG"]) as picture:
            if math.prod(picture.size) > LONGEST_SIDE**2:
                raise RunFolderError(f"{THUMBNAIL} has {picture.size} pixels, more than any field draws")
            grey = np.asarray(picture.convert("L"), np.float32)
        plan = self._plan()
        step = max(plan.field_shape) * plan.pixel / max(grey.shape) * METRES_TO_MICROMETRES
        values = np.where(grey > 0, grey, np.nan).astype(np.float32)  # black is where no tile is done
        return ShownImage(values, (step, step), "um", "grey")
