"""The checks must be able to fail: they are given wrong adjoints and wrong gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fouriscope.forward import ForwardModel, check_adjoint, check_gradient
from fouriscope.forward.grids import LEDs
from fouriscope.forward.objects import ComplexArray
from fouriscope.optics import Pupil
from tests.conftest import ABERRATED, LEDS, OPTICS, small_model


class WithoutConjugate(ForwardModel):
    """The slip that tests with a real pupil do not see: Σ Sᵀ P F instead of Σ Sᵀ P̄ F."""

    def adjoint(self, fields: ComplexArray, leds: LEDs = None) -> ComplexArray:
        opposite = Pupil({j: -c for j, c in self.pupil.zernike.items()}, defocus=-self.pupil.defocus)
        twin = ForwardModel(OPTICS, LEDS, self.frame_shape, pupil=opposite, dtype=self.dtype)
        return twin.adjoint(fields, leds)


class WrongScale(ForwardModel):
    def adjoint(self, fields: ComplexArray, leds: LEDs = None) -> ComplexArray:
        return 1.01 * super().adjoint(fields, leds)


@pytest.mark.parametrize("wrong", [WithoutConjugate, WrongScale])
def test_check_adjoint_finds_a_wrong_adjoint(wrong: type[ForwardModel]) -> None:
    right = check_adjoint(ForwardModel(OPTICS, LEDS, (24, 20), pupil=ABERRATED, dtype=np.float64))
    check = check_adjoint(wrong(OPTICS, LEDS, (24, 20), pupil=ABERRATED, dtype=np.float64))
    assert right.error < 1e-15
    assert check.error > 1e-6
    assert check.forward == right.forward
    assert check.backward != pytest.approx(right.backward, rel=1e-3)


def test_a_real_pupil_hides_the_missing_conjugate() -> None:
    assert check_adjoint(WithoutConjugate(OPTICS, LEDS, (24, 20), dtype=np.float64)).error < 1e-15


def test_check_adjoint_takes_some_leds_and_a_seed() -> None:
    model = small_model("aberrated")
    one, other, same = (check_adjoint(model, [0, 3], seed=seed) for seed in (0, 1, 0))
    assert one == same
    assert one.forward != other.forward
    assert one.error < 1e-15


def value(x: Any) -> float:
    return float(np.sum(np.sin(x) * x))


def gradient(x: Any) -> Any:
    return np.cos(x) * x + np.sin(x)


X = np.linspace(-1, 2, 50).reshape(5, 10)


def test_check_gradient_accepts_the_right_one() -> None:
    check = check_gradient(value, gradient, X)
    assert check.error < 1e-8
    assert check.analytic == pytest.approx(check.numeric, rel=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: 1.001 * gradient(x),
        lambda x: -gradient(x),
        lambda x: np.zeros_like(x),
        lambda x: gradient(x).T.reshape(x.shape),
        lambda x: np.full_like(x, np.nan),
    ],
    ids=["scale", "sign", "zero", "transposed", "NaN"],
)
def test_check_gradient_finds_a_wrong_one(wrong: Any) -> None:
    assert not check_gradient(value, wrong, X).error < 1e-5


def test_check_gradient_does_not_lose_a_nan() -> None:
    calls = iter(range(10))
    check = check_gradient(lambda x: np.nan if next(calls) == 2 else value(x), gradient, X)
    assert np.isnan(check.error)


def test_check_gradient_leaves_x_alone_and_reports_the_worst_direction() -> None:
    x = X.copy()
    x.setflags(write=False)
    errors = [check_gradient(value, lambda x: gradient(x) + x, x, seed=2, directions=n).error for n in (1, 2, 9)]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_a_constant_has_no_gradient_and_no_error() -> None:
    assert check_gradient(lambda x: 1.0, np.zeros_like, X) == (0.0, 0.0, 0.0)
