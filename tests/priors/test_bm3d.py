"""BM3D: its parts against their definitions, the whole against symmetries, known images and the package on PyPI."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import threads
from fouriscope.priors import BM3D, BM3DParameters, prior_from_spec
from fouriscope.priors._bm3d_parameters import PROFILES, StageParameters
from fouriscope.priors._bm3d_stages import Layout, displacements, filter_groups, find_matches, run_stage
from fouriscope.priors._bm3d_transforms import (
    BLOCK_TRANSFORMS,
    GROUP_TRANSFORMS,
    block_transform,
    dct_matrix,
    group_matrix,
    kaiser_window,
    wavelet_matrix,
)
from fouriscope.priors.bm3d import bm3d

Image = npt.NDArray[np.floating[Any]]


def photograph(name: str = "camera", rows: slice = slice(100, 260), columns: slice = slice(150, 320)) -> Image:
    data = pytest.importorskip("skimage.data")
    image: Image = getattr(data, name)()[rows, columns] / 255
    return image


def with_noise(image: Image, sigma: float, seed: int = 0) -> Image:
    noisy: Image = image + np.random.default_rng(seed).normal(0, sigma, image.shape)
    return noisy


def psnr(image: Image, clean: Image) -> float:
    return float(-10 * np.log10(np.mean((image - clean) ** 2)))


def whole_numbers(shape: tuple[int, int], seed: int = 0) -> Image:
    """Sums of squares of these are exact in float32, whatever the order."""
    numbers: Image = np.random.default_rng(seed).integers(0, 9, shape).astype(np.float32)
    return numbers


class TestTransforms:
    @pytest.mark.parametrize("size", [1, 2, 4, 5, 8, 12, 16])
    def test_cosine_transform_is_orthonormal(self, size: int) -> None:
        np.testing.assert_allclose(dct_matrix(size) @ dct_matrix(size).T, np.eye(size), atol=1e-14)

    @pytest.mark.parametrize("name", GROUP_TRANSFORMS)
    @pytest.mark.parametrize("size", [1, 2, 8, 32])
    def test_group_transforms_are_orthonormal(self, name: str, size: int) -> None:
        matrix = group_matrix(name, size)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(size), atol=1e-14)
        np.testing.assert_allclose(matrix[0], size**-0.5)

    @pytest.mark.parametrize("name", BLOCK_TRANSFORMS)
    @pytest.mark.parametrize("size", [2, 4, 8, 16])
    def test_inverse(self, name: str, size: int) -> None:
        forward, inverse = block_transform(name, size)
        np.testing.assert_allclose(inverse @ forward, np.eye(size), atol=1e-13)
        np.testing.assert_allclose(np.linalg.norm(forward, axis=1), 1, err_msg="noise would be amplified")

    def test_bior15_filters_are_those_of_the_wavelet(self) -> None:
        pywt = pytest.importorskip("pywt")
        low, _ = pywt.dwt(np.eye(16), "bior1.5", mode="periodization", axis=0)
        taps = np.sort(low[abs(low) > 1e-12])[: 8 * 10]
        ours = wavelet_matrix("bior1.5", 16)
        np.testing.assert_allclose(ours[8:] @ np.ones(16), 0, atol=1e-14, err_msg="details of a constant vanish")
        # The finest averages are not part of the full transform; two levels up they appear through the details.
        level = np.linalg.lstsq(low.T, ours[4:8].T, rcond=None)[0]
        np.testing.assert_allclose(low.T @ level, ours[4:8].T, atol=1e-12)
        assert len(taps) == 80

    def test_a_wavelet_needs_a_power_of_two(self) -> None:
        with pytest.raises(InvalidInputError, match="power of two"):
            block_transform("bior1.5", 12)

    def test_kaiser_window(self) -> None:
        np.testing.assert_allclose(kaiser_window(8, 0), 1)
        window = kaiser_window(8, 2.0)
        np.testing.assert_allclose(window, window[::-1])
        assert window.argmax() in (3, 4)


def brute_force_matches(image: Image, stage: StageParameters) -> npt.NDArray[np.int32]:
    """The definition: all blocks of the window by distance, among equals by displacement."""
    layout = Layout.of((image.shape[0], image.shape[1]), stage)
    table, _ = displacements(stage.radius, stage.dense_radius)
    by_rank = table[np.argsort(table[:, 2]), :2]
    matches = np.full((layout.reference_rows, layout.reference_columns, stage.group), -1, np.int32)
    b = stage.block
    for r in range(layout.reference_rows):
        for c in range(layout.reference_columns):
            y, x = r * stage.step, c * stage.step
            block = image[y : y + b, x : x + b]
            near = []
            for rank, (down, along) in enumerate(by_rank):
                v, u = y + down, x + along
                if 0 <= v <= layout.rows - b and 0 <= u <= layout.columns - b:
                    distance = np.sum((block - image[v : v + b, u : u + b]) ** 2)
                    if distance <= stage.match_threshold * b * b:
                        near.append((distance, rank, v * layout.columns + u))
            found = [y * layout.columns + x, *(position for _, _, position in sorted(near))][: stage.group]
            count = 2 ** int(np.log2(len(found)))
            matches[r, c, :count] = found[:count]
    return matches


class TestMatching:
    @pytest.mark.parametrize(
        "stage",
        [
            StageParameters(step=4, radius=5, group=8),
            StageParameters(step=3, radius=6, group=16, dense_radius=2),
            StageParameters(step=1, radius=3, group=4),
            StageParameters(step=5, radius=7, group=64),
            StageParameters(step=8, radius=4, group=16, match_threshold=9.5),
            StageParameters(block=5, step=2, radius=4, group=8, transform="dct"),
            StageParameters(block=12, step=5, radius=3, group=8, transform="dct"),
            StageParameters(step=4, radius=0),
            StageParameters(step=4, group=1),
            StageParameters(step=4, radius=40, group=32),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("shape", [(32, 44), (12, 16)])
    def test_equals_brute_force(self, stage: StageParameters, shape: tuple[int, int]) -> None:
        layout = Layout.of(shape, stage)
        image = layout.extend(whole_numbers(shape))
        np.testing.assert_array_equal(find_matches(image, layout, stage), brute_force_matches(image, stage))

    def test_equal_blocks_come_by_displacement_and_after_the_reference(self) -> None:
        stage = StageParameters(step=4, radius=3, group=16)
        image = np.zeros((24, 24), np.float32)
        layout = Layout.of((24, 24), stage)
        np.testing.assert_array_equal(find_matches(image, layout, stage), brute_force_matches(image, stage))

    @pytest.mark.parametrize("shape", [(1, 1), (3, 50), (8, 8), (9, 8), (33, 70)])
    @pytest.mark.parametrize("step", [3, 4])
    def test_the_extended_image_is_whole_blocks(self, shape: tuple[int, int], step: int) -> None:
        stage = StageParameters(step=step)
        layout = Layout.of(shape, stage)
        extended = layout.extend(whole_numbers(shape))
        assert extended.shape == (layout.rows, layout.columns)
        np.testing.assert_array_equal(extended[: shape[0], : shape[1]], whole_numbers(shape))
        for have, want, count in zip(
            extended.shape, shape, (layout.reference_rows, layout.reference_columns), strict=True
        ):
            assert have == (count - 1) * step + 8
            assert max(want, 8) <= have < max(want, 8) + step


def filter_by_definition(
    noisy: Image, pilot: Image | None, matches: npt.NDArray[np.int32], stage: StageParameters
) -> Image:
    """The formulas, block by block in double precision."""
    forward, inverse = block_transform(stage.transform, stage.block)
    window = np.outer(*2 * [kaiser_window(stage.block, stage.kaiser_beta)])
    numerator, denominator = np.zeros((2, *noisy.shape))

    def coefficients(image: Image, corners: list[tuple[int, int]]) -> npt.NDArray[np.float64]:
        blocks = np.stack([image[y : y + stage.block, x : x + stage.block] for y, x in corners]).astype(np.float64)
        spectrum: npt.NDArray[np.float64] = np.einsum(
            "mn,uk,nkl,vl->muv", along, forward, blocks, forward, optimize=True
        )
        return spectrum

    for found in matches.reshape(-1, stage.group):
        corners = [divmod(int(position), noisy.shape[1]) for position in found if position >= 0]
        along = group_matrix(stage.group_transform, len(corners))
        spectrum = coefficients(noisy, corners)
        if pilot is None:
            factor = (abs(spectrum) > stage.shrinkage).astype(np.float64)
        else:
            power = coefficients(pilot, corners) ** 2
            factor = power / (power + stage.shrinkage)
        factor[0, 0, 0] = 1
        weight = 1 / np.sum(factor**2)
        blocks = np.einsum("mn,ku,muv,lv->nkl", along, inverse, spectrum * factor, inverse, optimize=True)
        for (y, x), block in zip(corners, blocks, strict=True):
            numerator[y : y + stage.block, x : x + stage.block] += weight * window * block
            denominator[y : y + stage.block, x : x + stage.block] += weight * window
    filtered: Image = numerator / denominator
    return filtered


class TestFiltering:
    @pytest.mark.parametrize(
        "stage",
        [
            StageParameters(step=4, radius=5, group=8),
            StageParameters(step=3, radius=6, group=16, group_transform="hadamard"),
            StageParameters(step=5, radius=7, group=32, transform="dct", kaiser_beta=0.0),
            StageParameters(block=5, step=2, radius=4, group=8, transform="dct"),
            StageParameters(block=12, step=6, radius=5, group=32, transform="dct", group_transform="hadamard"),
            StageParameters(block=4, step=3, radius=4, group=64, transform="haar", match_threshold=40.0),
            StageParameters(block=16, step=8, radius=3, group=1),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("wiener", [False, True])
    def test_equals_the_formulas(self, stage: StageParameters, wiener: bool) -> None:
        layout = Layout.of((40, 52), stage)
        noisy, pilot = (
            layout.extend(with_noise(whole_numbers((40, 52), seed), 1.0, seed).astype(np.float32)) for seed in (0, 1)
        )
        guide = pilot if wiener else None
        matches = find_matches(noisy if guide is None else guide, layout, stage)
        np.testing.assert_allclose(
            filter_groups(noisy, guide, matches, layout, stage),
            filter_by_definition(noisy, guide, matches, stage),
            rtol=2e-4,
            atol=2e-4,
        )

    @pytest.mark.parametrize("stage", [PROFILES["normal"].hard, PROFILES["fast"].wiener])
    @pytest.mark.parametrize("wiener", [False, True])
    def test_aggregation_is_a_partition_of_unity(self, stage: StageParameters, wiener: bool) -> None:
        image = whole_numbers((45, 61))
        keep_all = BM3DParameters(hard=stage).with_overrides({"hard_shrinkage": 0.0}).hard
        result, _ = run_stage(image, image if wiener else None, keep_all, None)
        np.testing.assert_allclose(result, image, atol=2e-5)


class TestWhole:
    @pytest.mark.parametrize("profile", ["normal", "fast"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("shape", [(1, 1), (1, 40), (7, 5), (8, 8), (13, 90), (64, 33)])
    def test_any_shape(self, profile: Any, dtype: npt.DTypeLike, shape: tuple[int, int]) -> None:
        image = with_noise(np.zeros(shape), 1.0).astype(dtype)
        denoised = bm3d(image, 1.0, profile=profile)
        assert denoised.shape == shape
        assert denoised.dtype == image.dtype
        assert np.all(np.isfinite(denoised))

    @pytest.mark.parametrize("value", [0.0, -3.7, 1e30])
    def test_a_constant_image_is_unchanged(self, value: float) -> None:
        np.testing.assert_array_equal(bm3d(np.full((30, 41), value), 0.2), value)

    def test_a_constant_region_is_unchanged(self) -> None:
        image = np.ones((64, 64))
        image[:, 40:] = 3.0
        denoised = bm3d(image, 0.01)
        np.testing.assert_allclose(denoised[:, :32], 1.0, atol=2e-6)
        np.testing.assert_allclose(denoised[:, 48:], 3.0, atol=2e-6)
        # Wiener factors are below one, if little: an edge of 200 σ is softened by a thousandth of σ.
        np.testing.assert_allclose(denoised, image, atol=1e-4)

    @pytest.mark.parametrize("profile", ["normal", "fast"])
    def test_noise_on_a_flat_field_falls(self, profile: Any) -> None:
        noise = with_noise(np.zeros((128, 128)), 1.0)
        left = float(np.std(bm3d(noise, 1.0, profile=profile)))
        # A group of 16 blocks of 64 pixels, reduced to its average, has 1/32 of the noise; neighbours share blocks.
        assert left < 0.1
        first = float(np.std(bm3d(noise, 1.0, profile=profile, stages="hard")))
        assert first < 0.15

    @pytest.mark.parametrize("sigma", [1e-30, 1e-9, 1e-6])
    def test_vanishing_noise_returns_the_input(self, sigma: float) -> None:
        image = photograph()[:64, :64]
        np.testing.assert_allclose(bm3d(image, sigma), image, atol=max(10 * sigma, 1e-12))

    def test_enormous_noise_leaves_finite_numbers(self) -> None:
        image = photograph()[:48, :48]
        assert np.all(np.isfinite(bm3d(image, 1e12)))
        assert np.all(np.isfinite(bm3d(image * 1e30, 1e25)))

    @pytest.mark.parametrize(("scale", "offset"), [(255.0, 0.0), (-1.0, 1.0), (1e-12, 0.0), (3.0, 100.0)])
    def test_does_not_care_for_units(self, scale: float, offset: float) -> None:
        image = with_noise(photograph(), 0.1)
        expected = scale * bm3d(image, 0.1) + offset
        scaled = bm3d(scale * image + offset, abs(scale) * 0.1)
        # A coefficient at the threshold, or two blocks equally far, may be decided otherwise by the last digit.
        error = abs(scaled - expected) / abs(scale)
        assert np.mean(error > 1e-4) < 0.02
        assert np.max(error) < 0.02

    def test_moves_with_the_image(self) -> None:
        # Away from the edges, by a multiple of the steps of both stages: the same blocks, the same result.
        image = with_noise(photograph(rows=slice(0, 220), columns=slice(100, 330)), 0.1)
        small: dict[str, Any] = {"hard_radius": 6, "wiener_radius": 6}
        whole, part = bm3d(image, 0.1, **small), bm3d(image[12:, 24:], 0.1, **small)
        reach = 2 * (6 + 8 + 6)
        error = abs(whole[12:, 24:] - part)[reach:-reach, reach:-reach]
        assert np.mean(error > 1e-5) < 0.02
        assert np.max(error) < 0.02

    def test_does_not_prefer_rows_to_columns(self) -> None:
        image = with_noise(photograph()[:140, :140], 0.1)
        error = abs(bm3d(image.T, 0.1).T - bm3d(image, 0.1))
        # The same but for rounding, which may decide otherwise at a threshold, and ties of displacements.
        assert np.mean(error > 1e-4) < 0.05
        assert np.max(error) < 0.05

    @pytest.mark.parametrize("profile", ["normal", "fast"])
    def test_does_not_depend_on_the_number_of_threads(self, profile: Any) -> None:
        image = with_noise(photograph(), 0.1)
        with threads(1):
            alone = bm3d(image, 0.1, profile=profile)
        for count in (2, 3, 7):
            with threads(count):
                np.testing.assert_array_equal(bm3d(image, 0.1, profile=profile), alone)

    def test_single_and_double_precision_agree(self) -> None:
        image = with_noise(photograph(), 0.1).astype(np.float32)
        single, double = bm3d(image, 0.1), bm3d(image.astype(np.float64), 0.1)
        np.testing.assert_allclose(single, double, atol=1e-6)

    @pytest.mark.parametrize(
        ("name", "sigma", "normal", "fast", "hard"),
        [
            ("camera", 25 / 255, 32.65, 32.55, 32.05),
            ("camera", 10 / 255, 37.4, 37.35, 37.1),
            ("coins", 25 / 255, 28.4, 28.4, 28.1),
        ],
    )
    @pytest.mark.slow
    def test_quality_floors(self, name: str, sigma: float, normal: float, fast: float, hard: float) -> None:
        clean = photograph(name, slice(0, 300), slice(0, 384))
        noisy = with_noise(clean, sigma)
        assert psnr(bm3d(noisy, sigma), clean) >= normal
        assert psnr(bm3d(noisy, sigma, profile="fast"), clean) >= fast
        assert psnr(bm3d(noisy, sigma, stages="hard"), clean) >= hard

    @pytest.mark.slow
    @pytest.mark.skipif(importlib.util.find_spec("bm3d") is None, reason="the package bm3d is not installed")
    @pytest.mark.parametrize(("name", "sigma"), [("camera", 25 / 255), ("coins", 10 / 255)])
    def test_as_good_as_the_package_on_pypi(self, name: str, sigma: float) -> None:
        rival = pytest.importorskip("bm3d")
        clean = photograph(name, slice(0, 300), slice(0, 384))
        noisy = with_noise(clean, sigma)
        theirs = psnr(rival.bm3d(noisy, sigma, profile="np"), clean)
        # Of the images tried, coins at 25/255 is the worst, 0.14 dB below; others are up to 0.09 dB above.
        assert psnr(bm3d(noisy, sigma), clean) >= theirs - 0.15
        assert psnr(bm3d(noisy, sigma, profile="fast"), clean) >= theirs - 0.2


class TestKeptMatches:
    def test_equal_matching_again_on_the_same_image(self) -> None:
        image = with_noise(photograph(), 0.1)
        prior = BM3D(rematch_every=3)
        for _ in range(4):
            np.testing.assert_array_equal(prior.denoise_next(image, 0.1), bm3d(image, 0.1))

    def test_a_call_outside_an_iteration_neither_uses_nor_changes_them(self) -> None:
        images = [with_noise(photograph()[:60], 0.1, seed) for seed in range(3)]
        prior, undisturbed = BM3D(rematch_every=5), BM3D(rematch_every=5)
        for other in (prior, undisturbed):
            other.denoise_next(images[0], 0.1)
        np.testing.assert_array_equal(prior.denoise(images[1], 0.1), bm3d(images[1], 0.1))
        np.testing.assert_array_equal(prior.denoise_next(images[2], 0.1), undisturbed.denoise_next(images[2], 0.1))

    def test_hardly_differ_when_the_image_moves_a_little(self) -> None:
        clean = photograph()
        image, moved = with_noise(clean, 0.1), with_noise(clean, 0.1) + with_noise(0 * clean, 0.01, seed=1)
        prior = BM3D(rematch_every=5)
        prior.denoise_next(image, 0.1)
        kept, fresh = prior.denoise_next(moved, 0.1), bm3d(moved, 0.1)
        assert np.any(kept != fresh)
        assert abs(psnr(kept, clean) - psnr(fresh, clean)) < 0.05

    def test_are_renewed_in_time_and_with_the_shape(self) -> None:
        images = [with_noise(photograph(), 0.1, seed) for seed in range(3)]
        prior = BM3D(rematch_every=2)
        prior.denoise_next(images[0], 0.1)
        assert np.any(prior.denoise_next(images[1], 0.1) != bm3d(images[1], 0.1))
        np.testing.assert_array_equal(prior.denoise_next(images[2], 0.1), bm3d(images[2], 0.1))
        np.testing.assert_array_equal(prior.denoise_next(images[1][:50], 0.1), bm3d(images[1][:50], 0.1))

    @pytest.mark.parametrize("stages", ["both", "hard"])
    def test_resume_bit_for_bit(self, stages: Any) -> None:
        images = [with_noise(photograph()[:60], 0.1, seed) for seed in range(5)]
        prior = BM3D(stages=stages, rematch_every=3)
        for image in images[:2]:
            prior.denoise_next(image, 0.1)
        resumed = BM3D(stages=stages, rematch_every=3)
        resumed.load_state_arrays(prior.state_arrays())
        for image in images[2:]:
            np.testing.assert_array_equal(resumed.denoise_next(image, 0.1), prior.denoise_next(image, 0.1))

    def test_on_the_way_the_first_stage_will_do(self) -> None:
        images = [with_noise(photograph()[:60], 0.1, seed) for seed in range(4)]
        prior, hard = BM3D(rematch_every=10), BM3D(rematch_every=10, stages="hard")
        prior.rough = True
        for image in images[:2]:
            np.testing.assert_array_equal(prior.denoise_next(image, 0.1), hard.denoise_next(image, 0.1))
        resumed = BM3D(rematch_every=10)
        resumed.load_state_arrays(prior.state_arrays())
        prior.rough = False
        for image in images[2:]:
            np.testing.assert_array_equal(resumed.denoise_next(image, 0.1), prior.denoise_next(image, 0.1))
        assert np.any(prior.denoise_next(images[3], 0.1) != hard.denoise_next(images[3], 0.1))
        np.testing.assert_array_equal(prior.denoise(images[0], 0.1), bm3d(images[0], 0.1))

    def test_a_state_that_does_not_fit_is_refused(self) -> None:
        prior = BM3D(rematch_every=3)
        prior.denoise_next(with_noise(np.zeros((40, 40)), 1.0), 1.0)
        state = prior.state_arrays()
        with pytest.raises(InvalidInputError, match=r"none \(rematch_every=1\)"):
            BM3D(rematch_every=1).load_state_arrays(state)
        with pytest.raises(InvalidInputError, match="expected the state of this BM3D"):
            BM3D(rematch_every=3, stages="hard").load_state_arrays(state)
        with pytest.raises(InvalidInputError, match="wiener_matches do not fit an image of 40 × 40"):
            BM3D(rematch_every=3, wiener_step=4).load_state_arrays(state)
        for wrong in (10**6, -2, 32 * 40 + 33):
            broken = {name: array.copy() for name, array in state.items()}
            broken["hard_matches"][0, 0, 1] = wrong
            with pytest.raises(InvalidInputError, match="hard_matches do not fit"):
                prior.load_state_arrays(broken)
            assert not prior.state_arrays()


class TestParameters:
    def test_spec_holds_what_differs_from_the_profile(self) -> None:
        prior = BM3D(profile="fast", rematch_every=4, hard_step=3, wiener_transform="haar")
        assert prior.spec() == {
            "name": "bm3d",
            "strength": "auto",
            "profile": "fast",
            "stages": "both",
            "rematch_every": 4,
            "hard_step": 3,
            "wiener_transform": "haar",
        }
        rebuilt = prior_from_spec(prior.spec())
        assert isinstance(rebuilt, BM3D)
        assert rebuilt.parameters == prior.parameters

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"profile": "slow"}, r"profile must be 'normal' or 'fast', got 'slow'"),
            ({"stages": "wiener"}, r"stages must be 'both' or 'hard'"),
            ({"rematch_every": 0}, r"rematch_every >= 1"),
            ({"rematch_every": 1.5}, r"rematch_every must be a whole number"),
            ({"hard_stepp": 3}, r"no parameter 'hard_stepp'; known: \['hard_block'"),
            ({"hard_step": 9}, r"1 <= step <= 8, got 9"),
            ({"hard_step": 2.5}, r"whole number for step"),
            ({"wiener_group": 24}, r"power of two for group"),
            ({"wiener_group": 128}, r"1 <= group <= 64"),
            ({"wiener_block": 17}, r"1 <= block <= 16"),
            ({"hard_radius": -1}, r"0 <= radius"),
            ({"hard_block": 6}, r"power of two for the transform 'bior1.5'"),
            ({"hard_transform": "fft"}, r"a block transform among"),
            ({"hard_group_transform": "dct"}, r"a group transform among"),
            ({"hard_shrinkage": float("nan")}, r"finite shrinkage >= 0"),
        ],
    )
    def test_impossible_ones_are_refused(self, parameters: Any, message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            BM3D(**parameters)
