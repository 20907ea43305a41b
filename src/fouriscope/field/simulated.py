"""Frames of a large field whose angles change from place to place, as a camera would have recorded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, CalibratedFrames, Frames, FrameSequence
from fouriscope.errors import InvalidInputError
from fouriscope.field.patchwork import PatchworkModel, Point, PupilOverField
from fouriscope.forward.grids import LEDs
from fouriscope.optics import Illumination, Optics, Pupil
from fouriscope.optics.objective import require_finite
from fouriscope.parallel import split
from fouriscope.simulation import Camera, check_noise

# Ideal frames that are in memory at once. Every group costs the transforms of all patches of the object again.
GROUP_BYTES = 256 * 2**20


@dataclass(frozen=True, eq=False, repr=False)
class FieldSimulation(FrameSequence):
    """Frames that are computed when they are needed; made by :func:`simulate_field`.

    It is a :class:`~fouriscope.acquisition.Frames`, but one frame alone costs the transforms of the whole object. Use
    :meth:`frames` for many at a time; it keeps at most 256 MiB of them (at least one) in memory.
    """

    model: PatchworkModel
    phase: NDArray[np.float32]
    camera: Camera | None
    snr_db: float | None
    signal_power: float | None
    seed: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """(frames, rows, columns)."""
        return (len(self.model), *self.model.frame_shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Counts with a camera, intensities without."""
        return np.dtype(np.float32 if self.camera is None else np.uint16)

    @property
    def offset(self) -> float:
        """Counts in the dark: intensity is (counts − offset) / gain."""
        return 0.0 if self.camera is None else self.camera.offset

    @property
    def gain(self) -> float:
        """Counts of the empty bright field."""
        return 1.0 if self.camera is None else self.camera.photons * self.camera.counts_per_electron

    @property
    def truth(self) -> NDArray[np.float32]:
        """The phase of the measured window, without the margin around it."""
        return self.phase[self.model.object_window]

    def frames(self, leds: LEDs = None) -> Iterator[NDArray[Any]]:
        """The frame of each LED of ``leds`` (all by default), in that order; the order changes no frame."""
        for led, ideal in _ideal_frames(self.model, self.phase, leds):
            # Each frame has its own noise, so it does not depend on which others were requested.
            rng = np.random.default_rng([self.seed, led])
            if self.camera is not None:
                yield self.camera.expose(ideal, rng)
                continue
            if self.snr_db is not None:
                power = _power(ideal) if self.signal_power is None else self.signal_power
                ideal += rng.normal(0.0, np.sqrt(power / 10 ** (self.snr_db / 10)), ideal.shape)
            yield ideal

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index``, on its own."""
        return next(self.frames([index]))

    def _read_each(self, numbers: range) -> Iterator[NDArray[Any]]:
        return self.frames(numbers)

    def acquisition(self) -> Acquisition:
        """All frames in memory, with the microscope that took them and the truth.

        A pupil that changes over the field is left out, because no single one would be right.
        """
        frames: Frames = ArrayFrames(np.asarray(self, self.dtype))
        if self.camera is not None:
            frames = CalibratedFrames(frames, offset=self.offset, gain=self.gain)
        pupil = self.model.pupil if isinstance(self.model.pupil, Pupil) else Pupil()
        return Acquisition(self.model.optics, self.model.illumination, frames, pupil=pupil, truth=self.truth)


def simulate_field(
    optics: Optics,
    illumination: Illumination,
    frame_shape: tuple[int, int],
    phase: NDArray[Any] | Callable[[tuple[int, int]], NDArray[Any]],
    *,
    camera: Camera | None = None,
    snr_db: float | None = None,
    noise: Literal["stack", "frame"] = "stack",
    seed: int,
    pupil: PupilOverField | None = None,
    pitch: int = 32,
    margin: int = 48,
) -> FieldSimulation:
    """Simulate frames of a field that is not periodic and over which the angles of the LEDs change.

    :func:`fouriscope.simulate` uses one angle per LED for the whole frame, and a field that repeats itself. Here an LED
    at a finite height is seen at another angle from each place, and the object continues beyond the frames, as on a
    real microscope. Such frames are reconstructed in tiles. :class:`~fouriscope.field.patchwork.PatchworkModel` says
    how they are computed, and how exactly.

    Parameters
    ----------
    optics, illumination, frame_shape, pupil, pitch, margin
        See :class:`~fouriscope.field.patchwork.PatchworkModel`; for a pupil that changes, :func:`field_curvature`.
    phase
        The phase in radians, of the frame and ``margin`` frame pixels around it; or a function that makes it from
        (rows, columns).
    camera
        Photon noise; frames are then counts of 16 bits.
    snr_db, noise
        Additive noise, as in :func:`fouriscope.simulate`. With ``"stack"``, the power of all frames must be known
        before noise is added to the first, so frames are computed twice.
    seed
        Same seed, same frames.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(3, pitch=4e-3, height=70e-3)
    >>> field = simulate_field(optics, leds, (128, 96), np.zeros, camera=fs.Camera(1000), seed=0)
    >>> field.shape, field.truth.shape, round(float(field.frame(4).mean() / field.gain), 2)
    ((9, 128, 96), (256, 192), 1.0)
    """
    check_noise(snr_db, noise, camera)
    model = PatchworkModel(optics, illumination, frame_shape, pupil=pupil, pitch=pitch, margin=margin)
    checked = model.check_phase(phase(model.object_shape) if callable(phase) else phase)
    power = None
    if snr_db is not None and noise == "stack":
        power = float(np.mean([_power(ideal) for _, ideal in _ideal_frames(model, checked, None)]))
    return FieldSimulation(model, checked, camera, snr_db, power, seed)


def field_curvature(optics: Optics, frame_shape: tuple[int, int], at_corner: float) -> Callable[[Point], Pupil]:
    """Defocus that grows with the square of the distance from the axis, to ``at_corner`` metres at the frame's corner.

    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> pupil = field_curvature(optics, (300, 400), at_corner=20e-6)
    >>> pupil((0.0, 0.0)).defocus, round(pupil((0.0, 125 * optics.pixel)).defocus * 1e6, 6)
    (0.0, 5.0)
    """
    require_finite("defocus at the corner", at_corner)
    corner = sum((size / 2 * optics.pixel) ** 2 for size in frame_shape)
    if not corner > 0:
        raise InvalidInputError(f"frame_shape must be two positive sizes in pixels, got {frame_shape}")
    return lambda place: Pupil(defocus=at_corner * (place[0] ** 2 + place[1] ** 2) / corner)


def _ideal_frames(
    model: PatchworkModel, phase: NDArray[np.float32], leds: LEDs
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """(LED, its frame without noise), computed in groups that fit into GROUP_BYTES."""
    wanted = np.arange(len(model)) if leds is None else np.atleast_1d(np.asarray(leds))
    frame_bytes = int(np.prod(model.frame_shape)) * np.dtype(np.float32).itemsize
    group = max(1, GROUP_BYTES // frame_bytes)
    for start, stop in split(len(wanted), -(-len(wanted) // group)):
        yield from zip(wanted[start:stop].tolist(), model.intensity(phase, wanted[start:stop]), strict=True)


def _power(frame: NDArray[Any]) -> float:
    return float(np.mean(frame.astype(np.float64) ** 2))
