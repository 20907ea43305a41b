"""How an engine is chosen, and what is said where it is not there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope import engines, settings
from fouriscope.choices import choose
from fouriscope.engines import Engine, as_engine
from fouriscope.errors import InvalidInputError
from fouriscope.run.config import parse_config
from fouriscope.run.engine import build_engine, with_engine
from fouriscope.run.memory import with_memory
from tests.conftest import LEDS, OPTICS
from tests.engines.problems import needs_torch
from tests.run.problems import config, document

DATA = fs.Acquisition(OPTICS, LEDS, np.ones((49, 16, 16), np.float32), periodic=True)


@pytest.fixture
def _no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "numba_is_installed", lambda: False)


def test_automatic_is_numba_where_it_is_installed() -> None:
    assert as_engine().name == "numba"
    assert fs.ForwardModel(OPTICS, LEDS, (16, 16)).engine.is_compiled


@pytest.mark.usefixtures("_no_numba")
def test_automatic_is_scipy_otherwise() -> None:
    assert as_engine() == Engine("scipy")
    with pytest.raises(InvalidInputError, match=r'needs numba and rocket-fft, .* or use engine="scipy"'):
        as_engine("numba")


def test_the_environment_says_what_automatic_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURISCOPE_ENGINE", "scipy")
    assert as_engine().name == "scipy"
    assert as_engine("numba").name == "numba"
    monkeypatch.setenv("FOURISCOPE_ENGINE", "fortran")
    with pytest.raises(InvalidInputError, match="FOURISCOPE_ENGINE must be one of auto, numba, scipy, torch, got"):
        as_engine()


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("jax", "cpu", "engine must be one of auto, numba, scipy, torch, got 'jax'"),
        ("torch", "gpu", 'device must be "cpu", "cuda", "cuda:1" or "mps", got \'gpu\''),
        ("torch", "cuda:x", "device must be"),
        ("torch", "meta", "device must be"),  # torch has it, but it holds no numbers
        ("scipy", "cuda", 'the engine "scipy" computes on the CPU, got device=\'cuda\'; use engine="torch"'),
    ],
)
def test_unknown_engines_and_devices(name: str, device: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fs.ForwardModel(OPTICS, LEDS, (16, 16), engine=name, device=device)


def test_memory_is_a_number_of_bytes() -> None:
    with pytest.raises(InvalidInputError, match="number of bytes above 0, got -1"):
        Engine("torch", memory=-1)


@needs_torch
@pytest.mark.parametrize(
    ("count", "message"),
    [(0, 'no CUDA device here; use device="cpu"'), (2, 'cuda:0 to cuda:1 here; use one of those, or device="cpu"')],
)
def test_a_card_too_many(count: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    with pytest.raises(InvalidInputError, match=f"device 'cuda:2': torch finds .*{message}"):
        as_engine("torch", "cuda:2")


def test_torch_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInputError, match=r'the engine "torch" needs torch.*pip install "fouriscope\[torch\]"'):
        as_engine("torch")


@needs_torch
@pytest.mark.parametrize(("device", "kind"), [("cuda:77", "CUDA device"), ("mps", "Apple GPU")])
def test_a_device_that_is_not_there(device: str, kind: str) -> None:
    import torch

    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has an Apple GPU")
    with pytest.raises(InvalidInputError, match=rf'device \'{device}\': torch finds .*{kind}.*device="cpu"'):
        as_engine("torch", device)


class TestSettings:
    def test_from_a_file_to_the_model(self) -> None:
        described = config(engine={"name": "scipy"})
        assert build_engine(described.engine) == Engine("scipy")

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"name": "jax"}, "engine.name: Input should be 'auto', 'numba', 'scipy' or 'torch', got 'jax'"),
            ({"device": "gpu"}, 'engine.device: must be "cpu", "cuda", "cuda:1" or "mps", got \'gpu\''),
            ({"device": "cuda"}, 'device = "cuda" is for name = "torch", and the name is "auto"'),
            ({"name": "torch", "memory": "much"}, "engine.memory"),
            ({"nam": "torch"}, "unknown key 'engine.nam'; did you mean 'name'"),
        ],
        ids=str,
    )
    def test_what_is_wrong_is_one_line(self, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            parse_config(document() | {"engine": keys}, where="here")

    def test_from_python(self) -> None:
        assert choose(DATA, measured=False, engine="scipy").config.engine == settings.Engine(name="scipy")
        chosen = settings.Engine(name="torch", device="cuda:1", memory="2GB")
        assert choose(DATA, measured=False, engine=chosen).config.engine == chosen
        with pytest.raises(InvalidInputError, match=r"engine takes settings.Engine"):
            choose(DATA, measured=False, engine=settings.Stop())  # type: ignore[arg-type]

    def test_from_the_command_line(self) -> None:
        described = config(engine={"name": "torch", "device": "cuda:1", "deterministic": True})
        assert with_engine(described) == described
        other = with_engine(described, "scipy").engine
        assert (other.name, other.device, other.deterministic) == ("scipy", "cpu", True)
        assert with_engine(described, device="mps").engine.device == "mps"
        assert with_memory(described, "2GB").engine.memory == "2GB"
        assert with_memory(config(), "2GB").engine.memory is None
        with pytest.raises(InvalidInputError, match=r'device = "mps" is for name = "torch"'):
            with_engine(config(), device="mps")
        with pytest.raises(InvalidInputError, match=r"engine: name: Input should be 'auto', .*, got 'jax'"):
            with_engine(config(), "jax")


@pytest.mark.usefixtures("_no_numba")
@pytest.mark.parametrize("prior", [fs.BM3D, fs.SmallCNN])
def test_priors_that_need_numba_say_so(prior: type[fs.Prior]) -> None:
    with pytest.raises(InvalidInputError, match=r"needs numba, which is not installed; .* use the prior 'tv'"):
        prior()


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [(300, 41), (1, 50), (7, 5)])
def test_tv_in_plain_numpy(monkeypatch: pytest.MonkeyPatch, isotropic: bool, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).normal(0, 1, shape)
    image[: shape[0] // 2] += 2
    expected = fs.TV(isotropic=isotropic, accuracy=1e-4)
    denoised, objective = expected.denoise(image, 0.7), expected.objective(image)
    monkeypatch.setattr("fouriscope.priors._tv_solver.numba_is_installed", lambda: False)
    plain = fs.TV(isotropic=isotropic, accuracy=1e-4)
    np.testing.assert_allclose(plain.denoise(image, 0.7), denoised, atol=1e-3)
    assert plain.last_iterations == pytest.approx(expected.last_iterations, abs=8)
    assert plain.objective(image) == pytest.approx(objective, rel=1e-12)
