"""`fouriscope view`: the page of one or several runs."""

from __future__ import annotations

import contextlib
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fouriscope.cli.options import console_of
from fouriscope.viewer.runs import run_folders
from fouriscope.viewer.server import ViewServer


def run_view(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, live or finished, or a folder of runs.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page, or only say where.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the address, and errors.")] = False,
) -> None:
    """Show runs in the browser, while they run and when they are done."""
    console = console_of()
    server = ViewServer(run_folders(runs), port=port)
    announce(server, browser=browser, console=console, quiet=quiet)
    if not quiet:
        console.print("Ctrl-C ends the page; runs go on without it")
    with contextlib.suppress(KeyboardInterrupt):  # that is how one leaves, not an error
        server.run()


def announce(server: ViewServer, *, browser: bool, console: Console, quiet: bool = False) -> None:
    """Print the address, and open it."""
    console.print(server.url if quiet else f"look at {server.url}", markup=False)
    if browser:
        # A browser may wait for the page, which waits for us to begin: not from here.
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()


@contextlib.contextmanager
def served(runs: Sequence[Path], *, console: Console) -> Iterator[ViewServer]:
    """The page of ``runs``, which need not exist yet, in the background of the block."""
    server = ViewServer(runs)
    thread = threading.Thread(target=server.run, name="fouriscope view", daemon=True)
    thread.start()
    announce(server, browser=True, console=console)
    try:
        yield server
    finally:
        server.stop()
        thread.join()
