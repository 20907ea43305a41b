"""Files that are damaged, made to do harm, or no files at all: each is one sentence, and costs next to nothing."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import tifffile
import zarr
from PIL import Image

from fouriscope.acquisition import open_frames
from fouriscope.acquisition.images import read_image
from fouriscope.acquisition.led_table import read_led_table
from fouriscope.acquisition.mat5_file import Mat5File
from fouriscope.acquisition.npy_file import read_npy
from fouriscope.acquisition.readers import describe
from fouriscope.acquisition.readers.numbering import notes_on_numbers
from fouriscope.acquisition.tiff_file import read_tiff
from fouriscope.errors import InsufficientMemoryError, InvalidInputError

STACK = np.random.default_rng(5).poisson(100, (6, 20, 30)).astype(np.uint16)
ENDINGS = (".tif", ".npy", ".npz", ".h5", ".mat", ".png")


# What is no file.


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_only_files_are_opened(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"a{ending}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(path))
    for read in (open_frames, describe, read_image):
        if not (read is open_frames and ending == ".png"):
            with pytest.raises(InvalidInputError, match=f"a file was expected, but this is a .*{kind}"):
                read(path)


def test_a_pipe_in_a_folder_or_in_a_zarr_array(tmp_path: Path) -> None:
    zarr.save_array(str(tmp_path / "a.zarr"), STACK)
    os.mkfifo(tmp_path / "a.zarr" / "c" / "9")
    with pytest.raises(InvalidInputError, match=r"9: a file was expected, but this is a named pipe"):
        open_frames(tmp_path / "a.zarr")
    for number in range(2):
        tifffile.imwrite(tmp_path / f"{number}.tif", STACK[number])
    os.mkfifo(tmp_path / "2.tif")
    with pytest.raises(InvalidInputError, match=r"2\.tif: a file was expected, but this is a named pipe"):
        open_frames(tmp_path)
    os.mkfifo(tmp_path / "metadata.json")
    os.mkfifo(tmp_path / "leds.csv")
    with pytest.raises(InvalidInputError, match="a named pipe"):
        read_led_table(tmp_path / "leds.csv")


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    for number in range(2):
        with open(folder + b"/l\xff_%d.npy" % number, "wb") as file:
            np.save(file, STACK[number])
    for read in (open_frames, describe):
        with pytest.raises(InvalidInputError, match=r"l\\udcff_0.npy: the name is not valid UTF-8; rename it"):
            read(tmp_path)


# What claims more than it holds.


@pytest.mark.slow
def test_a_tiff_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    rows = iter([zlib.compress(bytes(1000 * 40_000))] * 40)
    tifffile.imwrite(
        tmp_path / "a.tif", rows, shape=(40_000, 40_000), dtype=np.uint8, compression="zlib", rowsperstrip=1000
    )
    with pytest.raises(InvalidInputError, match=r"page 0 claims 1\.6 GB, which the file holds in .* MB"):
        open_frames(tmp_path / "a.tif")
    small = tmp_path / "small.tif"
    tifffile.imwrite(small, STACK[0], compression="zlib")
    with tifffile.TiffFile(small) as file:
        tags = file.pages[0].tags
        offset, count = (tags[name].valueoffset for name in ("StripOffsets", "StripByteCounts"))
    bomb = zlib.compress(bytes(2**29), 9)
    content = bytearray(small.read_bytes())
    where, size = len(content), len(bomb)
    struct.pack_into("<I", content, offset, where)
    struct.pack_into("<I", content, count, size)
    small.write_bytes(bytes(content) + bomb)
    with pytest.raises(InvalidInputError, match="page 0 unpacks to more than its 1200 bytes"):
        open_frames(small)


def png_of(path: Path, rows: int, columns: int) -> Path:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def test_a_png_that_claims_too_much(tmp_path: Path) -> None:
    path = png_of(tmp_path / "a.png", 60_000, 60_000)
    with pytest.raises(InvalidInputError, match=r"the image claims 3\.6 GB"):
        read_image(path)


@pytest.mark.filterwarnings("error")
def test_a_large_png_is_read_without_a_warning(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((9000, 10_000), np.uint8)).save(tmp_path / "a.png", compress_level=1)
    assert read_image(tmp_path / "a.png").shape == (9000, 10_000)


def packed(path: Path, shape: str, data: bytes, method: int) -> Path:
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("y.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_npz_that_claims_too_much_or_is_damaged(tmp_path: Path, method: int) -> None:
    path = packed(tmp_path / "a.npz", "(9, 90000, 90000)", bytes(1000), method)
    with pytest.raises(InvalidInputError, match=r"the array 'y' claims 146 GB"):
        open_frames(path)
    path = packed(tmp_path / "b.npz", "(2, 50, 50)", STACK.tobytes(), method)
    content = bytearray(path.read_bytes())
    content[300:340] = bytes(40)
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"b\.npz"):
        open_frames(path)


def test_a_header_of_an_array_is_never_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "dark.npy"
    np.save(path, STACK[0])
    good = path.read_bytes()
    for old, new in (
        (b"(20, 30)", b"(20, 30("),
        (b"'<u2'", b"'|O8'"),
        (b"descr", b"d\\scr"),
        (b"(20, 30)", b"(2**99,)"),
    ):
        path.write_bytes(good.replace(old, new))
        with pytest.raises(InvalidInputError, match=r"dark\.npy: "):
            read_npy(path)
    path.write_bytes(good.replace(b"(20, 30), }", b"(20L, 30L)}"))  # as Python 2 wrote it
    np.testing.assert_array_equal(read_npy(path), STACK[0])


def test_zarr_with_impossible_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    for chunks, shape in (([0, 20, 30], [6, 20, 30]), ([2**20, 2**20, 1], [6, 20, 30]), ([1, 1, 1], [6, 2**62, 30])):
        zarr.create_array(str(path), shape=STACK.shape, chunks=(1, 20, 30), dtype="u2", zarr_format=2, overwrite=True)
        metadata = json.loads((path / ".zarray").read_text(encoding="utf-8"))
        (path / ".zarray").write_text(json.dumps(metadata | {"chunks": chunks, "shape": shape}), encoding="utf-8")
        with pytest.raises((InvalidInputError, InsufficientMemoryError), match=r"a\.zarr: "):
            open_frames(path)


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_zarr_runs_no_code(tmp_path: Path, place: str) -> None:
    """Zarr itself refuses it today, in its own words."""
    path, pickle = tmp_path / "a.zarr", {"id": "pickle", "protocol": 5}
    zarr.create_array(str(path), shape=STACK.shape, chunks=(1, 20, 30), dtype="u2", zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text(encoding="utf-8")) | {"filters": None, "compressor": None}
    metadata[place] = [pickle] if place == "filters" else pickle
    (path / ".zarray").write_text(json.dumps(metadata), encoding="utf-8")
    (path / "0.0.0").write_bytes(b"cos\nmkdir\n(V" + str(tmp_path / "owned").encode() + b"\ntR.")
    with pytest.raises(InvalidInputError, match=r"a\.zarr.*pickle"):
        open_frames(path).frame(0)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_zarr_uses_codecs_for_numbers_alone(tmp_path: Path, place: str) -> None:
    path, text = tmp_path / "a.zarr", {"id": "base64"}
    zarr.create_array(str(path), shape=STACK.shape, chunks=(1, 20, 30), dtype="u2", zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text(encoding="utf-8"))
    metadata[place] = [text] if place == "filters" else text
    (path / ".zarray").write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"a\.zarr: the codec 'base64' is refused: it is not for arrays"):
        open_frames(path)


def test_hdf5_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with h5py.File(tmp_path / "secret" / "other.h5", "w") as file:
        file["y"] = STACK
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["y"] = h5py.ExternalLink("secret/other.h5", "y")
        layout = h5py.VirtualLayout(STACK.shape, STACK.dtype)
        layout[:] = h5py.VirtualSource("secret/other.h5", "y", STACK.shape)
        file.create_virtual_dataset("z", layout)
        file["inner/stack"] = STACK
        file["short"] = h5py.SoftLink("/inner/stack")
    with pytest.raises(InvalidInputError, match="there is no dataset 'y'"):
        open_frames(tmp_path / "a.h5", dataset="y")
    with pytest.raises(InvalidInputError, match="only files of the same folder are read"):
        open_frames(tmp_path / "a.h5", dataset="z")
    np.testing.assert_array_equal(open_frames(tmp_path / "a.h5", dataset="short").frame(3), STACK[3])


def test_a_circle_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.repeat(STACK, 40, axis=0))
    with tifffile.TiffFile(path) as file:
        last, middle = file.pages.next_page_offset, file.pages[150].offset
    content = bytearray(path.read_bytes())
    for target in (middle,):
        struct.pack_into("<I", content, last, target)
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match="an earlier one comes again"):
            open_frames(path)


# MATLAB version 5.


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_version_5_as_scipy_reads_it(tmp_path: Path, compressed: bool) -> None:
    written: dict[str, Any] = {
        "stack": STACK.transpose(1, 2, 0),
        "numbers": np.arange(6.0).reshape(2, 3),
        "waves": np.array([[1 + 2j, 3 - 1j]]),
        "flags": np.array([[True, False]]),
        "one": 3.5,
        "words": "some words",
        "nested": {"inner": {"deep": np.arange(4.0)}, "empty": np.zeros((0, 0))},
        "cells": np.array([[1, "a"]], dtype=object),
    }
    scipy.io.savemat(tmp_path / "a.mat", written, do_compression=compressed)
    file, expected = Mat5File(tmp_path / "a.mat"), scipy.io.loadmat(tmp_path / "a.mat")
    assert list(file.variables) == list(written)
    for name in ("stack", "numbers", "waves", "flags", "one"):
        found = file.read(name)
        assert found.dtype == expected[name].dtype
        np.testing.assert_array_equal(found, expected[name])
    assert file.read("words") == "some words"
    assert file.read("nested")["inner"]["deep"].ravel().tolist() == [0, 1, 2, 3]
    assert file.read("cells") is None


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_matlab_files_never_crash(tmp_path: Path, compressed: bool) -> None:
    rng, path = np.random.default_rng(15), tmp_path / "a.mat"
    fields = {"na": 0.1, "list": rng.normal(size=(6, 2)), "name": "lens"}
    scipy.io.savemat(path, {"data": STACK.transpose(1, 2, 0), "metadata": fields}, do_compression=compressed)
    good = path.read_bytes()
    for _ in range(400):
        content = bytearray(good)
        for place in rng.integers(128, len(good) if rng.random() < 0.5 else 500, rng.integers(1, 4)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(len(good))] if rng.random() < 0.2 else content)
        try:
            file = Mat5File(path)
            [file.read(name) for name in file.variables]
        except (InvalidInputError, InsufficientMemoryError, zlib.error):
            pass


def test_a_matlab_variable_that_claims_too_much(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"y": np.zeros((600, 600, 900), np.uint8)}, do_compression=True)
    with pytest.raises(InvalidInputError, match=r"the variable 'y' claims 324 MB, which the file holds in 315 kB"):
        open_frames(tmp_path / "a.mat")


# OME-TIFF in several files.


def ome_set(folder: Path, names: list[str], pages: int, named: Callable[[str], str] = lambda name: name) -> None:
    data = "".join(
        f'<TiffData FirstT="{file * pages + page}" IFD="{page}" PlaneCount="1">'
        f'<UUID FileName="{named(name)}">urn:uuid:{file}</UUID></TiffData>'
        for file, name in enumerate(names)
        for page in range(pages)
    )
    for file, name in enumerate(names):
        text = (
            '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            f'UUID="urn:uuid:{file}"><Image ID="Image:0">'
            '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="30" SizeY="20" SizeZ="1" SizeC="1" '
            f'SizeT="{pages * len(names)}">{data}</Pixels></Image></OME>'
        )
        part = STACK[file * pages : (file + 1) * pages]
        tifffile.imwrite(folder / name, part, description=text, metadata=None, photometric="minisblack")


@pytest.mark.parametrize(("names", "pages"), [(["a.ome.tif", "b.ome.tif"], 3), ([f"{n}.ome.tif" for n in range(6)], 1)])
def test_an_ome_tiff_in_several_files(tmp_path: Path, names: list[str], pages: int) -> None:
    ome_set(tmp_path, names, pages)
    for name in names:
        frames = open_frames(tmp_path / name)
        assert frames.shape == STACK.shape
        np.testing.assert_array_equal(np.asarray(frames), STACK)
    assert read_tiff(tmp_path / names[0]).ndim == (3 if pages > 1 else 2)  # its own pages, whatever it says
    if pages == 1:
        np.testing.assert_array_equal(np.asarray(open_frames(tmp_path)), STACK)
    (tmp_path / names[1]).unlink()
    with pytest.raises(InvalidInputError, match=f"its OME-XML names {names[1]}, which is not beside it"):
        open_frames(tmp_path / names[0])


def test_an_ome_tiff_stays_in_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    tifffile.imwrite(tmp_path / "b.ome.tif", STACK[3:] + 1, photometric="minisblack")
    ome_set(inside, ["a.ome.tif", "b.ome.tif"], 3, lambda name: f"../{name}")
    with pytest.raises(InvalidInputError, match=r"leads to '\.\./b\.ome\.tif'; only files of the same folder are read"):
        open_frames(inside / "a.ome.tif")
    ome_set(inside, ["a.ome.tif", "b.ome.tif"], 3)
    (inside / "b.ome.tif").unlink()
    (inside / "b.ome.tif").symlink_to(tmp_path / "b.ome.tif")
    with pytest.raises(InvalidInputError, match="only files of the same folder are read"):
        open_frames(inside / "a.ome.tif")
    (inside / "b.ome.tif").unlink()
    os.mkfifo(inside / "b.ome.tif")
    with pytest.raises(InvalidInputError, match="a named pipe"):
        open_frames(inside / "a.ome.tif")


# Tables, notes and noise.


def test_a_table_with_endless_fields_or_brackets(tmp_path: Path) -> None:
    (tmp_path / "leds.csv").write_text(f"na_y,na_x\n{'1' * 200_000},0\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"leds\.csv: cannot be read as a table of LEDs \(field larger"):
        read_led_table(tmp_path / "leds.csv")
    (tmp_path / "info.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"info\.json: not a readable JSON file"):
        describe(tmp_path / "info.json")


def test_sidecars_beside_a_zarr_array(tmp_path: Path) -> None:
    zarr.save_array(str(tmp_path / "a.zarr"), STACK)
    (tmp_path / "metadata.json").write_text('{"wavelength_m": 5e-7}', encoding="utf-8")
    (tmp_path / "a.zarr" / "illumination_na.csv").write_text("na_y,na_x\n" + "0,0\n" * 6, encoding="utf-8")
    description = describe(tmp_path / "a.zarr")
    assert description.microscope["wavelength"] == 5e-7
    assert description.leds is not None


def test_gaps_and_doubles_in_numbers_are_noted(tmp_path: Path) -> None:
    for name in ("l_1", "l_01", "l_2", "l_4"):
        np.save(tmp_path / f"{name}.npy", STACK[0])
    notes = describe(tmp_path).notes
    assert "l_01.npy and l_1.npy have the same number" in notes
    assert "the numbers 3 are missing between 1 and 4: was a frame lost?" in notes
    assert notes_on_numbers([Path(f"a{row}_{column}.tif") for row in (1, 3) for column in (1, 2)]) == []


def test_what_tifffile_logs_stays_off_the_terminal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, STACK, extratags=[(65000, "s", 0, "words", False)])
    with tifffile.TiffFile(path) as file:
        tag = file.pages[0].tags[65000]
    content = bytearray(path.read_bytes())
    struct.pack_into("<H", content, tag.offset + 2, 999)  # a type that does not exist
    path.write_bytes(content)
    description = describe(path)
    assert any("the TIFF is unusual but readable" in note for note in description.notes)
    assert not caplog.records


def test_errors_are_one_line_of_bounded_length(tmp_path: Path) -> None:
    (tmp_path / "leds.csv").write_text(f"{'x' * 100_000}\n", encoding="utf-8")
    with pytest.raises(InvalidInputError) as caught:
        read_led_table(tmp_path / "leds.csv")
    assert len(str(caught.value)) <= 1000
    assert str(InvalidInputError("a\nb\x1b[2J")) == "a b\\x1b[2J"
    assert io.StringIO(str(caught.value)).read().count("\n") == 0
