"""`fouriscope view`: the page of one or several runs."""

from __future__ import annotations

import contextlib
import html
import os
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fouriscope.cli.options import console_of
from fouriscope.cli.progress import TERMINATION, heeded
from fouriscope.viewer.runs import run_folders
from fouriscope.viewer.server import ViewServer

# How long a browser that starts may take to look into the file that leads it to the page, and the server to end.
BROWSER_SECONDS = 60.0
END_SECONDS = 5.0


def run_view(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, running or finished, or a folder that contains runs.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1. 0 chooses a free port.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser, or only print its address.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the address and errors.")] = False,
) -> None:
    """Show runs in the browser, while they run or afterwards."""
    console = console_of()
    folders = run_folders(runs)
    with asked_to_end() as ended, served(folders, console=console, port=port, browser=browser, quiet=quiet):
        if not quiet:
            console.print("press Ctrl-C to close the page; runs continue without it")
        ended.wait()


@contextlib.contextmanager
def asked_to_end() -> Iterator[threading.Event]:
    """Set by Ctrl-C, SIGTERM or SIGHUP. More of them say nothing new, and after the block, when the process ends,
    they are ignored."""
    ended = threading.Event()
    numbers = heeded((signal.SIGINT, *TERMINATION))
    for number in numbers:
        signal.signal(number, lambda *_: ended.set())
    try:
        yield ended
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def served(
    runs: Sequence[Path], *, console: Console, port: int = 0, browser: bool = True, quiet: bool = False
) -> Iterator[ViewServer]:
    """The page of ``runs``, which need not exist yet, in the background of the block; its address is printed."""
    server = ViewServer(runs, port=port)
    # A daemon, as are the threads that it starts: an image that is being made does not delay the end.
    thread = threading.Thread(target=server.run, name="fouriscope view", daemon=True)
    thread.start()
    console.print(server.url if quiet else f"look at {server.url}", markup=False)
    try:
        with opened(server) if browser else contextlib.nullcontext():
            yield server
    finally:
        server.stop()
        thread.join(END_SECONDS)


@contextlib.contextmanager
def opened(server: ViewServer) -> Iterator[None]:
    """Open the page in the browser.

    Every user of the machine can see the arguments of a program. So the browser is not given the address, which holds
    the token, but a file that leads to it and that nobody else may read. The file is deleted as soon as it was used.
    """
    handle, name = tempfile.mkstemp(prefix="fouriscope-view-", suffix=".html")  # mode 600
    page = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        address = html.escape(server.url)
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}"><title>fouriscope</title>\n')

    def visit() -> None:
        webbrowser.open(page.as_uri())
        server.first_visit.wait(BROWSER_SECONDS)
        page.unlink(missing_ok=True)

    # A browser may wait for the page, which waits for us to begin: not from here.
    threading.Thread(target=visit, daemon=True).start()
    try:
        yield
    finally:
        page.unlink(missing_ok=True)
