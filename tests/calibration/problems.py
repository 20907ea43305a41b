"""A small microscope that is not quite as described, and a solver beside which a calibration can work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration import Calibration, Calibrator
from fouriscope.fidelity import DataFidelity, StratifiedSampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import NoPrior
from fouriscope.solvers import PnP
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)
FRAME = (32, 32)


def model_of(**options: Any) -> ForwardModel:
    given: dict[str, Any] = {"illumination": LEDS, "frame_shape": FRAME, "object": "complex"} | options
    return ForwardModel(OPTICS, **given)


def smooth_x(model: ForwardModel, seed: int = 0) -> NDArray[Any]:
    """Phase and absorption with detail within the synthetic aperture only, periodic, without symmetry."""
    rng = np.random.default_rng(seed)
    rows, columns = (np.fft.fftfreq(size, 1 / size) for size in model.object_shape)
    radius = np.hypot(rows[:, None], columns[None, :])
    reach = 0.4 * model.synthetic_na / model.optics.wavelength / model.geometry.frequency_step[0]
    spectrum = np.exp(-((radius / reach) ** 2)) / (1 + radius)
    images = [np.fft.ifft2(np.fft.fft2(rng.standard_normal(model.object_shape)) * spectrum).real for _ in range(2)]
    phase, absorption = ((image - image.min()) / np.ptp(image) for image in images)
    return np.stack([1.5 * phase, 0.5 * absorption]).astype(model.dtype)


def fidelity_of(lens: ForwardModel, believed: ForwardModel, *, photons: float | None = None) -> DataFidelity:
    """Frames as ``lens`` makes them, to be explained by ``believed``."""
    frames = lens.intensity(smooth_x(lens))
    if photons is not None:
        frames = (np.random.default_rng(1).poisson(frames * photons) / photons).astype(frames.dtype)
    return DataFidelity(believed, frames, loss="amplitude" if photons is None else "poisson")


def solver_of(fidelity: DataFidelity, *calibrators: Calibrator, batch: int = 20) -> PnP:
    bright = fidelity.model.geometry.bright_field
    sampler = StratifiedSampler(np.arange(len(fidelity)), batch, bright)
    solver = PnP(fidelity, sampler, [NoPrior(), NoPrior()], acceleration=False)
    solver.calibration = Calibration(calibrators) if calibrators else None
    return solver
