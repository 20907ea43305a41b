"""`fouriscope view` and `fouriscope demo --view` as commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.viewer.browser import wait
from tests.viewer.served import written_run


@contextmanager
def started(*arguments: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command with the address that it printed; it is stopped by Ctrl-C, and must end well."""
    command = [sys.executable, "-m", "fouriscope.cli.app", *map(str, arguments)]
    no_browser = os.environ | {"BROWSER": "true"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=no_browser) as process:
        try:
            assert process.stdout is not None
            found = next((match for line in process.stdout if (match := re.search(r"http://\S+", line))), None)
            assert found is not None
            yield found.group(), process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
    assert process.returncode == 0


def fails(*arguments: object) -> str:
    command = [sys.executable, "-m", "fouriscope.cli.app", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    return ended.stderr


def test_view_prints_an_address_that_answers(tmp_path: Path) -> None:
    written_run(tmp_path / "a")
    with started("view", tmp_path, "--no-browser") as (url, _), urllib.request.urlopen(url) as answer:
        assert answer.status == 200
        assert b"fouriscope" in answer.read()


def test_view_explains_what_it_cannot_show(tmp_path: Path) -> None:
    assert "no such folder" in fails("view", tmp_path / "nothing", "--no-browser")
    (tmp_path / "file").touch()
    assert "not a folder" in fails("view", tmp_path / "file", "--no-browser")
    assert "not a run folder" in fails("view", tmp_path, "--no-browser")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    with started("view", run, "--no-browser") as (url, _):
        port = url.split(":")[2].split("/")[0]
        assert f"port {port} cannot be used" in fails("view", run, "--no-browser", "--port", port)


@pytest.mark.slow
def test_demo_with_a_page(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    with started("demo", "--view", "--iterations", 2, "--out", out) as (url, process):
        with urllib.request.urlopen(url.replace("/?", "/api/runs?")) as answer:
            assert b"TV-Online" in answer.read()
        wait(lambda: (out / "convergence.png").exists() or process.poll() is not None, "the end of the demo")
        with urllib.request.urlopen(url.replace("/?", "/api/runs/1/led/0/predicted?")) as answer:
            assert len(answer.read()) == 4 * 100 * 100
    assert (out / "BM3D-Online" / "result" / "phase.ome.tif").exists()
