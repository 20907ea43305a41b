"""The picture of a whole field: its thumbnail while tiles are done, the fitting level of its pyramid afterwards."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from fouriscope.acquisition.zarr_store import open_array
from fouriscope.errors import RunFolderError
from fouriscope.field.plan import FieldPlan
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.schema import Part, Positive, Text, checked
from fouriscope.run.stored_arrays import LARGEST_IMAGE, reading, zarr_header
from fouriscope.viewer.images import METRES_TO_MICROMETRES, ONE_AT_A_TIME, ShownImage

LONGEST_SIDE = 1400
PYRAMID, THUMBNAIL = "result/field.ome.zarr", "thumbnail.png"


class Scale(Part):
    scale: tuple[Positive, Positive, Positive]


class Level(Part):
    # The scale comes first, the translation after it.
    transformations: tuple[Scale, Part] = Field(alias="coordinateTransformations")


class Multiscale(Part):
    datasets: Annotated[list[Level], Field(min_length=1, max_length=32)]


class Channel(Part):
    label: Text


class Channels(Part):
    channels: Annotated[list[Channel], Field(min_length=1, max_length=16)]


class Ome(Part):
    multiscales: Annotated[list[Multiscale], Field(min_length=1)]
    omero: Channels


class Attributes(Part):
    ome: Ome


class Group(Part):
    """zarr.json of the pyramid."""

    attributes: Attributes


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
        with ONE_AT_A_TIME, reading(self.files.root / source):
            return self._level(name) if source == PYRAMID else self._thumbnail(name)

    def tiles(self) -> tuple[int, int]:
        """How many tiles are done, and how many there are."""
        done = sum(1 for _ in self.files.path("tiles").glob("[0-9]*.json")) if self.files.exists("tiles") else 0
        return done, len(self._plan().tiling)

    def _plan(self) -> FieldPlan:
        return FieldPlan.from_dict(self.files.json("plan.json"), "plan.json")

    def _pyramid(self) -> Ome:
        name = f"{PYRAMID}/zarr.json"
        return Group.model_validate(checked(Group, self.files.json(name), name)).attributes.ome

    def _labels(self) -> list[str]:
        return [channel.label for channel in self._pyramid().omero.channels]

    def _level(self, name: str) -> ShownImage:
        labels = self._labels()
        if name not in labels:
            raise RunFolderError(f"this field has no {name.replace('_', ' ')}")
        levels = self._pyramid().multiscales[0].datasets
        headers = [zarr_header(self.files, f"{PYRAMID}/{number}") for number in range(len(levels))]
        for header in headers:
            if header.dtype != np.float32 or len(header.shape) != 3 or header.shape[0] != len(labels):
                raise RunFolderError(f"{PYRAMID}: expected {len(labels)} channels of float32, got {tuple(header)}")
        fitting = (number for number, header in enumerate(headers) if max(header.shape[1:]) <= LONGEST_SIDE)
        number = next(fitting, len(levels) - 1)
        if math.prod(headers[number].shape[1:]) > LARGEST_IMAGE:
            raise RunFolderError(f"{PYRAMID} has no level of at most {LARGEST_IMAGE} pixels")
        array = open_array(self.files.whole_folder(f"{PYRAMID}/{number}"))
        _, step_y, step_x = levels[number].transformations[0].scale
        values = np.ascontiguousarray(array[labels.index(name)], np.float32)
        return ShownImage(values, (step_y, step_x), "um", "rad" if name == "phase" else "")

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
