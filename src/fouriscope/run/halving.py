"""The levels of a pyramid: local means of an image, coarser and coarser, of the whole image or of a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.run.phases import nearest_turn

COARSEST = 256  # pixels along the longer side of the last level, at most

# From the number of levels to the levels, fine to coarse, one at a time: a channel is never in memory with its pyramid.
Levels = Callable[[int], Iterator[NDArray[Any]]]


def level_shapes(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """The shapes of the levels, halved until the longer side is at most 256 pixels.

    >>> level_shapes((1001, 300))
    [(1001, 300), (501, 150), (251, 75)]
    """
    shapes = [shape]
    while max(shapes[-1]) > COARSEST:
        rows, columns = shapes[-1]
        shapes.append(((rows + 1) // 2, (columns + 1) // 2))
    return shapes


def halved(image: NDArray[Any]) -> NDArray[Any]:
    """Means over 2 × 2 pixels, of an image of any size: n pixels become m = ⌈n/2⌉ that cover the same field exactly.

    If n is even these are the means of pairs. If it is odd, n = 2m − 1, a coarse pixel is 2 − 1/m fine ones wide,
    so that pixel j holds the last j/m of fine pixel 2j − 1, all of 2j, and the first 1 − (j + 1)/m of 2j + 1. Dropping
    the last row or counting it twice would move the image against its physical coordinates.

    >>> halved(np.array([[1.0, 3.0], [5.0, 7.0]])).tolist()
    [[4.0]]
    >>> halved(np.array([[3.0, 3.0, 6.0]])).tolist()
    [[3.0, 5.0]]
    """
    rows, columns = image.shape
    return halved_part(image, (slice(0, (rows + 1) // 2), slice(0, (columns + 1) // 2)), (rows, columns))


def covered(coarse: slice, size: int) -> slice:
    """The fine pixels, of ``size`` in all, that lie at least in part in the ``coarse`` ones.

    >>> covered(slice(1, 3), 8)
    slice(2, 6, None)
    >>> covered(slice(1, 3), 7)
    slice(1, 6, None)
    """
    shared = size % 2  # of an odd number of pixels every second one lies in two coarse pixels
    return slice(max(2 * coarse.start - shared, 0), min(2 * coarse.stop, size))


def halved_part(part: NDArray[Any], coarse: tuple[slice, slice], shape: tuple[int, int]) -> NDArray[Any]:
    """``halved(image)[coarse]``, to the last bit, from the :func:`covered` part of an image of ``shape``.

    >>> image = np.arange(35.0).reshape(5, 7)
    >>> rows, columns = slice(1, 3), slice(0, 2)
    >>> part = image[covered(rows, 5), covered(columns, 7)]
    >>> bool((halved_part(part, (rows, columns), (5, 7)) == halved(image)[rows, columns]).all())
    True
    """
    rows, columns = coarse
    return _halved_rows(_halved_rows(part, rows, shape[0]).T, columns, shape[1]).T


def _halved_rows(part: NDArray[Any], coarse: slice, size: int) -> NDArray[Any]:
    if size % 2 == 0:
        return np.asarray(0.5 * (part[0::2] + part[1::2]), part.dtype)
    half = size // 2 + 1
    first = max(coarse.start - 1, 0)  # fine row 2k + 1 is shared by coarse rows k and k + 1; this is the first such k
    before = coarse.start - first
    own, shared = part[before::2], part[1 - before :: 2]
    in_next = np.arange(first + 1, first + 1 + len(shared), dtype=part.real.dtype)[:, None] / half
    sums = own.copy()
    into_next = (in_next * shared)[: coarse.stop - 1 - first]
    sums[1 - before :] += into_next
    into_own = ((1 - in_next) * shared)[before:]
    sums[: len(into_own)] += into_own
    return np.asarray(sums / (2 - 1 / half), part.dtype)


def mean_levels(image: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    """``image`` and its local means, coarser and coarser: right for amplitudes and for a phase without jumps."""
    yield image
    for _ in range(count - 1):
        image = halved(image)
        yield image


def phase_levels(phase: NDArray[Any], field: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    """``phase`` and then the phases of the local means of ``field`` = a·e^{i·phase}.

    The mean of two phases at the two sides of a jump, π − ε and −π + ε, is 0, the opposite of both. The phase of the
    mean *field* is π. Whole turns are then added to come nearest to the mean of the phases, so that a phase that goes
    beyond π without a jump does so on every level.
    """
    yield phase
    for _ in range(count - 1):
        field, phase = halved(field), halved(phase)
        phase = nearest_turn(np.angle(field).astype(phase.dtype), phase)
        yield phase
