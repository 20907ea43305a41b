"""What every loss has to keep, one that the package does not know included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.calibration.gains import gain_ratios
from fouriscope.fidelity import AllLEDs, AmplitudeLoss, CameraLoss, DataFidelity, Loss, LossName, PoissonLoss
from fouriscope.fidelity.array_losses import PIXELS
from fouriscope.fidelity.losses import LOSSES
from fouriscope.forward import check_gradient
from fouriscope.solvers import EPRY
from tests.conftest import noisy_frames, random_x, small_model


@dataclass(frozen=True)
class SquareLoss(Loss):
    """A fourth loss: Σ ε (I² − y²)²."""

    name = "square"

    @property
    def epsilon(self) -> float:
        return 0.7

    @staticmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        total = frame.dtype.type(0)
        for c in range(frame.size):
            intensity = field[c].real ** 2 + field[c].imag ** 2
            residual = (intensity**2 - frame[c] ** 2) * mask[c]
            total += epsilon * residual**2
            field[c] *= 4 * epsilon * residual * intensity
        return total

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.epsilon * 32 * intensity**3

    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        return float(np.sqrt(np.sum(intensity**2 * frame**2) / np.sum(intensity**4)))


def square_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    residual = intensity**2 - frame**2
    return epsilon * residual**2, 4 * epsilon * residual * intensity


PIXELS["square"] = square_pixels  # for the engines that compile nothing

EVERY = [*(loss() for loss in LOSSES.values()), SquareLoss(), CameraLoss(0.2), AmplitudeLoss(background=0.1)]
every_loss = pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)


def fidelity_of(loss: str | Loss) -> DataFidelity:
    model = small_model("margin", object="complex")
    frames = np.abs(noisy_frames(model))
    mask = np.random.default_rng(3).random(frames.shape) < 0.8
    return DataFidelity(model, frames, loss=loss, mask=mask)


def best_gains(fidelity: DataFidelity, x: NDArray[Any]) -> NDArray[np.float64]:
    """The gain with which the misfit of each frame is least, by golden sections of its logarithm."""

    def misfits(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        fidelity.use(model.revised(gains=np.exp(logs)))
        return fidelity.misfits(x)

    model, golden = fidelity.model, (np.sqrt(5) - 1) / 2
    low, high = np.full(len(model), -4.0), np.full(len(model), 4.0)
    while (high - low).max() > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        rises = misfits(left) < misfits(right)
        low, high = np.where(rises, low, left), np.where(rises, right, high)
    fidelity.use(model)
    return np.asarray(np.exp((low + high) / 2))


@every_loss
def test_gradient_against_finite_differences(loss: Loss) -> None:
    fidelity = fidelity_of(loss)
    x = random_x(fidelity.model)
    check = check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, directions=2)
    assert check.error < 1e-6
    assert check.analytic != 0


# With a background the best gain has no closed form.
@pytest.mark.parametrize(
    "loss", [PoissonLoss(1e-12) if loss.name == "poisson" else loss for loss in EVERY[:-2]], ids=lambda loss: loss.name
)
def test_the_best_gain_is_where_the_misfit_is_least(loss: Loss) -> None:
    fidelity = fidelity_of(loss)
    x = random_x(fidelity.model)
    ratios = gain_ratios(fidelity, x, np.arange(len(fidelity)))
    assert np.abs(np.log(ratios)).max() > 0.05
    np.testing.assert_allclose(ratios, best_gains(fidelity, x), rtol=1e-6)


@every_loss
def test_the_gain_of_a_frame_that_fits_is_found(loss: Loss) -> None:
    model = small_model("margin")
    x, gains = random_x(model), np.linspace(0.5, 2.0, len(model))
    fidelity = DataFidelity(model, model.revised(gains=gains).intensity(x), loss=loss)
    np.testing.assert_allclose(gain_ratios(fidelity, x, np.arange(len(model))), gains, rtol=1e-9)
    np.testing.assert_allclose(best_gains(fidelity, x), gains, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda loss: loss.name)
def test_a_frame_without_light_says_nothing_of_its_gain(loss: type[Loss]) -> None:
    light, dark = np.ones((2, 2)), np.zeros((2, 2))
    assert loss().best_gain(light, dark) == loss().best_gain(dark, light) == loss().best_gain(light, -light) == 1


@every_loss
def test_curvature_against_differences(loss: Loss) -> None:
    """∂²d/∂a² of one pixel, from the row as plain Python runs it."""
    step = 1e-4
    for amplitude in (0.1, 1.0, 1.7):
        values = [
            loss.row(np.array([amplitude + move + 0j]), np.array([amplitude**2]), np.ones(1), loss.epsilon)
            for move in (-step, 0.0, step)
        ]
        expected = loss.curvature(np.array([amplitude**2]))[0]
        assert np.diff(values, 2)[0] / step**2 == pytest.approx(expected, rel=1e-4)


@every_loss
def test_epry_reports_its_misfit_in_the_loss(loss: Loss) -> None:
    fidelity = fidelity_of(loss)
    x = random_x(fidelity.model)
    solver = EPRY(fidelity, AllLEDs(np.array([3])), start=x)
    assert solver.step().misfit == pytest.approx(fidelity.value(x, [3]), rel=1e-9)


@pytest.mark.parametrize("loss", EVERY[:-2], ids=lambda loss: loss.name)  # a background is one more source
def test_what_epry_does_to_the_object_does_not_depend_on_the_loss(loss: Loss) -> None:
    def spectrum(loss: str | Loss) -> NDArray[Any]:
        fidelity = fidelity_of(loss)
        solver = EPRY(fidelity, AllLEDs(np.arange(9)), start=random_x(fidelity.model))
        solver.step()
        return solver.state().arrays["spectrum"]

    np.testing.assert_array_equal(spectrum(loss), spectrum("amplitude"))


def test_the_names_of_the_configuration_are_the_losses() -> None:
    assert get_args(LossName) == tuple(LOSSES)


def test_a_loss_without_its_gain_cannot_be_made() -> None:
    class Incomplete(Loss):
        row, curvature = SquareLoss.row, SquareLoss.curvature

    with pytest.raises(TypeError, match="best_gain"):
        Incomplete()  # type: ignore[abstract]
