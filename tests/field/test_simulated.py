"""A simulated field against what is known of it: plane waves, spherical waves, flat objects, statistics of noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import Frames
from fouriscope.errors import InvalidInputError
from fouriscope.field import simulated
from fouriscope.field.patchwork import PatchworkModel
from fouriscope.field.simulated import FieldSimulation, field_curvature, simulate_field
from fouriscope.forward import ForwardModel
from fouriscope.optics import Directions, LEDArray, Pupil
from fouriscope.simulation import Camera
from tests.conftest import LEDS, OPTICS

# From a kilometre away the LEDs shine under one angle on the whole field.
PLANE_WAVES = Directions([(0.0, 0.0), (0.05, -0.08), (0.21, 0.1)], height=1e3)
# From 5 mm the 90 µm of a field are more than 0.01 NA on either side.
NEAR = LEDArray.from_directions([(0.0, 0.0), (0.0, 0.2), (0.3, 0.0)], height=5e-3)


def smooth_phase(shape: tuple[int, int], seed: int = 0) -> NDArray[np.float32]:
    """Random, with details of six object pixels, and with nothing that repeats itself or is mirrored."""
    from skimage.transform import resize

    coarse = np.random.default_rng(seed).normal(0.0, 0.3, tuple(size // 6 for size in shape))
    return np.asarray(resize(coarse, shape), np.float32)


def rms(values: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def frames_of(simulation: FieldSimulation, leds: list[int] | None = None) -> NDArray[Any]:
    return np.stack(list(simulation.frames(leds)))


# ---------------------------------------------------------------------------------------------------------------------
# The patchwork


@pytest.mark.parametrize("frame_shape", [(96, 96), (97, 65), (100, 8), (31, 33), (512, 9)])
@pytest.mark.parametrize("pitch", [8, 31, 32])
def test_weights_are_a_partition_of_unity(frame_shape: tuple[int, int], pitch: int) -> None:
    total, centers = np.zeros(frame_shape), []
    for patch in PatchworkModel(OPTICS, LEDS, frame_shape, pitch=pitch).patches():
        assert patch.weights.min() >= 0
        assert max(patch.shape) <= 2 * pitch
        total[patch.rows, patch.columns] += patch.weights
        centers.append(patch.center)
    np.testing.assert_allclose(total, 1, atol=1e-6)
    np.testing.assert_allclose(np.mean(centers, axis=0), 0, atol=0.51 * OPTICS.pixel, err_msg="centred on the axis")


def test_bilinear_weights_interpolate_anything_linear_exactly() -> None:
    model = PatchworkModel(OPTICS, LEDS, (70, 53), pitch=16)
    place = np.zeros((2, 70, 53))
    for patch in model.patches():
        place[:, patch.rows, patch.columns] += np.multiply.outer(patch.center, patch.weights)
    y, x = ((np.arange(size) + 0.5 - size / 2) * OPTICS.pixel for size in (70, 53))
    np.testing.assert_allclose(place, np.broadcast_arrays(y[:, None], x), atol=1e-6 * OPTICS.pixel * 70)


def test_plane_waves_give_the_frames_of_one_large_model() -> None:
    shape, border, error = (90, 70), 96, {}
    scale = PatchworkModel(OPTICS, PLANE_WAVES, shape).scale
    rows, columns = ((size + 2 * border) * scale for size in shape)
    whole = ForwardModel(OPTICS, PLANE_WAVES, shape, margin=border, object_shape=(rows, columns))
    phase = smooth_phase((rows, columns))
    expected = whole.intensity(phase)
    contrast = rms(expected - expected.mean(axis=(1, 2), keepdims=True))
    for margin in (16, 48, 96):
        cut = (border - margin) * scale
        field = PatchworkModel(OPTICS, PLANE_WAVES, shape, margin=margin)
        error[margin] = rms(field.intensity(phase[cut : rows - cut, cut : columns - cut]) - expected) / contrast
    # A hard pupil has far rings: what a patch sees beyond its margin is wrong by this part of the contrast.
    assert error[48] < 0.13
    assert error[96] < error[48] < error[16]


def test_at_its_centre_a_patch_is_the_model_of_that_place() -> None:
    field = PatchworkModel(OPTICS, NEAR, (96, 80))
    phase = smooth_phase(field.object_shape)
    frames = field.intensity(phase)
    whole = [patch for patch in field.patches() if patch.weights.max() == 1]  # the others' centres lie beyond the frame
    assert len(whole) >= 4
    for patch in whole:
        rows, columns = ((size + 2 * field.margin) * field.scale for size in patch.shape)
        model = ForwardModel(
            *(OPTICS, NEAR, patch.shape),
            margin=field.margin,
            object_shape=(rows, columns),
            patch_center=patch.center,
        )
        top, left = patch.rows.start * field.scale, patch.columns.start * field.scale
        expected = model.intensity(phase[top : top + rows, left : left + columns])
        center = patch.weights == 1
        ours = frames[:, patch.rows, patch.columns][:, center]
        np.testing.assert_allclose(ours, expected[:, center], rtol=1e-5, atol=1e-7)


def test_spherical_waves() -> None:
    """The physics itself, in one transform without patches: o · e^{ik|r − LED|}, filtered by the pupil.

    Directions that stay those of the axis, or change the wrong way, are further from it.
    """
    size, border, height = 160, 96, 20e-3
    leds = LEDArray.from_directions([(0.0, 0.1), (-0.12, 0.05)], height=height)
    field = PatchworkModel(OPTICS, leds, (size, size))
    scale = field.scale
    phase = smooth_phase(((size + 2 * border) * scale,) * 2)
    place = (np.arange(len(phase)) / scale - border + 0.5 - size / 2) * OPTICS.pixel
    # Faded out towards the edges, because a wave that does not repeat itself would be diffracted there.
    fade = np.sin(np.pi / 2 * np.minimum(1, (np.arange(len(phase)) + 0.5) / ((border - 8) * scale))) ** 2
    fade = np.minimum(fade, fade[::-1])
    f = np.fft.fftfreq(len(phase), OPTICS.pixel / scale)
    pupil = np.hypot(f[:, None], f) <= OPTICS.cutoff
    inside = slice(border * scale, -border * scale, scale)
    expected = []
    for y, x in leds.positions:
        distance = np.sqrt((place[:, None] - y) ** 2 + (place - x) ** 2 + height**2)
        wave = np.exp(1j * (phase + 2 * np.pi / OPTICS.wavelength * (distance - height))) * fade[:, None] * fade
        expected.append(np.abs(np.fft.ifft2(np.fft.fft2(wave) * pupil)[inside, inside]) ** 2)
    cut = (border - field.margin) * scale

    class Stretched:
        """Directions at ``times`` the distance from the axis."""

        def __init__(self, times: int) -> None:
            self.times = times

        def __len__(self) -> int:
            return len(leds)

        def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.float64]:
            return leds.directions((self.times * patch_center[0], self.times * patch_center[1]))

    error = {}
    for times in (1, 0, -1):
        frames = PatchworkModel(OPTICS, Stretched(times), (size, size)).intensity(phase[cut:-cut, cut:-cut])
        error[times] = rms(frames - expected) / rms(np.array(expected) - 1)
    assert error[1] < 0.12
    assert error[1] < 0.75 * error[0] < 0.75 * 0.75 * error[-1]


def test_a_flat_object_is_1_in_bright_and_0_in_dark_field() -> None:
    leds = LEDArray.square(7, pitch=4e-3, height=70e-3).subset([24, 17, 0])
    field = simulate_field(OPTICS, leds, (64, 50), np.zeros, seed=0)
    for frame, value in zip(field.frames(), (1, 1, 0), strict=True):
        np.testing.assert_allclose(frame, value, atol=1e-5)


def test_an_led_at_the_edge_of_the_pupil_goes_dark_towards_one_side_of_the_field() -> None:
    (frame,) = simulate_field(OPTICS, NEAR.subset([1]), (64, 128), np.zeros, seed=0).frames()
    # The LED lies at +x: seen from the right it stands more upright, and its direct light passes the pupil.
    np.testing.assert_allclose(frame[:, -30:], 1, atol=1e-5)
    np.testing.assert_allclose(frame[:, :30], 0, atol=1e-5)
    assert np.all(np.diff(frame.mean(axis=0)) >= -1e-5)


def test_the_scale_is_that_of_the_most_oblique_place() -> None:
    leds = LEDArray.from_directions([(0.0, 0.27)], height=1e-3)
    on_axis = ForwardModel(OPTICS, leds, (128, 128))
    field = PatchworkModel(OPTICS, leds, (128, 128))
    assert field.scale > on_axis.object_shape[0] // 128
    assert field.intensity(np.zeros(field.object_shape)).max() < 1 + 1e-5


# ---------------------------------------------------------------------------------------------------------------------
# Aberrations


def test_one_pupil_for_all_the_field_or_the_same_one_everywhere() -> None:
    pupil = Pupil({5: 0.5}, defocus=10e-6)
    one, other, none = (
        frames_of(simulate_field(OPTICS, PLANE_WAVES, (64, 64), smooth_phase, seed=0, pupil=given))
        for given in (pupil, lambda _: pupil, None)
    )
    np.testing.assert_array_equal(one, other)
    assert rms(one - none) > 0.01


def test_field_curvature_acts_towards_the_corners() -> None:
    shape = (192, 192)
    curved, plane = (
        frames_of(simulate_field(OPTICS, PLANE_WAVES, shape, smooth_phase, seed=0, pupil=pupil), [0])[0]
        for pupil in (field_curvature(OPTICS, shape, 30e-6), None)
    )
    change = (curved - plane) ** 2
    assert np.sqrt(change[90:102, 90:102].mean()) < 0.1 * np.sqrt(change[:16, :16].mean())
    assert np.sqrt(change[:16, :16].mean()) > 0.05
    assert field_curvature(OPTICS, (30, 40), 5e-6)((15 * OPTICS.pixel, -20 * OPTICS.pixel)).defocus == pytest.approx(
        5e-6
    )


# ---------------------------------------------------------------------------------------------------------------------
# Frames and their noise


@pytest.mark.parametrize(
    "noise", [{"camera": Camera(500, read_noise=2, offset=100)}, {"snr_db": 20.0}, {"snr_db": 20.0, "noise": "frame"}]
)
def test_a_frame_depends_on_the_seed_alone(noise: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def simulation(seed: int) -> FieldSimulation:
        return simulate_field(OPTICS, NEAR, (40, 48), smooth_phase, seed=seed, **noise)

    frames = frames_of(simulation(3))
    assert isinstance(simulation(3), Frames)
    assert frames.shape == simulation(3).shape
    assert frames.dtype == simulation(3).dtype
    np.testing.assert_array_equal(frames_of(simulation(3), [2, 0]), frames[[2, 0]])
    np.testing.assert_array_equal(simulation(3).frame(1), frames[1])
    assert np.any(frames_of(simulation(4)) != frames, axis=(1, 2)).all()
    monkeypatch.setattr(simulated, "GROUP_BYTES", 1)
    np.testing.assert_array_equal(frames_of(simulation(3)), frames, err_msg="one frame in memory at a time")


def test_noise_has_the_power_that_was_asked_for() -> None:
    arguments = (OPTICS, PLANE_WAVES, (64, 64), smooth_phase)
    ideal = frames_of(simulate_field(*arguments, seed=0))
    assert ideal.dtype == np.float32
    stack = frames_of(simulate_field(*arguments, snr_db=25, seed=0)) - ideal
    # 12 288 samples: the noise's power is known to 1.3 %.
    assert 10 * np.log10(np.sum(ideal**2) / np.sum(stack**2)) == pytest.approx(25, abs=0.2)
    np.testing.assert_allclose(stack.std(axis=(1, 2)), stack.std(), rtol=0.1)
    each = frames_of(simulate_field(*arguments, snr_db=25, noise="frame", seed=0)) - ideal
    snr = 10 * np.log10(np.sum(ideal**2, axis=(1, 2)) / np.sum(each**2, axis=(1, 2)))
    np.testing.assert_allclose(snr, 25, atol=0.4)
    counts = simulate_field(*arguments, camera=Camera(400, offset=50), seed=0)
    electrons = (frames_of(counts) - counts.offset) / counts.gain
    deviation = (electrons - ideal) / np.sqrt(np.maximum(ideal, 1e-6) / 400)
    assert deviation[ideal > 0.5].std() == pytest.approx(1, abs=0.05)


def test_the_acquisition_shows_the_measured_window() -> None:
    field = simulate_field(OPTICS, NEAR, (48, 40), smooth_phase, camera=Camera(1e6), seed=0, pupil=Pupil({5: 0.1}))
    data = field.acquisition()
    assert data.truth is not None
    border = field.model.margin * field.model.scale
    np.testing.assert_array_equal(data.truth, smooth_phase(field.model.object_shape)[border:-border, border:-border])
    assert data.truth.shape == (48 * field.model.scale, 40 * field.model.scale)
    assert not data.periodic
    assert data.pupil.zernike == {5: 0.1}
    ideal = simulate_field(OPTICS, NEAR, (48, 40), smooth_phase, seed=0, pupil=Pupil({5: 0.1}))
    np.testing.assert_allclose(data.frames.frame(0), ideal.frame(0), atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pitch": 4}, "pitch must be at least 8 frame pixels, got 4"),
        ({"pitch": 32.0}, "pitch must be a whole number of frame pixels, got 32.0"),
        ({"margin": 8}, "margin must be at least 16 frame pixels, got 8"),
        ({"frame_shape": (64, 4)}, "each side of frame_shape must be at least 8"),
        ({"frame_shape": (64,)}, r"frame_shape must be \(rows, columns\)"),
        ({"phase": np.zeros((64, 64))}, r"real array of shape \(480, 480\) .* got float64 of shape \(64, 64\)"),
        ({"phase": lambda shape: np.ones(shape, complex)}, "real array of shape .* got complex128"),
        ({"phase": lambda shape: np.full(shape, np.nan)}, "230400 NaN or infinite values of 230400"),
        ({"illumination": Directions([(0.0, 0.1)])}, "give Directions.na, height="),
        ({"snr_db": 20, "camera": Camera(100)}, "not both"),
        ({"snr_db": 1000}, "between -100 and 300 dB"),
        ({"noise": "pixel"}, "'stack' or 'frame'"),
    ],
)
def test_what_cannot_be_simulated(change: dict[str, Any], message: str) -> None:
    plain = {"illumination": PLANE_WAVES, "frame_shape": (64, 64), "phase": np.zeros, "seed": 0}
    arguments: dict[str, Any] = plain | change
    with pytest.raises(InvalidInputError, match=message):
        simulate_field(OPTICS, **arguments)


@pytest.mark.parametrize("defocus", [np.nan, np.inf])
def test_field_curvature_must_be_finite(defocus: float) -> None:
    with pytest.raises(InvalidInputError, match="defocus at the corner must be"):
        field_curvature(OPTICS, (64, 64), defocus)


def test_leds_that_do_not_exist() -> None:
    field = simulate_field(OPTICS, PLANE_WAVES, (64, 64), np.zeros, seed=0)
    with pytest.raises(InvalidInputError, match="LED numbers must lie in 0…2"):
        field.frame(3)
