"""What is public says what it is: a docstring, a repr in numbers, a picture in notebooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import ArrayFrames, ArrivingFrames, CorrectedFrames, Corrections, FrameMasks, StreamedFrames
from fouriscope.live import stream
from fouriscope.optics import Adjusted
from fouriscope.tuning import Trial
from fouriscope.verdict import Verdict
from tests.conftest import LEDS, OPTICS

RNG = np.random.default_rng(0)
MODEL = fs.ForwardModel(OPTICS, LEDS, (24, 24))
DATA = fs.Acquisition(OPTICS, LEDS, ArrayFrames(RNG.random((49, 24, 24), np.float32)), periodic=True)
FIDELITY = fs.DataFidelity.of(DATA, MODEL)
EVERYTHING = np.arange(49)
SAMPLER = fs.StratifiedSampler(EVERYTHING, 12, MODEL.geometry.bright_field)
WAVE = fs.DataFidelity(fs.ForwardModel(OPTICS, LEDS, (24, 24), object="wave"), DATA.frames, loss="amplitude")


@cache
def reconstructed() -> fs.Result:
    return fs.reconstruct(DATA, object="phase", batch=12, iterations=2, seed=0)


def result(**changes: Any) -> fs.Result:
    return replace(reconstructed(), **changes)


def torch_denoiser() -> fs.Prior:
    torch = pytest.importorskip("torch")
    return fs.TorchDenoiser(torch.nn.Identity())


# What has no example here is no class, is abstract, or needs weights that are not part of the package.
EXAMPLES: dict[str, Callable[[], Any]] = {
    "Optics": lambda: OPTICS,
    "LEDArray": lambda: fs.LEDArray.disc(
        4e-3, 70e-3, 9.5, rotation=0.1, offset=(1e-3, 0), slide=fs.GlassSlide(1e-3, 1.5)
    ),
    "Directions": lambda: fs.Directions(LEDS.directions(), height=0.07),
    "GlassSlide": lambda: fs.GlassSlide(1e-3, 1.52),
    "Pupil": lambda: fs.Pupil(dict.fromkeys(range(4, 40), 0.123456789), 1e-5, np.ones((24, 24), complex)),
    "Acquisition": lambda: replace(
        DATA, pupil=fs.Pupil({4: 0.1}), weights=np.arange(49), mask=np.ones((24, 24)), truth=np.ones((96, 96))
    ),
    "ForwardModel": lambda: fs.ForwardModel(OPTICS, LEDS, (24, 24), margin=3, object="wave"),
    "DataFidelity": lambda: fs.DataFidelity(MODEL, DATA.frames, weights=np.arange(49), mask=np.ones((24, 24))),
    "Minibatch": lambda: SAMPLER.draw(RNG),
    "AllLEDs": lambda: fs.AllLEDs(EVERYTHING),
    "FixedSubset": lambda: fs.FixedSubset(EVERYTHING, 12, RNG),
    "UniformSampler": lambda: fs.UniformSampler(EVERYTHING, 12),
    "EpochSampler": lambda: fs.EpochSampler(EVERYTHING, 12),
    "StratifiedSampler": lambda: SAMPLER,
    "Multiplexed": lambda: fs.Multiplexed(LEDS, np.eye(49)[:3] + np.eye(49)[3:6]),
    "IntensityLoss": fs.IntensityLoss,
    "AmplitudeLoss": fs.AmplitudeLoss,
    "PoissonLoss": fs.PoissonLoss,
    "Iterations": lambda: fs.Iterations(5) | fs.Seconds(3) & fs.Residual(1e-3),
    "Seconds": lambda: fs.Seconds(3.0),
    "Residual": lambda: fs.Residual(1e-3),
    "Settled": lambda: fs.Settled() | fs.Iterations(300),
    "Camera": lambda: fs.Camera(1000),
    "NoPrior": fs.NoPrior,
    "Box": lambda: fs.Box(0, 1),
    "L1": fs.L1,
    "TV": fs.TV,
    "BM3D": fs.BM3D,
    "NLM": fs.NLM,
    "Wavelet": fs.Wavelet,
    "SmallCNN": fs.SmallCNN,
    "TorchDenoiser": torch_denoiser,
    "PnP": lambda: fs.PnP(FIDELITY, SAMPLER, [fs.TV()]),
    "ADMM": lambda: fs.ADMM(FIDELITY, SAMPLER, [fs.TV()]),
    "RED": lambda: fs.RED(FIDELITY, SAMPLER, [fs.TV()]),
    "Spectral": lambda: fs.Spectral(WAVE, SAMPLER, [fs.TV(), fs.TV()]),
    "EPRY": lambda: fs.EPRY(FIDELITY, SAMPLER),
    "ColourResult": lambda: fs.ColourResult.of(dict.fromkeys(("red", "green", "blue"), result())),
    "Result": lambda: result(verdict=Verdict("good", "Good: it is.")),
    "RunFolder": lambda: fs.RunFolder("nowhere"),
    "LiveReconstruction": lambda: stream(OPTICS, LEDS, (24, 24), periodic=True),
    "PriorComparison": lambda: fs.PriorComparison(
        (fs.TV(), fs.BM3D()), (-1.0, -2.0), (True, False), "held-out", EVERYTHING
    ),
    "Tuning": lambda: fs.Tuning("prior.strength", 1e-3, "held-out", (Trial(1e-3, -1.0), Trial(1e-2, -2.0)), EVERYTHING),
}
WITHOUT = {"Prior", "DeepinvDenoiser"}
BESIDE: dict[str, Callable[[], Any]] = {
    "adjusted": lambda: Adjusted(LEDS, np.full((49, 2), 1e-3)),
    "streamed": lambda: StreamedFrames(DATA.frames, "1MB"),
    "arriving": lambda: ArrivingFrames((3, 4, 4)),
    "corrected": lambda: CorrectedFrames(DATA.frames, Corrections(exposures=np.ones(49))),
    "masks": lambda: FrameMasks(DATA.frames),
    "history": lambda: result().history,
    "geometry": lambda: result().geometry,
}


def test_every_public_class_has_an_example() -> None:
    classes = {name for name in fs.__all__ if isinstance(getattr(fs, name), type)}
    assert classes == set(EXAMPLES) | WITHOUT


@pytest.mark.parametrize("name", [*EXAMPLES, *BESIDE])
def test_a_repr_says_what_a_thing_is_in_numbers(name: str) -> None:
    shown = repr((EXAMPLES | BESIDE)[name]())
    assert "object at 0x" not in shown
    assert "array(" not in shown
    assert len(shown) < 300
    assert len(shown.splitlines()) <= 2


@pytest.mark.parametrize("name", fs.__all__)
def test_every_public_name_has_a_docstring_that_stands_on_its_own(name: str) -> None:
    lines = (getattr(fs, name).__doc__ or "").strip().splitlines()
    assert len(lines) > 1 or (lines and lines[0].endswith(".")), name


def test_some_reprs() -> None:
    assert repr(DATA) == (
        "Acquisition: 49 frames of 24 × 24, NA 0.2, 49 LEDs up to NA 0.236, 513 nm, pixel 0.798 µm, periodic"
    )
    assert repr(SAMPLER) == "StratifiedSampler: 12 of 49 LEDs per iteration"
    assert repr(fs.Pupil()) == "Pupil: clear"
    assert repr(fs.PnP(FIDELITY, SAMPLER, [fs.TV()])) == "PnP: x of 72 × 72, History: no iteration yet"
    assert repr(fs.RunFolder("nowhere")) == "RunFolder: nowhere, no run yet"


def test_a_run_folder_tells_its_state(tmp_path: Path) -> None:
    folder = fs.RunFolder(result().save(tmp_path / "run"))
    assert repr(folder) == f"RunFolder: {tmp_path / 'run'}, finished (2 iterations)"


class _Pictures(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.sources.append(dict(attrs)["src"] or "")


def pictures(shown: Any) -> int:
    sources = _Pictures(shown._repr_html_()).sources
    assert all(source.startswith("data:image/png;base64,") and len(source) < 200_000 for source in sources)
    return len(sources)


@pytest.mark.usefixtures("drawn")
def test_a_result_draws_its_page() -> None:
    figure = result(verdict=Verdict("good", "Good: it is.")).plot()
    assert "Good: it is." in [text.get_text() for part in figure.subfigs for text in part.texts]


def test_pictures_in_notebooks() -> None:
    assert pictures(DATA) == 2
    assert pictures(result()) == 1
    noise = RNG.normal(size=(2000, 1500)).astype(np.float32)
    judged = result(phase=20 * noise, absorption=noise, verdict=Verdict("bad", "Bad: a < b & c."))
    assert pictures(judged) == 2
    assert "Bad: a &lt; b &amp; c." in judged._repr_html_()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e300])
def test_pictures_of_odd_data(value: float) -> None:
    odd = np.full((5, 3), value)
    assert pictures(result(phase=odd, absorption=odd)) <= 2
    assert pictures(fs.Acquisition(OPTICS, LEDS, ArrayFrames(np.full((49, 5, 3), value)))) == 2


def test_frames_that_are_not_there_leave_their_picture_out() -> None:
    assert pictures(fs.Acquisition(OPTICS, LEDS, ArrivingFrames((49, 4, 4)))) == 1
