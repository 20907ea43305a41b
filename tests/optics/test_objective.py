from __future__ import annotations

import math
from typing import Any

import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Optics

PAPER: dict[str, Any] = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}


def test_derived_lengths_follow_their_formulas() -> None:
    optics = Optics(**PAPER)
    assert optics.pixel == pytest.approx(0.7977e-6, rel=1e-4)
    assert optics.cutoff == pytest.approx(0.2 / 513e-9)
    assert optics.nyquist_field_pixel == pytest.approx(1.2825e-6)
    assert optics.nyquist_intensity_pixel == pytest.approx(optics.nyquist_field_pixel / 2)


@pytest.mark.parametrize("name", [*PAPER, "medium_index"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_every_number_must_be_positive_and_finite(name: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Optics(**{**PAPER, name: value})


def test_units_that_are_not_metres_are_noticed() -> None:
    with pytest.raises(InvalidInputError, match="513 nm is 513e-9"):
        Optics(**{**PAPER, "wavelength": 513})
    with pytest.raises(InvalidInputError, match=r"6\.5 µm is 6\.5e-6"):
        Optics(**{**PAPER, "camera_pixel": 6.5})
    with pytest.raises(InvalidInputError, match="finite number, got '513e-9'"):
        Optics(**{**PAPER, "wavelength": "513e-9"})


def test_na_is_limited_by_the_medium() -> None:
    with pytest.raises(InvalidInputError, match="smaller than medium_index = 1"):
        Optics(**{**PAPER, "na": 1.2})
    assert Optics(**{**PAPER, "na": 1.2, "medium_index": 1.518}).na == 1.2
