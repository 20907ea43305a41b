"""A sample of the fuzzer's cases, with a fixed seed, and what it found before. ``make fuzz`` runs thousands."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = 270
# Cases of ``make fuzz`` that once ended badly. Mutations are drawn from these names: a change of them needs others.
FOUND = ["UConn MATLAB/0/19", "UConn MATLAB/1/0", "PtyLab HDF5/0/24", "description: phase, PnP/0/7"]


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    """The fuzzer in a process of its own: it forks, and pytest has threads."""
    command = [sys.executable, "-m", "tests.fuzz", "--jobs", "2", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the fuzzer forks, and reads /proc")
def test_damaged_inputs_end_in_a_sentence() -> None:
    done = fuzz("--cases", str(CASES), "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{CASES} cases" in done.stdout


@pytest.mark.slow
def test_what_was_found_stays_mended() -> None:
    done = fuzz(*(part for name in FOUND for part in ("--only", name)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(FOUND)} cases" in done.stdout
