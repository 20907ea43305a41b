"""A microscope with everything that goes wrong in laboratories, and the truth behind its frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, CalibratedFrames, Frames
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics, Pupil
from fouriscope.simulation.faults import aberrated_pupil, drawn_faults, dusty
from fouriscope.simulation.frames import Camera
from fouriscope.simulation.samples import SampleName, sample
from fouriscope.simulation.truth import Truth

Axis = Literal["y", "x", "both"]
# Each purpose has its own random generator, so that switching a fault off does not change the others.
_SAMPLE, _GAINS, _PUPIL, _DUST, _NOISE = range(5)


@dataclass(frozen=True)
class HostileMicroscope:
    """A microscope as its user describes it, and how it really is. Without a fault, the description is right.

    Parameters
    ----------
    wavelength, na, magnification, camera_pixel
        The microscope as described; see :class:`~fouriscope.Optics`. The user knows these.
    leds, pitch, height
        The array as described: LEDs per side of the square, distance from LED to LED, and height, in metres.
    frame
        Pixels per side of a frame.
    surround
        Frame pixels by which the field continues beyond the frame on every side; with 0 it is periodic.
    sample
        "cells", "target", "wrapping", "weak" or "mixed": see :func:`~fouriscope.simulation.samples.sample`.
    die
        Side of the square that shines, in metres. A frame is the mean over 3 × 3 points of it.
    displacement, rotation, height_error, mirrored
        Where the array really is: displaced by (y, x) metres, turned by radians, farther away by a share of its
        height, and reversed along "y", "x" or "both" axes.
    exposure_ratio
        Dark-field frames were exposed this many times longer, and the description does not say so.
    gain_error, falloff
        Standard deviation of the logarithm of each LED's brightness, which also falls as cosⁿ of its angle, n the
        ``falloff``.
    zernike, defocus
        Aberrations: radians RMS by Noll index, and metres.
    roughness, bump
        Phase that a few Zernike polynomials cannot describe: smooth and random, in radians RMS, and one hill in
        radians.
    vignetting
        Share of the pupil's modulus that is lost at its edge, with the square of the radius.
    stray
        Light that every LED sends everywhere, in units of its bright field.
    dust
        Dark spots on the camera, the same in every frame.
    camera
        Counts, with noise, offset and saturation; None for exact intensities.
    gamma
        p in stored = full scale · (counts / full scale)^p.

    Examples
    --------
    >>> import fouriscope as fs
    >>> from fouriscope.simulation import field_error
    >>> microscope = HostileMicroscope.draw(3)
    >>> acquisition, truth = microscope.acquire(3)
    >>> acquisition.frames.shape == (microscope.leds**2, 64, 64)
    True
    >>> described, real = acquisition.illumination.height, truth.illumination.height
    >>> round(real / described - 1, 4) == round(microscope.height_error, 4)
    True
    """

    wavelength: float = 0.53e-6
    na: float = 0.1
    magnification: float = 4.0
    camera_pixel: float = 6.5e-6
    leds: int = 9
    pitch: float = 4e-3
    height: float = 80e-3
    frame: int = 64
    surround: int = 32
    sample: SampleName = "cells"
    die: float = 0.0
    displacement: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    height_error: float = 0.0
    mirrored: Axis | None = None
    exposure_ratio: float = 1.0
    gain_error: float = 0.0
    falloff: float = 0.0
    zernike: tuple[tuple[int, float], ...] = ()
    defocus: float = 0.0
    roughness: float = 0.0
    bump: float = 0.0
    vignetting: float = 0.0
    stray: float = 0.0
    dust: int = 0
    camera: Camera | None = None
    gamma: float = 1.0

    def __post_init__(self) -> None:
        for name in ("die", "gain_error", "falloff", "roughness", "stray", "dust", "surround"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InvalidInputError(f"{name} must be finite and at least 0, got {getattr(self, name)}")
        if self.mirrored not in (None, "y", "x", "both"):
            raise InvalidInputError(f"mirrored must be None, 'y', 'x' or 'both', got {self.mirrored!r}")
        if not (0 < self.exposure_ratio < np.inf and 0 < self.gamma < np.inf and -1 < self.height_error < np.inf):
            raise InvalidInputError(
                "exposure_ratio and gamma must be positive and height_error above -1, "
                f"got {self.exposure_ratio}, {self.gamma} and {self.height_error}"
            )
        if not 0 <= self.vignetting < 1:
            raise InvalidInputError(
                f"vignetting, the share lost at the edge, must be from 0 to below 1, got {self.vignetting}"
            )
        if self.gamma != 1 and self.camera is None:
            raise InvalidInputError("gamma bends the counts of a camera: give a camera, or leave gamma at 1")

    @classmethod
    def draw(cls, seed: int) -> HostileMicroscope:
        """A microscope with all faults drawn at random; the ranges are in :mod:`fouriscope.simulation.faults`."""
        return cls(**drawn_faults(np.random.default_rng(seed)))

    @property
    def optics(self) -> Optics:
        return Optics(self.wavelength, self.na, self.magnification, self.camera_pixel)

    @property
    def described(self) -> LEDArray:
        """The LEDs where the user believes them to be."""
        return LEDArray.square(self.leds, pitch=self.pitch, height=self.height)

    @property
    def true(self) -> LEDArray:
        """The LEDs where they are."""
        signs = {None: (1, 1), "y": (-1, 1), "x": (1, -1), "both": (-1, -1)}[self.mirrored]
        return LEDArray(
            self.described.positions * signs,
            self.height * (1 + self.height_error),
            self.rotation,
            self.displacement,
        )

    def acquire(self, seed: int) -> tuple[Acquisition, Truth]:
        """Frames as the user would give them, and the truth. Same seed, same frames.

        The acquisition has the described geometry. The offset is subtracted from the counts, and the rest is divided by
        the median of the frames that are described as bright field. Nothing else is known.
        """
        truth = self.truth(seed)
        frames = self.expected(truth, seed)
        stored = frames if self.camera is None else self._counted(frames, _generator(seed, _NOISE))
        model = ForwardModel(self.optics, self.described, (self.frame, self.frame))
        offset = self.stored_offset
        bright = float(np.median(stored[model.geometry.bright_field])) - offset
        if bright <= 0:
            raise InvalidInputError("the bright field has no light; give the camera more photons or more bits")
        described: Frames = CalibratedFrames(ArrayFrames(stored), offset=offset, gain=bright)
        return Acquisition(self.optics, self.described, described, periodic=not self.surround), truth

    def truth(self, seed: int) -> Truth:
        """What is there before anything is exposed."""
        geometry = self._model(self.true, None).geometry
        brightness = np.exp(self.gain_error * _generator(seed, _GAINS).normal(size=len(geometry.na)))
        cosine = np.sqrt(1 - geometry.illumination_na**2)
        return Truth(
            sample(self.sample, geometry.object_shape, _generator(seed, _SAMPLE)),
            geometry,
            self.true,
            aberrated_pupil(
                geometry,
                dict(self.zernike),
                self.defocus,
                roughness=self.roughness,
                bump=self.bump,
                vignetting=self.vignetting,
                rng=_generator(seed, _PUPIL),
            ),
            brightness * cosine**self.falloff,
            np.where(geometry.bright_field, 1.0, self.exposure_ratio),
            twin=self.mirrored is not None,
        )

    def expected(self, truth: Truth, seed: int) -> NDArray[Any]:
        """The mean intensity at every pixel: g_i t_i (mean over the die of |H o|² + stray) · dust.

        One point of the die after the other, so memory is that of the frames twice.
        """
        x = np.stack([np.angle(truth.whole), -np.log(np.abs(truth.whole))]).astype(np.float32)
        points = self._die_points()
        frames = self._model(_shifted(truth.illumination, points[0]), truth.pupil).intensity(x)
        for point in points[1:]:
            frames += self._model(_shifted(truth.illumination, point), truth.pupil).intensity(x)
        if len(points) > 1:
            frames /= len(points)
        frames += np.float32(self.stray)
        frames *= (truth.gains * truth.exposures).astype(np.float32)[:, None, None]
        if self.dust:
            frames *= dusty((self.frame, self.frame), self.dust, _generator(seed, _DUST)).astype(np.float32)
        return frames

    @property
    def stored_offset(self) -> float:
        """The number that is stored where there is no light."""
        if self.camera is None:
            return 0.0
        full = 2**self.camera.bits - 1
        return float(full * (self.camera.offset / full) ** self.gamma)

    def _counted(self, frames: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        assert self.camera is not None
        full = 2**self.camera.bits - 1
        counts = np.empty(frames.shape, np.uint8 if full < 256 else np.uint16)
        for index, frame in enumerate(frames):
            signal = self.camera.signal(frame, rng)
            counts[index] = self.camera.digitise(full * (np.clip(signal, 0, full) / full) ** self.gamma)
        return counts

    def _die_points(self) -> NDArray[np.float64]:
        """Centres of 3 × 3 equal parts of the die, or the one point of a die without size."""
        if not self.die:
            return np.zeros((1, 2))
        steps = self.die * np.array([-1, 0, 1]) / 3
        return np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)

    def _model(self, leds: LEDArray, pupil: Pupil | None) -> ForwardModel:
        optics, grid = self.optics, self.frame + 2 * self.surround
        # The smallest multiple of the frame that holds the field of every point of every die, with three bins of room.
        na = self.true.directions()
        reach = float(np.abs(na).max()) + self.die / self.true.height + optics.na
        factor = int(np.ceil((2 * reach / optics.wavelength * grid * optics.pixel + 3) / grid))
        return ForwardModel(
            optics,
            leds,
            (self.frame, self.frame),
            pupil=pupil,
            object="complex",
            object_shape=(factor * grid, factor * grid),
            margin=self.surround,
        )


def _shifted(leds: LEDArray, point: NDArray[np.float64]) -> LEDArray:
    return replace(leds, positions=leds.positions + point) if point.any() else leds


def _generator(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])
