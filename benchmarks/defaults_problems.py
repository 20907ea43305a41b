"""Simulated acquisitions of many kinds, for what ``fs.reconstruct`` does with nothing chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import calibration_problems as fields
from benchmarks.microscope import leds, optics
from benchmarks.quality import phase
from benchmarks.waves import every_second_led
from fouriscope.acquisition import Acquisition
from fouriscope.forward import ForwardModel
from fouriscope.metrics import field_nrmse
from fouriscope.optics import LEDArray
from fouriscope.run import Result
from fouriscope.simulation import Camera, simulate

FRAME = 64


@dataclass(frozen=True, eq=False)
class Task:
    """Frames, and the field that made them.

    Parameters
    ----------
    data
        What is reconstructed.
    truth
        The complex field, of the whole of which the frames show the middle part (all of it, if ``data`` is periodic).
    complex
        Whether the sample absorbs, or the microscope is not known exactly: a phase alone explains no frame.
    free
        Whether the place of the object is free, because the pupil is not known.
    """

    data: Acquisition
    truth: NDArray[Any]
    complex: bool = False
    free: bool = False

    def error(self, result: Result) -> float:
        """The error of what a run has found."""
        return self.error_of(result.transmittance)

    def error_of(self, field: NDArray[Any]) -> float:
        """NRMSE of the field in the band of the LEDs, after the best factor (and shift, if that is free).

        All are compared on the smallest grid that holds the band: a wave has no other frequencies. Of a field that goes
        on beyond its frames, the centre counts.
        """
        data = self.data
        grid = ForwardModel(data.optics, data.illumination, data.frame_shape, object="wave").object_shape
        found = resampled(field, grid)
        if data.periodic:
            truth = resampled(self.truth, grid)
            plain = field_nrmse(found, truth)
            return min(plain, field_nrmse(fields.registered(found, truth), truth)) if self.free else plain
        truth = resampled(self.truth, tuple(2 * n for n in grid))
        truth = truth[tuple(slice(n // 2, n // 2 + n) for n in grid)]
        inner = tuple(slice(n // 4, n - n // 4) for n in grid)
        return field_nrmse(found[inner], truth[inner])


def tasks() -> dict[str, Task]:
    electrons = Camera(photons=2000, read_noise=2, offset=100)
    few = Camera(photons=200, read_noise=2, offset=100)
    pupil, told = fields.unknown_pupil(whole_bins=False), fields.known_pupil()
    beyond = fields.beyond_the_frame(fields.ELECTRONS)
    known = fields.exposed(told.frames, fields.ELECTRONS)
    whole = beyond.lens
    return {
        "phase, white 40 dB": _phase(0.3, snr_db=40.0),
        "phase, white 30 dB": _phase(0.3, snr_db=30.0),
        "phase of 1 rad, white 40 dB": _phase(1.0, snr_db=40.0),
        "phase of 9 rad, 2,000 electrons": _phase(9.0, smooth=True, camera=electrons),
        "phase, 2,000 electrons": _phase(0.3, camera=electrons),
        "phase, 200 electrons": _phase(0.3, camera=few),
        "phase, 81 LEDs": _phase(0.3, LEDArray.square(9, pitch=6e-3, height=70e-3), camera=electrons),
        "phase, 1,005 LEDs": _phase(0.3, LEDArray.disc(2.15e-3, 70e-3, 17.9), camera=electrons),
        "complex": Task(
            replace(replace(told, frames=known).acquisition(periodic=True), pupil=told.lens.pupil), told.truth, True
        ),
        "complex, unknown pupil": Task(pupil.acquisition(periodic=True), pupil.truth, True, free=True),
        "complex, unknown pupil, every second LED": Task(
            every_second_led(pupil).acquisition(periodic=True), pupil.truth, True, free=True
        ),
        "complex, cropped": Task(beyond.acquisition(periodic=False), whole.transmittance(fields.sample(whole)), True),
    }


def _phase(rad: float, array: LEDArray | None = None, *, smooth: bool = False, **noise: Any) -> Task:
    model = ForwardModel(optics(), leds() if array is None else array, (FRAME, FRAME))
    truth = phase("camera", model.object_shape, rad)
    if smooth:
        from scipy.ndimage import gaussian_filter

        truth = gaussian_filter(truth, 6, mode="wrap")
    data = simulate(model, truth, noise="stack", seed=0, **noise)
    return Task(replace(data, truth=None), np.exp(1j * truth))  # nobody knows it


def resampled(field: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A periodic field on another grid: frequencies beyond the coarser one are left out."""
    if field.shape == shape:
        return field
    spectrum, out = np.fft.fftshift(np.fft.fft2(field)), np.zeros(shape, np.complex128)
    common = [min(pair) for pair in zip(field.shape, shape, strict=True)]
    source, target = (
        tuple(slice(n // 2 - c // 2, n // 2 - c // 2 + c) for n, c in zip(sizes, common, strict=True))
        for sizes in (field.shape, shape)
    )
    out[target] = spectrum[source]
    return np.asarray(np.fft.ifft2(np.fft.ifftshift(out)) * (out.size / field.size))
