from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import DTypeLike, NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, FrameMasks, StreamedFrames, open_frames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AmplitudeLoss, DataFidelity, IntensityLoss, Minibatch, PoissonLoss, as_loss, pipeline
from fouriscope.forward import ForwardModel, check_gradient, pupils
from fouriscope.parallel import threads
from tests.conftest import CASES, OPTICS, TURNED_LEDS, noisy_frames, random_x, small_fidelity, small_model

LOSSES = ["intensity", "amplitude", "poisson"]
# LED 7 counts twice, LED 40 comes by halves, and the mean is over 5: a minibatch as samplers draw it.
WEIGHTED = Minibatch(np.array([40, 7, 3, 24]), np.array([0.5, 2.0, 1.0, 1.5]), 5)


def masked_options(model: ForwardModel) -> dict[str, Any]:
    """Weights with zeros among them and a mask of its own for every frame."""
    rng = np.random.default_rng(5)
    weights = rng.uniform(0, 2, len(model))
    weights[::4] = 0
    return {"weights": weights, "mask": rng.random((len(model), *model.frame_shape)) < 0.8}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["phase", "complex"])
@pytest.mark.parametrize("case", ["array pupil", "margin"])
@pytest.mark.parametrize("masked", [False, True])
def test_gradient_against_finite_differences(loss: str, name: Any, case: str, masked: bool) -> None:
    model = small_model(case, object=name)
    fidelity = small_fidelity(model, loss=loss, **(masked_options(model) if masked else {}))
    x = random_x(model)
    for leds in (None, [41, 2, 2, 30], WEIGHTED):
        check = check_gradient(
            lambda x, leds=leds: fidelity.value(x, leds),  # type: ignore[misc]
            lambda x, leds=leds: fidelity.gradient(x, leds).gradient,  # type: ignore[misc]
            x,
            directions=2,
        )
        assert check.error < 1e-6, (leds, check)
        assert check.analytic != 0


def plain_gradient(
    model: ForwardModel, frames: NDArray[Any], x: NDArray[Any], loss: str, leds: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The formulas of the paper, corrected, without any of the compiled code, for the phase object."""
    leds = np.arange(len(model)) if leds is None else leds
    o, y = np.exp(1j * x), frames[leds]
    psi = model.apply(o, leds)
    if loss == "intensity":
        back = 2 * psi * (np.abs(psi) ** 2 - y)
    elif loss == "amplitude":
        back = (np.abs(psi) - np.sqrt(np.maximum(y, 0))) * psi / np.abs(psi)
    else:
        background = PoissonLoss().background
        back = psi * (1 - np.maximum(y + background, 0) / (np.abs(psi) ** 2 + background))
    return 2 / len(leds) * np.imag(np.conj(o) * model.adjoint(back, leds))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", CASES)
def test_compiled_gradient_equals_the_formula(case: str, loss: str) -> None:
    model = small_model(case)
    frames, x = noisy_frames(model), random_x(model)
    fidelity = DataFidelity(model, frames, loss=loss)
    expected = plain_gradient(model, frames, x, loss)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(fidelity.gradient(x).gradient, expected, rtol=0, atol=1e-10 * scale)
    # Single precision is the same thing with fewer digits.
    single = small_model(case, dtype=np.float32)
    gradient = DataFidelity(single, frames.astype(np.float32), loss=loss).gradient(x).gradient
    assert gradient.dtype == np.float32
    assert np.linalg.norm(gradient - expected) < 2e-5 * np.linalg.norm(expected)


def test_the_formula_of_the_notes() -> None:
    """∇d = 4/J Im{ e^{−ix} ⊙ Σ H†[Ψ ⊙ r] }, letter by letter."""
    model = small_model("aberrated")
    frames, x = noisy_frames(model), random_x(model)
    psi = model.field(x)
    r = np.abs(psi) ** 2 - frames
    expected = 4 / len(model) * np.imag(np.exp(-1j * x) * model.adjoint(psi * r))
    np.testing.assert_allclose(DataFidelity(model, frames).gradient(x).gradient, expected, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_the_losses(loss: str) -> None:
    model = small_model("margin")
    frames, x = noisy_frames(model), random_x(model)
    intensity = model.intensity(x)
    if loss == "intensity":
        expected = (intensity - frames) ** 2
    elif loss == "amplitude":
        expected = (np.sqrt(intensity) - np.sqrt(np.maximum(frames, 0))) ** 2
    else:
        rate, count = (image + PoissonLoss().background for image in (intensity, frames))
        assert (count < 0).any()
        expected = np.where(count > 0, rate - count + count * np.log(np.abs(count) / rate), rate)
    fidelity = DataFidelity(model, frames, loss=loss)
    np.testing.assert_allclose(fidelity.misfits(x), expected.sum(axis=(1, 2)), rtol=1e-9)
    np.testing.assert_allclose(fidelity.misfits(x, [9, 1]), expected[[9, 1]].sum(axis=(1, 2)), rtol=1e-9)


def test_the_value_is_the_weighted_mean_of_the_misfits() -> None:
    model = small_model()
    x = random_x(model)
    weights = np.linspace(0, 2, len(model))
    fidelity = small_fidelity(model, weights=weights)
    misfits = fidelity.misfits(x)
    counted = weights > 0  # J counts the frames that count
    assert fidelity.value(x) == pytest.approx(np.mean((weights * misfits)[counted]), rel=1e-14)
    assert fidelity.value(x) == fidelity.gradient(x).value
    assert fidelity.value(x, [4, 9]) == pytest.approx((weights[4] * misfits[4] + weights[9] * misfits[9]) / 2)
    w = WEIGHTED
    expected = np.sum(w.weights * weights[w.leds] * misfits[w.leds]) / w.size
    assert fidelity.value(x, w) == pytest.approx(expected, rel=1e-14)
    assert fidelity.gradient(x, w).value == fidelity.value(x, w)


def test_gradients_of_minibatches_add_up() -> None:
    model = small_model("margin")
    x, fidelity = random_x(model), small_fidelity(model, **masked_options(model))
    single = [fidelity.gradient(x, [led]).gradient for led in range(len(model))]
    counted = [gradient for gradient, weight in zip(single, fidelity.weights, strict=True) if weight > 0]
    np.testing.assert_allclose(fidelity.gradient(x).gradient, np.mean(counted, axis=0), atol=1e-12)
    weighted = sum(w * single[led] for led, w in zip(WEIGHTED.leds, WEIGHTED.weights, strict=True)) / WEIGHTED.size
    np.testing.assert_allclose(fidelity.gradient(x, WEIGHTED).gradient, weighted, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_phase_cannot_be_seen(loss: str) -> None:
    for name in ("phase", "complex"):
        model = small_model("aberrated", object=name)
        fidelity, x = small_fidelity(model, loss=loss), random_x(model)
        moved = x.copy()
        moved.reshape(-1, *model.object_shape)[0] += 1.234
        assert fidelity.value(moved) == pytest.approx(fidelity.value(x), rel=1e-12)
        gradient = fidelity.gradient(x).gradient
        np.testing.assert_allclose(fidelity.gradient(moved).gradient, gradient, atol=1e-12)
        # Hence the gradient has no component along a constant phase.
        assert abs(gradient.reshape(-1, *model.object_shape)[0].sum()) < 1e-10 * np.abs(gradient).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_truth_has_no_misfit_and_no_gradient(loss: str) -> None:
    model = small_model("margin", object="complex")
    x = random_x(model)
    fidelity = DataFidelity(model, model.intensity(x), loss=loss)
    value, gradient = fidelity.gradient(x)
    assert abs(value) < 1e-9
    assert np.abs(gradient).max() < 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_a_flat_start_only_oblique_bright_field_has_a_gradient(loss: str, dtype: DTypeLike) -> None:
    model = small_model(dtype=dtype)
    fidelity, x = small_fidelity(model, loss=loss), np.zeros(model.x_shape)
    bright = model.geometry.bright_field
    center = int(np.argmin(model.geometry.illumination_na))
    dark = fidelity.gradient(x, np.flatnonzero(~bright)).gradient
    assert not dark.any()
    on_axis, oblique = (np.abs(fidelity.gradient(x, [led]).gradient).max() for led in (center, center + 1))
    # The terms of the central LED cancel in pairs, so what is left of them is rounding.
    assert on_axis < (1e-5 if dtype == np.float32 else 1e-14) * oblique


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("own", [False, True], ids=["one mask", "a mask each"])
def test_masked_pixels_are_ignored_even_if_nan(loss: str, own: bool) -> None:
    model = small_model("margin")
    x, frames = random_x(model), noisy_frames(model)
    shape = frames.shape if own else frames.shape[1:]
    mask = np.random.default_rng(3).random(shape) < 0.7
    expected = DataFidelity(model, frames, loss=loss, mask=mask).gradient(x)
    spoilt = np.where(mask, frames, np.nan)
    value, gradient = DataFidelity(model, spoilt, loss=loss, mask=mask.astype(np.uint8)).gradient(x)
    assert value == expected.value
    np.testing.assert_array_equal(gradient, expected.gradient)
    assert value < DataFidelity(model, frames, loss=loss).value(x)


def test_a_mask_equals_the_sum_over_its_pixels() -> None:
    model = small_model()
    x, frames = random_x(model), noisy_frames(model)
    mask = np.zeros(frames.shape, bool)
    mask[:, 3:9, 5:7] = True
    mask[4] = True
    residual = np.where(mask, model.intensity(x) - frames, 0)
    np.testing.assert_allclose(DataFidelity(model, frames, mask=mask).misfits(x), (residual**2).sum(axis=(1, 2)))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_frame_of_weight_zero_is_left_out_even_if_nan(loss: str) -> None:
    model = small_model()
    x, frames, weights = random_x(model), noisy_frames(model), np.ones(len(model))
    weights[[3, 40]] = 0
    expected = DataFidelity(model, frames, loss=loss, weights=weights)
    spoilt = frames.copy()
    spoilt[[3, 40]] = np.nan
    fidelity = DataFidelity(model, spoilt, loss=loss, weights=weights)
    assert fidelity.value(x) == expected.value(x)
    np.testing.assert_array_equal(fidelity.gradient(x).gradient, expected.gradient(x).gradient)
    kept = np.flatnonzero(weights)
    by_hand = DataFidelity(model, frames, loss=loss).gradient(x, kept)
    assert fidelity.value(x) == pytest.approx(by_hand.value)
    np.testing.assert_allclose(fidelity.gradient(x).gradient, by_hand.gradient, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", ["margin", "object of 89 × 101"])
def test_gradient_does_not_depend_on_the_number_of_threads(case: str, dtype: DTypeLike) -> None:
    model = small_model(case, dtype=dtype)
    fidelity, x = small_fidelity(model, **masked_options(model)), random_x(model)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append(fidelity.gradient(x))
    for other in results[1:]:
        assert other.value == results[0].value
        np.testing.assert_array_equal(other.gradient, results[0].gradient)


def write_frames(folder: Path, suffix: str, frames: NDArray[Any]) -> Path:
    path = folder / f"frames{suffix}"
    if suffix == ".npy":
        np.save(path, frames)
    elif suffix == ".tif":
        tifffile.imwrite(path, frames, photometric="minisblack")
    else:
        zarr.save_array(str(path), frames)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".tif", ".zarr"])
@pytest.mark.parametrize("kind", ["f4", "f8", "u2"])
def test_frames_on_disk_give_the_same_gradient(tmp_path: Path, suffix: str, kind: str) -> None:
    model = small_model(dtype=np.float32)
    frames = np.rint(noisy_frames(model).clip(0) * 100).astype(kind)
    x = random_x(model)
    expected = DataFidelity(model, frames).gradient(x, [45, 3, 17])
    on_disk = DataFidelity(model, open_frames(write_frames(tmp_path, suffix, frames))).gradient(x, [45, 3, 17])
    assert on_disk.value == expected.value
    np.testing.assert_array_equal(on_disk.gradient, expected.gradient)


@pytest.mark.parametrize("group", [1, 7, 32, 48, 49])
def test_groups_do_not_matter(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("margin")
    fidelity, x = small_fidelity(model, **masked_options(model)), random_x(model)
    monkeypatch.setattr(pipeline, "GROUP", 1000)
    expected, misfits = fidelity.gradient(x), fidelity.misfits(x)
    monkeypatch.setattr(pipeline, "GROUP", group)
    fidelity = small_fidelity(model, **masked_options(model))
    result = fidelity.gradient(x)
    assert result.value == expected.value
    np.testing.assert_array_equal(result.gradient, expected.gradient)
    np.testing.assert_array_equal(fidelity.misfits(x), misfits)


def test_large_frames_go_in_smaller_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("margin")
    x = random_x(model)
    expected = small_fidelity(model).gradient(x)
    assert pipeline.group_size(model.geometry, 8) == pipeline.GROUP
    monkeypatch.setattr(pipeline, "GROUP_BYTES", 10**5)
    monkeypatch.setattr(pipeline, "GROUP_AT_LEAST", 3)
    assert 3 <= pipeline.group_size(model.geometry, 8) < pipeline.GROUP
    monkeypatch.setattr(pipeline, "GROUP_BYTES", 1)
    assert pipeline.group_size(model.geometry, 8) == 3
    result = small_fidelity(model).gradient(x)
    assert result.value == expected.value
    np.testing.assert_array_equal(result.gradient, expected.gradient)


@pytest.mark.parametrize("room", [2, 5, 60])
def test_streamed_frames_and_masks_give_the_same_gradient(room: int) -> None:
    model = small_model(dtype=np.float32)
    counts = np.rint(noisy_frames(model).clip(0) * 100).astype(np.uint16)
    x, level = random_x(model), float(np.quantile(counts, 0.9))
    whole = DataFidelity(model, counts, mask=counts < level)
    with StreamedFrames(ArrayFrames(counts), room * counts[0].nbytes) as frames:
        fidelity = DataFidelity(model, frames, mask=FrameMasks(frames, saturation=level))
        assert fidelity.wants_hints
        for leds in (None, [45, 3, 17], WEIGHTED):
            fidelity.expect([WEIGHTED])
            expected, result = whole.gradient(x, leds), fidelity.gradient(x, leds)
            assert result.value == expected.value
            np.testing.assert_array_equal(result.gradient, expected.gradient)
        np.testing.assert_array_equal(fidelity.mask_of(17), counts[17] < level)
        assert fidelity.wants_hints == (room < len(model))
        fidelity.release_memory()
        assert frames.nbytes == 0
        assert fidelity.gradient(x, WEIGHTED).value == whole.gradient(x, WEIGHTED).value
    assert not whole.wants_hints


def test_masks_on_demand_of_a_wrong_shape() -> None:
    model = small_model()
    with pytest.raises(InvalidInputError, match="a mask must have the shape"):
        DataFidelity(model, noisy_frames(model), mask=FrameMasks(ArrayFrames(np.ones((3, 4, 5)))))


def test_calls_do_not_disturb_one_another() -> None:
    """Scratch memory is kept from call to call: what was returned must not lie in it, nor what was there matter."""
    model = small_model("margin")
    fidelity, x, other = small_fidelity(model), random_x(model), random_x(model, seed=9)
    first = fidelity.gradient(x)
    kept = first.gradient.copy()
    fidelity.gradient(other)
    fidelity.value(other)
    np.testing.assert_array_equal(first.gradient, kept)
    again = fidelity.gradient(x)
    assert again.value == first.value == fidelity.value(x)
    np.testing.assert_array_equal(again.gradient, kept)
    fidelity.gradient(x, [1, 2])
    np.testing.assert_array_equal(fidelity.gradient(x).gradient, kept)


def test_several_python_threads_may_use_one_fidelity() -> None:
    model = small_model()
    fidelity, objects = small_fidelity(model), [random_x(model, seed) for seed in range(4)]
    expected = [fidelity.gradient(x) for x in objects]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for mine, theirs in zip(expected, pool.map(fidelity.gradient, objects), strict=True):
                assert mine.value == theirs.value
                np.testing.assert_array_equal(mine.gradient, theirs.gradient)


@pytest.mark.parametrize("case", ["array pupil, margin", "margin"])
def test_pupils_computed_when_needed_give_the_same_gradient(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = small_model(case)
    monkeypatch.setattr(pupils, "KEEP_AT_MOST_BYTES", 0)
    lazy = small_model(case)
    assert lazy.pupils.nbytes == 0
    x, frames = random_x(kept), noisy_frames(kept)
    for leds in (None, WEIGHTED):
        expected, result = (DataFidelity(model, frames).gradient(x, leds) for model in (kept, lazy))
        assert result.value == expected.value
        np.testing.assert_array_equal(result.gradient, expected.gradient)


def test_inputs_are_not_modified() -> None:
    model = small_model()
    x, frames, options = random_x(model), noisy_frames(model), masked_options(model)
    copies = [a.copy() for a in (x, frames, options["weights"], options["mask"])]
    for array in (x, frames, options["weights"], options["mask"]):
        array.setflags(write=False)
    DataFidelity(model, frames).gradient(x)
    DataFidelity(model, frames, **options).gradient(x)
    for array, copy in zip((x, frames, options["weights"], options["mask"]), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_strided_frames_are_read_right() -> None:
    model = small_model()
    frames, x = noisy_frames(model), random_x(model)
    expected = DataFidelity(model, frames).gradient(x).gradient
    for other in (np.asfortranarray(frames), frames[::-1].copy()[::-1], frames.astype(">f8")):
        np.testing.assert_array_equal(DataFidelity(model, other).gradient(x).gradient, expected)


def test_of_an_acquisition_takes_its_weights_and_mask() -> None:
    model = small_model("aberrated")
    frames, x = noisy_frames(model), random_x(model)
    weights, mask = np.linspace(0, 1, len(model)), np.eye(*model.frame_shape) == 0
    acquisition = Acquisition(OPTICS, TURNED_LEDS, frames, weights=weights, mask=mask)
    fidelity = DataFidelity.of(acquisition, model, loss="amplitude")
    assert len(fidelity) == len(model)
    assert fidelity.loss == AmplitudeLoss()
    assert fidelity.value(x) == DataFidelity(model, frames, loss="amplitude", weights=weights, mask=mask).value(x)


def test_losses_by_name() -> None:
    assert [as_loss(name) for name in LOSSES] == [IntensityLoss(), AmplitudeLoss(), PoissonLoss()]
    loss = PoissonLoss(background=0.5)
    assert as_loss(loss) is loss
    with pytest.raises(InvalidInputError, match="must be one of intensity, amplitude, poisson, got 'l1'"):
        as_loss("l1")
    for background in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInputError, match=r"background .*must be "):
            PoissonLoss(background=background)


def test_errors() -> None:
    model = small_model()
    frames, x = noisy_frames(model), random_x(model)
    with pytest.raises(InvalidInputError, match=r"needs frames of shape \(49, 24, 24\) .* got \(48, 24, 24\)"):
        DataFidelity(model, frames[1:])
    with pytest.raises(InvalidInputError, match=r"weights: one per frame is needed, 49, got shape \(3,\)"):
        DataFidelity(model, frames, weights=np.ones(3))
    for bad in (-np.ones(49), np.zeros(49), np.full(49, np.nan)):
        with pytest.raises(InvalidInputError, match="finite, not negative, and not all zero"):
            DataFidelity(model, frames, weights=bad)
    with pytest.raises(InvalidInputError, match=r"must have the shape \(24, 24\) or \(49, 24, 24\), got \(24, 23\)"):
        DataFidelity(model, frames, mask=np.ones((24, 23)))
    with pytest.raises(InvalidInputError, match="leaves no pixel"):
        DataFidelity(model, frames, mask=np.zeros((24, 24)))
    fidelity = DataFidelity(model, frames)
    nothing = np.array([], np.int64)
    for none in (nothing, Minibatch(nothing, np.array([]), 0)):
        with pytest.raises(InvalidInputError, match="at least one LED"):
            fidelity.gradient(x, none)
    for outside in (np.array([49]), np.array([-1])):
        with pytest.raises(InvalidInputError, match="must lie in 0…48"):
            fidelity.gradient(x, outside)
        with pytest.raises(InvalidInputError, match="must lie in 0…48"):
            fidelity.value(x, Minibatch(outside, np.ones(1), 1))
