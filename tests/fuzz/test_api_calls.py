"""Wrong calls of the Python API: one argument of a valid call is replaced by something that does not belong there.

A call is in order if it ends in an error that fouriscope raises itself and that names the argument, or if it is
harmless: it returns, what it returned can be used, and every number in it is finite.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

import fouriscope as fs
from fouriscope.acquisition import (
    ArrayFrames,
    ArrivingFrames,
    CalibratedFrames,
    CorrectedFrames,
    Corrections,
    FrameMasks,
    StreamedFrames,
    find_bad_pixels,
    survey_frames,
)
from fouriscope.errors import FouriscopeError

CALLS, SEED, BAR = 1200, 15, 0.99
PACKAGE = str(Path(fs.__file__).parent)
ROOM = 2**30
LIMIT = 10  # seconds

OPTICS = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = fs.LEDArray.square(3, pitch=4e-3, height=70e-3)
MODEL = fs.ForwardModel(OPTICS, LEDS, (16, 16))
WAVE_MODEL = fs.ForwardModel(OPTICS, LEDS, (16, 16), object="wave")
X = np.zeros(MODEL.object_shape, np.float32)
STACK = np.random.default_rng(0).random((9, 16, 16), np.float32) + 0.5
DATA = fs.Acquisition(OPTICS, LEDS, ArrayFrames(STACK), periodic=True)
FIDELITY = fs.DataFidelity(MODEL, STACK)
WAVE = fs.DataFidelity(WAVE_MODEL, STACK, loss="amplitude")
EVERY = np.arange(9)
SAMPLER = fs.UniformSampler(EVERY, 4)
RNG = np.random.default_rng(1)
IMAGE = RNG.random((16, 16))
FRC = fs.metrics.fourier_ring_correlation(IMAGE, IMAGE + 0.1 * RNG.random((16, 16)))

# What one argument is replaced by. Each is wrong for most arguments; where it is right, the call is simply valid.
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "text": lambda: "nonsense",
    "no text": lambda: "",
    "bytes": lambda: b"abc",
    "an object": object,
    "a class": lambda: int,
    "a function": lambda: lambda *_: None,
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "half": lambda: 0.5,
    "huge": lambda: 1e300,
    "huge int": lambda: 10**30,
    "complex": lambda: 1 + 2j,
    "empty list": list,
    "empty dict": dict,
    "list of text": lambda: ["a", "b"],
    "nested": lambda: [[1, 2], [3]],
    "empty": lambda: np.empty(0),
    "0-d": lambda: np.array(3.0),
    "three": lambda: np.ones(3),
    "four-d": lambda: np.ones((2, 2, 2, 2)),
    "wrong shape": lambda: np.ones((5, 7), np.float32),
    "text array": lambda: np.array(["a", "b"]),
    "objects": lambda: np.array([None, 1, "x"], object),
    "NaN array": lambda: np.full((16, 16), np.nan),
    "complex array": lambda: np.ones((16, 16), complex),
    "bool array": lambda: np.ones((16, 16), bool),
    "negative array": lambda: np.full(9, -1.0),
}


def solved(solver: Any) -> Any:
    solver.solve(fs.Iterations(1))
    return solver.x


def denoised(prior: Any) -> Any:
    return prior.denoise(IMAGE, 0.1)


class Call(NamedTuple):
    function: Callable[..., Any]
    arguments: dict[str, Any]
    use: Callable[[Any], Any] = lambda value: value


def _calls(folder: Path) -> dict[str, Call]:
    np.save(folder / "stack.npy", STACK)
    common = {"rotation": 0.1, "offset": (0.0, 0.0), "slide": fs.GlassSlide(1e-3, 1.5)}
    directions = {"use": lambda leds: leds.directions()}
    solver: dict[str, Any] = {"fidelity": FIDELITY, "sampler": SAMPLER, "priors": [fs.TV()]}
    begin: dict[str, Any] = {"start": "flat", "seed": 0, "truth": None, "step": "auto", "acceleration": True}
    result = fs.reconstruct(DATA, iterations=1, align=(), calibrate=())
    minibatch = {"leds": np.arange(3), "weights": np.ones(3), "size": 3}
    priors: dict[str, tuple[Any, dict[str, Any]]] = {
        "L1": (fs.L1, {"strength": 0.1}),
        "Box": (fs.Box, {"lower": 0.0, "upper": 1.0}),
        "TV": (fs.TV, {"strength": 0.1, "isotropic": True, "accuracy": 0.05, "max_iterations": 10}),
        "NLM": (fs.NLM, {"strength": 0.1, "patch_size": 3, "patch_distance": 3, "h_factor": 0.6}),
        "Wavelet": (fs.Wavelet, {"strength": 0.1, "wavelet": "sym4", "mode": "soft", "levels": 1}),
        "SmallCNN": (fs.SmallCNN, {"strength": 0.1, "weights": "shipped"}),
        "BM3D": (fs.BM3D, {"strength": 0.1, "profile": "normal", "stages": "both", "rematch_every": 2}),
    }
    return {
        "Optics": Call(
            fs.Optics,
            {"wavelength": 5e-7, "na": 0.2, "magnification": 8.0, "camera_pixel": 6e-6, "medium_index": 1.0},
            lambda optics: (optics.pixel, optics.cutoff),
        ),
        "Optics.passes": Call(OPTICS.passes, {"na": np.ones(3)}),
        "GlassSlide": Call(fs.GlassSlide, {"thickness": 1e-3, "index": 1.5}, lambda s: (s.thickness, s.index)),
        "LEDArray.at": Call(fs.LEDArray.at, {"positions": LEDS.positions, "height": 0.07, **common}, **directions),
        "LEDArray": Call(fs.LEDArray, {"positions": LEDS.positions, "height": 0.07, **common}, **directions),
        "LEDArray.square": Call(
            fs.LEDArray.square, {"shape": (3, 3), "pitch": 4e-3, "height": 0.07, **common}, **directions
        ),
        "LEDArray.disc": Call(fs.LEDArray.disc, {"pitch": 4e-3, "height": 0.07, "radius": 2.0, **common}, **directions),
        "LEDArray.spiral": Call(
            fs.LEDArray.spiral,
            {"size": 3, "pitch": 4e-3, "height": 0.07, "count": 5, "start": "right", "clockwise": True, **common},
            **directions,
        ),
        "LEDArray.rings": Call(
            fs.LEDArray.rings,
            {"radii": [0.0, 0.01], "counts": [1, 6], "height": 0.07, "start_angle": 0.0, **common},
            **directions,
        ),
        "LEDArray.directions": Call(LEDS.directions, {"patch_center": (0.0, 0.0)}),
        "LEDArray.subset": Call(LEDS.subset, {"indices": [0, 1]}, **directions),
        "LEDArray.from_directions": Call(
            fs.LEDArray.from_directions, {"na": LEDS.directions(), "height": 1.0}, **directions
        ),
        "LEDArray.moved": Call(
            LEDS.moved, {"shift": (0.0, 0.0), "turn": 0.0, "height": 1.0, "pitch": 1.0}, **directions
        ),
        "Directions": Call(fs.Directions, {"na": LEDS.directions(), "height": 0.07}, **directions),
        "Pupil": Call(
            fs.Pupil,
            {"zernike": {4: 0.1}, "defocus": 1e-6, "array": np.ones((16, 16), complex)},
            lambda pupil: fs.ForwardModel(OPTICS, LEDS, (16, 16), pupil=pupil).intensity(X),
        ),
        "ForwardModel": Call(
            fs.ForwardModel,
            {
                "optics": OPTICS,
                "illumination": LEDS,
                "frame_shape": (16, 16),
                "pupil": fs.Pupil(),
                "object": "phase",
                "object_shape": MODEL.object_shape,
                "margin": 0,
                "patch_center": (0.0, 0.0),
                "gains": np.ones(9),
                "dtype": np.float32,
            },
            lambda model: model.intensity(np.zeros(model.x_shape, model.dtype)),
        ),
        "ForwardModel.intensity": Call(MODEL.intensity, {"x": X, "leds": [0, 1]}),
        "ForwardModel.field": Call(MODEL.field, {"x": X, "leds": [0, 1]}),
        "ForwardModel.transmittance": Call(MODEL.transmittance, {"x": X}),
        "ForwardModel.apply": Call(MODEL.apply, {"transmittance": np.ones(X.shape, np.complex64), "leds": [0]}),
        "ForwardModel.adjoint": Call(MODEL.adjoint, {"fields": np.ones((1, 16, 16), np.complex64), "leds": [0]}),
        "ForwardModel.spectrum": Call(MODEL.spectrum, {"transmittance": np.ones(X.shape, np.complex64)}),
        "ForwardModel.inverse_spectrum": Call(MODEL.inverse_spectrum, {"spectrum": np.ones(X.shape, np.complex64)}),
        "ForwardModel.coverage": Call(MODEL.coverage, {"leds": [0, 1], "weights": np.ones(2)}),
        "ForwardModel.led_indices": Call(MODEL.led_indices, {"leds": [0, 1]}),
        "ForwardModel.pull_back": Call(
            MODEL.pull_back,
            {"transmittance": np.ones(X.shape, np.complex64), "derivative": np.ones(X.shape, np.complex64)},
        ),
        "ForwardModel.revised": Call(
            MODEL.revised,
            {"pupil": fs.Pupil(), "illumination": LEDS, "gains": np.ones(9)},
            lambda model: model.intensity(X),
        ),
        "Acquisition": Call(
            fs.Acquisition,
            {
                "optics": OPTICS,
                "illumination": LEDS,
                "frames": STACK,
                "pupil": fs.Pupil(),
                "patch_center": (0.0, 0.0),
                "weights": np.ones(9),
                "mask": np.ones((16, 16)),
                "gains": np.ones(9),
                "truth": None,
            },
            lambda data: (data.check_frames(), repr(data), fs.DataFidelity.of(data, MODEL).value(X)),
        ),
        "Acquisition.check_frames": Call(DATA.check_frames, {"watch": lambda *_: None}),
        "ArrayFrames": Call(ArrayFrames, {"array": STACK}, lambda frames: frames[0]),
        "ArrivingFrames": Call(ArrivingFrames, {"shape": (9, 16, 16)}, len),
        "ArrivingFrames.add": Call(ArrivingFrames((9, 16, 16)).add, {"frame": STACK[0], "led": 0}),
        "CalibratedFrames": Call(
            CalibratedFrames, {"frames": ArrayFrames(STACK), "offset": 0.0, "gain": 1.0}, lambda frames: frames[0]
        ),
        "StreamedFrames": Call(StreamedFrames, {"frames": ArrayFrames(STACK), "memory": "1MB"}, lambda f: f[0]),
        "FrameMasks": Call(
            FrameMasks,
            {"frames": ArrayFrames(STACK), "saturation": 10.0, "good": np.ones((16, 16))},
            lambda masks: masks[0],
        ),
        "CorrectedFrames": Call(
            CorrectedFrames, {"frames": ArrayFrames(STACK), "corrections": Corrections()}, lambda f: f[0]
        ),
        "find_bad_pixels": Call(find_bad_pixels, {"frames": ArrayFrames(STACK)}),
        "survey_frames": Call(survey_frames, {"frames": ArrayFrames(STACK)}, lambda survey: survey.mean),
        "open_frames": Call(
            fs.open_frames,
            {
                "path": folder / "stack.npy",
                "kind": "npy",
                "dataset": None,
                "axes": "nyx",
                "roi": (0, 0, 8, 8),
                "amplitude": False,
                "power": 1.0,
                "bit_shift": 0,
                "memory": "1MB",
            },
            lambda frames: frames[0],
        ),
        "frames[…]": Call(lambda index: ArrayFrames(STACK)[index], {"index": 0}),
        "DataFidelity": Call(
            fs.DataFidelity,
            {
                "model": MODEL,
                "frames": STACK,
                "loss": "intensity",
                "weights": np.ones(9),
                "mask": np.ones((16, 16), bool),
            },
            lambda fidelity: fidelity.gradient(X),
        ),
        "DataFidelity.of": Call(
            fs.DataFidelity.of, {"acquisition": DATA, "model": MODEL, "loss": "intensity"}, lambda f: f.value(X)
        ),
        "DataFidelity.value": Call(FIDELITY.value, {"x": X, "leds": [0, 1]}),
        "DataFidelity.gradient": Call(FIDELITY.gradient, {"x": X, "leds": [0, 1], "observer": None}),
        "DataFidelity.misfits": Call(FIDELITY.misfits, {"x": X, "leds": [0, 1]}),
        "DataFidelity.mask_of": Call(FIDELITY.mask_of, {"led": 0}),
        "PoissonLoss": Call(
            fs.PoissonLoss, {"background": 0.01}, lambda loss: fs.DataFidelity(MODEL, STACK, loss=loss).value(X)
        ),
        "Minibatch": Call(fs.Minibatch, minibatch, _drawn),
        "AllLEDs": Call(fs.AllLEDs, {"population": EVERY}, _drawn),
        "UniformSampler": Call(fs.UniformSampler, {"population": EVERY, "batch": 4}, _drawn),
        "EpochSampler": Call(fs.EpochSampler, {"population": EVERY, "batch": 4}, _drawn),
        "FixedSubset": Call(fs.FixedSubset, {"population": EVERY, "batch": 4, "rng": RNG}, _drawn),
        "StratifiedSampler": Call(
            fs.StratifiedSampler, {"population": EVERY, "batch": 4, "bright_field": np.arange(9) < 5}, _drawn
        ),
        "PnP": Call(fs.PnP, solver | begin | {"steps_per_denoising": 1}, solved),
        "ADMM": Call(fs.ADMM, solver | begin | {"data_steps": 2, "restart": True}, solved),
        "RED": Call(fs.RED, solver | begin | {"denoiser_weight": 0.25}, solved),
        "Spectral": Call(
            fs.Spectral,
            solver | begin | {"fidelity": WAVE, "priors": [fs.TV(), fs.TV()], "denoiser_weight": 1.0, "balance": True},
            solved,
        ),
        "EPRY": Call(
            fs.EPRY,
            {
                "fidelity": FIDELITY,
                "sampler": SAMPLER,
                "order": "random",
                "object_step": 1.0,
                "pupil_step": 0.0,
                "pupil_start": 1,
                "decay": 0.0,
                "start": "flat",
                "seed": 0,
                "truth": None,
            },
            solved,
        ),
        "solve": Call(
            lambda stop, callbacks: fs.PnP(FIDELITY, SAMPLER, [fs.TV()]).solve(stop, callbacks),
            {"stop": fs.Iterations(1), "callbacks": []},
            len,
        ),
        "Iterations": Call(fs.Iterations, {"count": 1}, lambda stop: 0 if stop.count > 10**6 else _stopped(stop)),
        "Seconds": Call(fs.Seconds, {"limit": 0.01}, lambda stop: 0 if stop.limit > 1 else _stopped(stop)),
        "Residual": Call(
            fs.Residual,
            {"tolerance": 0.1, "window": 2},
            lambda stop: _stopped(stop | fs.Iterations(3)),
        ),
        **{name: Call(kind, keys, denoised) for name, (kind, keys) in priors.items()},
        **{
            f"{name}.denoise": Call(kind(**keys).denoise, {"image": IMAGE, "sigma": 0.1})
            for name, (kind, keys) in priors.items()
        },
        "Camera": Call(
            fs.Camera,
            {"photons": 1000.0, "read_noise": 1.0, "offset": 10.0, "bits": 12, "full_well": 5000.0},
            lambda camera: camera.expose(IMAGE, np.random.default_rng(0)),
        ),
        "Camera.expose": Call(fs.Camera(1000.0).expose, {"intensity": IMAGE, "rng": RNG}),
        "simulate": Call(
            fs.simulate,
            {
                "model": MODEL,
                "truth": X,
                "snr_db": 30.0,
                "noise": "stack",
                "camera": None,
                "led_intensity_error": 0.0,
                "led_position_error": 0.0,
                "seed": 0,
            },
            lambda data: data.frames[0],
        ),
        "check_adjoint": Call(fs.check_adjoint, {"model": MODEL, "leds": [0], "seed": 0}),
        "check_gradient": Call(
            fs.check_gradient,
            {
                "value": lambda x: float(np.sum(x**2)),
                "gradient": lambda x: 2 * x,
                "x": np.ones(4),
                "seed": 0,
                "epsilon": 1e-5,
                "directions": 1,
            },
        ),
        "reconstruct": Call(
            fs.reconstruct,
            {
                "data": DATA,
                "method": "pnp",
                "prior": "tv",
                "prior_absorption": None,
                "object": "phase",
                "loss": "intensity",
                "batch": 4,
                "align": (),
                "calibrate": (),
                "start": "flat",
                "iterations": 1,
                "stop": None,
                "seed": 0,
                "callbacks": (),
            },
            lambda result: result.phase,
        ),
        "align": Call(
            fs.align,
            {
                "acquisition": DATA,
                "circles": False,
                "exposure": False,
                "focus": False,
                "na": False,
                "array": False,
                "edge": False,
                "focus_reach": 1e-4,
                "motions": ("shift",),
                "tell": None,
            },
        ),
        "tune": Call(
            fs.tune,
            {
                "data": DATA,
                "criterion": None,
                "held_out": 1,
                "evaluations": 1,
                "factor": 8.0,
                "on_trial": None,
                "callbacks": (),
                "iterations": 1,
                "batch": 4,
                "align": (),
                "calibrate": (),
            },
        ),
        "stream": Call(
            fs.stream,
            {
                "optics": OPTICS,
                "illumination": LEDS,
                "frame_shape": (16, 16),
                "pupil": fs.Pupil(),
                "patch_center": (0.0, 0.0),
                "weights": np.ones(9),
                "mask": np.ones((16, 16), bool),
                "truth": None,
                "batch": 4,
            },
        ),
        "LiveReconstruction.add": Call(
            fs.stream(OPTICS, LEDS, (16, 16), periodic=True).add, {"frame": STACK[0], "led": 0}
        ),
        "load": Call(
            fs.load,
            {
                "path": folder / "stack.npy",
                "microscope": {"wavelength": 513e-9, "na": 0.2, "magnification": 8.0, "camera_pixel": 6.5e-6},
                "illumination": {"kind": "square", "shape": [3, 3], "pitch": 4e-3, "height": 0.07},
            },
            len,
        ),
        "Result.load": Call(fs.Result.load, {"path": folder / "nowhere"}),
        "Result.snr": Call(result.snr, {"truth": result.phase + 0.1}),
        "RunFolder.open": Call(fs.RunFolder.open, {"path": folder / "nowhere"}),
        "settings.PnP": Call(fs.settings.PnP, {"batch": 4, "seed": 0, "step": "auto"}),
        "settings.Stop": Call(fs.settings.Stop, {"iterations": 4, "seconds": 1.0, "residual": 0.1}),
        "metrics.snr": Call(fs.metrics.snr, {"estimate": IMAGE, "truth": IMAGE + 1, "align": False}),
        "metrics.snr_both": Call(fs.metrics.snr_both, {"estimate": IMAGE, "truth": 1 + IMAGE * 2}),
        "metrics.psnr": Call(
            fs.metrics.psnr, {"estimate": IMAGE * 2, "truth": IMAGE, "data_range": 1.0, "align": False}
        ),
        "metrics.ssim": Call(
            fs.metrics.ssim, {"estimate": IMAGE * 2, "truth": IMAGE, "data_range": 1.0, "align": False}
        ),
        "metrics.field_nrmse": Call(fs.metrics.field_nrmse, {"estimate": IMAGE * 2, "truth": IMAGE}),
        "metrics.wrap": Call(fs.metrics.wrap, {"phase": IMAGE}),
        "metrics.phase_difference": Call(fs.metrics.phase_difference, {"a": IMAGE, "b": IMAGE}),
        "metrics.remove_constant": Call(fs.metrics.remove_constant, {"estimate": IMAGE, "truth": IMAGE}),
        "metrics.fourier_ring_correlation": Call(
            fs.metrics.fourier_ring_correlation,
            {"a": IMAGE, "b": IMAGE, "pixel": 1.0, "window": None},
            lambda frc: frc.correlation,
        ),
        "metrics.frc_resolution": Call(fs.metrics.frc_resolution, {"frc": FRC, "threshold": "1/7"}),
    }


def _drawn(sampler: Any) -> Any:
    batch = sampler if isinstance(sampler, fs.Minibatch) else sampler.draw(np.random.default_rng(0))
    return FIDELITY.gradient(X, batch)


def _stopped(stop: Any) -> Any:
    return fs.PnP(FIDELITY, SAMPLER, [fs.NoPrior()]).solve(stop)["misfit"]


def is_finite(value: Any) -> bool:
    """Whether every number in what a call returned is finite; things that are no numbers count as such."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if isinstance(value, float | complex | np.number):
        return bool(np.isfinite(value))
    return all(map(is_finite, value)) if isinstance(value, tuple | list) else True


def names(message: str, argument: str) -> bool:
    """Whether a sentence names an argument: frame_shape, frame shape, and one weight for weights."""
    argument = {"calibrate": "calibrat(e|ion)", "align": "align(ment)?"}.get(argument, argument)  # or their sections
    words = argument.replace("_", "[_ ]")
    return re.search(rf"\b{words.removesuffix('s')}s?\b", message, re.IGNORECASE) is not None


def verdict(call: Call, argument: str, wrong: Any) -> str:
    """Empty if the call is in order, else what is not."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = call.use(call.function(**call.arguments | {argument: wrong}))
    except (FouriscopeError, TypeError, ValueError, IndexError) as error:
        raised = traceback.extract_tb(error.__traceback__)[-1]
        ours = isinstance(error, ValidationError) or raised.filename.startswith(PACKAGE)  # settings check themselves
        if not ours:
            return f"{type(error).__name__} of {raised.filename}:{raised.lineno}: {error}"
        is_named = names(str(error), argument) or (argument == "path" and str(wrong) in str(error))
        return "" if is_named else f"does not name it: {error}"
    except Exception as error:  # noqa: BLE001  (that is the point)
        raised = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} of {raised.filename}:{raised.lineno}: {error}"
    return "" if is_finite(value) else "accepted, and the result is not finite"


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """What asks for more than a gigabyte gets none."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def little_time() -> Iterator[None]:
    """What takes too long ends in an error; what cannot be interrupted ends the process, and says where it was."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    faulthandler.dump_traceback_later(3 * LIMIT, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def wrong_calls(calls: dict[str, Call], count: int | None) -> list[tuple[str, str, str]]:
    """(call, argument, wrong value), each at most once."""
    every = [(name, argument, wrong) for name, call in calls.items() for argument in call.arguments for wrong in WRONG]
    return every if count is None else random.Random(SEED).sample(every, count)


def disorder(folder: Path, count: int | None) -> tuple[list[str], int]:
    """What is not in order, and how many calls were made."""
    calls = _calls(folder)
    for name, call in calls.items():
        if name not in ("Result.load", "RunFolder.open"):
            call.use(call.function(**call.arguments))  # valid before one argument is changed
    chosen, found = wrong_calls(calls, count), []
    with little_room():
        for name, argument, wrong in chosen:
            with little_time():
                problem = verdict(calls[name], argument, WRONG[wrong]())
            if problem:
                found.append(f"{name}({argument} = {wrong}): {' '.join(problem.split())[:200]}")
    return found, len(chosen)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is asked of Linux")
def test_wrong_calls_end_in_a_clear_error_or_are_harmless(tmp_path: Path) -> None:
    found, count = disorder(tmp_path, CALLS)
    assert len(found) <= (1 - BAR) * count, "\n".join([f"{len(found)} of {count} are not in order:", *found])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        everything, made = disorder(Path(place), None)
    print("\n".join(everything))
    print(f"{len(everything)} of {made} are not in order")
