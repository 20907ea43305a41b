"""Part of a coarse image from part of the fine one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fouriscope.run.halving import covered, halved, halved_part


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, slice]:
    """A number of fine pixels, even or odd, and some of the coarse ones."""
    size = draw(st.integers(1, 40))
    start = draw(st.integers(0, (size + 1) // 2 - 1))
    return size, slice(start, draw(st.integers(start + 1, (size + 1) // 2)))


@given(spans(), spans(), st.sampled_from([np.float32, np.complex64]))
def test_a_part_is_halved_as_the_whole_is(
    vertical: tuple[int, slice], horizontal: tuple[int, slice], dtype: type
) -> None:
    (height, rows), (width, columns) = vertical, horizontal
    rng = np.random.default_rng(height * 100 + width)
    image = (rng.normal(size=(height, width)) + 1j * rng.normal(size=(height, width))).astype(np.complex64)
    whole = image.real if dtype == np.float32 else image
    part = whole[covered(rows, height), covered(columns, width)]
    found = halved_part(part, (rows, columns), (height, width))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, halved(whole)[rows, columns], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 15])
def test_no_more_is_covered_than_has_an_influence(size: int) -> None:
    """Every fine pixel by itself: it shows in a coarse one exactly if that one covers it."""
    reached = np.array([halved(np.eye(size)[:, [pixel]])[:, 0] > 0 for pixel in range(size)])
    for coarse in range((size + 1) // 2):
        span = covered(slice(coarse, coarse + 1), size)
        np.testing.assert_array_equal(np.flatnonzero(reached[:, coarse]), np.arange(size)[span])
