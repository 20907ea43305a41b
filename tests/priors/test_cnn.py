"""The small network: what its construction promises, its compiled layers beside plain ones, and that it is good."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import threads
from fouriscope.priors import TV, SmallCNN, _cnn_forward
from fouriscope.priors._cnn_forward import LIMIT, SHIPPED, load_weights
from fouriscope.priors._cnn_means import RADIUS
from fouriscope.priors.cnn import LARGEST_SIGMA

Image = npt.NDArray[np.floating[Any]]


def noisy_camera(size: int = 256, sigma: float = 25 / 255, seed: int = 0) -> tuple[Image, Image]:
    from skimage import data

    clean = data.camera()[60 : 60 + size, 100 : 100 + size] / 255.0
    return clean, clean + np.random.default_rng(seed).normal(0, sigma, clean.shape)


def plain_noise(image: Image, sigma: float) -> Image:
    """The network with a loop over the taps of a filter and nothing clever, in double precision: noise by phases."""
    padded = np.pad(image, [(0, length % 2) for length in image.shape], mode="edge") - image.mean()
    phases = [padded[dy::2, dx::2] for dy in (0, 1) for dx in (0, 1)]
    x = np.stack([*phases, np.full_like(phases[0], sigma)])
    height, width = phases[0].shape
    layers = load_weights().layers
    for k, layer in enumerate(layers):
        bordered = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        x = np.zeros((len(layer), height, width))
        for dy, dx in np.ndindex(3, 3):
            tap = layer[:, :, dy, dx].astype(np.float64)
            x += np.tensordot(tap, bordered[:, dy : dy + height, dx : dx + width], 1)
        if k < len(layers) - 1:
            x = np.maximum(x, 0)
    return x


def without_noise(image: Image, phases: Image, sigma: float) -> Image:
    """The rest of the formula of the class."""

    def smooth(array: Image) -> Image:
        for axis in (1, 0, 1, 0):
            places = np.arange(array.shape[axis])
            nearby = np.abs(np.subtract.outer(places, places)) <= RADIUS
            array = np.moveaxis(np.tensordot(nearby / nearby.sum(axis=1, keepdims=True), array, (1, axis)), 0, axis)
        return array

    cells = phases.mean(axis=0)
    mean = smooth(cells) + smooth(cells - smooth(cells))
    rows, columns = image.shape
    noise = np.empty((2 * mean.shape[0], 2 * mean.shape[1]))
    for k in range(4):
        noise[k // 2 :: 2, k % 2 :: 2] = phases[k] - mean
    moved = image - np.clip(noise[:rows, :columns], -LIMIT * sigma, LIMIT * sigma)
    limited: Image = np.clip(moved, image.min(), image.max())
    return limited


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (3, 3), (5, 14), (14, 5), (40, 41), (63, 52)])
@pytest.mark.parametrize("sigma", [0.02, 0.3])
def test_equals_the_plain_forward(shape: tuple[int, int], sigma: float) -> None:
    image = np.random.default_rng(0).random(shape)
    believed = min(sigma, LARGEST_SIGMA * float(np.ptp(image)))
    expected = without_noise(image, plain_noise(image, believed), believed)
    np.testing.assert_allclose(SmallCNN().denoise(image, sigma), expected, atol=1e-5)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_equals_torch() -> None:
    import torch
    from torch.nn import functional

    image = np.random.default_rng(1).random((36, 50))
    x = functional.pixel_unshuffle(torch.from_numpy(image - image.mean())[None, None], 2)
    x = torch.cat([x, torch.full_like(x[:, :1], 0.2)], dim=1)
    *hidden, last = (torch.from_numpy(layer).double() for layer in load_weights().layers)
    for layer in hidden:
        x = torch.relu(functional.conv2d(x, layer, padding=1))
    phases = functional.conv2d(x, last, padding=1)[0].numpy()
    np.testing.assert_allclose(SmallCNN().denoise(image, 0.2), without_noise(image, phases, 0.2), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("scale", "offset"), [(8.0, 0.0), (1e-3, 0.0), (255.0, -40.0), (3e-8, 1e-7)])
def test_units_do_not_matter(scale: float, offset: float, dtype: npt.DTypeLike) -> None:
    _, noisy = noisy_camera(64)
    expected = SmallCNN().denoise(noisy, 0.1)
    other = SmallCNN().denoise((scale * noisy + offset).astype(dtype), scale * 0.1)
    np.testing.assert_allclose((other.astype(np.float64) - offset) / scale, expected, atol=3e-5)


def test_a_power_of_two_changes_no_bit() -> None:
    _, noisy = noisy_camera(63)
    np.testing.assert_array_equal(SmallCNN().denoise(4 * noisy, 0.4), 4 * SmallCNN().denoise(noisy, 0.1))


@pytest.mark.parametrize("sigma", [1e-9, 1e-6, 1e-4, 1e-2, 1.0, 100.0])
def test_stays_within_its_limits(sigma: float) -> None:
    clean, _ = noisy_camera(64)
    moved = SmallCNN().denoise(clean, sigma)
    assert np.max(np.abs(moved - clean)) <= LIMIT * sigma + 1e-12
    assert clean.min() <= moved.min() <= moved.max() <= clean.max()


def test_little_noise_changes_little() -> None:
    clean, noisy = noisy_camera(128, sigma=1 / 255)
    assert np.std(SmallCNN().denoise(noisy, 1 / 255) - clean) < np.std(noisy - clean)


def test_nearly_flat_images_become_flatter() -> None:
    # As at the start of a solver: σ says that there is nothing but noise.
    for contrast in (1.0, 0.1, 1e-6):
        noise = 0.5 + contrast * np.random.default_rng(0).normal(size=(64, 64))
        assert np.std(SmallCNN().denoise(noise, 1.0)) < 0.4 * np.std(noise)


def test_slow_variations_are_left_alone() -> None:
    # A solver calls hundreds of times: what the network gets wrong here would add up.
    from scipy.ndimage import gaussian_filter

    clean, _ = noisy_camera(200)
    moved = SmallCNN().denoise(clean, 0.1) - clean
    assert np.std(gaussian_filter(moved, 20)[40:-40, 40:-40]) < 0.002 * 0.1


def test_an_iteration_takes_turns_with_the_eight_orientations() -> None:
    prior, (_, noisy) = SmallCNN(), noisy_camera(64)
    noisy = noisy[:50]
    results = [prior.denoise_next(noisy, 0.1) for _ in range(9)]
    np.testing.assert_array_equal(results[8], results[0])
    for k in range(8):
        turned = np.rot90(noisy, k % 4)[:: -1 if k >= 4 else 1]
        back = SmallCNN().denoise(turned, 0.1)[:: -1 if k >= 4 else 1]
        np.testing.assert_array_equal(results[k], np.rot90(back, -(k % 4)))
    for state in ({"calls": np.array(-1)}, {"calls": np.array(0.5)}, {"calls": np.zeros(2, np.int64)}):
        with pytest.raises(InvalidInputError, match="expected the state of SmallCNN"):
            prior.load_state_arrays(state)


def test_threads_and_bands_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, noisy = noisy_camera(131)
    with threads(1):
        expected = SmallCNN().denoise(noisy, 0.1)
    for count in (2, 3, 7):
        with threads(count):
            np.testing.assert_array_equal(SmallCNN().denoise(noisy, 0.1), expected)
    monkeypatch.setattr(_cnn_forward, "BAND", 13)
    np.testing.assert_array_equal(SmallCNN().denoise(noisy, 0.1), expected)


def test_memory_of_an_earlier_shape_does_not_show() -> None:
    used, (_, large), (_, small) = SmallCNN(), noisy_camera(80), noisy_camera(51)
    for image in (large, small, large):
        np.testing.assert_array_equal(used.denoise(image, 0.1), SmallCNN().denoise(image, 0.1))


@pytest.mark.parametrize("sigma", [10, 25, 50])
def test_beats_the_best_tv_on_an_image_it_has_not_seen(sigma: int) -> None:
    clean, noisy = noisy_camera(200, sigma=sigma / 255)

    def error(denoised: Image) -> float:
        return float(np.mean((denoised - clean) ** 2))

    weights = (sigma / 255) * np.geomspace(0.2, 1.6, 12)
    best = min(error(TV().denoise(noisy, float(np.sqrt(weight)))) for weight in weights)
    assert 10 * np.log10(best / error(SmallCNN().denoise(noisy, sigma / 255))) > 0.3  # dB


def test_the_weights_say_where_they_come_from() -> None:
    weights = load_weights()
    assert SHIPPED.stat().st_size < 1_000_000
    assert sum(layer.size for layer in weights.layers) < 100_000
    for key in ("script", "images", "image_licences", "licence", "seed", "steps", "torch"):
        assert weights.about[key]
    low, high = weights.sigma_range
    assert 0 < low < 2 / 255 < 60 / 255 < high < 1


def test_weights_of_ones_own(tmp_path: Path) -> None:
    copy = tmp_path / "mine.safetensors"
    copy.write_bytes(SHIPPED.read_bytes())
    prior = SmallCNN(weights=str(copy))
    assert prior.spec() == {"name": "cnn", "strength": "auto", "weights": str(copy)}
    _, noisy = noisy_camera(32)
    np.testing.assert_array_equal(prior.denoise(noisy, 0.1), SmallCNN().denoise(noisy, 0.1))


def test_weights_that_cannot_be_used(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "weights.safetensors"
    with pytest.raises(InvalidInputError, match=r"expected the weights .* cannot be read"):
        SmallCNN(weights=str(path))
    path.write_bytes(SHIPPED.read_bytes()[:5000])
    with pytest.raises(InvalidInputError, match=r"cannot be read .* train them"):
        SmallCNN(weights=str(path))
    layers = {f"layer{k}": layer for k, layer in enumerate(load_weights().layers)}
    save_file({name: layer for name, layer in layers.items() if name != "layer3"}, path)
    with pytest.raises(InvalidInputError, match=r"expected filters layer0, layer1, … from 5 over 32 to 4 channels"):
        SmallCNN(weights=str(path))
    save_file({**layers, "layer0": np.zeros((16, 5, 3, 3), np.float32)}, path)
    with pytest.raises(InvalidInputError, match=r"got \{'layer0': \(16, 5, 3, 3\)"):
        SmallCNN(weights=str(path))
    save_file({**layers, "layer0": np.full_like(layers["layer0"], np.nan)}, path, {"sigma_range": "[0.002, 0.3]"})
    with pytest.raises(InvalidInputError, match=r"expected finite weights .* 1440 weights NaN"):
        SmallCNN(weights=str(path))
    save_file(layers, path)
    with pytest.raises(InvalidInputError, match=r"metadata of tools/train_denoiser.py .* got \[\]"):
        SmallCNN(weights=str(path))


def test_runs_without_torch_and_makes_nothing_heavy_before_it_is_used() -> None:
    program = (
        "import sys; from fouriscope.priors import SmallCNN; prior = SmallCNN()\n"
        "assert not {'numba', 'safetensors', 'torch'} & set(sys.modules)\n"
        "import numpy as np; prior.denoise(np.eye(4), 0.1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
