"""What is written takes the place of a file, never of a pipe or a device."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.run.files import write_text
from fouriscope.run.importing import import_acquisition


def test_a_special_file_is_not_replaced(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 20, 20), np.uint16))
    special = tmp_path / "pipe.toml"
    os.mkfifo(special)
    with pytest.raises(InvalidInputError, match="this is a named pipe, which is never replaced"):
        import_acquisition(tmp_path / "a.npy", special, chosen={}, force=True)
    with pytest.raises(InvalidInputError, match="this is a named pipe, which is never replaced"):
        write_text(special, "words")
    assert stat.S_ISFIFO(special.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "pipe.toml"]
