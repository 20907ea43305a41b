"""The engine torch: what stays on its device, what happens where memory ends, and other devices where there are any.

CUDA and MPS are *not run* unless the machine has them: ``pytest -n 0 tests/engines -k "other_devices or of_a_card"``.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fouriscope.engines import Engine
from fouriscope.errors import InsufficientMemoryError, InvalidInputError
from fouriscope.fidelity import DataFidelity
from fouriscope.fidelity.array_losses import MOST_ARRAYS, PIXELS
from fouriscope.optics import Sources
from fouriscope.parallel import threads
from tests.engines.problems import an_x, difference, fidelity_of, frames_of, model_of, other_devices

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "fouriscope[torch]"')


def on_torch(case: str = "margin", loss: str = "amplitude", **options: Any) -> DataFidelity:
    """The fidelity of a case on torch, with options of the engine."""
    engine: Any = Engine("torch", **options)
    return fidelity_of(case, engine, loss)


@pytest.mark.parametrize("case", ["plain", "masks", "sums, margin, mask"])
def test_streamed_frames_give_the_same(case: str) -> None:
    kept = on_torch(case)
    needed = kept._pipeline.needed()  # type: ignore[attr-defined]
    streamed = on_torch(case, memory=needed.total(20, keeps_frames=False))
    x = an_x(kept.model)
    expected, found = kept.gradient(x), streamed.gradient(x)
    assert kept._pipeline.frames.keep  # type: ignore[attr-defined]
    assert not streamed._pipeline.frames.keep  # type: ignore[attr-defined]
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    assert difference(found.gradient, expected.gradient) < 1e-6


@pytest.mark.parametrize("case", ["masks", "sums, margin, mask"])
@pytest.mark.parametrize("keeps_pupils", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_share_the_groups(case: str, keeps_pupils: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = fidelity_of(case, "numba", "amplitude")
    x = an_x(ours.model)
    expected = ours.gradient(x)
    monkeypatch.setattr("fouriscope.fidelity.torch_pipeline.CPU_FIELDS", 5 * 24 * 28 * 8)  # five fields a group
    if not keeps_pupils:
        monkeypatch.setattr("fouriscope.forward.pupils.KEEP_AT_MOST_BYTES", 0)
    other = on_torch(case)
    with threads(count):
        found = other.gradient(x)
    with threads(1):
        np.testing.assert_array_equal(on_torch(case).gradient(x).gradient, found.gradient)
    assert other._pipeline._shares.group < 9  # type: ignore[attr-defined]
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert difference(found.gradient, expected.gradient) < 1e-5


def test_too_little_memory_is_told() -> None:
    fidelity = on_torch(memory=1000)
    with pytest.raises(InsufficientMemoryError, match=r"engine.memory of .* is less than the .* need; give more"):
        fidelity.gradient(an_x(fidelity.model))


# The peak of gradients beyond what a process held before; its argument is the bound.
PEAK = """
import sys
import numpy as np
from pathlib import Path
from fouriscope import ForwardModel
from fouriscope.engines import Engine
from fouriscope.fidelity import CameraLoss, DataFidelity
from fouriscope.paper import paper_leds, paper_optics

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

def fidelity(side):
    engine = Engine("torch", memory=int(sys.argv[1]))
    model = ForwardModel(paper_optics(), paper_leds(), (side, side), object_shape=(5 * side, 5 * side), engine=engine)
    model.pupils(np.arange(len(model)))
    return DataFidelity(model, np.ones((len(model), side, side), np.float32), loss=CameraLoss(0.01))

for side in (16, 100):  # the small one loads libraries and starts threads
    now = fidelity(side)
    x = np.zeros(now.model.x_shape, np.float32)
    before = status("VmRSS") - x.nbytes
    Path("/proc/self/clear_refs").write_text("5")
    for seed in range(5):
        now.gradient(x, np.random.default_rng(seed).permutation(len(now)))
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_bound_on_memory_is_obeyed() -> None:
    bound = 30 * 2**20
    done = subprocess.run([sys.executable, "-c", PEAK, str(bound)], check=True, capture_output=True, text=True)
    assert int(done.stdout) <= bound


def test_what_is_freed_is_kept_where_there_is_room_and_counts_twice() -> None:
    frame, kept = 24 * 20, {}
    for memory in (None, 2**30, 2**20):
        fidelity = on_torch("plain", memory=memory)
        fidelity.gradient(an_x(fidelity.model))
        kept[memory] = fidelity._pipeline.needed()  # type: ignore[attr-defined]
    assert kept[None] == kept[2**30]
    assert kept[None].source - kept[2**20].source == 8 * frame + MOST_ARRAYS * 4 * frame  # a transform, and the loss


@pytest.mark.parametrize("name", PIXELS)
def test_a_loss_needs_no_more_arrays_than_the_formula_says(name: str) -> None:
    intensity, frame = np.random.default_rng(0).random((2, 400, 400), np.float32)
    tracemalloc.start()
    PIXELS[name](np, intensity, frame, np.float32(0.01))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most <= 1.01 * MOST_ARRAYS * frame.nbytes


def test_where_memory_ends_groups_halve_and_then_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from fouriscope.fidelity import torch_pipeline

    fidelity, real = on_torch(), torch_pipeline.group_gradient
    x, sizes = an_x(fidelity.model), []
    expected = fidelity.gradient(x).gradient

    def short_of_memory(optics: Any, space: Any, spectrum: Any, group: Any, *others: Any) -> Any:
        sizes.append(len(group.sources))
        if sizes[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(optics, space, spectrum, group, *others)

    monkeypatch.setattr(torch_pipeline, "group_gradient", short_of_memory)
    room = 5
    assert difference(fidelity.gradient(x).gradient, expected) < 1e-6
    assert fidelity._pipeline._shares.group <= 5  # type: ignore[attr-defined]
    room = 0
    with pytest.raises(InsufficientMemoryError, match=r'device "cpu" has no room for a group of 1 LEDs beside an'):
        fidelity.gradient(x)


def test_frames_travel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fidelity, read = on_torch("mask"), []
    data_of = fidelity.data_of

    def noted(leds: Any) -> Any:
        read.extend(leds.tolist())
        return data_of(leds)

    monkeypatch.setattr(fidelity, "data_of", noted)
    x = an_x(fidelity.model)
    fidelity.gradient(x, [1, 2, 3])
    read.clear()
    fidelity.gradient(x, [2, 3, 4])
    assert read == [4]


def test_a_frame_that_was_replaced_is_read_again() -> None:
    fidelity = on_torch("plain")
    x, frames = an_x(fidelity.model), frames_of("plain")
    before = fidelity.misfits(x, [3, 4])
    fidelity._stack[3] *= 2  # type: ignore[index]
    fidelity.frames_changed(np.array([3]))
    frames[3] *= 2
    expected = DataFidelity(model_of("plain", "numba"), frames, loss="amplitude").misfits(x, [3, 4])
    assert fidelity.misfits(x, [3, 4]) == pytest.approx(expected, rel=1e-5)
    assert before[1] == pytest.approx(expected[1], rel=1e-5)


def test_deterministic_on_request() -> None:
    x = an_x(model_of("sums", "torch"))
    first, second = (on_torch("sums", deterministic=True).gradient(x).gradient for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not torch.are_deterministic_algorithms_enabled(), "the rest of the program has its own choice"


@pytest.mark.parametrize("case", ["margin", "sums, margin, mask", "wave"])
@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
def test_everything_is_placed_on_the_device(case: str, loss: str) -> None:
    """On the device "meta" there are no numbers, and what is created elsewhere cannot be combined with it."""
    from fouriscope.fidelity.torch_pipeline import group_gradient
    from fouriscope.forward.torch_optics import TorchOptics
    from fouriscope.forward.torch_spectra import Workspace

    model = model_of(case, "numba")
    optics, space = TorchOptics(model, "meta"), Workspace()
    o, spectrum = optics.seen.at(space, torch.empty(model.x_shape, device="meta"))
    total = optics.seen.zeros(space)
    group = next(model.sources.groups(np.arange(8), 30))
    count = len(group.bounds) - 1
    frames = torch.empty((count, *model.frame_shape), device="meta")
    misfits, boxes = group_gradient(
        *(optics, space, spectrum, group, optics.pupils(group.sources), frames, torch.ones_like(frames)),
        *(PIXELS[loss], 0.1, np.linspace(0, 1, count)),
    )
    optics.add(boxes, group.sources, total)
    gradient = optics.seen.gradient(space, o, total)
    assert optics.seen.of(o).shape == spectrum.shape
    for tensor in (misfits, boxes, gradient):
        assert tensor.device.type == "meta"
    assert (tuple(gradient.shape), gradient.dtype) == (model.x_shape, torch.float32)


def test_an_object_of_somebody_else() -> None:
    class Odd(type(model_of("plain", "numba").object)):  # type: ignore[misc]
        name = "odd"

    fidelity = DataFidelity(model_of("plain", "torch", object=Odd()), frames_of("plain"))
    with pytest.raises(InvalidInputError, match="knows the objects phase, complex and wave, got 'odd'"):
        fidelity.gradient(an_x(fidelity.model))


@pytest.mark.parametrize("device", other_devices())
@pytest.mark.parametrize("case", ["plain", "margin", "masks", "wave", "complex", "sums, margin, mask"])
@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
def test_other_devices(device: str, case: str, loss: str) -> None:
    ours, other = fidelity_of(case, "numba", loss), on_torch(case, loss, device=device)
    x = an_x(ours.model)
    expected, found = ours.gradient(x), other.gradient(x)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert difference(found.gradient, expected.gradient) < 1e-5


@pytest.mark.parametrize("device", other_devices())
@pytest.mark.parametrize("case", ["plain", "masks"])
def test_other_devices_with_streamed_frames(device: str, case: str) -> None:
    kept = on_torch(case, device=device)
    needed = kept._pipeline.needed()  # type: ignore[attr-defined]
    streamed = on_torch(case, device=device, memory=needed.total(20, keeps_frames=False))
    x = an_x(kept.model)
    assert difference(streamed.gradient(x).gradient, kept.gradient(x).gradient) < 1e-6
    assert not streamed._pipeline.frames.keep  # type: ignore[attr-defined]


@pytest.mark.parametrize("device", other_devices())
def test_other_devices_repeat_themselves(device: str) -> None:
    x = an_x(model_of("sums", "torch"))
    first, second = (on_torch("sums", deterministic=True, device=device).gradient(x).gradient for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no cuda device")
def test_memory_of_a_card_is_that_of_the_formula() -> None:
    fidelity = on_torch("plain", device="cuda")
    torch.cuda.reset_peak_memory_stats()
    fidelity.gradient(an_x(fidelity.model))
    shares = fidelity._pipeline._shares  # type: ignore[attr-defined]
    stated = fidelity._pipeline.needed().total(shares.group, keeps_frames=True)  # type: ignore[attr-defined]
    assert torch.cuda.max_memory_allocated() == pytest.approx(stated, rel=0.2)


def test_a_revised_model_has_its_own_pupils() -> None:
    ours, other = fidelity_of("margin", "numba", "amplitude"), on_torch("margin")
    x = an_x(ours.model)
    other.gradient(x)
    for fidelity in (ours, other):
        pupil = replace(fidelity.model.pupil, defocus=5e-6)
        fidelity.use(fidelity.model.revised(pupil=pupil, gains=np.linspace(0.5, 2, 49)))
    assert difference(other.gradient(x).gradient, ours.gradient(x).gradient) < 1e-5


def test_memory_that_stays_holds_nothing_of_an_earlier_model() -> None:
    """What is padded with zeros stays zero there when another part of the spectrum is seen."""
    ours, other = fidelity_of("sums", "numba", "amplitude"), on_torch("sums")
    x, expected = an_x(ours.model), ours.model.sources
    other.gradient(x)
    for factor in (0.4, 1.0):
        for fidelity in (ours, other):
            sources = Sources(factor * expected.na, expected.weights, expected.offsets)
            fidelity.use(fidelity.model.revised(sources=sources))
        assert difference(other.gradient(x).gradient, ours.gradient(x).gradient) < 1e-5
