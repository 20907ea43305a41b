"""The command line. The library raises; here an error becomes one line and an exit code."""

from __future__ import annotations

import io
import pkgutil
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fouriscope import __version__
from fouriscope.cli.last_resort import exit_code_of

# Each command: the function that it is, below fouriscope.cli, and the first line of its help.
COMMANDS = {
    "demo": (
        "demo:run_demo",
        "Simulate a microscope, reconstruct its frames with and without a prior, and draw the results.",
    ),
    "simulate": (
        "simulate:run_simulation",
        "Simulate an acquisition for `fouriscope reconstruct`, `field` or `watch`.",
    ),
    "reconstruct": (
        "reconstruct:run_reconstruction",
        "Reconstruct an image from the frames that a configuration describes.",
    ),
    "resume": ("reconstruct:run_resumption", "Continue an interrupted run from its last checkpoint."),
    "watch": (
        "watch:run_watch",
        "Reconstruct while frames are still being acquired, and say when more frames no longer help.",
    ),
    "field": (
        "field:run_field",
        "Reconstruct the whole field of view in tiles. Run it again to continue after an interruption.",
    ),
    "colour": (
        "colour:run_colour",
        "Reconstruct a field in three wavelengths and register them. Run it again to continue after an interruption.",
    ),
    "multiplex": (
        "multiplex:run_multiplex",
        "Add up frames of single LEDs, as if several LEDs had shone at once.",
    ),
    "import": (
        "importing:run_import",
        "Recognise the files of an acquisition and write a configuration for them.",
    ),
    "tune": (
        "tune:run_tuning",
        "Find the strength of the prior that predicts held-out frames best, and write it into the configuration.",
    ),
    "paper": (
        "paper:run_paper_command",
        "Repeat the experiments of the paper and compare the results. Run it again to continue after an interruption.",
    ),
    "info": ("info:show_info", "Check a configuration and its frames, and say whether they are ready to reconstruct."),
    "denoise": ("denoise:run_denoise", "Denoise one image with a prior."),
    "view": ("view:run_view", "Show runs in the browser, while they run or afterwards."),
    "priors": ("denoise:show_priors", "List the priors and say which of them can be used on this machine."),
}


def _named(params: list[Any]) -> list[Any]:
    """Parameters as help names them: a flag has no value and so no type; arguments have capitals, as in our texts."""
    for param in params:
        if getattr(param, "is_bool_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.metavar = param.name.upper()
    return params


class Command(TyperCommand):
    """A command whose help names its parameters plainly, ``--help`` included."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _named(super().get_params(ctx))


class Commands(TyperGroup):
    """Imports the command that is called, and no other: help comes at once. What it returns is the exit code."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            alone.command(name, cls=Command)(pkgutil.resolve_name(f"fouriscope.cli.{COMMANDS[name][0]}"))
            command = typer.main.get_command(alone)
        return name, command, rest

    def get_params(self, ctx: Any) -> list[Any]:
        return _named(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        invoke = super().invoke
        raise typer.Exit(exit_code_of(lambda: invoke(ctx)))


app = typer.Typer(
    name="fouriscope",
    cls=Commands,
    help="High-resolution quantitative images from the frames of an LED-array microscope.",
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
    """High-resolution quantitative images from the frames of an LED-array microscope."""


def main() -> None:
    """Entry point. A command ends with one line and an exit code, whatever happens: fouriscope.cli.last_resort."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file may have a name that is no text
    app()


def program() -> None:
    """What a terminal runs: :func:`main` without Python's warnings, which are for programmers; ``-W`` shows them."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    main()


if __name__ == "__main__":
    program()
