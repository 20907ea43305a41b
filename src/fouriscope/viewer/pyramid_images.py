"""Images of an OME-Zarr pyramid: of the level that fits the page."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from fouriscope.acquisition.zarr_store import open_array
from fouriscope.errors import RunFolderError
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.schema import Part, Positive, Text, checked
from fouriscope.run.stored_arrays import LARGEST_IMAGE, reading, zarr_header
from fouriscope.viewer.images import ONE_AT_A_TIME, ShownImage

LONGEST_SIDE = 1400
COLOUR_PYRAMID = "result/result.ome.zarr"


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


class PyramidImages:
    """Channels of the pyramid ``name`` of a run folder, of which only those called ``known`` are shown."""

    def __init__(self, files: FolderFiles, name: str, known: tuple[str, ...]) -> None:
        self.files, self.name, self.known = files, name, known

    def source(self) -> str | None:
        """The pyramid, or None if it is not there yet."""
        return self.name if self.files.exists(self.name) else None

    def names(self) -> list[str]:
        """What there is to see."""
        return [] if self.source() is None else [label for label in self._labels() if label in self.known]

    def image(self, name: str) -> ShownImage:
        """One channel."""
        if self.source() is None:
            raise RunFolderError("there is no picture yet: all channels must be done first")
        with ONE_AT_A_TIME, reading(self.files.root / self.name):
            return self._level(name)

    def _pyramid(self) -> Ome:
        name = f"{self.name}/zarr.json"
        return Group.model_validate(checked(Group, self.files.json(name), name)).attributes.ome

    def _labels(self) -> list[str]:
        return [channel.label for channel in self._pyramid().omero.channels]

    def _level(self, name: str) -> ShownImage:
        labels = self._labels()
        if name not in labels:
            raise RunFolderError(f"there is no {name.replace('_', ' ')}")
        levels = self._pyramid().multiscales[0].datasets
        headers = [zarr_header(self.files, f"{self.name}/{number}") for number in range(len(levels))]
        for header in headers:
            if header.dtype != np.float32 or len(header.shape) != 3 or header.shape[0] != len(labels):
                raise RunFolderError(f"{self.name}: expected {len(labels)} channels of float32, got {tuple(header)}")
        fitting = (number for number, header in enumerate(headers) if max(header.shape[1:]) <= LONGEST_SIDE)
        number = next(fitting, len(levels) - 1)
        if math.prod(headers[number].shape[1:]) > LARGEST_IMAGE:
            raise RunFolderError(f"{self.name} has no level of at most {LARGEST_IMAGE} pixels")
        array = open_array(self.files.whole_folder(f"{self.name}/{number}"))
        _, step_y, step_x = levels[number].transformations[0].scale
        values = np.ascontiguousarray(array[labels.index(name)], np.float32)
        return ShownImage(values, (step_y, step_x), "um", "rad" if name.startswith("phase") else "")
