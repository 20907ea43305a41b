"""Pieces of the engine torch: threads that take turns, and the part of a spectrum that is seen."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from fouriscope.forward.grids import seen_bins
from fouriscope.parallel import threads
from tests.engines.problems import model_of

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "fouriscope[torch]"')

from fouriscope.forward.torch_spectra import Band, Workspace  # noqa: E402
from fouriscope.forward.torch_threads import in_turn  # noqa: E402

CPU = torch.device("cpu")


@pytest.mark.parametrize("count", [1, 3])
def test_results_are_used_in_the_order_of_their_items(count: int) -> None:
    used: list[tuple[int, int]] = []

    def slow_first(k: int) -> int:
        assert not torch.is_grad_enabled()
        time.sleep(0.02 * (k % 3 == 0))
        return k * k

    with threads(count):
        in_turn(range(10), lambda k: k, slow_first, lambda k, square: used.append((k, square)), CPU)
    assert used == [(k, k * k) for k in range(10)]


@pytest.mark.parametrize("where", ["load", "work", "use"])
def test_nobody_waits_for_a_turn_that_failed(where: str) -> None:
    def fails_at_3(here: str) -> Any:
        def step(k: int, *_: Any) -> int:
            if here == where and k == 3:
                raise MemoryError("no room")
            return k

        return step

    def run() -> None:
        with threads(3), pytest.raises(MemoryError, match="no room"):
            in_turn(range(20), fails_at_3("load"), fails_at_3("work"), fails_at_3("use"), CPU)
        ended.set()

    ended = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    assert ended.wait(60)


@pytest.mark.parametrize(("lowest", "stop"), [(-5, 6), (-3, -1), (0, 4), (2, 5), (-6, 5)])
@pytest.mark.parametrize("dim", [0, -1])
def test_a_band_of_a_spectrum(lowest: int, stop: int, dim: int) -> None:
    frequencies = (
        torch.fft.fftfreq(11, 1 / 11).to(torch.int64) if stop > 5 else torch.tensor([*range(6), *range(-6, 0)])
    )
    spectrum = (frequencies[:, None] if dim == 0 else frequencies[None]).expand(*((-1, 3) if dim == 0 else (3, -1)))
    band = Band(lowest, stop, len(frequencies))
    taken = band.of(spectrum, dim)
    assert taken.movedim(dim, 0)[:, 0].tolist() == list(range(lowest, stop))
    band.take(-spectrum, dim, out=(again := torch.zeros_like(taken)))
    assert torch.equal(again, -taken)
    expected = torch.where((spectrum >= lowest) & (spectrum < stop), spectrum, 0)
    band.put(taken, dim, out=(alone := torch.zeros_like(expected)))
    assert torch.equal(alone, expected)


@pytest.mark.parametrize("case", ["plain", "margin", "sums, margin, mask"])
def test_all_boxes_lie_in_what_is_seen(case: str) -> None:
    model = model_of(case, "numba")
    starts, sides = (model.box_rows, model.box_columns), model.pupils.box_shape
    for (lowest, stop), start, side, size in zip(
        seen_bins(model.geometry), starts, sides, model.object_shape, strict=True
    ):
        assert {int(first + k) % size for first in start for k in range(side)} <= {
            k % size for k in range(lowest, stop)
        }
        assert stop - lowest <= size


def test_work_memory_stays_and_is_zero_at_first() -> None:
    space = Workspace()
    first = space("a", (4, 3), torch.complex64, CPU)
    assert not first.any()
    first[:] = 1
    assert space("a", (2, 3), torch.complex64, CPU).data_ptr() == first.data_ptr()
    assert not space("a", (5, 3), torch.complex64, CPU).any()
    assert space("a", (5, 3), torch.complex128, CPU).dtype == torch.complex128
