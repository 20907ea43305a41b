"""PtyLab, as a rival: the same frames in its conventions, its engines with settings of our choice, its field in ours.

It crops the object's spectrum at whole frequency bins and takes the field to be periodic; nothing else is possible
there. What would hold it back without need is taken away: the pupil starts as the exact disc, where its own lies half a
bin beside the middle, and the window that bounds the pupil is a bin wider for the same reason.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration_problems import Problem, on_frame_grid
from benchmarks.calibration_runs import PASSES, Run
from fouriscope.optics import LEDArray

# Bins by which the window around the pupil is wider than the disc.
SLACK = 1.0


def is_here() -> bool:
    """Whether it can be imported; says so if not."""
    if find_spec("PtyLab") is None:
        print("PtyLab cannot be imported: its rows are left out; pip install -e '.[bench]' brings it\n")
        return False
    return True


@dataclass(frozen=True)
class Stage:
    """Passes with one engine ("ePIE", "mPIE") and its settings, such as betaObject."""

    engine: str
    passes: int
    settings: dict[str, float] = field(default_factory=dict)
    weigh_by_intensity: bool = False  # mPIE: bright frames move the pupil more than dark ones


class PtyLabRun:
    """One reconstruction, stage after stage, from the start that PtyLab makes of the mean frame."""

    def __init__(self, problem: Problem) -> None:
        import PtyLab

        model, leds = problem.model, problem.model.illumination
        assert isinstance(leds, LEDArray)
        np.random.seed(0)  # noqa: NPY002 - PtyLab draws from the global generator
        data = PtyLab.ExperimentalData(None, "FPM")
        data.ptychogram = np.asarray(problem.frames, np.float32)
        data.encoder = leds.positions + np.asarray(leds.offset)  # no array here is turned, and none is under glass
        data.zled, data.wavelength, data.NA = leds.height, model.optics.wavelength, model.optics.na
        data.dxd, data.magnification = model.optics.camera_pixel, model.optics.magnification
        data._setData()
        self.params = PtyLab.Params()
        self.params.gpuSwitch = False
        self.data, self.passes = data, 0
        self.found = PtyLab.Reconstruction(data, self.params)
        self.found.No = model.object_shape[0]
        self.found.initializeObjectProbe()
        self.found.probe = _reversed(on_frame_grid(model)).astype(np.complex64)[None, None, None, None]
        radius = model.optics.cutoff / model.geometry.frequency_step[0] + SLACK
        data.entrancePupilDiameter = 2 * radius * self.found.dxp
        self.params.positionOrder, self.params.probeBoundary = "NA", True  # as easyInitialize sets them for FPM

    def run(self, stage: Stage, after_pass: Callable[[int], object] | None = None) -> None:
        """Run ``stage``; ``after_pass`` hears how many passes there have been."""
        from PtyLab import DummyMonitor, Engines

        engine = getattr(Engines, stage.engine)(self.found, self.data, self.params, DummyMonitor())
        self.params.weigh_probe_updates_by_intensity = stage.weigh_by_intensity
        engine.numIterations = stage.passes
        for name, value in stage.settings.items():
            setattr(engine, name, value)

        def shown(loop: int, force: bool = False) -> None:
            self.passes += 1
            if after_pass is not None:
                after_pass(self.passes)

        engine.showReconstruction = shown
        silence = io.StringIO()
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), np.errstate(all="ignore"):
            engine.reconstruct()

    def field(self) -> NDArray[Any]:
        """The object. Its spectrum is kept reversed, such that a forward transform leads to the image."""
        spectrum = np.fft.ifftshift(self.found.object[0, 0, 0, 0])
        return np.asarray(np.fft.fftshift(np.fft.fft2(spectrum)))

    def pupil(self) -> NDArray[Any]:
        """The pupil on the frame's grid, zero frequency in the middle: reversed like the spectrum."""
        return _reversed(self.found.probe[0, 0, 0, 0])


def ptylab(problem: Problem, stages: Sequence[Stage], passes: Sequence[int] = PASSES) -> Run:
    """The errors of PtyLab's field after ``passes``; infinite where it has diverged."""
    run, peer = Run(), PtyLabRun(problem)

    def see(count: int) -> None:
        if count in passes:
            found = peer.field()
            if np.isfinite(found).all():
                run.note(count, problem, found)
            else:
                run.errors[count] = run.centre[count] = float("inf")

    for stage in stages:
        peer.run(stage, see)
    run.pupil = peer.pupil()
    return run


def _reversed(pupil: NDArray[Any]) -> NDArray[Any]:
    """P(−f) on a grid with zero frequency in the middle."""
    return np.asarray(np.fft.fftshift(np.roll(np.fft.ifftshift(pupil)[::-1, ::-1], (1, 1), (0, 1))))
