"""``--json``: one object on stdout, nothing else there, with the keys that docs/json.md lists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fouriscope.run import RunFolder
from tests.cli.test_cli import Command, fouriscope
from tests.run.problems import write_acquisition

__all__ = ["fouriscope"]
PAGE = Path(__file__).parents[2] / "docs" / "json.md"


def documented(heading: str) -> set[str]:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {"command", *(name for row in rows for name in re.findall(r"`(\w+)`", row))}


def said(command: Command, *arguments: object, code: int = 0, heading: str = "") -> dict[str, Any]:
    ended = command(*arguments, "--json")
    assert (ended.code, ended.err) == (code, "")
    found: dict[str, Any] = json.loads(ended.out)
    assert found["command"] == arguments[0]
    assert set(found) == documented(heading or str(arguments[0]))
    return found


def test_info(fouriscope: Command, tmp_path: Path) -> None:
    config = write_acquisition(tmp_path, frames={"reject": [3]})
    found = said(fouriscope, "info", config, "--sheet", tmp_path / "sheet.png")
    assert found["ready"] is True
    assert (found["refusal"], found["sheet"]) == ("", str(tmp_path / "sheet.png"))
    assert found["optics"]["leds"] == found["frames"]["count"] == 49
    assert [one["frame"] for one in found["frames"]["rejected"]] == [3]
    assert found["frames"]["each"] is None
    each = said(fouriscope, "info", config, "--frames")["frames"]["each"]
    assert len(each) == 49
    assert each[0]["low"] <= each[0]["median"] <= each[0]["high"]


def test_info_of_what_cannot_be_reconstructed(fouriscope: Command, tmp_path: Path) -> None:
    config = write_acquisition(tmp_path, prior={"name": "tvv"})
    found = said(fouriscope, "info", config, code=2)
    assert found["ready"] is False
    assert "unknown prior 'tvv'" in found["refusal"]
    assert found["refusal"] in found["verdict"]


def test_info_without_frames(fouriscope: Command, tmp_path: Path) -> None:
    config = write_acquisition(tmp_path)
    text = re.sub(r'(?m)^path = ".*"\n', "", config.read_text())
    config.write_text(text.replace("[frames]", "[frames]\nshape = [24, 24]"))
    found = said(fouriscope, "info", config)
    assert (found["frames"], found["ready"], found["verdict"]) == (None, None, None)


def test_import(fouriscope: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "stack.npy", np.random.default_rng(0).integers(0, 4000, (9, 16, 16), np.uint16))
    out = tmp_path / "acquisition.toml"
    found = said(fouriscope, "import", tmp_path / "stack.npy", "--out", out, code=1)
    assert found["complete"] is False
    assert "microscope.na" in [one["key"] for one in found["missing"]]
    assert found["frames"]["shape"] == [9, 16, 16]
    assert out.exists()


@pytest.mark.slow
def test_reconstruct_and_resume(fouriscope: Command, tmp_path: Path) -> None:
    config = write_acquisition(tmp_path, stop={"iterations": 5}, verdict={"enabled": True})
    found = said(fouriscope, "reconstruct", config, heading="reconstruct, resume")
    assert found["run"] == str(tmp_path / "run")
    assert (found["iterations"], found["stopped"], found["interrupted"]) == (5, "5 iterations", False)
    assert "phase.ome.tif" in found["files"]
    summary = RunFolder.open(tmp_path / "run").files.json("result/summary.json")
    assert found["verdict"] == summary["verdict"]
    assert found["misfit"] == summary["misfit"]
    more = said(fouriscope, "resume", tmp_path / "run", "--iterations", 7, heading="reconstruct, resume")
    assert more["iterations"] == 7


@pytest.mark.slow
def test_tune(fouriscope: Command, tmp_path: Path) -> None:
    fouriscope("simulate", tmp_path, "--frame", 24, "--radius", 3.2)
    config = tmp_path / "config.toml"
    found = said(fouriscope, "tune", config, "--iterations", 20, "--evaluations", 3, "--dry-run")
    (search,) = found["searches"]
    assert found["written"] is False
    assert (search["key"], search["criterion"], len(search["trials"])) == ("prior.strength", "truth", 3)
    assert search["settings"] == {"prior.strength": search["value"]}
    assert Path(search["figure"]).exists()


@pytest.mark.parametrize("command", ["info", "import", "reconstruct", "resume", "tune"])
def test_an_error_is_one_line_and_no_json(fouriscope: Command, tmp_path: Path, command: str) -> None:
    assert fouriscope.fails(command, tmp_path / "nothing", "--json")
