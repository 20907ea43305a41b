"""From an object to an acquisition: noise, a camera, imperfect LEDs. The forward model is the reconstruction's own."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, CalibratedFrames, Frames
from fouriscope.checks import door, door_class, numbers, require_at_least, told
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.optics.frame_sources import fine_sources
from fouriscope.optics.patterns import Multiplexed, lit_leds

# Beyond these the numbers themselves fail: powers overflow, and Poisson numbers leave 64 bits.
SNR_DB_RANGE = (-100.0, 300.0)
MOST_PHOTONS = 1e12


@door_class
@dataclass(frozen=True)
class Camera:
    """A camera that counts photons: shot noise, read noise, offset, quantisation, saturation.

    Parameters
    ----------
    photons
        Mean photo-electrons per pixel in the empty bright field.
    read_noise
        Standard deviation in electrons.
    offset
        Counts added by the camera to every pixel.
    bits
        Depth of the converter.
    full_well
        Electrons at which a pixel saturates; twice ``photons`` by default. It maps to the largest count.
    """

    photons: float
    read_noise: float = 0.0
    offset: float = 0.0
    bits: int = 16
    full_well: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.photons <= MOST_PHOTONS:
            raise InvalidInputError(
                f"photons (electrons in the empty bright field) must be positive and at most {MOST_PHOTONS:g}, "
                f"got {self.photons}"
            )
        if not (0 <= self.read_noise <= MOST_PHOTONS and 0 <= self.offset < math.inf):
            raise InvalidInputError(
                f"read_noise and offset must be finite and at least 0, got {self.read_noise} and {self.offset}"
            )
        try:
            operator.index(self.bits)
        except TypeError:
            raise InvalidInputError(f"bits must be a whole number, got {self.bits!r}") from None
        if not 1 <= self.bits <= 16:
            raise InvalidInputError(f"bits must be from 1 to 16, got {self.bits}")
        if self.offset >= 2**self.bits - 1:
            raise InvalidInputError(f"offset = {self.offset} leaves nothing of the {self.bits} bits for light")
        if self.full_well is not None and not 0 < self.full_well < math.inf:
            raise InvalidInputError(f"full_well must be positive and finite, got {self.full_well}")

    @property
    def counts_per_electron(self) -> float:
        full_well = 2 * self.photons if self.full_well is None else self.full_well
        return float((2**self.bits - 1 - self.offset) / full_well)

    @door
    def expose(self, intensity: NDArray[Any], rng: np.random.Generator) -> NDArray[np.uint16]:
        """Counts for one frame of ideal intensity (1 = empty bright field)."""
        return self.digitise(self.signal(intensity, rng))

    def signal(self, intensity: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
        """What reaches the converter for one frame of ideal intensity, in counts that are not yet whole numbers."""
        intensity = numbers("intensity", intensity)
        if intensity.dtype.kind == "c" or not np.isfinite(intensity).all():
            raise InvalidInputError(f"intensity must be real and finite, got {told(intensity)}")
        electrons = rng.poisson(np.maximum(intensity, 0) * self.photons).astype(np.float64)
        if self.read_noise:
            electrons += rng.normal(0.0, self.read_noise, electrons.shape)
        return np.asarray(electrons * self.counts_per_electron + self.offset)

    def digitise(self, signal: NDArray[Any]) -> NDArray[np.uint16]:
        """Whole numbers from 0 to 2^bits − 1."""
        clipped: NDArray[np.uint16] = np.clip(np.rint(signal), 0, 2**self.bits - 1).astype(np.uint16)
        return clipped


@door
def simulate(
    model: ForwardModel,
    truth: NDArray[Any],
    *,
    snr_db: float | None = None,
    noise: Literal["stack", "frame"] = "stack",
    camera: Camera | None = None,
    led_intensity_error: float = 0.0,
    led_position_error: float = 0.0,
    seed: int,
) -> Acquisition:
    r"""Simulate the frames of an object.

    Parameters
    ----------
    model
        The microscope. The acquisition has this geometry even if ``led_position_error`` moves the LEDs. LEDs with a
        size shine from 9 × 9 points each, and those with a bandwidth in 11 wavelengths, which is more than the model
        itself uses.
    truth
        x of the model (phase, or phase and absorption), or a complex transmittance o = e^{i(φ+iμ)} of its object shape.
    snr_db, noise
        Additive white Gaussian noise at 10 log₁₀(‖y‖²/‖e‖²) = ``snr_db``, over the whole ``"stack"`` (one σ for all
        frames, so that dark-field frames drown in noise) or separately for each ``"frame"``. The two give very
        different frames. From −100 to 300 dB; None is no noise.
    camera
        Photon counting instead of additive noise.
    led_intensity_error
        Relative standard deviation of the LEDs' brightness.
    led_position_error
        Standard deviation in metres of each LED's position, in y and in x.
    seed
        Same seed, same frames.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(3, pitch=4e-3, height=70e-3), (32, 32))
    >>> data = fs.simulate(model, np.zeros(model.object_shape), snr_db=40, seed=0)
    >>> data.frames.shape
    (9, 32, 32)
    """
    check_noise(snr_db, noise, camera)
    if not (0 <= led_intensity_error < math.inf and 0 <= led_position_error < math.inf):
        raise InvalidInputError(
            "LED errors are standard deviations and must be finite and at least 0, "
            f"got led_intensity_error = {led_intensity_error} and led_position_error = {led_position_error}"
        )
    require_at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    x = _as_x(model, truth)
    lit_by = _displaced(model, led_position_error, rng) if led_position_error else model
    fine = fine_sources(lit_by.illumination, model.optics, model.geometry.patch_center)
    lit_by = lit_by if fine is None else lit_by.revised(sources=fine)
    ideal = lit_by.intensity(x)
    if led_intensity_error:
        ideal *= np.maximum(1 + rng.normal(0.0, led_intensity_error, len(ideal)), 0)[:, None, None]
    frames: Frames
    if camera is not None:
        counts = np.stack([camera.expose(frame, rng) for frame in ideal])
        bright = camera.photons * camera.counts_per_electron
        frames = CalibratedFrames(ArrayFrames(counts), offset=camera.offset, gain=bright)
    else:
        if snr_db is not None:
            _add_white_noise(ideal, snr_db, noise, rng)
        frames = ArrayFrames(ideal)
    return Acquisition(
        model.optics,
        model.illumination,
        frames,
        pupil=model.pupil,
        patch_center=model.geometry.patch_center,
        periodic=not model.geometry.margin,
        truth=x,
    )


def check_noise(snr_db: float | None, noise: str, camera: Camera | None) -> None:
    """Raise if the requested noise makes no sense.

    Parameters
    ----------
    snr_db, noise, camera
        As in :func:`fouriscope.simulate`.
    """
    if snr_db is not None and camera is not None:
        raise InvalidInputError("give snr_db (additive noise) or a camera (photon noise), not both")
    if noise not in ("stack", "frame"):
        raise InvalidInputError(f"noise must be 'stack' or 'frame', got {noise!r}")
    low, high = SNR_DB_RANGE
    if snr_db is not None and not low <= snr_db <= high:
        raise InvalidInputError(
            f"snr_db must lie between {low:g} and {high:g} dB, got {snr_db}; leave it out for no noise"
        )


def _as_x(model: ForwardModel, truth: NDArray[Any]) -> NDArray[Any]:
    truth = np.asarray(truth)
    if truth.dtype.kind not in "fiubc":
        raise InvalidInputError(f"the truth must be an array of numbers, got {truth.dtype}")
    bad = int(truth.size - np.count_nonzero(np.isfinite(truth)))
    if bad:
        raise InvalidInputError(f"the truth holds {bad} NaN or infinite values of {truth.size}; replace them first")
    if not np.iscomplexobj(truth):
        return model.check_x(truth, "truth")
    if model.object.name != "complex":
        raise InvalidInputError("a complex object needs a model made with object='complex'")
    if not np.all(np.abs(truth) > 0):
        raise InvalidInputError("an opaque pixel (transmittance 0) has no finite absorption; use a small value instead")
    return model.check_x(np.stack([np.angle(truth), -np.log(np.abs(truth))]), "truth")


def _displaced(model: ForwardModel, error: float, rng: np.random.Generator) -> ForwardModel:
    leds, _ = lit_leds(model.illumination)
    if not isinstance(leds, LEDArray):
        raise InvalidInputError("position errors need LEDs with positions, but these were given as directions")
    moved = replace(leds, positions=leds.positions + rng.normal(0.0, error, leds.positions.shape))
    together = model.illumination
    return model.revised(
        illumination=Multiplexed(moved, together.patterns) if isinstance(together, Multiplexed) else moved
    )


def _add_white_noise(frames: NDArray[Any], snr_db: float, noise: str, rng: np.random.Generator) -> None:
    power = np.array([np.mean(frame.astype(np.float64) ** 2) for frame in frames])
    if noise == "stack":
        power = np.full(len(frames), power.mean())
    sigma = np.sqrt(power / 10 ** (snr_db / 10))
    for frame, s in zip(frames, sigma, strict=True):
        frame += rng.normal(0.0, s, frame.shape)
