"""The command line. The library raises; here an error becomes one line and exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from fouriscope import __version__
from fouriscope.errors import FouriscopeError

app = typer.Typer(
    name="fouriscope",
    help="Fourier ptychographic microscopy with plug-and-play priors, solved online.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

CheckpointSeconds = Annotated[
    float | None, typer.Option(min=0, help="Time between checkpoints (10 s); 0 writes one after every iteration.")
]
Memory = Annotated[
    str | None, typer.Option(help="For frames read from disk, such as 64MB or 2GB; otherwise frames.memory of CONFIG.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and runs; replaced if it is a demo's.")] = Path(
        "demo"
    ),
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of each reconstruction.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Of noise and minibatches.")] = 0,
    view: Annotated[bool, typer.Option("--view", help="Look on in the browser while it works.")] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate the paper's microscope, reconstruct with and without a prior, and draw the result."""
    from fouriscope.cli.demo import run_demo

    run_demo(out, iterations=iterations, seed=seed, console=_console(quiet), quiet=quiet, view=view)


@app.command()
def simulate(
    out: Annotated[Path, typer.Argument(help="Folder to write frames.tif, truth.tif and config.toml into.")],
    image: Annotated[
        Path | None,
        typer.Option(help="A grey image (TIFF, PNG or .npy) as the phase; scikit-image's camera otherwise."),
    ] = None,
    phase_range: Annotated[
        float, typer.Option(help="Phase of the brightest pixel, in radians; the darkest has 0.")
    ] = 0.3,
    snr: Annotated[float, typer.Option(help="White noise at this SNR in dB.")] = 40.0,
    noise: Annotated[str, typer.Option(help="The SNR holds over the whole `stack`, or for each `frame`.")] = "stack",
    photons: Annotated[
        float | None, typer.Option(max=1e12, help="Photon noise instead: electrons a pixel in the empty bright field.")
    ] = None,
    frame: Annotated[int, typer.Option(min=8, help="Rows and columns of a frame.")] = 100,
    radius: Annotated[float, typer.Option(help="Radius of the LED disc in pitches; 9.5 gives 293 LEDs.")] = 9.5,
    field: Annotated[
        bool,
        typer.Option("--field/--no-field", help="A large field: angles change over it, and it is not periodic."),
    ] = False,
    field_curvature: Annotated[
        float, typer.Option(help="With --field: defocus in metres at the frame's corner, by the distance squared.")
    ] = 0.0,
    live: Annotated[
        bool,
        typer.Option("--live/--no-live", help="One file a frame into OUT/frames, at its time: try `fouriscope watch`."),
    ] = False,
    rate: Annotated[float, typer.Option(help="With --live: frames a second.")] = 5.0,
    order: Annotated[str, typer.Option(help="With --live: `na`, from the axis outwards, or `random`.")] = "na",
    hostile: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="SEED", help="Instead: the microscope with faults that SEED draws; no other option counts."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same frames.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Simulate an acquisition with the paper's microscope, ready for `fouriscope reconstruct` (or `field`)."""
    from fouriscope.cli.simulate import run_hostile, run_simulation

    if hostile is not None:
        run_hostile(out, hostile, _console(quiet))
        return
    run_simulation(
        out,
        image=image,
        phase_range=phase_range,
        snr=snr,
        noise=noise,
        photons=photons,
        frame=frame,
        radius=radius,
        field=field,
        curvature=field_curvature,
        live=live,
        rate=rate,
        order=order,
        seed=seed,
        console=_console(quiet),
    )


@app.command()
def reconstruct(
    config: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    out: Annotated[Path | None, typer.Option(help="The run folder; default: run beside the configuration.")] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruct what a configuration describes into a run folder."""
    from fouriscope.cli.reconstruct import run_reconstruction

    raise typer.Exit(run_reconstruction(config, out, checkpoint_seconds, memory, console=_console(quiet), quiet=quiet))


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    iterations: Annotated[int | None, typer.Option(min=1, help="A new total, to go on with a finished run.")] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Continue an interrupted run from its last checkpoint."""
    from fouriscope.cli.reconstruct import run_resumption

    raise typer.Exit(run_resumption(run, iterations, checkpoint_seconds, memory, console=_console(quiet), quiet=quiet))


@app.command()
def watch(
    folder: Annotated[Path, typer.Argument(help="Where frames come, one image each; it may come later, too.")],
    config: Annotated[Path, typer.Option(help="The configuration, a TOML file; FOLDER stands in for frames.path.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The run folder; default: run beside CONFIG. One that was stopped here goes on."),
    ] = None,
    until: Annotated[
        str,
        typer.Option(help="`converged`: \\[stop] of CONFIG, counted from the last frame; or seconds without a frame."),
    ] = "converged",
    first_number: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="Whether the numbers in file names count LEDs from 0 or 1. docs/live.md"),
    ] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruct while an acquisition program is still writing frames, and say when more no longer help."""
    from fouriscope.cli.watch import run_watch

    raise typer.Exit(
        run_watch(
            folder,
            config,
            out,
            until=until,
            first_number=first_number,
            checkpoint_seconds=checkpoint_seconds,
            console=_console(quiet),
            quiet=quiet,
        )
    )


@app.command()
def field(
    config: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder; default: field beside CONFIG. One that is there goes on."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address or scheduler file of a running Dask cluster; without, workers start here."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes, one thread each; default: all cores. Of a cluster: to wait for."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Of each worker, such as 2GB; a share of the machine's otherwise.")
    ] = None,
    tile: Annotated[int | None, typer.Option(min=16, help="Frame pixels along a side of a tile; 128.")] = None,
    overlap: Annotated[
        float | None, typer.Option(help="Part of a tile that it shares with its neighbour, 0.05 to 0.5; 0.2.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often a tile is begun before it is given up.")] = 5,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would take: time, memory and disk.")] = False,
    quiet: Quiet = False,
) -> None:
    """Reconstruct the whole field of view in tiles, on all cores or on a Dask cluster. Interrupted, it goes on.

    Exit code 1 means that tiles failed: they are named, and the rest is there.
    """
    from fouriscope.cli.field import run_field, run_plan

    if plan:
        run_plan(config, workers=workers, memory=memory, tile=tile, overlap=overlap, console=_console(quiet))
        return
    raise typer.Exit(
        run_field(
            config,
            out,
            scheduler=scheduler,
            workers=workers,
            memory=memory,
            tile=tile,
            overlap=overlap,
            attempts=attempts,
            console=_console(quiet),
            quiet=quiet,
        )
    )


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(help="A file or folder with frames, of any format that is understood.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The description to write.")] = Path("acquisition.toml"),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="section.key=value for what the files do not say; can be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    to_zarr: Annotated[
        bool,
        typer.Option("--to-zarr", help="Rewrite the frames as Zarr beside OUT, from which tiles are read quickly."),
    ] = False,
    memory: Annotated[str | None, typer.Option(help="For --to-zarr, such as 64MB or 2GB; 256MB otherwise.")] = None,
    quiet: Quiet = False,
) -> None:
    """Recognise an acquisition, say what was found and what is missing, and write its acquisition.toml.

    Exit code 1 means that keys are missing: they stand in the file as comments to fill in.
    """
    from fouriscope.cli.importing import run_import

    raise typer.Exit(
        run_import(path, out, sets=set_ or [], force=force, to_zarr=to_zarr, memory=memory, console=_console(quiet))
    )


@app.command()
def tune(
    config: Annotated[Path, typer.Argument(help="The configuration, a TOML file; the choice is written into it.")],
    key: Annotated[
        list[str] | None,
        typer.Option(help="What to choose; can be repeated, then one after the other. Default: prior.strength."),
    ] = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="`truth` or `held-out` frames. Default: the truth, where the configuration names one."),
    ] = None,
    held_out: Annotated[int | None, typer.Option(min=1, help="Frames to hold out; default: 8 %.")] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Of the first run, instead of the configuration's; trials take a third.")
    ] = None,
    evaluations: Annotated[int, typer.Option(min=1, help="Trials at most.")] = 12,
    figure: Annotated[
        Path | None, typer.Option(help="Where to draw the curve; default: CONFIG's name + .tuning.png.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the choice, but leave the file as it is.")] = False,
    quiet: Quiet = False,
) -> None:
    """Choose the strength of the prior by what predicts held-out frames best, and write it into the configuration.

    Exit code 1 means that the frames cannot tell: all strengths predict them equally well, and nothing is written.
    """
    from fouriscope.cli.tune import run_tuning

    raise typer.Exit(
        run_tuning(
            config,
            keys=key or ["prior.strength"],
            criterion=criterion,
            held_out=held_out,
            iterations=iterations,
            evaluations=evaluations,
            figure=figure,
            dry_run=dry_run,
            console=_console(quiet),
        )
    )


@app.command()
def paper(
    images: Annotated[
        Path | None, typer.Option(help="Folder with the paper's images (or others); scikit-image's otherwise.")
    ] = None,
    figure: Annotated[str, typer.Option(help="1, 2, 3, 4 or all (4 only with --data).")] = "all",
    data: Annotated[
        Path | None,
        typer.Option(help="For figure 4: a measured acquisition, as `fouriscope import` writes it."),
    ] = None,
    zoom: Annotated[
        list[str] | None,
        typer.Option(help="A close-up of figure 4, row,column,size in pixels; once or twice. Chosen otherwise."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, report and everything computed on the way.")] = Path(
        "paper"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Two images, fewer iterations.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments again: its figures and numbers, beside ours. Interrupted, it resumes."""
    from fouriscope.cli.paper import run_paper_command

    run_paper_command(
        out,
        images=images,
        figure=figure,
        data=data,
        zooms=zoom or (),
        quick=quick,
        console=_console(quiet),
        quiet=quiet,
    )


@app.command()
def info(
    config: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    frames: Annotated[bool, typer.Option("--frames", help="Statistics of each frame, one line an LED.")] = False,
    sheet: Annotated[Path | None, typer.Option(help="Write a contact sheet: each frame at its LED's place.")] = None,
) -> None:
    """Say what a configuration compiles to and what is in its frames, with a verdict."""
    from fouriscope.cli.info import show_info

    show_info(config, every_frame=frames, sheet=sheet, console=_console(False))


@app.command()
def denoise(
    image: Annotated[Path, typer.Argument(help="A grey image: TIFF, PNG or .npy.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="TIFF and .npy are written in float; a PNG in the 8 or 16 bits of the image."),
    ],
    sigma: Annotated[
        float,
        typer.Option(
            help="Noise level in units of the image as stored: of 0…255 for an 8-bit PNG. "
            "For a prior with an objective (box, l1, tv) its square is the weight."
        ),
    ],
    prior: Annotated[str, typer.Option(help="One of those that `fouriscope priors` lists.")] = "bm3d",
    option: Annotated[
        list[str] | None,
        typer.Option(help="A parameter of the prior as key=value, value as in TOML; can be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    quiet: Quiet = False,
) -> None:
    """Denoise one image with a prior."""
    from fouriscope.cli.denoise import run_denoise

    run_denoise(image, out, prior=prior, sigma=sigma, options=option or [], force=force, console=_console(quiet))


@app.command()
def view(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, live or finished, or a folder of runs.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page, or only say where.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the address, and errors.")] = False,
) -> None:
    """Show runs in the browser, while they run and when they are done."""
    from fouriscope.cli.view import run_view

    run_view(runs, port=port, browser=browser, console=_console(False), quiet=quiet)


@app.command()
def priors() -> None:
    """List the priors: what each is, and whether it can be used here."""
    from fouriscope.cli.priors import show_priors

    show_priors(console=_console(False))


def _console(quiet: bool) -> Console:
    return Console(quiet=quiet, highlight=False, emoji=False, soft_wrap=True)


def main() -> None:
    """Entry point: errors that fouriscope raises on purpose are one line and exit code 2."""
    errors = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    try:
        app()
    except FouriscopeError as error:
        errors.print(f"[bold red]error:[/] {escape(' '.join(str(error).splitlines()))}")
        sys.exit(2)
    except OSError as error:
        if error.errno is None:  # not from the operating system: a mistake of ours, which deserves its traceback
            raise
        errors.print(f"[bold red]error:[/] {escape(str(error.filename or 'output'))}: {escape(error.strerror or '')}")
        sys.exit(2)
    except MemoryError as error:
        errors.print(
            f"[bold red]error:[/] there is not enough memory ({escape(' '.join(str(error).split()) or 'no details')}); "
            "use smaller or fewer frames, a smaller object, or end other programs"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped")
        sys.exit(130)


if __name__ == "__main__":
    main()
