"""The tiles of a field on disk: one region of a Zarr array each, and a record that commits it.

::

    tiles/
      images.zarr     (tiles, channels, rows, columns), one chunk per tile: no two writers touch one file
      pupils.zarr     (tiles, rows, columns), complex, where pupils are found bin by bin
      00042.json      the record of tile 42: checksum of its images, misfit, time, pupil
      attempts/       one empty file for each time that a tile was begun

The record of a tile is written last and by an atomic rename, so a tile without one is not done. A tile whose images do
not have the record's checksum is broken. Both are done again.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, Strict, field_validator

from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.run.files import write_json
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.schema import Count, Number, Part, Text, checked
from fouriscope.run.stored_arrays import reading, zarr_header

AnyNumber = Annotated[float, Strict()]


class BrokenTileError(FouriscopeError):
    """A committed tile is not what its record says."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(index, why)
        self.index, self.why = index, why

    def __str__(self) -> str:
        return f"tile {self.index} is broken ({self.why})"


@dataclass(frozen=True)
class TileRecord:
    """What is known of a tile that is done.

    Attributes
    ----------
    index, request
        Which tile, and the checksum of the configuration and window that it belongs to.
    checksum, pupil_checksum
        Checksums of its images, and of its pupil if that is an array.
    misfit
        d over all frames of the tile, at the end.
    iterations, seconds, stop_reason
        From the solver; ``seconds`` are those of the whole task, from opening the files to the commit.
    attempts
        How often the tile was begun, this time included.
    worker
        Host and process that did it.
    pupil_sources
        The neighbours whose pupils it started from: fewer than it has, if some were given up.
    zernike
        Noll index → radians, as found.
    thumbnail
        A coarse phase, for the preview.
    """

    index: int
    request: str
    checksum: str
    misfit: float
    iterations: int
    seconds: float
    stop_reason: str
    attempts: int
    worker: str
    pupil_sources: list[int] = field(default_factory=list)
    zernike: dict[str, float] = field(default_factory=dict)
    pupil_checksum: str | None = None
    thumbnail: list[list[float]] = field(default_factory=list)


class RecordFile(Part):
    """The record of a tile in its file; misfits and thumbnails may hold NaN."""

    index: Count
    request: Text
    checksum: Text
    misfit: AnyNumber
    iterations: Count
    seconds: AnyNumber
    stop_reason: Text
    attempts: Count
    worker: Text
    pupil_sources: list[Count] = Field(default_factory=list)
    zernike: dict[Annotated[str, Field(pattern="^[0-9]{1,6}$")], Number] = Field(default_factory=dict)
    pupil_checksum: Text | None = None
    thumbnail: list[list[AnyNumber]] = Field(default_factory=list)

    @field_validator("thumbnail")
    @classmethod
    def _is_an_image(cls, rows: list[list[float]]) -> list[list[float]]:
        if len({len(row) for row in rows}) > 1:
            raise ValueError("its rows differ in length")
        return rows


class TileStore:
    """Reads and writes the tiles below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tiles"
        self._files = FolderFiles(self.path)

    def create(
        self, tiles: int, channels: int, shape: tuple[int, int], pupil_shape: tuple[int, int] | None = None
    ) -> None:
        """Make the arrays; those that are there already stay, with what is in them."""
        import zarr

        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "attempts").mkdir(exist_ok=True)
        layouts: dict[str, tuple[tuple[int, ...], Any]] = {"images.zarr": ((tiles, channels, *shape), np.float32)}
        if pupil_shape is not None:
            layouts["pupils.zarr"] = ((tiles, *pupil_shape), np.complex64)
        for name, (whole, dtype) in layouts.items():
            if not (self.path / name / "zarr.json").exists():
                zarr.create_array(
                    str(self.path / name), shape=whole, chunks=(1, *whole[1:]), dtype=dtype, compressors=None
                )

    def check(self, tiles: int, channels: int, shape: tuple[int, int]) -> None:
        """Raise if the arrays are not those of such a field."""
        found, expected = zarr_header(self._files, "images.zarr"), ((tiles, channels, *shape), np.dtype(np.float32))
        if found != expected:
            raise RunFolderError(
                f"{self.path / 'images.zarr'}: expected {expected[1]} of shape {expected[0]}, got {found.dtype} of "
                f"shape {found.shape}; the folder was changed by hand and cannot be continued"
            )
        for name in ("images.zarr", "pupils.zarr"):
            if self._files.exists(name):
                self._files.whole_folder(name)

    def commit(self, record: TileRecord, images: NDArray[np.float32], pupil: NDArray[np.complex64] | None) -> None:
        """Write the images, and then the record that makes them count."""
        self._array("images.zarr")[record.index] = images
        if pupil is not None:
            self._array("pupils.zarr")[record.index] = pupil
        write_json(self._record_path(record.index), asdict(record))

    def record(self, index: int) -> TileRecord | None:
        """The record of a tile that is done; None if it is not, or if the record cannot be read."""
        try:
            values = self._files.json(self._record_path(index).name)
            if "teachers" in values:  # what earlier versions called it
                values["pupil_sources"] = values.pop("teachers")
            checked(RecordFile, values, self._record_path(index))
            record = TileRecord(**values)
        except (RunFolderError, TypeError):  # if not JSON, or not what we write, it is done again
            return None
        return record if record.index == index else None

    def images(self, index: int) -> NDArray[np.float32]:
        """(channels, rows, columns) of a tile that is done; raises :class:`BrokenTileError` if they are not its own."""
        record = self._existing(index)
        images: NDArray[np.float32] = np.asarray(self._array("images.zarr")[index])
        if checksum(images) != record.checksum:
            raise BrokenTileError(index, "its images do not have the checksum of its record")
        return images

    def pupil(self, index: int) -> NDArray[np.complex64] | None:
        """The pupil of a tile that is done, where it was found bin by bin."""
        record = self._existing(index)
        if record.pupil_checksum is None:
            return None
        pupil: NDArray[np.complex64] = np.asarray(self._array("pupils.zarr")[index])
        if checksum(pupil) != record.pupil_checksum:
            raise BrokenTileError(index, "its pupil does not have the checksum of its record")
        return pupil

    def is_done(self, index: int, request: str) -> bool:
        """Whether the tile is there, whole, and the answer to ``request``."""
        record = self.record(index)
        if record is None or record.request != request:
            return False
        try:
            self.images(index)
            self.pupil(index)
        except (BrokenTileError, OSError):
            return False
        return True

    def discard(self, index: int) -> None:
        """Take back the commit of a tile."""
        self._record_path(index).unlink(missing_ok=True)

    def begin(self, index: int) -> int:
        """Note that a tile is begun; returns how often it was, this time included.

        The note outlives a worker that is killed, and counts only what really ran on it.
        """
        folder = self.path / "attempts"
        (folder / f"{index:05d}.{uuid.uuid4().hex}").touch()
        return sum(1 for _ in folder.glob(f"{index:05d}.*"))

    def forget_attempts(self) -> None:
        """Give every tile all its attempts again, because a field was resumed."""
        for note in (self.path / "attempts").glob("*"):
            note.unlink(missing_ok=True)

    def _existing(self, index: int) -> TileRecord:
        record = self.record(index)
        if record is None:
            raise BrokenTileError(index, "its record is gone")
        return record

    def _record_path(self, index: int) -> Path:
        return self.path / f"{index:05d}.json"

    def _array(self, name: str) -> Any:
        import zarr

        with reading(self.path / name):
            return zarr.open_array(str(self.path / name), mode="r+")


def checksum(array: NDArray[Any]) -> str:
    """SHA-256 of the numbers of an array."""
    return f"sha256:{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
