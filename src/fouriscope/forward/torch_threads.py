"""Our threads around torch: on the CPU they share out work, and torch has one thread in each. Imports torch.

Torch's own threads would wait for each other in every operation, and spin after it on the cores that ours need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

import torch

from fouriscope.parallel import run_sliced, thread_count

Tensor: TypeAlias = Any


@contextmanager
def one_thread() -> Iterator[None]:
    """The calling thread computes alone, without threads of torch's own."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def as_asked(deterministic: bool, device: Any) -> Iterator[None]:
    """Deterministic algorithms if they are asked for, and on the CPU no threads but ours; then as before."""
    strict = torch.are_deterministic_algorithms_enabled()
    if deterministic and not strict:
        torch.use_deterministic_algorithms(True)
    try:
        with one_thread() if device.type == "cpu" else nullcontext():
            yield
    finally:
        if deterministic and not strict:
            torch.use_deterministic_algorithms(False)


def together(work: Callable[..., Any], calls: list[tuple[Any, ...]], device: Any) -> list[Any]:
    """The results of all calls, in their order; on the CPU our threads share them."""
    if device.type != "cpu":
        return [work(*call) for call in calls]
    results: list[Any] = [None] * len(calls)

    def share(start: int, stop: int) -> None:
        with one_thread():
            for k in range(start, stop):
                results[k] = work(*calls[k])

    run_sliced(share, len(calls))
    return results


def by_rows(function: Callable[..., Tensor], tensors: tuple[Tensor, ...], shape: tuple[int, ...], dtype: Any) -> Tensor:
    """``function(*tensors)``, of ``shape``, where each row of the result depends on the same row alone: on the CPU in
    slices, one for each thread."""
    if tensors[0].device.type != "cpu" or thread_count() == 1:
        return function(*tensors)
    out = torch.empty(shape, dtype=dtype)

    def share(start: int, stop: int) -> None:
        with one_thread():
            out[..., start:stop, :] = function(*(tensor[..., start:stop, :] for tensor in tensors))

    run_sliced(share, shape[-2])
    return out
