"""The microscope as a module of torch: intensities, gradients by autograd, and what deepinv calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.site import examples

import fouriscope as fs
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity
from tests.deepinv_here import deepinv_or_skip
from tests.engines.problems import CASES, an_x, difference, frames_of, model_of

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "fouriscope[torch]"')
KINDS = [case for case in CASES if "mask" not in case and case != "weights"]


def microscope_of(case: str, **options: Any) -> Any:
    from fouriscope.torch import Microscope

    return Microscope(model_of(case, "numba", np.float64), **options)


@pytest.mark.parametrize("case", KINDS)
def test_intensity(case: str) -> None:
    microscope = microscope_of(case)
    x = an_x(microscope.model)
    assert difference(microscope(torch.from_numpy(x)).numpy(), microscope.model.intensity(x)) < 1e-12
    assert difference(microscope(torch.from_numpy(x), [3, 1]).numpy(), microscope.model.intensity(x, [3, 1])) < 1e-12


def misfit(loss: str, light: Any, frame: Any, epsilon: float) -> Any:
    """Σ d by the formulas of :mod:`fouriscope.fidelity.losses`, for autograd."""
    count = (frame + epsilon).clip(0)
    if loss == "intensity":
        return (light - frame).square().sum()
    if loss == "amplitude":
        return ((light + epsilon).sqrt() - count.sqrt()).square().sum()
    return (light + epsilon - count + torch.special.xlogy(count, count) - count * (light + epsilon).log()).sum()


@pytest.mark.parametrize("case", KINDS)
@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
def test_autograd_is_our_gradient(case: str, loss: str) -> None:
    microscope, frames = microscope_of(case), frames_of(case, np.float64)
    fidelity = DataFidelity(microscope.model, frames, loss=loss)
    x = torch.from_numpy(an_x(microscope.model)).requires_grad_()
    (misfit(loss, microscope(x), torch.from_numpy(frames), fidelity.loss.epsilon) / len(frames)).backward()
    assert difference(x.grad.numpy(), fidelity.gradient(x.detach().numpy()).gradient) < 1e-10


@pytest.mark.parametrize("kind", ["phase", "complex", "wave"])
@pytest.mark.parametrize("margin", [0, 1])
def test_gradcheck(kind: Any, margin: int) -> None:
    from fouriscope.torch import Microscope

    optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    leds = fs.LEDArray.square(3, pitch=8e-3, height=70e-3)
    model = fs.ForwardModel(optics, leds, (6, 5), object=kind, margin=margin, dtype=np.float64)
    x = torch.from_numpy(an_x(model)).requires_grad_()
    assert torch.autograd.gradcheck(Microscope(model, [0, 4, 7]), (x,), atol=1e-6)


def test_batches_of_objects() -> None:
    microscope = microscope_of("sums", leds=[5, 2])
    xs = np.stack([an_x(microscope.model, seed) for seed in range(3)])
    together = microscope(torch.from_numpy(xs))
    assert together.shape == (3, 2, *microscope.model.frame_shape)
    for x, frames in zip(xs, together, strict=True):
        assert difference(frames.numpy(), microscope.model.intensity(x, [5, 2])) < 1e-12


def test_a_wrong_shape_is_told() -> None:
    microscope = microscope_of("plain")
    with pytest.raises(InvalidInputError, match=r"last dimensions are \(72, 60\) was expected, got shape \(5, 5\)"):
        microscope(torch.zeros(5, 5))
    with pytest.raises(InvalidInputError, match="was expected, got 'ndarray'"):
        microscope(np.zeros((72, 60)))


class TestPhysics:
    @pytest.mark.parametrize("case", ["plain", "complex", "wave"])
    def test_methods_that_deepinv_calls(self, case: str) -> None:
        from fouriscope.torch import Physics

        model = model_of(case, "numba", np.float64)
        physics = Physics(model, leds=[1, 2, 3], noise_model=lambda y: y + 1)
        x = torch.from_numpy(np.stack([an_x(model, seed) for seed in (0, 1)])).reshape(2, -1, *model.object_shape)
        clean = physics.A(x)
        assert difference(clean[1].numpy(), model.intensity(an_x(model, 1), [1, 2, 3])) < 1e-12
        torch.testing.assert_close(physics(x), clean + 1)
        v = torch.randn_like(clean)
        expected = torch.func.vjp(physics.A, x)[1](v)[0]  # as deepinv.physics.Physics does
        torch.testing.assert_close(physics.A_vjp(x, v), expected)
        with torch.no_grad():
            torch.testing.assert_close(physics.A_vjp(x, v), expected)

    def test_a_wrong_shape_is_told(self) -> None:
        from fouriscope.torch import Physics

        with pytest.raises(InvalidInputError, match=r"shape \(batch, 1, 72, 60\) was expected, got \(72, 60\)"):
            Physics(model_of("plain", "numba")).A(torch.zeros(72, 60))

    def test_deepinv_that_cannot_be_imported_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        from fouriscope.torch import Physics

        monkeypatch.setitem(sys.modules, "deepinv", None)
        with pytest.raises(InvalidInputError, match=r"deepinv cannot be imported .* it has the same methods"):
            Physics(model_of("plain", "numba")).as_deepinv()

    def test_in_deepinv_itself(self) -> None:
        from fouriscope.torch import Physics

        deepinv, model = deepinv_or_skip(), model_of("plain", "numba", np.float64)
        ours, physics = Physics(model), Physics(model).as_deepinv()
        assert isinstance(physics, deepinv.physics.Physics)
        x = torch.from_numpy(0.3 * an_x(model))[None, None]
        y, fidelity = physics(x), deepinv.optim.L2()
        for operator in (physics, ours):
            torch.testing.assert_close(fidelity.grad(0.5 * x, y, operator), ours.A_vjp(0.5 * x, ours.A(0.5 * x) - y))
        solve = deepinv.optim.optim_builder(
            iteration="GD",
            data_fidelity=fidelity,
            max_iter=20,
            params_algo={"stepsize": 0.5},
            custom_init=lambda y, physics: torch.zeros_like(x),
        )
        found = solve(y, physics)
        assert fidelity(found, y, physics).item() < 0.5 * fidelity(torch.zeros_like(x), y, physics).item()


@pytest.mark.slow
def test_the_example_of_the_gallery_runs(tmp_path: Path) -> None:
    source = (Path(__file__).parents[2] / "docs" / "gallery" / "training.py").read_text(encoding="utf-8")
    assert source.count("range(120)") == 1
    cells = examples.read_cells(source.replace("range(120)", "range(3)"))
    examples.execute(cells, tmp_path, "training")
    kinds = [kind for cell in cells for kind, _ in cell.outputs]
    assert kinds.count("picture") == 1
