"""What is written as TOML: the same after parsing, and short enough to read."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.run.toml_lines import LINE, assignment, toml_of

scalars = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.dates(), st.datetimes()
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=40), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=60,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), values, max_size=4))
def test_the_text_says_the_same(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml_of(document)) == document


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=30), max_size=30))
def test_an_assignment_says_the_same(rows: list[list[float]]) -> None:
    assert tomllib.loads(assignment("rows", rows)) == {"rows": rows}


def test_numbers_stand_side_by_side() -> None:
    places = np.random.default_rng(0).normal(size=(225, 2)).tolist()
    document = {"illumination": {"positions": places, "brightness": [1.0] * 225}, "frames": {"files": ["a, ]", "b"]}}
    text = toml_of(document)
    assert tomllib.loads(text) == document
    lines = text.splitlines()
    assert len(lines) < 140
    assert max(map(len, lines)) <= LINE + 4
    assert all(line.count("[") == line.count("]") for line in lines if line[:1] == " "), "no place is torn apart"
    assert 'files = ["a, ]", "b"]' in lines


def test_words_that_do_not_fit_on_a_line_keep_their_own() -> None:
    document = {"files": [f"a name with spaces, number {number}" for number in range(10)]}
    assert tomllib.loads(toml_of(document)) == document
    assert len(toml_of(document).splitlines()) == 12
