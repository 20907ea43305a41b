"""Writing files so that a reader never sees half of one, whatever kills the writer."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.output_files import replacing


@contextlib.contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; it takes the name when the block ends without an error.

    What is ``durable`` is on the disk before it takes the name, and survives a power cut whole.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], values: dict[str, Any], *, durable: bool = True) -> None:
    """Arrays and JSON in one uncompressed zip, readable by ``np.load`` and by any unzip; nothing is pickled."""
    with atomic_write(path, durable=durable) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("state.json", json.dumps(_as_json(values), allow_nan=False))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def _as_json(value: Any) -> Any:
    """The value with NaN and infinities as text, which JSON has no numbers for; ``float()`` reads them back."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files and folders of a writer that was killed."""
    for leftover in folder.glob(".*.part"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
