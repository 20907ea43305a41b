from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import available_threads, run_sliced, split, thread_count, threads


@pytest.mark.parametrize("total", [1, 2, 7, 10, 100])
@pytest.mark.parametrize("parts", [1, 2, 3, 8, 200])
def test_split_covers_everything_once_in_nearly_equal_parts(total: int, parts: int) -> None:
    pieces = split(total, parts)
    assert len(pieces) == min(parts, total)
    assert [i for start, stop in pieces for i in range(start, stop)] == list(range(total))
    sizes = [stop - start for start, stop in pieces]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_run_sliced_does_all_the_work_once(count: int) -> None:
    done = np.zeros(20, int)

    def work(start: int, stop: int) -> None:
        done[start:stop] += 1

    with threads(count):
        run_sliced(work, len(done))
    np.testing.assert_array_equal(done, 1)


def test_run_sliced_uses_as_many_threads_as_it_may() -> None:
    """All three slices wait for one another: with fewer threads this would not end (here: break)."""
    barrier = threading.Barrier(3)
    names = []

    def work(start: int, stop: int) -> None:
        barrier.wait(timeout=120)
        names.append(threading.current_thread().name)

    with threads(3):
        run_sliced(work, 3)
    assert len(set(names)) == 3
    assert threading.current_thread().name in names


def test_run_sliced_with_nothing_to_do() -> None:
    run_sliced(lambda start, stop: pytest.fail("there is no work"), 0)


@pytest.mark.parametrize("guilty", [0, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_exceptions_reach_the_caller_after_all_slices_have_ended(guilty: int, count: int) -> None:
    ended = []

    def work(start: int, stop: int) -> None:
        if start <= guilty < stop:
            raise KeyError(guilty)
        ended.append((start, stop))

    with threads(count):
        with pytest.raises(KeyError, match=str(guilty)):
            run_sliced(work, 3)
        assert len(ended) == count - 1
        # The pool is still there for the next one.
        run_sliced(lambda start, stop: ended.append((start, stop)), 3)
    assert len(ended) == 2 * count - 1


def test_threads_nest_and_are_restored() -> None:
    before = thread_count()
    with threads(3):
        assert thread_count() == 3
        with threads(1):
            assert thread_count() == 1
        assert thread_count() == 3
        with pytest.raises(RuntimeError, match="boom"), threads(2):
            raise RuntimeError("boom")
        assert thread_count() == 3
    assert thread_count() == before


@pytest.mark.parametrize("count", [0, -2])
def test_at_least_one_thread(count: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, got {count}"), threads(count):
        pass


def test_the_environment_sets_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURISCOPE_THREADS", "5")
    assert thread_count() == 5
    with threads(2):
        assert thread_count() == 2
    monkeypatch.delenv("FOURISCOPE_THREADS")
    assert thread_count() == available_threads() >= 1


def test_thread_limits_of_different_threads_do_not_mix() -> None:
    seen: list[int] = []
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with threads(3):
            inside.set()
            leave.wait()
            seen.append(thread_count())

    before = thread_count()
    thread = threading.Thread(target=other)
    with threads(2):
        thread.start()
        inside.wait()
        assert thread_count() == 2
    leave.set()
    thread.join()
    assert seen == [3]
    assert thread_count() == before


def test_a_number_of_threads_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("two", "0", "-1"):
        monkeypatch.setenv("FOURISCOPE_THREADS", wrong)
        with pytest.raises(InvalidInputError, match="FOURISCOPE_THREADS"):
            thread_count()
    monkeypatch.setenv("FOURISCOPE_THREADS", "5")
    assert thread_count() == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_can_use_threads() -> None:
    program = (
        "import os, signal\n"
        "from fouriscope.parallel import run_sliced, threads\n"
        "with threads(2):\n"
        "    run_sliced(lambda start, stop: None, 10)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.alarm(120)  # a child that waits for threads it does not have ends here, with an error\n"
        "        run_sliced(lambda start, stop: None, 10)\n"
        "        os._exit(0)\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_work_that_shares_out_work_comes_to_an_end(count: int) -> None:
    """In a process of its own: where nested slices wait for each other, they wait for ever."""
    program = f"""
import numpy as np
from fouriscope.parallel import run_sliced, threads

done = np.zeros((6, 5), int)

def row(start, stop):
    for k in range(start, stop):
        with threads({count}):
            run_sliced(lambda first, last: done[k].__setitem__(slice(first, last), done[k, first:last] + 1), 5)

with threads({count}):
    run_sliced(row, 6)
    run_sliced(row, 6)  # what a slice has noted for its thread is forgotten after it
assert (done == 2).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_slice_that_fails_leaves_its_thread_as_it_was() -> None:
    def fail(start: int, stop: int) -> None:
        raise ValueError

    shares = []
    with threads(2):
        with pytest.raises(ValueError):
            run_sliced(fail, 2)
        run_sliced(lambda start, stop: shares.append((start, stop)), 2)
    assert sorted(shares) == [(0, 1), (1, 2)]


def test_every_slice_sees_which_warnings_the_caller_has_switched_off() -> None:
    """Warnings are errors in the tests: an overflow in a thread of the pool would raise."""
    found = np.zeros(8)

    def overflow(start: int, stop: int) -> None:
        found[start:stop] = np.exp(np.full(stop - start, 1e4))

    with threads(4), np.errstate(over="ignore"):
        run_sliced(overflow, 8)
    assert np.isinf(found).all()
