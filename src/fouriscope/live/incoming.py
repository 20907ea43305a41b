"""A folder that an acquisition program writes into: which files are whole, and which LED each belongs to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.images import image_header, images_of, read_image
from fouriscope.errors import InvalidInputError

# A file that does not change for this many seconds, and cannot be read, is reported. It is still waited for.
PATIENCE = 5.0
# This many frames may wait because it is unknown whether they count from 0 or from 1, before a line says so.
WAITING = 3

Signature = tuple[int, int, int]
"""(bytes, time of the last change, inode): if none of them changes, the file is neither being written nor replaced."""


class Arrival(NamedTuple):
    """A file that is whole: its LED, where it is, and the image in it."""

    led: int
    path: Path
    image: NDArray[Any]


class IncomingFiles:
    """Looks into a folder again and again, and returns each image once it is whole, and again if it is rewritten.

    A file is whole if its size and time did not change between two looks or while it was read, and if it can be read as
    one image. TIFF, PNG and .npy say how long they are, so half of one cannot be read. A program that first reserves
    the whole length and fills it in slowly, without a change for two looks, would be misread. Programs that write under
    another name and rename, or write from beginning to end, are safe.

    Parameters
    ----------
    folder
        The folder. It need not exist yet.
    count
        Number of LEDs.
    pattern, files
        As in :class:`~fouriscope.acquisition.FolderFrames`. With ``files``, a file's place in the list is its LED. With
        a pattern that has one ``*``, the LED is the number in its place: ``led_*.tif``; otherwise it is the last number
        of the name.
    first_number
        The number of the first LED, 0 or 1. By default frames wait until one settles the question: its number is 0, or
        equals the number of LEDs.
    shape
        (rows, columns) of a frame, if known; otherwise all must be like the first.
    tell
        Called with one line for each file that is left out, or waits for long.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        pattern: str | None = None,
        files: Sequence[str] | None = None,
        first_number: int | None = None,
        shape: tuple[int, int] | None = None,
        tell: Callable[[str], object] = lambda line: None,
        patience: float = PATIENCE,
    ) -> None:
        if files is not None and len(files) != count:
            raise InvalidInputError(f"frames.files must name one file per LED, {count}, got {len(files)}")
        self.folder, self.count, self.pattern = folder, count, pattern
        self.first_number, self.shape, self.tell, self.patience = first_number, shape, tell, patience
        self.dtype: np.dtype[Any] | None = None
        self.paths: dict[int, Path] = {}
        self._named = None if files is None else {folder / name: led for led, name in enumerate(files)}
        self._seen: dict[Path, Signature] = {}
        self._dealt_with: dict[Path, Signature] = {}
        self._unreadable: dict[Path, tuple[Signature, float]] = {}
        self._told: set[str] = set()

    def look(self) -> list[Arrival]:
        """The files that have become whole since the last look."""
        candidates = list(self._candidates())
        if self._named is None:
            self._settle_first_number(candidates)
        arrivals = []
        for path in candidates:
            now = _signature(path)
            if now is None or now == self._dealt_with.get(path):
                continue
            if now != self._seen.get(path):
                self._seen[path] = now  # it is being written, or nobody has looked before
            elif (led := self._led_of(path)) is not None:
                image = self._read(path, now)
                if image is not None:
                    self.paths[led] = path
                    arrivals.append(Arrival(led, path, image))
        return arrivals

    def names(self) -> list[str]:
        """The files of all LEDs, in their order, as [frames] ``files`` holds them; all must have arrived."""
        return [self.paths[led].relative_to(self.folder).as_posix() for led in range(self.count)]

    def _candidates(self) -> Iterator[Path]:
        if not self.folder.is_dir():
            return
        if self._named is not None:
            yield from self._named
        elif self.pattern is None and self.paths:
            # All frames are of one kind. A preview of another kind beside them must not end a run in progress.
            kind = next(iter(self.paths.values())).suffix
            yield from images_of(self.folder, f"*{kind}")
        else:
            yield from images_of(self.folder, self.pattern)

    def _read(self, path: Path, expected: Signature) -> NDArray[Any] | None:
        """The whole image, or None if it is waited for or has been reported."""
        try:
            shape, dtype = image_header(path)
            image = read_image(path)
        except InvalidInputError as error:
            self._wait_for(path, expected, error)
            return None
        if _signature(path) != expected:
            return None
        self._dealt_with[path] = expected
        self._unreadable.pop(path, None)
        if self.shape is None:
            self.shape = shape
        if self.dtype is None and shape == self.shape:
            self.dtype = dtype
        if shape != self.shape or dtype != self.dtype:
            self._tell_once(
                f"{path.name} is left out: every frame must be {self.dtype or 'a grey image'} of shape {self.shape}, "
                f"but this one is {dtype} of shape {shape}; it is used if it is written again"
            )
            return None
        return image

    def _wait_for(self, path: Path, signature: Signature, error: InvalidInputError) -> None:
        """It may be half written: wait, and say so if that takes long."""
        before, since = self._unreadable.get(path, (None, 0.0))
        if before != signature:
            self._unreadable[path] = (signature, time.monotonic())
            since = time.monotonic()
        if time.monotonic() - since >= self.patience:
            self._dealt_with[path] = signature  # until it changes
            self._tell_once(f"{path.name} is incomplete and no longer grows; still waiting for it ({error})")

    def _led_of(self, path: Path) -> int | None:
        """Which LED a file belongs to; None while that is not known, or if it belongs to none."""
        if self._named is not None:
            return self._named[path]
        number = number_in(path.relative_to(self.folder).as_posix(), self.pattern)
        if number is None or self.first_number is None:
            if number is None:
                self._tell_once(f"{path.name} is left out: its name has no number that could be an LED's")
            return None
        led = number - self.first_number
        if not 0 <= led < self.count:
            self._tell_once(
                f"{path.name} is left out: counted from {self.first_number}, LEDs go up to number "
                f"{self.count - 1 + self.first_number}; see --first-number and frames.pattern"
            )
            return None
        if self.paths.get(led, path) != path:
            self._tell_once(
                f"{path.name} is left out: LED {led} already has {self.paths[led].name}; choose files by frames.pattern"
            )
            return None
        return led

    def _settle_first_number(self, candidates: list[Path]) -> None:
        if self.first_number is not None or not candidates:
            return
        names = [path.relative_to(self.folder).as_posix() for path in candidates]
        numbers = {number_in(name, self.pattern) for name in names}
        if 0 in numbers:
            self.first_number = 0
        elif self.count in numbers:
            self.first_number = 1
        elif len(candidates) >= WAITING:
            self._tell_once(
                "frames wait, because their numbers may count LEDs from 0 or from 1: give --first-number 0 or 1"
            )

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.tell(line)


def number_in(name: str, pattern: str | None) -> int | None:
    """The number of a file: in the place of the one ``*`` of the pattern, or the last of the name without its ending.

    >>> number_in("led_012.tif", "led_*.tif"), number_in("t07_z000.tif", "t*_z000.tif"), number_in("t07_z003.tif", None)
    (12, 7, 3)
    >>> number_in("flat.tif", None), number_in("led_a.tif", "led_*.tif")
    (None, None)
    """
    if pattern is not None and pattern.count("*") == 1 and not set("?[") & set(pattern):
        before, after = pattern.split("*")
        middle = name.removeprefix(before).removesuffix(after)
        return int(middle) if re.fullmatch("[0-9]+", middle) else None
    numbers = re.findall("[0-9]+", Path(name).stem)
    return int(numbers[-1]) if numbers else None


def _signature(path: Path) -> Signature | None:
    """None for what is not there (any more), or is empty."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino) if found.st_size else None
