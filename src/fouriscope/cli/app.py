"""The command line. The library raises; here an error becomes one line and an exit code."""

from __future__ import annotations

import io
import pkgutil
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fouriscope import __version__
from fouriscope.cli.last_resort import exit_code_of

# Each command: the function that it is, below fouriscope.cli, and the first line of its help.
COMMANDS = {
    "demo": (
        "demo:run_demo",
        "Simulate the paper's microscope, reconstruct with and without a prior, and draw the result.",
    ),
    "simulate": (
        "simulate:run_simulation",
        "Simulate an acquisition with the paper's microscope, ready for `fouriscope reconstruct` (or `field`).",
    ),
    "reconstruct": ("reconstruct:run_reconstruction", "Reconstruct what a configuration describes into a run folder."),
    "resume": ("reconstruct:run_resumption", "Continue an interrupted run from its last checkpoint."),
    "watch": (
        "watch:run_watch",
        "Reconstruct while an acquisition program is still writing frames, and say when more no longer help.",
    ),
    "field": (
        "field:run_field",
        "Reconstruct the whole field of view in tiles, on all cores or on a Dask cluster. Interrupted, it goes on.",
    ),
    "colour": (
        "colour:run_colour",
        "Reconstruct three wavelengths of one field and register them to each other. Interrupted, it goes on.",
    ),
    "multiplex": (
        "multiplex:run_multiplex",
        "Add up frames of single LEDs to what several LEDs at once give.",
    ),
    "import": (
        "importing:run_import",
        "Recognise an acquisition, say what was found and what is missing, and write its acquisition.toml.",
    ),
    "tune": (
        "tune:run_tuning",
        "Choose the strength of the prior by what predicts held-out frames best, and write it into the configuration.",
    ),
    "paper": (
        "paper:run_paper_command",
        "Run the paper's experiments again: its figures and numbers, beside ours. Interrupted, it resumes.",
    ),
    "info": ("info:show_info", "Say what a configuration compiles to and what is in its frames, with a verdict."),
    "denoise": ("denoise:run_denoise", "Denoise one image with a prior."),
    "view": ("view:run_view", "Show runs in the browser, while they run and when they are done."),
    "priors": ("denoise:show_priors", "List the priors: what each is, and whether it can be used here."),
}


class Commands(TyperGroup):
    """Imports the command that is called, and no other: help comes at once. What it returns is the exit code."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            alone.command(name)(pkgutil.resolve_name(f"fouriscope.cli.{COMMANDS[name][0]}"))
            command = typer.main.get_command(alone)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        invoke = super().invoke
        raise typer.Exit(exit_code_of(lambda: invoke(ctx)))


app = typer.Typer(
    name="fouriscope",
    cls=Commands,
    help="Fourier ptychographic microscopy with plug-and-play priors, solved online.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fouriscope {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Fourier ptychographic microscopy with plug-and-play priors, solved online."""


def main() -> None:
    """Entry point. A command ends with one line and an exit code, whatever happens: fouriscope.cli.last_resort."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file may have a name that is no text
    app()


def program() -> None:
    """What a terminal runs: :func:`main` without Python's warnings, which speak to programmers; ``-W`` brings them."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    main()


if __name__ == "__main__":
    program()
