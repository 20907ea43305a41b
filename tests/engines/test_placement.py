"""Estimates that stay on the device: the same numbers as on the host, and nothing that travels without need.

There is no card here. Tensors on the CPU give the numbers, and the device "meta", on which there are none, shows where
things are created.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.engines import Engine
from fouriscope.fidelity import DataFidelity, StratifiedSampler
from fouriscope.forward import ForwardModel
from fouriscope.placement import belongs_on_device, namespace, on_device, on_host
from fouriscope.priors import TV, Prior, SmallCNN, TorchDenoiser
from fouriscope.reductions import distance, dot, spread
from fouriscope.solvers import Iterations, PnP
from tests.conftest import LEDS, OPTICS
from tests.engines.problems import other_devices

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "fouriscope[torch]"')


def noisy(seed: int, shape: tuple[int, int] = (70, 90)) -> Any:
    rows, columns = np.indices(shape)
    image = np.where((rows // 20 + columns // 30) % 2, 0.6, 0.1)
    return (image + np.random.default_rng(seed).normal(0, 0.1, shape)).astype(np.float32)


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("sigma", [0.02, 0.2, 0.7])
def test_tv_of_tensors_is_that_of_arrays(isotropic: bool, sigma: float) -> None:
    arrays, tensors = (TV(isotropic=isotropic) for _ in range(2))
    for seed in (0, 0, 1):  # the second and the third call start from the dual of the one before
        image = noisy(seed)
        expected, found = arrays.denoise_next(image, sigma), tensors.denoise_tensor(torch.from_numpy(image), sigma)
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.numpy(), expected, atol=2e-5 * np.ptp(image))  # both stop short of x*
        assert tensors.last_iterations == arrays.last_iterations
        noise = np.finfo(np.float32).eps * np.mean(image**2)  # the gap is a small difference of large sums
        assert tensors.last_gap == pytest.approx(arrays.last_gap, rel=0.2, abs=float(noise))
    strength = tensors.natural_strength_of_tensor(torch.from_numpy(image))
    assert strength == pytest.approx(arrays.natural_strength(image), rel=1e-5)
    np.testing.assert_allclose(tensors.state_arrays()["dual"], arrays.state_arrays()["dual"], atol=5e-4)


def test_tv_of_tensors_where_there_is_little_to_do() -> None:
    image = torch.from_numpy(noisy(0))
    for sigma in (0.0, 1e-9):
        found = TV().denoise_tensor(image, sigma)
        assert torch.equal(found, image)
        assert found.data_ptr() != image.data_ptr()
    assert torch.allclose(TV().denoise_tensor(image, 1e3), image.mean())
    with pytest.raises(fs.errors.InvalidInputError, match="finite pixels"):
        TV().denoise_tensor(image * torch.nan, 0.1)


def test_a_state_goes_from_tensors_to_arrays_and_back() -> None:
    image, other = noisy(0), noisy(1)
    prior, on_arrays, on_tensors = TV(), TV(), TV()
    prior.denoise_tensor(torch.from_numpy(image), 0.2)
    for later in (on_arrays, on_tensors):
        later.load_state_arrays(prior.state_arrays())
    expected = on_arrays.denoise_next(other, 0.2)
    np.testing.assert_allclose(on_tensors.denoise_tensor(torch.from_numpy(other), 0.2), expected, atol=1e-5)
    assert on_tensors.last_iterations == on_arrays.last_iterations


@pytest.mark.parametrize("noise_input", ["none", "map", "scalar"])
@pytest.mark.parametrize("sigma", [0.0, 0.05, 3.0])
def test_a_network_sees_tensors_as_it_sees_arrays(noise_input: Any, sigma: float) -> None:
    class Halved(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, image: Any, level: Any = None) -> Any:
            assert image.shape[-2:] == (72, 96)
            return image[:, :1] * (0.5 if level is None else 1 - level) + image[:, -1:]

    prior = TorchDenoiser(Halved(), noise_input=noise_input, trained_sigma=0.3, multiple_of=12)
    image = noisy(0)
    found = prior.denoise_tensor(torch.from_numpy(image), sigma)
    np.testing.assert_allclose(found.numpy(), prior.denoise_next(image, sigma), rtol=1e-5, atol=1e-6)


def test_a_network_is_placed_on_the_device() -> None:
    prior = TorchDenoiser(torch.nn.Conv2d(1, 1, 3, padding=1), device="meta", multiple_of=4)
    assert prior._applied(torch.empty((7, 9), device="meta"), 0.1).device.type == "meta"


def test_other_priors_compute_on_the_host() -> None:
    image = noisy(0)
    expected, found = (SmallCNN().denoise_next(image, 0.1), SmallCNN().denoise_tensor(torch.from_numpy(image), 0.1))
    np.testing.assert_array_equal(found.numpy(), expected)


def test_sums_of_tensors() -> None:
    a, b = noisy(0), noisy(1)
    s, t = torch.from_numpy(a), torch.from_numpy(b)
    assert dot(s, t) == pytest.approx(dot(a, b), rel=1e-6)
    assert distance(s, t) == pytest.approx(distance(a, b), rel=1e-6)
    assert spread(s) == pytest.approx(spread(a), rel=1e-5)


def test_the_pieces_of_tv_are_placed_on_the_device() -> None:
    from fouriscope.priors import _tv_torch as tv

    z, dual = torch.empty((7, 9), device="meta"), torch.empty((2, 7, 9), device="meta")
    for isotropic in (True, False):
        slopes = tv._gradient(tv._primal(z, dual))
        for made in (slopes, tv._projected(dual + slopes, isotropic), tv._length(slopes, isotropic)):
            assert made.device.type == "meta"


def test_which_engines_keep_estimates() -> None:
    assert belongs_on_device(Engine("torch", device="cuda:1"))
    assert belongs_on_device(Engine("torch", device="mps"))
    assert not belongs_on_device(Engine("torch"))
    assert not belongs_on_device(Engine("numba"))
    x = np.ones((2, 3), np.float32)
    placed = on_device(x, Engine("torch"))
    assert namespace(placed) is torch
    placed += 1
    assert x.max() == 1, "what lies on a device is a copy"
    assert on_host(x) is x
    nowhere: Any = SimpleNamespace(device="meta")
    assert on_device(x, nowhere).device.type == "meta"


def solver_on(engine: Any, object_name: Any = "phase", prior: type[Prior] = TV, **options: Any) -> PnP:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object=object_name, engine=engine)
    rows, columns = np.indices(model.object_shape)
    phase = 0.3 * ((rows // 12 + columns // 12) % 2)
    truth = phase if object_name == "phase" else np.stack([phase, 0.5 * phase])
    frames = ForwardModel(OPTICS, LEDS, (24, 24), object=object_name).intensity(truth.astype(np.float32))
    frames += np.random.default_rng(0).normal(0, 0.02, frames.shape).astype(np.float32)
    sampler = StratifiedSampler(np.arange(len(model)), 15, model.geometry.bright_field)
    priors = [prior() for _ in model.object.channels]
    return PnP(DataFidelity(model, frames), sampler, priors, seed=0, **options)


@pytest.fixture
def tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates are tensors of the CPU, as they are of a card where there is one."""
    monkeypatch.setattr("fouriscope.solvers.descent.belongs_on_device", lambda engine: engine.name == "torch")


@pytest.mark.usefixtures("tensors")
@pytest.mark.parametrize(
    ("object_name", "options"),
    [("phase", {}), ("complex", {}), ("phase", {"steps_per_denoising": 3}), ("phase", {"prior": SmallCNN})],
)
def test_a_run_whose_estimates_are_tensors(object_name: str, options: dict[str, Any]) -> None:
    ours, other = (solver_on(engine, object_name, **options) for engine in ("numba", "torch"))
    for solver in (ours, other):
        solver.solve(Iterations(25))
    assert isinstance(other._x, torch.Tensor)
    assert isinstance(other.x, np.ndarray)
    assert other.history["misfit"] == pytest.approx(ours.history["misfit"], rel=1e-3)
    assert fs.metrics.snr(other.x, ours.x) > 50


@pytest.mark.usefixtures("tensors")
def test_estimates_do_not_travel_between_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = solver_on("torch")
    solver.solve(Iterations(12))  # step and temperature are measured on the host, at the start and before the 11th
    travelled: list[tuple[int, ...]] = []
    size = int(np.prod(solver.fidelity.model.x_shape))
    for name in ("cpu", "numpy"):
        real = getattr(torch.Tensor, name)

        def noted(tensor: Any, *arguments: Any, real: Any = real, **options: Any) -> Any:
            if tensor.numel() >= size:
                travelled.append(tuple(tensor.shape))
            return real(tensor, *arguments, **options)

        monkeypatch.setattr(torch.Tensor, name, noted)
    solver.solve(Iterations(20))
    assert travelled == []
    assert solver.x.shape == solver.fidelity.model.x_shape
    assert travelled, "who asks for the estimate gets a copy of it"


@pytest.mark.usefixtures("tensors")
@pytest.mark.parametrize(("first", "second"), [("torch", "numba"), ("numba", "torch"), ("torch", "torch")])
def test_a_state_goes_on_wherever_estimates_lie(first: str, second: str) -> None:
    whole, begun, resumed = solver_on("numba"), solver_on(first), solver_on(second)
    whole.solve(Iterations(24))
    begun.solve(Iterations(12))
    state = begun.state()
    assert all(isinstance(array, np.ndarray) for array in state.arrays.values())
    resumed.load_state(state)
    resumed.solve(Iterations(12))
    assert fs.metrics.snr(resumed.x, whole.x) > 50


@pytest.mark.parametrize("device", other_devices())
@pytest.mark.parametrize("prior", [TV, SmallCNN])
def test_a_run_on_other_devices(device: str, prior: type[Prior]) -> None:
    ours, other = (solver_on(engine, prior=prior) for engine in ("numba", Engine("torch", device=device)))
    for solver in (ours, other):
        solver.solve(Iterations(25))
    placed: Any = other._x
    assert placed.device.type == device
    assert other.history["misfit"] == pytest.approx(ours.history["misfit"], rel=1e-3)
    assert fs.metrics.snr(other.x, ours.x) > 50


def test_numbers_of_numpy_leave_the_precision_as_it_is() -> None:
    solver = solver_on("numba", step=np.float64(1e-2), momentum=np.float64(0.1))
    solver.solve(Iterations(3))
    assert {array.dtype for array in (solver.x, solver._s, solver._previous)} == {np.dtype(np.float32)}
