"""Small microscopes for the tests: the paper's optics on small frames, so that everything takes milliseconds.

The 7 × 7 LEDs hold 37 bright-field LEDs (the paper's) and 12 dark-field ones; eight of those form the ring at 0.2018 NA
that lies just outside the pupil of 0.2. None of the directions but the central one falls on a whole bin.
"""

from __future__ import annotations

import gc
import inspect
import signal
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from fouriscope import plots
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics, Pupil

# A suite that nohup or the background of a script started ignores these, and so would every command that it starts.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

OPTICS = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = LEDArray.square(7, pitch=4e-3, height=70e-3)
TURNED_LEDS = LEDArray.square((5, 7), pitch=4e-3, height=70e-3, rotation=0.3, offset=(1e-3, -0.4e-3))

# Astigmatism, coma and defocus: complex, and without any symmetry that could hide a missing conjugate or a transpose.
ABERRATED = Pupil({3: 0.2, 5: 0.7, 8: -0.4}, defocus=8e-6)


def array_pupil(shape: tuple[int, int]) -> Pupil:
    """A measured pupil: complex transmission that varies smoothly and differs everywhere."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    return Pupil({6: 0.3}, array=(1 - 0.3 * x + 0.2 * y * x) * np.exp(1j * (0.8 * y**2 - 0.5 * x + 0.6 * x**3)))


# name → arguments of ForwardModel: square and not, even and odd frames; margins; pupils; an object of its own size.
CASES: dict[str, dict[str, Any]] = {
    "square": {"frame_shape": (24, 24)},
    "aberrated": {"frame_shape": (18, 29), "pupil": ABERRATED, "illumination": TURNED_LEDS},
    "margin": {"frame_shape": (21, 16), "margin": 3, "pupil": ABERRATED},
    "array pupil": {"frame_shape": (22, 27), "pupil": array_pupil((22, 27))},
    "array pupil, margin": {"frame_shape": (17, 20), "margin": 3, "pupil": array_pupil((23, 26))},
    "object of 89 × 101": {"frame_shape": (19, 26), "object_shape": (89, 101), "pupil": ABERRATED},
}


def small_model(
    case: str = "square", *, dtype: DTypeLike = np.float64, object: Literal["phase", "complex"] = "phase"
) -> ForwardModel:
    """The model called ``case`` in :data:`CASES`, in double precision unless told otherwise."""
    return ForwardModel(OPTICS, **{"illumination": LEDS, **CASES[case]}, dtype=dtype, object=object)


def random_x(model: ForwardModel, seed: int = 0) -> NDArray[Any]:
    """A strong random object: phase around ±0.7 rad and, where the model has it, absorption around 0.2."""
    x = np.random.default_rng(seed).normal(0.0, 0.7, model.x_shape)
    if model.object.name == "complex":
        x[1] = 0.2 + 0.15 * x[1]
    return x.astype(model.dtype)


def noisy_frames(model: ForwardModel, seed: int = 1) -> NDArray[Any]:
    """Frames of another object with additive noise, so that some pixels are negative, and with some exact zeros."""
    rng = np.random.default_rng(seed)
    frames = model.intensity(random_x(model, seed + 1))
    frames += rng.normal(0.0, 0.1, frames.shape).astype(model.dtype)
    frames[:, ::7, ::5] = 0
    assert (frames < 0).any()
    return frames


def small_fidelity(model: ForwardModel, **options: Any) -> DataFidelity:
    return DataFidelity(model, noisy_frames(model), **options)


# Whole reconstructions, commands, pages and processes, solvers that run until they have arrived, and sums over sources,
# whose kernels take half a minute to compile: `make test-fast` leaves them out.
_WHOLE = (
    *("tests/alignment/", "tests/cli/", "tests/field/", "tests/live/", "tests/reproduction/", "tests/tuning/"),
    *("tests/run/test_beginning", "tests/run/test_changed", "tests/run/test_damaged", "tests/run/test_found"),
    *("tests/run/test_load", "tests/run/test_recipe", "tests/run/test_result_files", "tests/run/test_resume"),
    *("tests/run/test_snapshot", "tests/run/test_streamed", "tests/run/test_verdict", "tests/viewer/test_connections"),
    *("tests/engines/test_agreement", "tests/engines/test_runs"),
    *("tests/calibration/", "tests/test_docs", "tests/test_plots", "tests/test_reconstruction", "tests/test_scoring"),
    *("tests/verdict/", "tests/test_hostile", "src/fouriscope/alignment/", "tests/fidelity/test_losses"),
    *("tests/solvers/test_fixed_points", "tests/solvers/test_pnp", "tests/solvers/test_step_size"),
    *(
        "tests/forward/test_sums",
        "tests/forward/test_bandwidth",
        "tests/forward/test_patterns",
        "tests/run/test_patterns",
    ),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(_WHOLE):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays to the end: collecting garbage need not walk through it each time."""
    gc.collect()
    gc.freeze()


def _quick_figure(*arguments: Any, **options: Any) -> Any:
    """What stands for the page of a run: its words alone, of the same arguments."""
    from matplotlib.figure import Figure

    inspect.signature(_drawn_figure).bind(*arguments, **options)
    figure = Figure(figsize=(2, 1))
    figure.text(0, 0, options.get("verdict") or "a run")
    return figure


_drawn_figure = plots.result_figure


@pytest.fixture(scope="session", autouse=True)
def _quick_figures() -> Iterator[None]:
    """Drawing its page takes four fifths of a small run; tests that look at the page ask for :func:`drawn`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "result_figure", _quick_figure)
        yield


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a run as people see it."""
    monkeypatch.setattr(plots, "result_figure", _drawn_figure)


@pytest.fixture
def optics() -> Optics:
    return OPTICS


@pytest.fixture(params=CASES)
def model(request: pytest.FixtureRequest) -> ForwardModel:
    """Each of the small models in double precision."""
    return small_model(request.param)
