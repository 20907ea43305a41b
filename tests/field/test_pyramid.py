"""A pyramid written block by block is the one that is written from memory, whoever writes which block and when."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.field import pyramid as module
from fouriscope.field.pyramid import Block, Pyramid, blocks, create_object, write_object_block
from fouriscope.run.halving import halved, mean_levels, phase_levels
from fouriscope.run.ome_zarr import display_window, write_ome_zarr
from fouriscope.run.phases import is_continuous, wrap
from tests.run.ngff import check_ngff
from tests.run.test_phases import bump

PIXEL = (0.16e-6, 0.2e-6)
SHAPES = [(512, 1024), (530, 701), (1025, 513), (300, 40)]  # even, mixed and odd on some level; one block wide
Images = dict[str, NDArray[Any]]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one chunk, so that small images have many of them."""
    monkeypatch.setattr(module, "BLOCK", 256)


def noisy_images(shape: tuple[int, int], *, wrapped: bool = True) -> Images:
    rng = np.random.default_rng(0)
    truth = bump(15.0, shape) + rng.normal(0.0, 0.2, shape)
    phase = (wrap(truth) if wrapped else truth).astype(np.float32)
    return {"phase": phase, "amplitude": rng.uniform(0.5, 1.0, shape).astype(np.float32)}


def empty_pyramid(path: Path, images: Images) -> Pyramid:
    rows, columns = next(iter(images.values())).shape
    pyramid = Pyramid(path / "blocks.ome.zarr", tuple(images), (rows, columns), PIXEL, "blocks")
    pyramid.create()
    return pyramid


def tasks(pyramid: Pyramid, images: Images) -> Iterator[list[Callable[[], None]]]:
    """What is to be done for each level, a call a block."""
    for level in range(len(pyramid.shapes)):
        yield [
            partial(pyramid.coarsen_block, level, block)
            if level
            else partial(pyramid.write_block, 0, block, {name: image[block.slices] for name, image in images.items()})
            for block in pyramid.blocks(level)
        ]


def written(path: Path, images: Images) -> Pyramid:
    pyramid = empty_pyramid(path, images)
    for level in tasks(pyramid, images):
        for write in level:
            write()
    return pyramid


def whole_level(pyramid: Pyramid, level: int) -> Images:
    return dict(zip(pyramid.channels, pyramid.read(level, slice(None), slice(None)), strict=True))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def chained_phase_levels(phase: NDArray[Any], amplitude: NDArray[Any] | float, count: int) -> Iterator[NDArray[Any]]:
    """As :func:`phase_levels`, but each level from what is stored of the finer one, and not from its field."""
    yield phase
    for _ in range(count - 1):
        _, phase = phase_levels(phase, amplitude * np.exp(1j * phase), 2)
        amplitude = halved(amplitude) if isinstance(amplitude, np.ndarray) else amplitude
        yield phase


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("absorbing", [True, False])
def test_blocks_give_what_memory_gives(tmp_path: Path, shape: tuple[int, int], wrapped: bool, absorbing: bool) -> None:
    images = noisy_images(shape, wrapped=wrapped)
    modulus = images["amplitude"] if absorbing else 1.0
    levels = {"phase": partial(chained_phase_levels, images["phase"], modulus)}
    if absorbing:
        levels["amplitude"] = partial(mean_levels, images["amplitude"])
    else:
        del images["amplitude"]
    pyramid = written(tmp_path, images)
    assert len(pyramid.blocks(0)) > 1
    write_ome_zarr(tmp_path / "memory.ome.zarr", levels, shape, PIXEL, name="memory")
    expected = zarr.open_group(tmp_path / "memory.ome.zarr", mode="r")
    for level in range(len(pyramid.shapes)):
        found = pyramid.read(level, slice(None), slice(None))
        np.testing.assert_allclose(found, np.asarray(expected[str(level)]), rtol=1e-6, atol=1e-5)


@pytest.mark.usefixtures("small_blocks")
def test_a_phase_without_jumps_has_none_on_any_level(tmp_path: Path) -> None:
    truth = bump(15.0, (530, 701))
    pyramid = written(tmp_path, {"phase": truth.astype(np.float32)})
    for level in range(len(pyramid.shapes)):
        found = whole_level(pyramid, level)["phase"]
        assert is_continuous(found)
        np.testing.assert_allclose(found, truth, atol=0.02)
        truth = halved(truth)


@pytest.mark.usefixtures("small_blocks")
def test_channels_of_other_names_become_local_means(tmp_path: Path) -> None:
    image = wrap(bump(15.0, (530, 300))).astype(np.float32)
    pyramid = written(tmp_path, {"coverage": image})
    np.testing.assert_allclose(whole_level(pyramid, 1)["coverage"], halved(image), atol=1e-6)


def test_metadata_is_written_last_and_is_that_of_an_image_in_memory(tmp_path: Path) -> None:
    images = noisy_images((530, 701))
    pyramid = written(tmp_path, images)
    assert dict(zarr.open_group(pyramid.path, mode="r").attrs) == {}
    pyramid.finish()
    levels = {name: partial(mean_levels, image) for name, image in images.items()}
    write_ome_zarr(tmp_path / "memory.ome.zarr", levels, pyramid.shape, PIXEL, name="blocks")
    assert check_ngff(pyramid.path) == check_ngff(tmp_path / "memory.ome.zarr")


@pytest.mark.usefixtures("small_blocks")
def test_what_viewers_show_is_chosen_from_a_level_that_fits_into_a_block(tmp_path: Path) -> None:
    pyramid = written(tmp_path, noisy_images((530, 701)))
    pyramid.finish()
    coarse = whole_level(pyramid, 2)
    channels = check_ngff(pyramid.path)["omero"]["channels"]
    assert {channel["label"]: channel["window"] for channel in channels} == {
        name: display_window(image) for name, image in coarse.items()
    }


@pytest.mark.parametrize("shape", [(10_000, 12_000), (1024, 2048), (1025, 3), (1, 1)])
def test_blocks_cover_every_pixel_once(shape: tuple[int, int]) -> None:
    visits = np.zeros(shape, np.uint8)
    for block in blocks(shape):
        visits[block.slices] += 1
        assert visits[block.slices].shape == (block.height, block.width)
    assert (visits == 1).all()


@pytest.mark.usefixtures("small_blocks")
def test_a_block_is_one_file_a_channel_that_no_other_block_touches(tmp_path: Path) -> None:
    images = noisy_images((530, 701))
    pyramid = empty_pyramid(tmp_path, images)
    before = contents(pyramid.path)
    for level in tasks(pyramid, images):
        for write in level:
            write()
            after = contents(pyramid.path)
            assert before.items() <= after.items(), "what others wrote stays"
            assert len(after) == len(before) + len(images)
            before = after


@pytest.mark.usefixtures("small_blocks")
def test_neither_order_nor_repetition_matters(tmp_path: Path) -> None:
    images = noisy_images((530, 701))
    expected = contents(written(tmp_path / "once", images).path)
    pyramid = empty_pyramid(tmp_path / "again", images)
    for level in tasks(pyramid, images):
        for write in reversed(level):
            write()
            write()
    assert contents(pyramid.path) == expected


@pytest.mark.usefixtures("small_blocks")
def test_a_block_that_is_written_again_keeps_nothing_of_what_it_was(tmp_path: Path) -> None:
    images = noisy_images((300, 301))
    pyramid = written(tmp_path, images)
    expected = contents(pyramid.path)
    last = pyramid.blocks(0)[-1]
    pyramid.write_block(0, last, {name: np.full((44, 45), np.nan, np.float32) for name in images})
    assert contents(pyramid.path) != expected
    pyramid.write_block(0, last, {name: image[last.slices] for name, image in images.items()})
    assert contents(pyramid.path) == expected


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    images = noisy_images((1100, 1101))
    expected = contents(written(tmp_path / "alone", images).path)
    pyramid = empty_pyramid(tmp_path / "together", images)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for level in tasks(pyramid, images):
            for done in [pool.submit(write) for write in level]:
                done.result()
    assert contents(pyramid.path) == expected


def shares(size: int) -> NDArray[np.float64]:
    """How much of each of ``size`` fine pixels lies in each coarse one, from the positions of their edges."""
    count = (size + 1) // 2
    edges = np.arange(count + 1)[:, None] * size / count
    fine = np.arange(size)
    return np.asarray(np.clip(np.minimum(edges[1:], fine + 1) - np.maximum(edges[:-1], fine), 0, None))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(300, 512), (301, 415), (514, 263)])
def test_missing_pixels_count_for_nothing_and_stay_where_they_are(tmp_path: Path, shape: tuple[int, int]) -> None:
    images = noisy_images(shape, wrapped=False)
    missing = np.random.default_rng(1).random(shape) < 0.3
    missing[200:280, 100:] = True  # across the edge of a block
    for image in images.values():
        image[missing] = np.nan
    pyramid = written(tmp_path, images)
    rows, columns = (shares(size) for size in shape)

    def mean(image: NDArray[Any]) -> NDArray[Any]:
        weight = rows @ ~missing @ columns.T
        total = rows @ np.where(missing, 0, image) @ columns.T
        return np.asarray(np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 1e-9))

    found = whole_level(pyramid, 1)
    np.testing.assert_allclose(found["amplitude"], mean(images["amplitude"]), rtol=1e-5)
    field = mean(images["amplitude"].astype(np.float64) * np.exp(1j * images["phase"]))
    np.testing.assert_allclose(np.exp(1j * found["phase"]), np.exp(1j * np.angle(field)), atol=1e-4)
    assert np.nanmax(np.abs(found["phase"] - mean(images["phase"]))) < np.pi
    for image in found.values():
        assert 0.02 < np.isnan(image).mean() < missing.mean()


@pytest.mark.usefixtures("small_blocks")
def test_the_memory_of_a_block_does_not_grow_with_the_image(tmp_path: Path) -> None:
    """Only the files that the block needs are there: an image of 50,001 × 60,001 pixels takes no room on disk."""
    peaks = []
    for number, shape in enumerate([(1025, 1027), (50_001, 60_001)]):
        pyramid = Pyramid(tmp_path / f"{number}.ome.zarr", ("phase", "amplitude"), shape, PIXEL, "x")
        pyramid.create()
        patch = {"phase": np.ones((256, 256)), "amplitude": np.ones((256, 256))}
        for row, column in ((0, 0), (0, 256), (256, 0), (256, 256)):
            pyramid.write_block(0, Block(row, column, 256, 256), patch)
        first = Block(0, 0, 256, 256)
        pyramid.coarsen_block(1, first)  # what is made once and kept is no matter of size
        tracemalloc.start()
        pyramid.coarsen_block(1, first)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        np.testing.assert_allclose(pyramid.read(1, *first.slices), 1, rtol=1e-6)
    small, large = peaks
    assert large < 1.1 * small


@pytest.mark.usefixtures("small_blocks")
def test_the_object_in_blocks(tmp_path: Path) -> None:
    images = noisy_images((530, 301))
    field = (images["amplitude"] * np.exp(1j * images["phase"])).astype(np.complex64)
    path = tmp_path / "object.zarr"
    create_object(path, (530, 301), PIXEL)
    *others, last = blocks((530, 301))
    for number, block in enumerate(others):
        write_object_block(path, block, field[block.slices])
        assert len(contents(path)) == number + 2, "a file a block, and that of the metadata"
    array: Any = zarr.open_array(path, mode="r")
    assert np.isnan(array[last.slices]).all()
    write_object_block(path, last, field[last.slices])
    assert (array.dtype, array.attrs["pixel_size_m"]) == (np.complex64, list(PIXEL))
    np.testing.assert_array_equal(array[...], field)


WRONG: dict[str, tuple[str, Callable[[Pyramid, Block], None]]] = {
    "created twice": ("expected nothing at", lambda pyramid, block: pyramid.create()),
    "not a block": (
        r"one of the blocks of a level of 300 × 40 pixels, got Block\(row=1,",
        lambda pyramid, block: pyramid.write_block(0, Block(1, 0, 299, 40), {"phase": np.zeros((299, 40))}),
    ),
    "block of another level": (
        "one of the blocks of a level of 150 × 20",
        lambda pyramid, block: pyramid.coarsen_block(1, block),
    ),
    "another size": (
        r"phase must have the 300 × 40 pixels of its block, got shape \(40, 300\)",
        lambda pyramid, block: pyramid.write_block(0, block, {"phase": np.zeros((40, 300))}),
    ),
    "other channels": (
        "expected phase, got amplitude",
        lambda pyramid, block: pyramid.write_block(0, block, {"amplitude": np.zeros((300, 40))}),
    ),
    "no finer level": (
        "level 0 has no finer level .* coarsen levels 1 to 1",
        lambda pyramid, block: pyramid.coarsen_block(0, block),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(tmp_path: Path, case: str) -> None:
    message, call = WRONG[case]
    pyramid = empty_pyramid(tmp_path, {"phase": np.zeros((300, 40))})
    with pytest.raises(InvalidInputError, match=message):
        call(pyramid, pyramid.blocks(0)[0])
