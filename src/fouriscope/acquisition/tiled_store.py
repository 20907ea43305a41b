"""Frames rewritten for tiles: a Zarr array of small chunks that many workers read, with every bit of it checked."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.byte_sizes import format_bytes, parse_bytes
from fouriscope.acquisition.digest import FrameDigest
from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.stored import StoredFrames, first_line, reading
from fouriscope.acquisition.streaming import StreamedFrames, read_through
from fouriscope.acquisition.tile_layout import CHECKSUM_KEY, FORMAT, FORMAT_KEY, HAND_FRAMES, CompleteArray, TileLayout
from fouriscope.errors import InvalidInputError

Progress: TypeAlias = Callable[[str, int], None]
"""Called with the present step, "writing" or "verifying", and for how many frames it is done."""

# Compression rarely makes camera frames smaller than this; a disk with less room need not be tried.
BEST_COMPRESSION = 4


def write_tiled(
    frames: Frames,
    path: str | Path,
    *,
    memory: int | str = "256MB",
    progress: Progress | None = None,
    force: bool = False,
) -> str:
    """Write frames as one Zarr array laid out for tiles, and return their checksum.

    The array is (frames, rows, columns) of the type that the frames are stored in. Its chunks (64 × 64 pixels of up to
    32 frames, in files of 512 × 512) let a worker read a tile of all frames without the rest of them. Each chunk
    carries a CRC-32C, so a bit that flips on the disk is an error when it is read, and so is a file that goes missing.
    The attribute ``fouriscope_checksum`` is the :func:`~fouriscope.acquisition.digest.checksum` of the frames. The
    written array is read back and compared with it before it gets its name. If anything goes wrong, nothing is left.

    Parameters
    ----------
    frames
        What to write; read once, in order.
    path
        The folder to make, which ends in ".zarr".
    memory
        Bytes, or text such as "64MB". It bounds the frames that are read ahead, the frames of one row of chunks, and
        the memory that Zarr needs to compress a file of them. With less memory, fewer frames share a chunk. A source
        that must be loaded whole (MATLAB version 5, a compressed .npz) comes on top.
    progress
        Called after each frame that was read for writing, and after each that was verified.
    force
        Replace what is at ``path``, once the new array is complete.

    Examples
    --------
    >>> import tempfile
    >>> from fouriscope.acquisition.digest import checksum
    >>> from fouriscope.acquisition.frames import ArrayFrames, open_frames
    >>> stack = np.arange(5 * 70 * 90, dtype=np.uint16).reshape(5, 70, 90)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_tiled(ArrayFrames(stack), f"{folder}/stack.zarr")
    ...     tile = open_frames(f"{folder}/stack.zarr", roi=(3, 50, 32, 32))
    ...     np.array_equal(tile.frame(4), stack[4, 3:35, 50:82]), written == checksum(ArrayFrames(stack))
    (True, True)
    """
    path, budget = Path(path), parse_bytes(memory)
    if path.exists() and not force:
        raise InvalidInputError(f"{path} exists; choose another name, or replace it with --force (force=True)")
    tell = progress or (lambda doing, done: None)
    with _folder_that_becomes(path) as part:
        written = _write(frames, part, path, budget, tell)
        found = verify_tiled(part, progress=tell)
        if found != written:
            raise InvalidInputError(
                f"{path}: the array was written with the checksum {written}, but read back with {found}; nothing was "
                f"kept: try again, on another disk or a machine with sound memory"
            )
    return written


def verify_tiled(path: str | Path, *, progress: Progress | None = None) -> str:
    """Read the whole array from the disk, each chunk once, and return the checksum of its frames.

    In as much memory as writing took. The frames are as they were written if it equals the array's attribute
    ``fouriscope_checksum``.

    Parameters
    ----------
    path
        The folder of the array, as :func:`write_tiled` left it.
    progress
        Called while chunks are read, as in :func:`write_tiled`.
    """
    import zarr

    path = Path(path)
    with reading(path, "the array of tiles"):
        array = CompleteArray(zarr.open_array(str(path), mode="r"), path)
    layout = TileLayout(array.shape, array.dtype, array.chunks[0])
    digest = FrameDigest(layout.shape)
    block = np.empty((layout.depth, *layout.shape[1:]), layout.dtype)
    for group in layout.groups():
        with reading(path, f"one of the frames {group[0]} to {group[-1]}"):
            for rows, columns in layout.windows():
                block[: len(group), rows, columns] = array[slice(group.start, group.stop), rows, columns]
        for place, index in enumerate(group):
            digest.add(block[place])
            if progress is not None:
                progress("verifying", index + 1)
    return digest.checksum


def _write(frames: Frames, part: Path, path: Path, budget: int, tell: Progress) -> str:
    with ExitStack() as opened:
        # Zarr writes in threads of its own, which an interrupt of this one would leave at work in a folder that is
        # being removed. Leaving the executor waits for them.
        writer = opened.enter_context(ThreadPoolExecutor(1))
        if isinstance(frames, StoredFrames):
            layout = _layout(frames.shape, frames.dtype, path, budget)
            ahead = budget - layout.buffer_bytes - HAND_FRAMES * layout.frame_bytes
            images = read_through(opened.enter_context(StreamedFrames(frames, ahead)))
        else:
            first, images = _peek(read_through(frames))
            layout = _layout(frames.shape, first, path, budget)
        with _writing(path):
            array = writer.submit(_create, part, layout).result()
        digest = FrameDigest(layout.shape)
        block = np.empty((layout.depth, *layout.shape[1:]), layout.dtype)
        for group in layout.groups():
            _fill(block, images, group, digest, tell)
            for rows, columns in layout.windows():  # one at a time: each takes memory while it is compressed
                shard = (slice(group.start, group.stop), rows, columns)
                with _writing(path):
                    writer.submit(array.__setitem__, shard, block[: len(group), rows, columns]).result()
        with _writing(path):
            writer.submit(array.attrs.update, {FORMAT_KEY: FORMAT, CHECKSUM_KEY: digest.checksum}).result()
        return digest.checksum


def _layout(shape: tuple[int, int, int], dtype: np.dtype[Any], path: Path, budget: int) -> TileLayout:
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise InvalidInputError(f"{path}: integers or floats of at most 64 bits were expected, got {dtype}")
    layout = TileLayout.within(budget, shape, dtype.newbyteorder("="))
    needed, free = shape[0] * layout.frame_bytes, shutil.disk_usage(path.parent).free
    if free < needed / BEST_COMPRESSION:
        raise InvalidInputError(
            f"{path}: {format_bytes(needed)} of frames, which compression makes four times smaller at best, do not fit "
            f"into the {format_bytes(free)} that are free; make room, or write to another disk"
        )
    return layout


def _peek(images: Iterator[NDArray[Any]]) -> tuple[np.dtype[Any], Iterator[NDArray[Any]]]:
    """The type of the first frame, and all frames; nothing is read twice."""
    first = next(images)
    return first.dtype, itertools.chain([first], images)


def _fill(
    block: NDArray[Any], images: Iterator[NDArray[Any]], group: range, digest: FrameDigest, tell: Progress
) -> None:
    for place, index in enumerate(group):
        image = next(images)
        if image.shape != block.shape[1:] or image.dtype.newbyteorder("=") != block.dtype:
            raise InvalidInputError(
                f"all frames must be {block.dtype} of shape {block.shape[1:]}, "
                f"got {image.dtype} of shape {image.shape} for frame {index}"
            )
        digest.add(image)
        block[place] = image
        del image  # not beside the next one
        tell("writing", index + 1)


def _create(part: Path, layout: TileLayout) -> Any:
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec

    # Of what Blosc offers, this is read fastest; counts use few of their bits, which bitshuffle brings together.
    fast = BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle", typesize=layout.dtype.itemsize)
    return zarr.create_array(
        str(part),
        shape=layout.shape,
        dtype=layout.dtype,
        chunks=layout.chunks,
        shards=layout.shards,
        compressors=[fast, Crc32cCodec()],
        dimension_names=("frame", "y", "x"),
        zarr_format=3,
        config={"write_empty_chunks": True},  # otherwise zeros would be stored as nothing, like what is lost
    )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            f"{path}: cannot be written ({error.strerror or first_line(error)}), nothing was kept; make room or "
            f"get permission, or write to another disk"
        ) from error


@contextmanager
def _folder_that_becomes(path: Path) -> Iterator[Path]:
    """A new folder beside ``path`` that takes its name, and its place, when the block ends without an error."""
    part, old = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.old.part")
    try:
        with _writing(path):
            _remove(part)  # of a writer that was killed
            part.mkdir()
        yield part
        with _writing(path):
            _flush(part)
            _remove(old)
            if path.exists():
                path.rename(old)
            try:
                part.rename(path)
            except BaseException:
                if old.exists():
                    old.rename(path)
                raise
        _remove(old)
    finally:
        _remove(part)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush(folder: Path) -> None:
    """Write all of it to the disk before it gets its name, because people delete what they have imported."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
