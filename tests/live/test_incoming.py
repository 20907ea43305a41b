"""Which files are whole, and whose they are."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from fouriscope.acquisition.images import read_image
from fouriscope.errors import InvalidInputError
from fouriscope.live.incoming import IncomingFiles, number_in

IMAGE = np.arange(12 * 16, dtype=np.uint16).reshape(12, 16) * 300


def bytes_of(image: NDArray[Any], suffix: str) -> bytes:
    buffer = io.BytesIO()
    if suffix == ".npy":
        np.save(buffer, image)
    elif suffix == ".png":
        Image.fromarray(image).save(buffer, format="PNG")
    else:
        tifffile.imwrite(buffer, image, photometric="minisblack")
    return buffer.getvalue()


def incoming(folder: Path, count: int = 5, **options: Any) -> tuple[IncomingFiles, list[str]]:
    told: list[str] = []
    return IncomingFiles(folder, count, **{"first_number": 0, "tell": told.append, **options}), told


def looks(files: IncomingFiles, times: int = 2) -> list[tuple[int, str]]:
    """(LED, file) of what ``times`` looks bring."""
    return [(led, path.name) for _ in range(times) for led, path, _ in files.look()]


@pytest.mark.parametrize("suffix", [".tif", ".png", ".npy"])
def test_a_file_is_handed_out_once_it_is_whole_and_never_before(tmp_path: Path, suffix: str) -> None:
    """Byte by byte, with time for two looks after each: that is as slow as a file can be written."""
    files, told = incoming(tmp_path, patience=1e9)
    data, path = bytes_of(IMAGE, suffix), tmp_path / f"led_3{suffix}"
    cuts = sorted({*range(0, len(data), 29), *range(len(data) - 6, len(data))})
    with path.open("wb") as file:
        for start, stop in zip(cuts, [*cuts[1:], len(data)], strict=True):
            for _, _, image in (arrival for _ in range(3) for arrival in files.look()):
                np.testing.assert_array_equal(image, IMAGE)  # PNG and TIFF may be whole before their last byte
            file.write(data[start:stop])
            file.flush()
    assert path.read_bytes() == data
    files.look()
    files.look()
    assert files.paths == {3: path}
    assert told == []
    assert looks(files, 3) == [], "once"


def test_a_file_that_changes_between_two_looks_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr("fouriscope.live.incoming.read_image", lambda path: read.append(path))
    files, _ = incoming(tmp_path)
    for length in range(1, 6):
        (tmp_path / "led_0.tif").write_bytes(b"x" * length)
        assert files.look() == []
    assert read == []


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, path, original = "fouriscope.live.incoming.read_image", tmp_path / "led_0.tif", read_image
    tifffile.imwrite(path, IMAGE)

    def overtaken(read: Path) -> NDArray[Any]:
        image = original(read)
        monkeypatch.setattr(name, original)
        tifffile.imwrite(path, IMAGE + 1, software="another length")
        return image

    monkeypatch.setattr(name, overtaken)
    files, _ = incoming(tmp_path)
    images = [image for _ in range(5) for _, _, image in files.look()]
    assert len(images) == 1
    np.testing.assert_array_equal(images[0], IMAGE + 1)


def test_a_file_cut_short_for_ever_is_reported_and_taken_when_it_is_mended(tmp_path: Path) -> None:
    files, told = incoming(tmp_path, patience=0.0)
    data = bytes_of(IMAGE, ".tif")
    (tmp_path / "led_2.tif").write_bytes(data[:-100])
    tifffile.imwrite(tmp_path / "led_1.tif", IMAGE)
    assert looks(files, 4) == [(1, "led_1.tif")], "the others go on"
    assert len(told) == 1
    assert "led_2.tif is incomplete and no longer grows" in told[0]
    assert f"{len(data)} bytes were expected" in told[0]
    (tmp_path / "led_2.tif").write_bytes(data)
    assert looks(files) == [(2, "led_2.tif")]


def test_a_file_that_is_rewritten_is_handed_out_again(tmp_path: Path) -> None:
    files, _ = incoming(tmp_path)
    path = tmp_path / "led_0.tif"
    tifffile.imwrite(path, IMAGE)
    assert looks(files) == [(0, "led_0.tif")]
    tifffile.imwrite(path, IMAGE + 7, software="taken again")
    (again,) = [image for _ in range(2) for _, _, image in files.look()]
    np.testing.assert_array_equal(again, IMAGE + 7)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.zeros((4, 4), np.uint16), r"must be uint16 of shape \(12, 16\), but this one is uint16 of shape \(4, 4\)"),
        (IMAGE.astype(np.float32), "this one is float32"),
    ],
)
def test_a_file_of_another_kind_is_left_out_with_a_word(tmp_path: Path, other: NDArray[Any], message: str) -> None:
    files, told = incoming(tmp_path)
    tifffile.imwrite(tmp_path / "led_0.tif", IMAGE)
    looks(files)
    tifffile.imwrite(tmp_path / "led_1.tif", other)
    tifffile.imwrite(tmp_path / "led_2.tif", IMAGE)
    assert looks(files, 4) == [(2, "led_2.tif")]
    (line,) = told
    assert "led_1.tif is left out" in line

    assert re.search(message, line)
    tifffile.imwrite(tmp_path / "led_1.tif", IMAGE)
    assert looks(files) == [(1, "led_1.tif")]


def test_a_stack_is_left_waiting_with_a_word(tmp_path: Path) -> None:
    files, told = incoming(tmp_path, patience=0.0)
    tifffile.imwrite(tmp_path / "led_0.tif", np.stack([IMAGE, IMAGE]), photometric="minisblack")
    assert looks(files, 3) == []
    assert "one image was expected, got 2 pages" in told[0]


def test_the_folder_may_come_later(tmp_path: Path) -> None:
    files, told = incoming(tmp_path / "later")
    assert files.look() == []
    (tmp_path / "later").mkdir()
    tifffile.imwrite(tmp_path / "later" / "led_4.tif", IMAGE)
    assert looks(files) == [(4, "led_4.tif")]
    assert told == []


def test_pictures_of_another_kind_do_not_disturb_once_it_is_clear_what_frames_are(tmp_path: Path) -> None:
    files, told = incoming(tmp_path)
    tifffile.imwrite(tmp_path / "led_0.tif", IMAGE)
    looks(files)
    (tmp_path / "preview_1.png").write_bytes(bytes_of(IMAGE, ".png"))
    tifffile.imwrite(tmp_path / "led_1.tif", IMAGE)
    assert looks(files) == [(1, "led_1.tif")]
    assert told == []
    with pytest.raises(InvalidInputError, match="images of several kinds"):
        incoming(tmp_path)[0].look()


class TestWhoseFileItIs:
    def test_names_in_a_list_say_it_by_their_place(self, tmp_path: Path) -> None:
        files, _ = incoming(tmp_path, 2, files=["b.tif", "a.tif"], first_number=None)
        for name in ("a.tif", "b.tif", "c.tif"):
            tifffile.imwrite(tmp_path / name, IMAGE)
        assert looks(files) == [(0, "b.tif"), (1, "a.tif")]
        assert files.names() == ["b.tif", "a.tif"]
        with pytest.raises(InvalidInputError, match="one file per LED, 2, got 1"):
            incoming(tmp_path, 2, files=["a.tif"])

    @pytest.mark.parametrize(
        ("name", "pattern", "number"),
        [
            ("img_channel000_position000_time000000012_z003.tif", "img_*_z003.tif", None),
            (
                "img_channel000_position000_time000000012_z003.tif",
                "img_channel000_position000_time*_z003.tif",
                12,
            ),
            ("Pos0/img_000000007_Default_000.tif", "Pos0/img_*_Default_000.tif", 7),
            ("2024-05-01_led12.png", None, 12),
            ("led_7_of_9.tif", "led_*_of_*.tif", 9),
            ("dark.tif", None, None),
        ],
    )
    def test_the_number_in_a_name(self, name: str, pattern: str | None, number: int | None) -> None:
        assert number_in(name, pattern) == number

    @pytest.mark.parametrize(("numbers", "leds"), [((2, 0, 1), (2, 0, 1)), ((2, 5, 1), (1, 4, 0))])
    def test_counting_from_zero_or_one_is_settled_by_the_first_or_last_number(
        self, tmp_path: Path, numbers: tuple[int, ...], leds: tuple[int, ...]
    ) -> None:
        files, told = incoming(tmp_path, first_number=None)
        tifffile.imwrite(tmp_path / f"led_{numbers[0]}.tif", IMAGE)
        assert looks(files, 3) == [], "it could be either"
        for number in numbers[1:]:
            tifffile.imwrite(tmp_path / f"led_{number}.tif", IMAGE)
        assert sorted(led for led, _ in looks(files)) == sorted(leds)
        assert told == []

    def test_what_is_not_settled_is_said(self, tmp_path: Path) -> None:
        files, told = incoming(tmp_path, first_number=None)
        for number in (2, 3, 4):
            tifffile.imwrite(tmp_path / f"led_{number}.tif", IMAGE)
        assert looks(files, 4) == []
        assert told == [
            "frames wait, because their numbers may count LEDs from 0 or from 1: give --first-number 0 or 1"
        ]

    def test_strangers_are_left_out_with_a_word_each(self, tmp_path: Path) -> None:
        files, told = incoming(tmp_path)
        for name in ("led_1.tif", "led_01.tif", "led_5.tif", "flat.tif"):
            tifffile.imwrite(tmp_path / name, IMAGE)
        assert len(looks(files, 4)) == 1
        assert len(told) == 3
        assert any("led_5.tif is left out: counted from 0, LEDs go up to number 4" in line for line in told)
        assert any("flat.tif is left out: its name has no number" in line for line in told)
        assert any("LED 1 already has" in line for line in told)
