"""`fouriscope view` and `fouriscope demo --view` as commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
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
    assert "neither a run folder" in fails("view", tmp_path, "--no-browser")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    with started("view", run, "--no-browser") as (url, _):
        port = url.split(":")[2].split("/")[0]
        assert f"port {port} cannot be used" in fails("view", run, "--no-browser", "--port", port)


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT] * 5, [signal.SIGTERM], [signal.SIGHUP]], ids=str)
def test_the_end_is_quiet_also_while_a_page_listens(tmp_path: Path, signals: list[signal.Signals]) -> None:
    run = written_run(tmp_path / "run")
    command = [sys.executable, "-m", "fouriscope.cli.app", "view", str(run), "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url.replace("/?", "/api/events?")) as events:
            assert events.readline() == b"retry: 1000\n"
            for number in signals:
                process.send_signal(number)
                time.sleep(0.05)
            _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_the_browser_is_not_told_the_token_where_others_see_it(tmp_path: Path) -> None:
    """The file that it is given leads to the page, only its owner may read it, and it is gone once it was used."""
    run, seen, places = written_run(tmp_path / "run"), tmp_path / "seen", tmp_path / "places"
    browser = tmp_path / "browser"
    browser.write_text(
        f"""#!{sys.executable}
import os, re, sys, urllib.parse, urllib.request
path = urllib.parse.unquote(sys.argv[1].removeprefix("file://"))
page = open(path, encoding="utf-8").read()
with open({str(seen)!r}, "w", encoding="utf-8") as file:
    print(oct(os.stat(path).st_mode & 0o777), " ".join(sys.argv[1:]), page, sep="\\n", file=file)
urllib.request.urlopen(re.search('url=([^"]+)', page).group(1)).read()
os.rename({str(seen)!r}, {str(seen)!r} + ".done")
""",
        encoding="utf-8",
    )
    browser.chmod(0o755)
    places.mkdir()
    command = [sys.executable, "-m", "fouriscope.cli.app", "view", str(run), "--quiet"]
    environment = os.environ | {"BROWSER": f"{browser} %s", "TMPDIR": str(places)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        token = url.partition("token=")[2]
        done = tmp_path / "seen.done"
        try:
            wait(lambda: done.exists(), "the browser")
            wait(lambda: not list(places.glob("*.html")), "the file to be gone")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    mode, arguments, page = done.read_text(encoding="utf-8").split("\n", 2)
    assert mode == "0o600"
    assert arguments.startswith("file://")
    assert token not in arguments
    assert token in page


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
