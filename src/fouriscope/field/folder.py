"""The folder of a field: a run folder whose work is tiles.

::

    field/
      config.toml, provenance.json, status.json, .lock     as in every run folder
      plan.json       the tiles and their scale
      tiles/          what workers have committed (tile_store)
      thumbnail.png   the phase so far
      result/         field.ome.zarr, object.zarr, tiles.csv, quality.ome.tif, summary.json, figure.png
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.field.plan import FieldPlan
from fouriscope.field.tile_store import TileStore
from fouriscope.field.tiling import Tile
from fouriscope.run.config import parse_config
from fouriscope.run.files import atomic_write, write_json
from fouriscope.run.folder import RunFolder
from fouriscope.settings import RunConfig


class FieldFolder:
    """Reads and writes one field.

    Parameters
    ----------
    run
        Its run folder.
    """

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.path = run.path
        self.store = TileStore(run.path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        document: dict[str, Any],
        provenance: dict[str, Any],
        plan: FieldPlan,
        images: Mapping[str, NDArray[Any]],
    ) -> FieldFolder:
        """Start a new folder and lock it; ``images`` go beside the configuration, by their names.

        The plan comes last: a folder that has one can be continued.
        """
        field = cls(RunFolder.create(path, document, provenance))
        try:
            for name, image in images.items():
                with atomic_write(field.path / name) as file:
                    np.lib.format.write_array(file, image, allow_pickle=False)
            config = field.config()
            pupils = plan.grid_shape if plan.keeps_pupils(config) else None
            field.store.create(len(plan.tiling), len(plan.channels), plan.tile_object_shape, pupils)
            write_json(field.path / "plan.json", plan.as_dict())
        except BaseException:
            field.run.close()
            raise
        return field

    @classmethod
    def open(cls, path: str | Path) -> FieldFolder:
        """Open an existing field; raises if there is none."""
        if not is_field(path):
            raise RunFolderError(
                f"{path}: not the folder of a field, plan.json is missing; if a field was killed here before it "
                "began, delete the folder and start again"
            )
        return cls(RunFolder.open(path))

    def check(self) -> None:
        """Raise unless everything is there that a field needs to continue."""
        if self.run.provenance().get("request") is None:
            raise RunFolderError(f"{self.path / 'provenance.json'}: not written by a field, because request is missing")
        self.config()
        plan = self.plan
        self.store.check(len(plan.tiling), len(plan.channels), plan.tile_object_shape)

    @cached_property
    def plan(self) -> FieldPlan:
        where = self.path / "plan.json"
        try:
            return FieldPlan.from_dict(self.run.files.json("plan.json"), where)
        except InvalidInputError as error:
            raise RunFolderError(f"{where}: not written by a field ({error})") from error

    def config(self) -> RunConfig:
        """What every tile is reconstructed with."""
        return parse_config(self._document, where=str(self.path / "config.toml"), is_record=True)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self.run.config()

    def request(self, tile: Tile) -> str:
        """A checksum of everything that determines tile ``tile``; where frames are cached does not count."""
        frames = {key: value for key, value in self._document["frames"].items() if key != "memory"}
        asked = {**self._document, "frames": frames, "plan": self.plan.as_dict(), "tile": list(tile.window)}
        return f"sha256:{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()}"

    def done(self) -> set[int]:
        """The tiles whose record is there; whether they are whole is not looked at."""
        return {tile.index for tile in self.plan.tiling if self.store.record(tile.index) is not None}


def is_field(path: str | Path) -> bool:
    """Whether a folder holds a field, finished or not."""
    return (Path(path) / "plan.json").is_file()
