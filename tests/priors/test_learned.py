"""Learned denoisers: what is said where torch, deepinv or weights are missing, and what they do where they are not.

The first half runs everywhere. The second needs ``pip install "fouriscope[learned]"`` and is skipped without.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.priors import DeepinvDenoiser, TorchDenoiser, as_prior, installed_priors, prior_from_spec
from tests.deepinv_here import deepinv_or_skip

Image = npt.NDArray[np.floating[Any]]
INSTALL = r'pip install "fouriscope\[learned\]"'


def picture(shape: tuple[int, int] = (9, 12), dtype: npt.DTypeLike = np.float64) -> Image:
    noise: Image = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return noise


def missing(name: str) -> str | None:
    return next(info.missing for info in installed_priors() if info.name == name)


class TestWhatIsMissingIsNamed:
    @pytest.fixture(autouse=True)
    def _no_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("torch", "deepinv", "torchvision")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "torch", None)

    def test_torch(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=INSTALL):
            TorchDenoiser(object())
        weights = tmp_path / "weights.pth"
        weights.touch()
        with pytest.raises(InvalidInputError, match=INSTALL):
            DeepinvDenoiser("drunet", weights=weights)

    def test_the_list_says_why(self) -> None:
        for name in ("torch", "deepinv"):
            assert INSTALL.replace("\\", "") in (missing(name) or "")
        assert missing("nlm") is None

    @pytest.mark.parametrize("weights", [None, ""])
    def test_weights_are_asked_for_before_anything_else(self, weights: str | None) -> None:
        with pytest.raises(
            InvalidInputError, match=r"needs a file of weights; .*downloads nothing: fetch drunet_.*pth"
        ):
            DeepinvDenoiser("drunet", weights=weights)
        with pytest.raises(InvalidInputError, match="needs a file of weights"):
            as_prior("deepinv")

    def test_weights_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"none\.pth: no such file of weights; .*fetch dncnn_"):
            DeepinvDenoiser("dncnn", weights=tmp_path / "none.pth")

    @pytest.mark.parametrize("model", ["resnet", 3])
    def test_unknown_model(self, model: Any) -> None:
        with pytest.raises(InvalidInputError, match="available: drunet, gsdrunet, dncnn"):
            DeepinvDenoiser(model, weights="x")

    @pytest.mark.parametrize(
        "failure",
        [
            "raise RuntimeError('operator torchvision::nms does not exist')",
            "raise OSError('libcudart.so.13: cannot open shared object file')",
            "import no_such_module",
            "raise AttributeError('partially initialized module')",
        ],
    )
    def test_a_deepinv_that_cannot_be_imported_takes_nobody_down(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
    ) -> None:
        # As it happens with a CPU torch and PyPI's torchvision, which is built for another.
        (tmp_path / "torch.py").touch()
        (tmp_path / "deepinv.py").write_text(failure)
        monkeypatch.delitem(sys.modules, "torch")
        monkeypatch.syspath_prepend(str(tmp_path))
        weights = tmp_path / "weights.pth"
        weights.touch()
        with pytest.raises(InvalidInputError, match=r"deepinv cannot be imported .*torch and torchvision together"):
            DeepinvDenoiser("drunet", weights=weights)
        assert "deepinv cannot be imported" in (missing("deepinv") or "")
        assert missing("torch") is None
        for name in ("torch", "deepinv"):
            sys.modules.pop(name, None)


@pytest.fixture(name="torch")
def _torch() -> Any:
    return pytest.importorskip("torch")


def network(torch: Any, forward: Any) -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))
            self.dropout = torch.nn.Dropout(0.9)

        def forward(self, *arguments: Any) -> Any:
            assert not torch.is_grad_enabled()
            assert not self.training
            self.seen = arguments
            return self.dropout(forward(*arguments)) * self.scale

    return Network()


class TestTorchModule:
    def test_what_each_kind_of_module_is_given(self, torch: Any) -> None:
        image = 50 + 10 * picture()
        span = np.ptp(image)
        blind = network(torch, lambda x: x)
        np.testing.assert_allclose(TorchDenoiser(blind).denoise(image, 2.0), image, atol=1e-4)
        assert tuple(blind.seen[0].shape) == (1, 1, 9, 12)
        assert blind.seen[0].dtype == torch.float32
        assert (float(blind.seen[0].min()), float(blind.seen[0].max())) == (0.0, 1.0)

        mapped = network(torch, lambda x: x[:, :1])
        TorchDenoiser(mapped, noise_input="map").denoise(image, 2.0)
        assert tuple(mapped.seen[0].shape) == (1, 2, 9, 12)
        np.testing.assert_allclose(mapped.seen[0][0, 1].numpy(), 2.0 / span, rtol=1e-6)

        scalar = network(torch, lambda x, sigma: x * sigma)
        denoised = TorchDenoiser(scalar, noise_input="scalar").denoise(image, 2.0)
        assert float(scalar.seen[1]) == pytest.approx(2.0 / span)
        np.testing.assert_allclose(denoised, image.min() + (image - image.min()) * 2.0 / span, rtol=1e-6)

    def test_a_copy_shares_the_weights(self, torch: Any) -> None:
        prior = TorchDenoiser(network(torch, lambda x: x))
        other = copy.deepcopy(prior)
        assert other is not prior
        assert other.module is prior.module

    def test_it_is_put_back_into_eval_mode(self, torch: Any) -> None:
        module = network(torch, lambda x: x).train()
        prior = TorchDenoiser(module)
        module.train()
        prior.denoise(picture(), 0.1)
        assert not module.training

    def test_it_runs_in_the_precision_of_the_module(self, torch: Any) -> None:
        module = network(torch, lambda x: x).double()
        np.testing.assert_allclose(TorchDenoiser(module).denoise(picture(), 0.1), picture(), atol=1e-14)
        assert module.seen[0].dtype == torch.float64

    def test_units_do_not_matter(self, torch: Any) -> None:
        torch.manual_seed(0)
        prior = TorchDenoiser(torch.nn.Conv2d(2, 1, 3, padding=1).double(), noise_input="map", trained_sigma=0.2)
        for sigma in (0.1, 3.0):
            expected = 200 * prior.denoise(picture(), sigma) - 30
            np.testing.assert_allclose(prior.denoise(200 * picture() - 30, 200 * sigma), expected, atol=1e-9)

    def test_the_example_of_the_docstring(self, torch: Any) -> None:
        blur = torch.nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
        denoised = TorchDenoiser(blur).denoise(np.array([[0.0, 0.0, 9.0]]), sigma=0.1)
        np.testing.assert_allclose(denoised, [[0, 3, 4.5]], rtol=1e-6)

    def test_a_network_with_strides_gets_a_size_it_can_halve(self, torch: Any) -> None:
        module = network(torch, lambda x: x)
        np.testing.assert_allclose(TorchDenoiser(module, multiple_of=8).denoise(picture(), 0.1), picture(), atol=1e-6)
        assert tuple(module.seen[0].shape) == (1, 1, 16, 16)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"module": print}, "expected a torch.nn.Module.*a function f"),
            ({"noise_input": "some"}, '"none", "map" or "scalar"'),
            ({"trained_sigma": 0.0}, "trained_sigma > 0"),
            ({"multiple_of": 0}, "multiple_of >= 1"),
            ({"device": "abacus"}, "cannot be put on the device 'abacus'"),
        ],
    )
    def test_impossible_parameters(self, torch: Any, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            TorchDenoiser(**{"module": torch.nn.Identity(), **arguments})

    def test_a_module_that_returns_nonsense_is_named(self, torch: Any) -> None:
        for forward, message in (
            (lambda x: x[..., :-1], r"Network must return a tensor of shape \(1, 1, 9, 12\), got \(1, 1, 9, 11\)"),
            (lambda x: x / 0, r"Network returned .* NaN or infinite at sigma=0.1"),
        ):
            with pytest.raises(InvalidInputError, match=message):
                TorchDenoiser(network(torch, forward)).denoise(picture(), 0.1)


@pytest.fixture(name="models")
def _models(torch: Any) -> Any:
    from fouriscope.priors.deepinv_named import import_deepinv

    deepinv_or_skip()
    return import_deepinv()


GREY: dict[str, tuple[str, dict[str, Any]]] = {
    "drunet": ("DRUNet", {"in_channels": 1, "out_channels": 1}),
    "gsdrunet": ("GSDRUNet", {"in_channels": 1, "out_channels": 1}),
    "dncnn": ("DnCNN", {"in_channels": 1, "out_channels": 1}),
    "ffdnet": ("FFDNet", {"img_channels": 1}),
    "restormer": ("Restormer", {"in_channels": 1, "out_channels": 1}),
    "scunet": ("SCUNet", {"in_nc": 1}),
    "swinir": ("SwinIR", {"in_chans": 1}),
}


@pytest.mark.filterwarnings("ignore")  # of torch and deepinv, not ours
class TestDeepinv:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", GREY)
    def test_by_name_equals_the_module_itself(self, torch: Any, models: Any, tmp_path: Path, name: str) -> None:
        torch.manual_seed(0)
        cls, arguments = GREY[name]
        if not hasattr(models, cls):
            pytest.skip(f"this deepinv has no {cls}")
        module = getattr(models, cls)(**arguments, pretrained=None).eval()
        torch.save(module.state_dict(), tmp_path / "weights.pth")
        prior = DeepinvDenoiser(name, weights=tmp_path / "weights.pth", trained_sigma=1.0)
        image = np.random.default_rng(0).random((32, 40))
        image.flat[:2] = 0, 1
        image = 10 * image + 3  # σ = 1 is a tenth of its width; for a module that is not told, the width becomes σ
        with torch.no_grad():
            told = name in ("drunet", "gsdrunet", "ffdnet")
            low, width = (3.0, 10.0) if told else (7.5, 1.0)
            given = torch.from_numpy((image - low) / width)[None, None].float()
            expected = low + width * module(given, torch.tensor([0.1])).numpy()[0, 0].astype(float)
        np.testing.assert_allclose(prior.denoise(image, 1.0), expected, atol=1e-4 * np.abs(expected).max())
        for shape in ((1, 1), (1, 7), (9, 12)):
            assert prior.denoise(picture(shape, np.float32), 0.2).shape == shape

    def test_rebuilt_from_its_description_and_from_safetensors(self, torch: Any, models: Any, tmp_path: Path) -> None:
        module = models.DnCNN(in_channels=1, out_channels=1, pretrained=None)
        torch.save({"state_dict": {f"module.{k}": v for k, v in module.state_dict().items()}}, tmp_path / "w.ckpt")
        prior = DeepinvDenoiser("DnCNN", weights=tmp_path / "w.ckpt", strength=0.5)
        rebuilt = prior_from_spec(prior.spec())
        assert rebuilt.spec() == prior.spec()
        np.testing.assert_array_equal(rebuilt.denoise(picture(), 0.3), prior.denoise(picture(), 0.3))
        pytest.importorskip("safetensors.torch").save_file(module.state_dict(), tmp_path / "w.safetensors")
        other = DeepinvDenoiser("dncnn", weights=tmp_path / "w.safetensors")
        np.testing.assert_array_equal(other.denoise(picture(), 0.3), prior.denoise(picture(), 0.3))

    def test_weights_that_do_not_fit(self, torch: Any, models: Any, tmp_path: Path) -> None:
        colour, text, code, number = (tmp_path / name for name in ("colour.pth", "text.pth", "code.pth", "number.pth"))
        torch.save(models.DnCNN(pretrained=None).state_dict(), colour)
        text.write_text("not weights")
        torch.save({"path": tmp_path}, code)
        torch.save({"epoch": 3}, number)
        bad = tmp_path / "bad.safetensors"
        bad.write_text("not weights")
        for path, message in (
            (colour, r"do not fit DnCNN for grey images .*for colour"),
            (text, "cannot be read as weights"),
            (bad, "cannot be read as weights"),
            (code, "cannot be read as weights .it holds more than tensors"),
            (number, "expected a state dict, that is tensors by name"),
        ):
            with pytest.raises(InvalidInputError, match=message):
                DeepinvDenoiser("dncnn", weights=path)
