"""What a camera adds to the light is found from its frames, whatever they show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import CameraNoise, DataFidelity, camera_noise
from fouriscope.fidelity.camera_noise import noise_of
from fouriscope.paper import paper_leds, paper_optics


@pytest.fixture(scope="module")
def model() -> fs.ForwardModel:
    return fs.ForwardModel(paper_optics(), paper_leds(), (96, 96))


@pytest.fixture(scope="module")
def light(model: fs.ForwardModel) -> NDArray[Any]:
    """Frames of a phase with edges and texture, without noise."""
    rows, columns = np.indices(model.object_shape)
    texture = np.random.default_rng(3).normal(size=model.object_shape)
    phase = 0.4 * ((rows // 60 + columns // 45) % 2) + 0.2 * (np.hypot(rows - 200, columns - 240) < 90) + 0.1 * texture
    return model.intensity(phase.astype(np.float32)).astype(np.float64)


def found(model: fs.ForwardModel, frames: NDArray[Any], mask: NDArray[Any] | None = None) -> CameraNoise:
    fidelity = DataFidelity(model, frames.astype(np.float32), mask=mask)
    return noise_of(fidelity.frames, fidelity.mask, model.geometry.bright_field, np.arange(len(fidelity)))


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.05])
def test_white_noise(model: fs.ForwardModel, light: NDArray[Any], sigma: float) -> None:
    noise = found(model, light + np.random.default_rng(0).normal(0, sigma, light.shape))
    assert noise.read == pytest.approx(sigma**2, rel=0.2)
    assert noise.photon < 0.05 * sigma**2


@pytest.mark.parametrize(("electrons", "read"), [(2000.0, 2.0), (200.0, 2.0), (20_000.0, 10.0), (2000.0, 30.0)])
@pytest.mark.parametrize("offset", [0.0, 0.05])
def test_photons_and_read_noise(
    model: fs.ForwardModel, light: NDArray[Any], electrons: float, read: float, offset: float
) -> None:
    rng = np.random.default_rng(1)
    frames = (rng.poisson(light * electrons) + rng.normal(0, read, light.shape)) / electrons + offset
    noise = found(model, frames)
    assert noise.photon == pytest.approx(1 / electrons, rel=0.2)
    if offset * electrons < read**2:  # otherwise the line crosses zero before there is light, and a is not to be seen
        expected = (read / electrons) ** 2 - (offset / electrons)
        assert noise.read == pytest.approx(expected, rel=0.25)
    assert noise.read >= 0


def test_photons_alone(model: fs.ForwardModel, light: NDArray[Any]) -> None:
    noise = found(model, np.random.default_rng(2).poisson(light * 1000) / 1000)
    assert noise.photon == pytest.approx(1 / 1000, rel=0.2)
    assert noise.background < 0.003


@pytest.mark.parametrize("share", [0.01, 0.03])
def test_noise_that_is_a_share_of_each_frame(model: fs.ForwardModel, light: NDArray[Any], share: float) -> None:
    sigma = share * np.sqrt(np.mean(light**2, axis=(1, 2), keepdims=True))
    noise = found(model, light + sigma * np.random.default_rng(4).normal(size=light.shape))
    assert noise.relative == pytest.approx(share**2, rel=0.2)
    assert noise.variance(np.asarray(1.0)) == pytest.approx(share**2, rel=0.2)
    assert noise.background < 1e-4
    assert "% of the light" in str(noise)


def test_a_camera_has_no_such_share(model: fs.ForwardModel, light: NDArray[Any]) -> None:
    rng = np.random.default_rng(5)
    for electrons in (200.0, 20_000.0):
        noise = found(model, (rng.poisson(light * electrons) + rng.normal(0, 2.0, light.shape)) / electrons)
        assert noise.relative == 0
        assert "% of the light" not in str(noise)


def test_eight_bits(model: fs.ForwardModel, light: NDArray[Any]) -> None:
    """The converter's steps are noise of a twelfth of their square."""
    rng = np.random.default_rng(3)
    counts = np.rint(200 * (rng.poisson(light * 2000) + rng.normal(0, 15, light.shape)) / 2000)
    noise = found(model, counts / 200)
    assert noise.photon == pytest.approx(1 / 2000, rel=0.2)
    assert noise.read == pytest.approx((15 / 2000) ** 2 + 1 / 200**2 / 12, rel=0.2)


def test_masked_pixels_do_not_count(model: fs.ForwardModel, light: NDArray[Any]) -> None:
    frames = light + np.random.default_rng(4).normal(0, 0.01, light.shape)
    mask = np.ones(light.shape[1:], bool)
    mask[20:30, 40:60] = False
    spoilt = np.where(mask, frames, 1e3)
    assert found(model, spoilt, mask).read == pytest.approx(1e-4, rel=0.2)


def test_the_epsilon_of_a_noise() -> None:
    assert CameraNoise(1e-4, 1e-3).background == pytest.approx(0.1 + 0.375e-3)
    assert math.isinf(CameraNoise(1e-4, 0.0).background)
    np.testing.assert_allclose(CameraNoise(1e-4, 1e-3).variance(np.array([-1.0, 0.0, 2.0])), [1e-4, 1e-4, 2.1e-3])


@pytest.mark.parametrize(("frames", "masks"), [(0, None), (3, 2)])
def test_frames_and_masks_belong_together(frames: int, masks: int | None) -> None:
    with pytest.raises(InvalidInputError, match="one mask for each"):
        camera_noise(
            [np.ones((16, 16))] * frames, None if masks is None else [np.ones((16, 16), bool) for _ in range(masks)]
        )


def test_frames_without_noise_or_light() -> None:
    assert camera_noise(np.zeros((3, 32, 32))) == CameraNoise(0.0, 0.0)
    assert camera_noise(np.ones((3, 32, 32))).read < 1e-20
