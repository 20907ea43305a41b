"""Run folders that were damaged, or made by somebody who means harm: one sentence, no more memory than a file."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.run import Result, RunFolder, resume_run
from fouriscope.run.files import write_arrays
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.snapshot import read_snapshot
from fouriscope.run.stored_arrays import read_arrays, read_tiff
from tests.viewer.served import TOKEN, Pages, real_run

DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000
TEXTS = ("status.json", "provenance.json", "config.toml", "result/summary.json", "result/geometry.json")
ADDRESSES = (
    *("config", "metrics", "leds", "leds?misfits=1", "image/phase", "image/spectrum", "image/amplitude.tif"),
    *("image/pupil_phase", "led/0/predicted", "figures/figure.png"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_run(tmp_path_factory.mktemp("whole"), object={"model": "complex", "margin": 2}, stop={"iterations": 3})


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def with_values(path: Path, **values: Any) -> None:
    """Change what state.json of an archive says."""
    arrays, known = read_arrays(path)
    write_arrays(path, arrays, known | values)


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def replaced(name: str, data: bytes, run: Path) -> None:
    (run / name).write_bytes(data)


def as_pipe(name: str, run: Path) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{
        f"{name} is {what}": partial(replaced, name, data)
        for name in TEXTS
        for what, data in {
            "a list": b"[1, 2]",
            "a number": b"17",
            "null": b"null",
            "nested": DEEP,
            "not UTF-8": b'\xff\xfe{"state": "finished"}',
            "empty": b"",
            "a number of 5000 digits": b'{"format": ' + b"9" * 5000 + b"}",
        }.items()
    },
    **{
        f"{name} is a pipe": partial(as_pipe, name)
        for name in (*TEXTS, "metrics.jsonl", "checkpoint.npz", "snapshot.npz", "result/phase.ome.tif")
    },
    "state is a list": lambda run: changed(run / "status.json", state=[1]),
    "process is huge": lambda run: changed(run / "status.json", state="running", pid=10**30),
    "input is a list": lambda run: changed(run / "provenance.json", input=[]),
    "files is text": lambda run: changed(run / "provenance.json", input={"files": "all"}),
    "watch is text": lambda run: changed(run / "provenance.json", watch="yes"),
    "directions are NaN": lambda run: changed(run / "provenance.json", alignment={"nominal_na": [[float("nan"), 0.0]]}),
    "pixel is huge": lambda run: changed(run / "result" / "summary.json", pixel_size_m=[10**400, 1.0]),
    "pixel is zero": lambda run: changed(run / "result" / "summary.json", pixel_size_m=[0.0, 0.0]),
    "verdict is text": lambda run: changed(run / "result" / "summary.json", verdict="good"),
    "metrics are text": lambda run: (run / "metrics.jsonl").write_text('{"iteration": "one"}\n', encoding="utf-8"),
    "metrics are nested": lambda run: (run / "metrics.jsonl").write_bytes(DEEP[:3000] + b"\n"),
    "metrics are huge": lambda run: (run / "metrics.jsonl").write_text('{"iteration": 1e999}\n', encoding="utf-8"),
    "the solver is a list": lambda run: with_values(run / "checkpoint.npz", solver=[]),
    "the solver is empty": lambda run: with_values(run / "checkpoint.npz", solver={}),
    "iterations are text": lambda run: with_values(run / "checkpoint.npz", iterations="three"),
    "the version is nested": lambda run: with_values(run / "checkpoint.npz", version={"a": []}),
    "the snapshot's pixel is text": lambda run: with_values(run / "snapshot.npz", pixel="small"),
    "the table is a line": lambda run: (run / "result" / "geometry.csv").write_text("x" * 200_000, encoding="utf-8"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damage_is_told_in_one_line(whole: Path, run: Path, damage: str) -> None:
    """By `resume`, by `Result.load`, and by the page, which shows the other runs all the same."""
    DAMAGES[damage](run)
    pages = Pages([whole, run])
    for snapshot in (True, False):
        about = pages.get(f"/{TOKEN}/api/runs")
        assert about.status_code == 200
        good, bad = about.json()
        assert (good["state"], good["iteration"]) == ("finished", 3)
        assert bad["state"] != "broken" or bad["message"]
        for address in ADDRESSES:
            assert pages.get(f"/{TOKEN}/api/runs/1/{address}").status_code in (200, 404), address
        if snapshot:
            (run / "snapshot.npz").unlink(missing_ok=True)
    for read in (Result.load, resume_run):
        said = ""
        try:
            read(run)
        except FouriscopeError as error:
            said = str(error)
        assert "\n" not in said
        assert len(said) < 500


@pytest.mark.parametrize("name", TEXTS[:3])
@pytest.mark.parametrize("data", [b"[]", DEEP, b"\xff"], ids=["list", "nested", "bytes"])
def test_resume_ends_with_a_line_and_2(run: Path, name: str, data: bytes) -> None:
    """The command itself: no traceback, and nothing is lost by asking."""
    (run / name).write_bytes(data)
    if name == "status.json":  # which a resume does not read
        with pytest.raises(RunFolderError, match=r"status.json: not "):
            Result.load(run)
        return
    command = [sys.executable, "-m", "fouriscope.cli.app", "resume", str(run)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert name in ended.stderr


def test_a_broken_run_says_why_beside_the_good_ones(whole: Path, run: Path) -> None:
    (run / "status.json").write_bytes(DEEP)
    good, bad = Pages([whole, run]).get(f"/{TOKEN}/api/runs").json()
    assert good["state"] == "finished"
    assert bad["state"] == "broken"
    assert "status.json: not readable" in bad["message"]


def test_a_compressed_archive_is_not_opened(run: Path) -> None:
    """Zeros that take 4 GB in memory and 4 MB on the disk: refused before anything is decompressed."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 15, 1 << 15)})
    with (
        zipfile.ZipFile(run / "snapshot.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("phase.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue() + bytes(1 << 20))
    with pytest.raises(RunFolderError, match="it is compressed, which no run writes"):
        read_snapshot(run)
    assert "compressed" in Pages([run]).get(f"/{TOKEN}/api/runs/0/image/phase").text


def test_an_archive_that_promises_more_than_it_holds_is_not_believed(run: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 17, 1 << 17)})
    with zipfile.ZipFile(run / "checkpoint.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("state.json", "{}")
    with pytest.raises(RunFolderError, match=r"damaged .*\d+ bytes do not hold"):
        RunFolder.open(run).read_checkpoint()


def test_a_picture_is_the_files_own_and_no_larger_than_it(run: Path, tmp_path: Path) -> None:
    """OME-XML may name other files, and tags any size."""
    files, name = FolderFiles(run, confined=True), "result/phase.ome.tif"
    own = read_tiff(files, name)
    other = tmp_path / "other.ome.tif"
    tifffile.imwrite(other, np.ones_like(own), ome=True, metadata={"axes": "YX"})
    xml = tifffile.tiffcomment(other).replace("<TiffData ", '<TiffData FirstC="0" FirstT="0" FirstZ="0" ')
    named = f'><UUID FileName="{other.name}">urn:uuid:1</UUID></TiffData></Pixels>'
    xml = xml.replace("/></Pixels>", named)
    tifffile.tiffcomment(run / name, xml.encode())
    np.testing.assert_array_equal(read_tiff(files, name), own)
    with tifffile.TiffFile(run / name, mode="r+b") as file:
        file.pages[0].tags["ImageLength"].overwrite(1 << 20)
    with pytest.raises(RunFolderError, match=r"phase.ome.tif: not readable \(\d+ bytes do not hold"):
        read_tiff(files, name)


def test_a_compressed_picture_is_refused(run: Path) -> None:
    tifffile.imwrite(run / "result" / "phase.ome.tif", np.zeros((64, 64), np.float32), compression="zlib")
    with pytest.raises(RunFolderError, match="expected one uncompressed image"):
        Result.load(run)


def test_what_a_solver_cannot_take_is_the_fault_of_the_checkpoint(run: Path) -> None:
    arrays, values = read_arrays(run / "checkpoint.npz")
    write_arrays(run / "checkpoint.npz", arrays, values | {"solver": values["solver"] | {"step_size": "large"}})
    with pytest.raises(RunFolderError, match=r"not the state of this solver .* delete it to start this run"):
        resume_run(run, iterations=5)
    for name in ("x", "own.s", "sampler.deck0"):
        assert name in arrays
        for wrong in (np.full(arrays[name].shape, 10**6, arrays[name].dtype), arrays[name].astype("S3"), np.zeros(3)):
            if name != "sampler.deck0" and wrong.dtype == arrays[name].dtype:
                continue  # an estimate may be anything, a LED may not
            write_arrays(run / "checkpoint.npz", arrays | {name: wrong}, values)
            with pytest.raises(RunFolderError, match="not the state of this solver"):
                resume_run(run, iterations=5)


def test_a_sparse_file_is_not_read(run: Path) -> None:
    """Files that say they are large are refused by their size, without reading them."""
    for name in ("status.json", "config.toml", "result/figure.png"):
        with (run / name).open("ab") as file:
            file.truncate(1 << 34)
    pages = Pages([run])
    (about,) = pages.get(f"/{TOKEN}/api/runs").json()
    assert (about["state"], "more than any run writes" in about["message"]) == ("broken", True)
    assert pages.get(f"/{TOKEN}/api/runs/0/figures/figure.png").status_code == 404
