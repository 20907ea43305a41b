"""A small picture of a field that fills in while tiles are done."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.field.plan import FieldPlan
from fouriscope.field.tile_store import TileRecord
from fouriscope.run.files import atomic_write

LONGER_SIDE = 512


class Thumbnail:
    """The phase of all tiles that are done, each about its own median, on a grid of some :data:`LONGER_SIDE` pixels."""

    def __init__(self, plan: FieldPlan) -> None:
        rows, columns = plan.tiling.frame_shape
        self._step = max(1.0, max(rows, columns) / LONGER_SIDE)
        self._plan = plan
        self.image: NDArray[np.float32] = np.full(
            (max(1, round(rows / self._step)), max(1, round(columns / self._step))), np.nan, np.float32
        )

    def add(self, record: TileRecord) -> None:
        """Draw one tile."""
        tile, small = self._plan.tiling[record.index], np.asarray(record.thumbnail, np.float32)
        if small.ndim != 2 or not small.size:
            return
        rows = self._places(tile.top, tile.height, self.image.shape[0])
        columns = self._places(tile.left, tile.width, self.image.shape[1])
        self.image[np.ix_(rows, columns)] = small[
            np.ix_(
                self._sources(rows, tile.top, tile.height, small.shape[0]),
                self._sources(columns, tile.left, tile.width, small.shape[1]),
            )
        ]

    def _places(self, start: int, size: int, limit: int) -> NDArray[np.intp]:
        return np.arange(int(start / self._step), min(limit, int(np.ceil((start + size) / self._step))))

    def _sources(self, places: NDArray[np.intp], start: int, size: int, count: int) -> NDArray[np.intp]:
        inside = ((places + 0.5) * self._step - start) / size
        return np.asarray(np.clip((inside * count).astype(int), 0, count - 1))

    def grey(self) -> NDArray[np.uint8]:
        """The image in grey from the 1st to the 99th percentile; black where no tile is done."""
        known = np.isfinite(self.image)
        if not known.any():
            return np.zeros(self.image.shape, np.uint8)
        low, high = np.percentile(self.image[known], [1, 99])
        scaled = (np.where(known, self.image, low) - low) / max(high - low, 1e-6)
        return np.where(known, 25 + 230 * np.clip(scaled, 0, 1), 0).astype(np.uint8)

    def save(self, path: Path) -> None:
        """As a PNG."""
        from PIL import Image

        buffer: Any = io.BytesIO()
        Image.fromarray(self.grey()).save(buffer, format="PNG")
        with atomic_write(path) as file:
            file.write(buffer.getvalue())
