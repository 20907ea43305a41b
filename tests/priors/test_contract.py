"""What every prior promises: a new one is added to ``PRIORS`` and inherits all of these checks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.priors import (
    BM3D,
    L1,
    NLM,
    TV,
    Box,
    CallablePrior,
    NoPrior,
    Prior,
    SmallCNN,
    TorchDenoiser,
    Wavelet,
    prior_from_spec,
)

Image = npt.NDArray[np.floating[Any]]


def smooth(image: Image, sigma: float) -> Image:
    """A stand-in for somebody's denoiser: it averages with the neighbours along a row."""
    padded = np.pad(image, ((0, 0), (1, 1)), mode="edge")
    return image + 0.1 * sigma * ((padded[:, 2:] - image) - (image - padded[:, :-2]))


def torch_blur(**options: Any) -> Prior:
    """A stand-in for a trained network: it averages 3 × 3 pixels, and σ if it is told."""
    import torch

    class Blur(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, sigma: Any = 0.0) -> Any:
            blurred = torch.nn.functional.avg_pool2d(x[:, :1], 3, 1, 1, count_include_pad=False)
            return x[:, :1] + (blurred - x[:, :1]) * torch.clamp(torch.as_tensor(sigma), 0.1, 1.0)

    return TorchDenoiser(Blur(), **options)


PRIORS: dict[str, Callable[[], Prior]] = {
    "none": NoPrior,
    "box": lambda: Box(-0.5, 0.7),
    "non-negative": Box,
    "l1": L1,
    "l1 given strength": lambda: L1(strength=0.3),
    "tv": lambda: TV(accuracy=1e-3),
    "tv anisotropic": lambda: TV(strength=2.0, isotropic=False, accuracy=1e-3),
    "bm3d": BM3D,
    "bm3d hard, kept matches": lambda: BM3D(strength=2.0, stages="hard", rematch_every=3, hard_step=4),
    "cnn": SmallCNN,
    "callable": lambda: CallablePrior(smooth),
    "nlm": NLM,
    "wavelet": Wavelet,
    "wavelet hard": lambda: Wavelet(0.5, wavelet="haar", mode="hard", levels=2),
}
if find_spec("torch"):
    PRIORS |= {
        "torch blind": torch_blur,
        "torch blind, one level": lambda: torch_blur(trained_sigma=0.1),
        "torch map": lambda: torch_blur(noise_input="map", trained_sigma=0.2),
        "torch scalar": lambda: torch_blur(strength=2.0, noise_input="scalar", multiple_of=4),
    }
WITHOUT_DENOISING = {"none", "box", "non-negative", "l1", "l1 given strength"}


@pytest.fixture(params=PRIORS, name="key")
def _key(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(name="prior")
def _prior(key: str) -> Prior:
    return PRIORS[key]()


def picture(shape: tuple[int, int] = (9, 12), seed: int = 0, dtype: npt.DTypeLike = np.float64) -> Image:
    noise: Image = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    return noise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (9, 12), (300, 5)])
def test_keeps_shape_and_dtype_and_leaves_its_input_alone(
    prior: Prior, shape: tuple[int, int], dtype: npt.DTypeLike
) -> None:
    image = picture(shape, dtype=dtype)
    before = image.copy()
    for sigma in (0.0, 0.3):
        denoised = prior.denoise(image, sigma)
        assert denoised.shape == shape
        assert denoised.dtype == image.dtype
        assert np.all(np.isfinite(denoised))
        assert not np.shares_memory(denoised, image)
        np.testing.assert_array_equal(image, before)
        kept = denoised.copy()
        prior.denoise(picture(shape, seed=1, dtype=dtype), sigma)
        np.testing.assert_array_equal(denoised, kept, err_msg="a later call changed an earlier result")


def test_reads_any_memory_layout(prior: Prior) -> None:
    image = picture((10, 14))
    strided = np.zeros((20, 28))
    strided[::2, ::2] = image
    expected = prior.denoise(image, 0.4)
    for same in (np.asfortranarray(image), strided[::2, ::2]):
        prior.reset()
        fresh = prior.denoise(same, 0.4)
        prior.reset()
        np.testing.assert_allclose(fresh, expected, atol=1e-12)
    image.flags.writeable = False
    prior.denoise(image, 0.4)


def test_zero_sigma_returns_a_copy(key: str, prior: Prior) -> None:
    image = picture()
    expected = np.clip(image, *_bounds(prior)) if isinstance(prior, Box) else image
    np.testing.assert_array_equal(prior.denoise(image, 0.0), expected)


def _bounds(prior: Box) -> tuple[float, float]:
    return prior.lower, prior.upper


def test_repeats_itself_bit_for_bit(key: str) -> None:
    first, second = PRIORS[key](), PRIORS[key]()
    for seed in range(3):
        image = picture(seed=seed)
        np.testing.assert_array_equal(first.denoise(image, 0.3), second.denoise(image, 0.3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_image_needs_no_denoising(key: str, prior: Prior, dtype: npt.DTypeLike) -> None:
    if key in WITHOUT_DENOISING - {"none"}:
        pytest.skip("a projection or a threshold does change a constant")
    prior.denoise(picture((6, 8), dtype=dtype), 0.5)
    constant = np.full((6, 8), 0.37, dtype)
    np.testing.assert_allclose(prior.denoise(constant, 0.5), constant, rtol=1e-6)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), r"finite pixels, got 2 of 4"),
        (np.array([[np.inf, -np.inf]]), r"got 2 of 2"),
        (np.zeros((0, 3)), r"at least one pixel, got shape \(0, 3\)"),
        (np.zeros((3, 3), np.int64), r"got int64; convert it"),
        (np.zeros((3, 3), np.float16), r"got float16; convert it"),
        (np.zeros((3, 3), np.bool_), r"got bool; convert it"),
        (np.zeros((3, 3), np.complex64), r"got complex64; denoise phase and absorption separately"),
        (np.zeros((2, 3, 3)), r"2-D image .*got shape \(2, 3, 3\)"),
        (np.zeros(3), r"2-D image .*got shape \(3,\)"),
    ],
)
def test_refuses_what_is_not_an_image(prior: Prior, image: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        prior.denoise(image, 0.1)
    with pytest.raises(InvalidInputError, match=message):
        prior.natural_strength(image)


def test_large_but_finite_pixels_are_fine(prior: Prior) -> None:
    # Their sum overflows, which must not be taken for an infinite pixel.
    image = np.full((2, 3), 3e38, np.float32)
    assert prior.denoise(image, 0.1).shape == image.shape


@pytest.mark.parametrize("sigma", [-1.0, math.nan, math.inf, "much"])
def test_refuses_an_impossible_sigma(prior: Prior, sigma: Any) -> None:
    with pytest.raises(InvalidInputError, match="sigma"):
        prior.denoise(picture(), sigma)


@pytest.mark.parametrize("strength", [-0.1, math.nan, math.inf, "strong", True, None])
@pytest.mark.parametrize(
    "make", [L1, TV, NLM, SmallCNN, Wavelet, lambda strength: CallablePrior(smooth, strength=strength)]
)
def test_refuses_an_impossible_strength(make: Callable[..., Prior], strength: Any) -> None:
    with pytest.raises(InvalidInputError, match="strength"):
        make(strength=strength)


def test_spec_is_plain_and_rebuilds_the_prior(key: str, prior: Prior) -> None:
    spec = json.loads(json.dumps(prior.spec(), allow_nan=False))
    assert spec == prior.spec()
    if isinstance(prior, CallablePrior):
        with pytest.raises(InvalidInputError, match="pass the function itself"):
            prior_from_spec(spec)
        return
    if isinstance(prior, TorchDenoiser):
        with pytest.raises(InvalidInputError, match="pass the module itself"):
            prior_from_spec(spec)
        return
    rebuilt = prior_from_spec(spec)
    assert type(rebuilt) is type(prior)
    assert rebuilt.spec() == prior.spec()
    assert repr(rebuilt) == repr(prior)
    np.testing.assert_array_equal(rebuilt.denoise(picture(), 0.3), prior.denoise(picture(), 0.3))


@pytest.mark.parametrize("key", PRIORS)
def test_the_first_call_of_an_iteration_is_a_plain_call(key: str) -> None:
    image = np.random.default_rng(3).normal(0, 1, (21, 18)).astype(np.float32)
    before = image.copy()
    fresh, plain = PRIORS[key](), PRIORS[key]()
    np.testing.assert_array_equal(fresh.denoise_next(image, 0.5), plain.denoise(image, 0.5))
    np.testing.assert_array_equal(image, before)
    with pytest.raises(InvalidInputError):
        fresh.denoise_next(np.full((3, 3), np.nan), 0.5)


def test_restored_state_continues_bit_for_bit(key: str, prior: Prior) -> None:
    prior.denoise_next(picture(seed=0), 0.5)
    state = {name: array.copy() for name, array in prior.state_arrays().items()}
    restored = PRIORS[key]()
    restored.load_state_arrays(state)
    following = prior.denoise_next(picture(seed=1), 0.5)
    np.testing.assert_array_equal(restored.denoise_next(picture(seed=1), 0.5), following)
    prior.reset()
    assert not prior.state_arrays()
    np.testing.assert_array_equal(prior.denoise(picture(), 0.5), PRIORS[key]().denoise(picture(), 0.5))


def test_refuses_a_foreign_state(prior: Prior) -> None:
    with pytest.raises(InvalidInputError, match=r"got|holds"):
        prior.load_state_arrays({"momentum": np.zeros(3)})


def test_natural_strength_is_positive_and_scales_inversely(prior: Prior) -> None:
    image = picture()
    value = prior.natural_strength(image)
    assert value > 0
    assert math.isfinite(value)
    if isinstance(prior, TV | L1):
        assert value == pytest.approx(prior.theta * image.size / prior.objective(image))
        assert prior.natural_strength(10 * image) == pytest.approx(value / 10)
        assert prior.natural_strength(np.zeros((4, 4))) == math.inf
    else:
        # σ is a noise level in units of the image, so the strength must not depend on those units.
        assert prior.natural_strength(10 * image + 3) == value


@pytest.mark.parametrize("steps", [2, 5])
def test_one_soft_threshold_does_what_several_did(steps: int) -> None:
    """prox_{mw} = prox_w ∘ … ∘ prox_w, exactly, for the ℓ1 norm: the weight σ² adds up over steps."""
    prior, image = L1(), picture()
    several = image
    for _ in range(steps):
        several = prior.denoise(several, 0.4)
    np.testing.assert_allclose(prior.denoise(image, math.sqrt(steps) * 0.4), several, rtol=0, atol=1e-14)
    assert np.any(several)
    assert np.abs(prior.denoise(image, 0.4) - several).max() > 0.1


class TestProximalOperator:
    """For priors with an objective r: denoise_σ is the minimiser of ½‖x − z‖² + σ² r(x)."""

    @pytest.fixture(autouse=True)
    def _only_with_an_objective(self, prior: Prior) -> None:
        if not prior.has_objective:
            with pytest.raises(InvalidInputError, match="without an objective"):
                prior.objective(picture())
            pytest.skip("has no objective")

    @pytest.mark.parametrize("sigma", [0.2, 0.7, 2.0])
    def test_no_point_nearby_is_better(self, key: str, sigma: float) -> None:
        prior = PRIORS[key]()
        if isinstance(prior, TV):
            prior = TV(isotropic=prior.isotropic, accuracy=1e-6, max_iterations=20_000)
        z = picture((5, 6))

        def cost(x: Image) -> float:
            r = prior.objective(x)
            return math.inf if r == math.inf else 0.5 * float(np.sum((x - z) ** 2)) + sigma**2 * r

        x = prior.denoise(z, sigma)
        least = cost(x)
        assert math.isfinite(least)
        rng = np.random.default_rng(1)
        for size in (1e-3, 1e-2, 1e-1, 1.0):
            for _ in range(50):
                other = x + size * rng.normal(size=x.shape)
                assert least <= cost(other) + 1e-9
                assert least <= cost(prior.denoise(other, sigma)) + 1e-9  # feasible where a random point is not
        assert least <= cost(z) + 1e-9

    def test_is_firmly_non_expansive(self, prior: Prior) -> None:
        # ‖Pu − Pv‖² ≤ ⟨Pu − Pv, u − v⟩
        for seed in range(20):
            u, v = picture(seed=seed), picture(seed=100 + seed)
            pu, pv = prior.denoise(u, 0.5), prior.denoise(v, 0.5)
            assert np.sum((pu - pv) ** 2) <= np.sum((pu - pv) * (u - v)) + 1e-2
