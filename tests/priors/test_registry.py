"""Names, descriptions and plain functions become priors; what cannot is refused with a hint."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.priors import (
    L1,
    TV,
    Box,
    CallablePrior,
    NoPrior,
    as_prior,
    available_priors,
    installed_priors,
    prior_from_spec,
)

Image = npt.NDArray[np.floating[Any]]


def test_every_available_name_builds_a_prior_of_that_name() -> None:
    for name in set(available_priors()) - {"deepinv"}:  # which needs a file of weights: tests/priors/test_learned.py
        assert as_prior(name).name == name
        assert as_prior(name.upper()).name == name


def test_what_is_installed() -> None:
    infos = {info.name: info for info in installed_priors()}
    assert set(available_priors()) == {name for name, info in infos.items() if not info.from_python}
    assert {"callable", "torch"} == {name for name, info in infos.items() if info.from_python}
    for name in set(infos) - {"deepinv", "torch"}:
        assert infos[name].missing is None
        assert len(infos[name].description) > 10
    assert infos["tv"].has_objective
    assert not infos["nlm"].has_objective


def test_what_is_taken_as_a_prior() -> None:
    prior = TV(strength=0.2)
    assert as_prior(prior) is prior
    assert isinstance(as_prior(None), NoPrior)
    assert isinstance(as_prior({"name": "box", "lower": -1, "upper": "inf"}), Box)
    wrapped = as_prior(lambda image, sigma: image)
    assert isinstance(wrapped, CallablePrior)
    assert not wrapped.has_objective


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tvv", r"unknown prior 'tvv'; did you mean 'tv'"),
        ("bx", r"did you mean 'box'"),
        ("quite something else", r"available: none, box, l1, tv, bm3d"),
        ({"strength": 1.0}, r'to hold "name", got the keys \[\'strength\'\]'),
        ({"name": "tv", "lambda": 1.0}, r"no parameter 'lambda'; known: \['strength', 'isotropic'"),
        ({"name": 3}, r"unknown prior 3"),
        (TV, r"make one: TV\(\)"),
        (3, r"expected a prior, a name among"),
    ],
)
def test_what_is_not(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_prior(given)


def test_a_spec_keeps_its_parameters() -> None:
    assert prior_from_spec(L1(0.25).spec()).strength == 0.25


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (float("nan"), 1.0), (float("inf"), float("inf"))])
def test_impossible_bounds(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError, match="lower <= upper"):
        Box(*bounds)


def test_a_function_may_work_in_place_and_return_other_types() -> None:
    def in_place(image: Image, sigma: float) -> Image:
        image *= 0
        return image

    image = np.ones((2, 3), np.float32)
    assert np.all(CallablePrior(in_place).denoise(image, 1.0) == 0)
    assert np.all(image == 1)
    widened = CallablePrior(lambda image, sigma: image.astype(np.float64))
    assert widened.denoise(image, 1.0).dtype == np.float32
    assert CallablePrior(lambda image, sigma: np.zeros((2, 3), np.int64)).denoise(image, 1.0).dtype == np.float32


def test_a_function_that_keeps_its_result_does_not_alias_ours() -> None:
    memory = np.zeros((2, 3), np.float32)
    assert not np.shares_memory(CallablePrior(lambda image, sigma: memory).denoise(memory + 1, 1.0), memory)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros((3, 2)), r"'strange' must return an image of shape \(2, 3\), got \(3, 2\)"),
        (None, r"'strange' must return an image of shape"),
        (np.zeros((2, 3), complex), r"'strange' must return real numbers, got complex128"),
        (np.full((2, 3), np.nan), r"'strange' returned 6 of 6 pixels NaN or infinite at sigma=0.5"),
    ],
)
def test_a_function_that_returns_nonsense_is_named(result: Any, message: str) -> None:
    def strange(image: Image, sigma: float) -> Any:
        return result

    with pytest.raises(InvalidInputError, match=message):
        as_prior(strange).denoise(np.zeros((2, 3)), 0.5)


class Halve:
    """A denoiser of somebody's own: no prior, not even callable."""

    def denoise(self, image: Image, sigma: float) -> Image:
        return image / 2


def test_an_object_with_a_method_denoise_is_a_prior() -> None:
    prior = as_prior(Halve())
    np.testing.assert_array_equal(prior.denoise(np.full((2, 3), 4.0), 0.1), np.full((2, 3), 2.0))
    assert prior.name == "Halve"
    with pytest.raises(InvalidInputError, match=r"got the class Halve; make one: Halve\(\)"):
        as_prior(Halve)  # type: ignore[arg-type]


def test_the_method_is_preferred_to_a_call() -> None:
    class Both(Halve):
        def __call__(self, image: Image, sigma: float) -> Image:
            raise AssertionError("not asked for")

    assert as_prior(Both()).denoise(np.ones((2, 2)), 0.1).max() == 0.5


def test_not_a_function() -> None:
    with pytest.raises(InvalidInputError, match="expected a function"):
        CallablePrior(3)  # type: ignore[arg-type]


def test_import_does_not_load_numba() -> None:
    heavy = {"numba", "scipy", "skimage", "pywt", "torch", "deepinv"}
    code = f"import sys, fouriscope.priors; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
