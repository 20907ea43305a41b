"""`fouriscope field` as people meet it; the fields themselves are tested in tests/field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli_w

from fouriscope.acquisition.byte_sizes import format_bytes
from tests.cli.test_cli import Command, fouriscope  # noqa: F401 - the fixture
from tests.field.problems import write_field
from tests.run.problems import document

PLAN_LINES = ("tiles", "object", "time", "memory of a worker", "tiles on disk", "result on disk", "read from storage")


def test_a_plan_names_time_memory_and_disk(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    ended = fouriscope("field", write_field(tmp_path), "--plan", "--tile", 32, "--workers", 3)
    assert ended.code == 0
    found = {line[:25].strip(): line[25:] for line in ended.out.splitlines()}
    assert set(PLAN_LINES) <= set(found)
    assert found["tiles"].startswith("12 (4 × 3)")
    assert found["tiles on disk"] == format_bytes(12 * (32 * 3) ** 2 * 4)  # three object pixels a frame pixel
    assert "3 workers" in found["time"]
    assert not (tmp_path / "field").exists()


def test_a_plan_needs_no_frames(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    planned = document(frames={"path": None, "truth": None, "shape": [200, 160]}, object={"margin": 4})
    path = tmp_path / "planned.toml"
    path.write_text(tomli_w.dumps(planned), encoding="utf-8")
    ended = fouriscope("field", path, "--plan", "--tile", 64)
    assert ended.code == 0
    assert re.search(r"^tiles +12 \(4 × 3\)", ended.out, re.MULTILINE)


def test_mistakes_are_one_line(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    configuration = write_field(tmp_path)
    assert "no such file" in fouriscope.fails("field", tmp_path / "nothing.toml")
    assert "overlap" in fouriscope.fails("field", configuration, "--overlap", 0.9, "--plan")
    assert "'lots'" in fouriscope.fails("field", configuration, "--memory", "lots")
    endless = write_field(tmp_path / "endless", stop={"iterations": "unlimited", "seconds": 1.0})
    assert "unlimited" in fouriscope.fails("field", endless, "--plan")


def test_no_scheduler(fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from fouriscope.field import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    said = fouriscope.fails("field", write_field(tmp_path), "--scheduler", "tcp://127.0.0.1:1")
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in said
    assert "dask scheduler" in said
    assert not (tmp_path / "field").exists()
    assert "no Dask scheduler answers" in fouriscope.fails("field", tmp_path / "config.toml", "--scheduler", "nonsense")


@pytest.mark.slow
def test_a_field_from_the_command_line(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    configuration = write_field(tmp_path, stop={"iterations": 2})
    little = fouriscope("field", configuration, "--tile", 48, "--workers", 1, "--memory", "100MB")
    assert little.code == 2
    assert "but --memory is 100 MB" in little.err
    ended = fouriscope("field", configuration, "--tile", 48, "--workers", 1)
    assert ended.code == 0, ended.err
    assert "dashboard" not in ended.out
    assert "6 of 6 tiles" in ended.out
    assert "field.ome.zarr" in ended.out
    refused = fouriscope.fails("resume", tmp_path / "field")
    assert "fouriscope field CONFIG --out" in refused
    changed = write_field(tmp_path, stop={"iterations": 3})
    other = fouriscope("field", changed, "--workers", 1)
    assert other.code == 2
    assert "stop.iterations differs" in other.err
