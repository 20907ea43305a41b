"""`fouriscope paper` as people meet it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from skimage.data import camera

from fouriscope.reproduction.protocol import Protocol
from tests.cli.test_cli import Command, fouriscope
from tests.reproduction.test_figure4 import write_acquisition

__all__ = ["fouriscope"]


@pytest.mark.slow
def test_the_quick_version_from_end_to_end(
    fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One image, the paper's LEDs on small frames, the methods of figure 2: their order is already that of the paper.

    All figures together are drawn in tests/reproduction, of a small microscope: here they would take minutes.
    """
    small = replace(Protocol.quick(), frame=40)
    monkeypatch.setattr(Protocol, "quick", lambda: small)
    out, images = tmp_path / "paper", tmp_path / "images"
    images.mkdir()
    Image.fromarray(camera()[6:506, 6:506]).save(images / "cameraman.png")
    ended = fouriscope("paper", "--quick", "--figure", "2", "--out", out, "--images", images)
    assert (ended.code, ended.err) == (0, "")
    assert "nothing here has converged" in ended.out
    assert {"figure2.png", "figure2.pdf", "report.md", "report.html"} <= {p.name for p in out.iterdir()}
    methods = json.loads((out / "results.json").read_text())["methods"]
    noreg, tv, bm3d = (methods[f"{prior}-Online"]["snr_db"] for prior in ("NoReg", "TV", "BM3D"))
    assert tv > noreg + 1
    assert bm3d > noreg + 1
    # After 120 gradients Online and Batch are level, within what versions of numpy and numba change.
    assert methods["BM3D-Online"]["snr_db"] > methods["BM3D-Batch"]["snr_db"] - 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--figure", "7"), "--figure must be 1, 2, 3, 4 or all, got '7'"),
        (("--images", "/nowhere"), "/nowhere is not a folder"),
        (("--figure", "4"), "with --data"),
        (("--figure", "4", "--data", "/nowhere.toml"), "/nowhere.toml: no such file"),
        (("--figure", "2", "--data", "a.toml"), "--data belongs to figure 4, but --figure is 2"),
        (("--zoom", "1,2,3"), "--zoom belongs to figure 4"),
        (
            ("--figure", "4", "--data", "a.toml", "--zoom", "1,2"),
            "row,column,size in pixels, such as 120,300,90, got '1,2'",
        ),
        (("--figure", "4", "--data", "a.toml", *3 * ("--zoom", "1,2,3")), "room for 2 close-ups, got 3"),
    ],
)
def test_wrong_requests(fouriscope: Command, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    out = tmp_path / "paper"
    assert message in fouriscope.fails("paper", "--out", out, *arguments)
    assert not out.exists()


def test_an_image_that_cannot_be_read(fouriscope: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"GIF89a, or so it says")
    assert "broken.png: cannot be read as an image" in fouriscope.fails(
        "paper", "--out", tmp_path / "out", "--images", tmp_path
    )


def test_figure_4_from_end_to_end(fouriscope: Command, tmp_path: Path) -> None:
    config, out = write_acquisition(tmp_path / "data", alignment={}), tmp_path / "paper"
    assert "zoom must be (row, column, size) of a square inside" in fouriscope.fails(
        "paper", "--figure", "4", "--data", config, "--out", out, "--zoom", "1,1,900"
    )
    assert not out.exists()
    ended = fouriscope("paper", "--figure", "4", "--data", config, "--out", out, "--quick", "--zoom", "10,12,20")
    assert (ended.code, ended.err) == (0, "")
    assert "nothing here has converged" in ended.out
    assert "predicts held-out frames" in ended.out
    assert {"figure4-amplitude.png", "figure4-phase.pdf", "figure4.json", "report.html"} <= {
        p.name for p in out.iterdir()
    }
    assert "| EPRY |" in (out / "report.md").read_text()
