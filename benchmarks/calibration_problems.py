"""Simulated acquisitions whose microscope is not quite as believed: an unknown pupil, a field that goes on beyond its
frames, a displaced array. Every truth lies within the synthetic aperture, so that an error of 0 is possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import microscope
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.forward import ForwardModel
from fouriscope.metrics import field_nrmse
from fouriscope.optics import LEDArray, Pupil
from fouriscope.optics.zernike_polynomials import noll_to_nm, zernike

FRAME, ZOOM = 64, 4
ELECTRONS = 2000.0  # in bright field, each electron a count of Poisson's
ABERRATIONS = Pupil({5: 0.3, 6: -0.2, 7: 0.25, 8: -0.2, 11: 0.3}, defocus=15e-6)
DISPLACEMENT = (2.0e-3, -1.5e-3)

Field = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """Frames, the microscope that took them (``lens``), the one believed in (``model``), and the field in the frames.

    ``free`` tells whether the place of the object is free: an unknown pupil may hold a tilt, which is a shift.
    """

    lens: ForwardModel
    model: ForwardModel
    frames: NDArray[Any]
    truth: Field
    free: bool = False

    def acquisition(self, *, periodic: bool) -> Acquisition:
        """What somebody would reconstruct who believes ``model``."""
        return Acquisition(self.model.optics, self.model.illumination, ArrayFrames(self.frames), periodic=periodic)

    def error(self, field: Field) -> float:
        """NRMSE of ``field`` in the frames' window, after the best complex factor and, if free, the best shift."""
        plain = field_nrmse(field, self.truth)
        return min(plain, field_nrmse(registered(field, self.truth), self.truth)) if self.free else plain

    def centre_error(self, field: Field) -> float:
        """The same on the inner half of each side, where the border's light does not reach."""
        inner = tuple(slice(size // 4, size - size // 4) for size in self.truth.shape)
        return field_nrmse(field[inner], self.truth[inner])


def unknown_pupil(*, whole_bins: bool) -> Problem:
    """Defocus, astigmatism, coma and spherical aberration that nobody has told; a periodic field.

    With ``whole_bins`` the directions are rounded to the frame's frequency bins, in the simulation too: all that a
    method can model which crops the spectrum at whole bins.
    """
    leds = on_whole_bins(microscope.leds()) if whole_bins else microscope.leds()
    lens, model = (_model(leds, FRAME, pupil) for pupil in (ABERRATIONS, None))
    x = sample(lens)
    return Problem(lens, model, exposed(lens.intensity(x), ELECTRONS), lens.transmittance(x), free=True)


def known_pupil() -> Problem:
    """The same aberrations, told, on whole bins and without noise: what any method should solve."""
    lens = _model(on_whole_bins(microscope.leds()), FRAME, ABERRATIONS)
    x = sample(lens)
    return Problem(lens, lens, exposed(lens.intensity(x), None), lens.transmittance(x))


def beyond_the_frame(electrons: float | None) -> Problem:
    """The middle of a field of four times the area: light comes in over every border, and nothing is periodic."""
    whole = _model(microscope.leds(), 2 * FRAME)
    x = sample(whole)
    quarter, fine = FRAME // 2, FRAME // 2 * ZOOM
    frames = np.ascontiguousarray(whole.intensity(x)[:, quarter:-quarter, quarter:-quarter])
    model = _model(microscope.leds(), FRAME)
    truth = whole.transmittance(x)[fine:-fine, fine:-fine]
    return Problem(whole, model, exposed(frames, electrons), truth)


def displaced_array() -> Problem:
    """The array lies (2.0, −1.5) mm from where it is believed to be; a periodic field, and a clear pupil."""
    leds = microscope.leds()
    lens, model = _model(replace(leds, offset=DISPLACEMENT), FRAME), _model(leds, FRAME)
    x = sample(lens)
    return Problem(lens, model, exposed(lens.intensity(x), ELECTRONS), lens.transmittance(x))


def on_whole_bins(leds: LEDArray) -> LEDArray:
    geometry = _model(leds, FRAME).geometry
    na = geometry.whole_bins * np.asarray(geometry.frequency_step) * geometry.optics.wavelength
    return LEDArray.from_directions(na, leds.height)


def sample(model: ForwardModel) -> NDArray[Any]:
    """(phase, absorption): the cameraman up to 1 rad, coins down to 0.6 in amplitude, detail up to every border; its
    spectrum fades away just within the synthetic aperture."""
    from skimage import data
    from skimage.transform import resize

    camera, coins = (
        resize(np.asarray(getattr(data, name)(), float), model.object_shape, anti_aliasing=True)
        for name in ("camera", "coins")
    )
    field = (0.6 + 0.4 * coins / coins.max()) * np.exp(1j * (camera - camera.min()) / np.ptp(camera))
    steps = np.asarray(model.geometry.frequency_step) * model.optics.wavelength / model.synthetic_na
    rows, columns = (np.fft.fftfreq(n, 1 / n) * step for n, step in zip(model.object_shape, steps, strict=True))
    fade = np.clip((0.98 - np.hypot(rows[:, None], columns)) / 0.2, 0, 1)
    field = np.fft.ifft2(np.fft.fft2(field) * np.sin(np.pi / 2 * fade) ** 2)
    return np.stack([np.angle(field), -np.log(np.abs(field))]).astype(np.float32)


def exposed(intensity: NDArray[Any], electrons: float | None) -> NDArray[np.float32]:
    """Poisson noise at so many electrons in bright field; none without a number."""
    if electrons is None:
        return np.asarray(intensity, np.float32)
    return (np.random.default_rng(0).poisson(intensity * electrons) / electrons).astype(np.float32)


def registered(field: Field, truth: Field) -> Field:
    """``field`` moved, by fractions of a pixel, to where it agrees best with ``truth``."""
    from scipy.optimize import minimize

    spectrum = np.fft.fft2(field)
    product = np.conj(spectrum) * np.fft.fft2(truth)
    rows, columns = np.fft.fftfreq(field.shape[0])[:, None], np.fft.fftfreq(field.shape[1])

    def ramp(shift: NDArray[np.float64]) -> Field:
        return np.asarray(np.exp(2j * np.pi * (rows * shift[0] + columns * shift[1])))

    peak = np.unravel_index(np.abs(np.fft.ifft2(product)).argmax(), field.shape)
    start = [k - n if k > n // 2 else k for k, n in zip(peak, field.shape, strict=True)]
    found = minimize(
        lambda shift: -abs(np.sum(product * np.conj(ramp(shift)))),
        start if max(map(abs, start)) <= 5 else [0, 0],
        method="Nelder-Mead",
        options={"xatol": 1e-4, "fatol": 1e-9},
    )
    return np.asarray(np.fft.ifft2(spectrum * ramp(found.x)))


def pupil_error(problem: Problem, pupil: NDArray[Any]) -> float:
    """Root of the summed squares, in rad, of what Zernike coefficients 4 to 15 lack beside the truth's.

    ``pupil`` lies on the frame's frequency grid with zero frequency in the middle. Its phase is compared with the
    true one where both are, so that nothing needs to be unwrapped; piston and tilts are fitted and do not count.
    """
    true = on_frame_grid(problem.lens)
    fy, fx = _frequencies(problem.lens)
    inside = np.hypot(fy, fx) <= problem.lens.optics.cutoff
    difference = (pupil * np.conj(true))[inside]
    difference = np.angle(difference * np.exp(-1j * np.angle(difference.sum())))
    rho, theta = np.hypot(fy, fx)[inside] / problem.lens.optics.cutoff, np.arctan2(fy, fx)[inside]
    modes = np.stack([zernike(*noll_to_nm(j), rho, theta) for j in range(1, 16)], axis=1)
    return float(np.linalg.norm(np.linalg.lstsq(modes, difference, rcond=None)[0][3:]))


def on_frame_grid(model: ForwardModel) -> NDArray[np.complex128]:
    """The model's pupil for light along the axis, zero frequency in the middle."""
    return model.pupil.evaluate(*_frequencies(model), model.optics, model.geometry.frequency_step)


def _frequencies(model: ForwardModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows, columns = (
        (np.arange(n) - n // 2) * step
        for n, step in zip(model.geometry.grid_shape, model.geometry.frequency_step, strict=True)
    )
    fy, fx = np.meshgrid(rows, columns, indexing="ij")
    return fy, fx


def _model(leds: LEDArray, frame: int, pupil: Pupil | None = None, margin: int = 0) -> ForwardModel:
    side = ZOOM * (frame + 2 * margin)
    return ForwardModel(
        microscope.optics(),
        leds,
        (frame, frame),
        pupil=pupil,
        object="complex",
        object_shape=(side, side),
        margin=margin,
    )


def with_margin(model: ForwardModel, margin: int) -> ForwardModel:
    """The same microscope, with so many frame pixels estimated beyond every border."""
    assert isinstance(model.illumination, LEDArray)
    return _model(model.illumination, model.frame_shape[0], model.pupil, margin)
