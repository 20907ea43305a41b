"""Priors compared by frames that were held out: the right one is found where it is known, and a tie is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.errors import InvalidInputError
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes


@pytest.fixture(scope="module")
def model() -> fs.ForwardModel:
    return fs.ForwardModel(OPTICS, LEDS, (24, 24))


def measured(model: fs.ForwardModel, phase: NDArray[Any]) -> fs.Acquisition:
    """With noise, and without a truth."""
    return replace(fs.simulate(model, phase, snr_db=25, seed=0), truth=None)


def blur(image: NDArray[Any], sigma: float) -> NDArray[Any]:
    """A denoiser that does not know edges, and blurs whatever the noise is."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(image, 3.0, mode="wrap"))


def test_edges_want_tv_and_not_a_blur(model: fs.ForwardModel) -> None:
    phase = shapes(model.object_shape, 0.3)
    data = measured(model, phase)
    told: list[tuple[str, float]] = []
    found = fs.compare_priors(
        data,
        [blur, "none", "tv"],
        iterations=100,
        seed=0,
        on_prior=lambda prior, score: told.append((prior.name, score)),
    )
    assert found.criterion == "held-out"
    assert found.best is not None
    assert found.best.name == "tv"
    assert found.sentence == "'tv' predicts held-out frames best"
    assert [score for _, score in told] == list(found.scores)
    known = fs.compare_priors(replace(data, truth=phase), [blur, "none", "tv"], iterations=100, seed=0)
    assert known.criterion == "truth"
    assert np.argmax(known.scores) == np.argmax(found.scores) == 2
    assert not len(known.held_out)


def test_the_same_prior_twice_is_a_tie(model: fs.ForwardModel) -> None:
    found = fs.compare_priors(
        measured(model, shapes(model.object_shape, 0.3)), ["tv", fs.TV(), "none"], iterations=100, seed=0
    )
    assert found.as_good == (True, True, False)
    assert found.scores[0] == found.scores[1]
    assert found.best is None
    assert found.sentence == "a tie: 'tv' and 'tv' predict held-out frames equally well, and better than the others"
    assert "a tie" in repr(found)


@pytest.mark.parametrize("priors", [["tv"], []])
def test_one_prior_cannot_be_compared(model: fs.ForwardModel, priors: Any) -> None:
    with pytest.raises(InvalidInputError, match="two priors or more"):
        fs.compare_priors(measured(model, shapes(model.object_shape, 0.3)), priors)


def test_there_must_be_a_truth_to_compare_with(model: fs.ForwardModel) -> None:
    with pytest.raises(InvalidInputError, match="no truth"):
        fs.compare_priors(measured(model, shapes(model.object_shape, 0.3)), ["tv", "none"], criterion="truth")
