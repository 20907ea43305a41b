"""`fouriscope multiplex`: real frames added up, and bad patterns told in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition.pattern_table import read_patterns
from fouriscope.run import load_config
from tests.cli.test_cli import Command, fouriscope
from tests.conftest import LEDS, OPTICS
from tests.run.problems import write_acquisition

__all__ = ["fouriscope"]


@pytest.mark.slow
def test_frames_are_the_sums_that_the_patterns_say(fouriscope: Command, tmp_path: Path) -> None:
    config = write_acquisition(tmp_path / "one", alignment={"focus": True, "circles": True}, frames={"gain": 2.0})
    out = tmp_path / "several"
    ended = fouriscope("multiplex", config, "--patterns", "random-4", "--out", out)
    assert (ended.code, ended.err) == (0, "")
    patterns = read_patterns(out / "patterns.csv", len(LEDS))
    assert np.array_equal(patterns, fs.random_patterns(LEDS, OPTICS, 4, seed=0))
    single = np.load(tmp_path / "one" / "frames.npy") / 2
    expected = np.tensordot(patterns, single, axes=1)
    data = fs.load(out / "config.toml")
    assert np.allclose(np.asarray(data.frames), expected, atol=1e-5)
    assert isinstance(data.illumination, fs.Multiplexed)
    described = load_config(out / "config.toml")
    assert (described.alignment.focus, described.alignment.circles) == (True, False)
    ended = fouriscope("reconstruct", out / "config.toml", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    assert "already has several LEDs per frame" in fouriscope.fails(
        "multiplex", out / "config.toml", "--patterns", "random-4", "--out", tmp_path / "again"
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("frame,led\n0,0\n1,49\n", "names LED 49, but LEDs are 0 to 48"),
        ("frame,led\n0,0\n2,1\n", "the pattern of frame 1 is empty"),
        ("frame,led,weight\n0,0,-1\n", "at least 0"),
        ("frame,led\n0,0\n1,0\n", "frames 0 and 1 have the same pattern"),
    ],
)
def test_bad_patterns_are_one_line_and_leave_nothing(
    fouriscope: Command, tmp_path: Path, table: str, words: str
) -> None:
    config = write_acquisition(tmp_path / "one")
    (tmp_path / "patterns.csv").write_text(table, encoding="utf-8")
    out = tmp_path / "several"
    assert words in fouriscope.fails("multiplex", config, "--patterns", tmp_path / "patterns.csv", "--out", out)
    assert not out.exists()
    assert "unknown patterns" in fouriscope.fails("multiplex", config, "--patterns", "nonsense", "--out", out)
