"""`fouriscope tune`: choose a number of the configuration, and write it there."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import tomlkit
import typer
from rich.console import Console
from rich.markup import escape
from tomlkit.exceptions import TOMLKitError

from fouriscope import plots
from fouriscope.cli.as_json import AsJson, consoles, print_json
from fouriscope.cli.options import Quiet
from fouriscope.cli.prior_choice import choose_prior, score_line
from fouriscope.cli.progress import graceful_interrupt
from fouriscope.errors import InvalidInputError
from fouriscope.run import load_config
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import parse_config
from fouriscope.run.doubt import Doubt, may_be_doubted
from fouriscope.run.files import write_text
from fouriscope.settings import RunConfig, Stop
from fouriscope.settings.methods import FORMER_KEYS
from fouriscope.tuning import Criterion, Trial, Tuning, tune_config
from fouriscope.tuning.choice import criterion_for


def run_tuning(
    config: Annotated[Path, typer.Argument(help="The configuration, a TOML file. The result is written into it.")],
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="The key to tune. Can be repeated: several keys are tuned in turn. Default: prior.strength.",
        ),
    ] = None,
    priors: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Choose the prior instead, from names with commas between them, such as `none,tv,bm3d`.",
        ),
    ] = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="What to compare with: `truth` or `held-out` frames. Default: truth, if CONFIG names one."),
    ] = None,
    held_out: Annotated[int | None, typer.Option(min=1, help="Number of frames to hold out. Default: 8 %.")] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Iterations of the first run. Default: those of the configuration. Each trial takes a third of them.",
        ),
    ] = None,
    evaluations: Annotated[int, typer.Option(min=1, help="Largest number of trials.")] = 12,
    figure: Annotated[
        Path | None, typer.Option(help="File for the plot of the trials. Default: the name of CONFIG with .tuning.png.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the result and leave the configuration unchanged.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Find the strength of the prior that predicts held-out frames best, and write it into the configuration.

    Exit code 1 means that all strengths, or several priors, predict the frames equally well. Nothing is written then.
    """
    console, progress = consoles(quiet, as_json)
    if criterion not in (None, "truth", "held-out"):
        raise InvalidInputError(f"--criterion must be truth or held-out, got {criterion!r}")
    load_config(config)  # its errors are better than those of a file that is only text
    document = tomlkit.parse(config.read_text(encoding="utf-8"))
    _use_present_names(document)
    if priors is not None:
        if key:
            raise InvalidInputError(
                "--priors and --key are two searches: first choose the prior, then tune its strength"
            )
        return choose_prior(
            document, config, priors.split(","), criterion, held_out, iterations, dry_run, quiet, as_json
        )
    flat = written = False
    searches: list[dict[str, Any]] = []
    for number, asked in enumerate(key or ["prior.strength"]):  # each choice is used for the next
        section, _, name = asked.partition(".")
        tuned = f"solver.{FORMER_KEYS.get(name, name)}" if section == "solver" else asked
        described = parse_config(document.unwrap(), where=str(config))
        found = _tune(described, config.parent, tuned, criterion, held_out, iterations, evaluations, console, progress)
        picture = figure if figure is not None else config.with_suffix(".tuning.png")
        if number:
            picture = picture.with_name(f"{picture.stem}-{tuned}{picture.suffix}")
        searches.append(_told(found, tuned, None if found.flat and figure is None else picture))
        if found.flat:
            flat = True
            console.print(f"{tuned}: {_flatness(found)}; nothing was chosen, and nothing was written")
            if figure is None:
                continue
        plots.save_figure(found.figure(), picture)
        if found.flat:
            continue
        _choose(found, tuned, document, described, picture, console)
        written = True
    if not dry_run and written:
        write_text(config, tomlkit.dumps(document))
        console.print(f"written to {escape(str(config))}; now: fouriscope reconstruct {escape(str(config))}")
    if as_json:
        told = {"config": config, "written": written and not dry_run, "searches": searches, "prior": None, "priors": []}
        print_json("tune", told)
    return int(flat)


def _choose(
    found: Tuning, key: str, document: tomlkit.TOMLDocument, described: RunConfig, picture: Path, console: Console
) -> None:
    """Put what was found into the document, and say so."""
    for chosen, value in found.settings.items():
        if chosen.startswith("prior.") and "prior" not in document:
            document["prior"] = dict(described.prior)  # a strength needs to know whose it is
        _set(document, chosen, value)
        console.print(f"{chosen} = {value:.4g}  ({_reason(found)}; curve: {escape(str(picture))})")
    low, high = found.range
    if low < high:
        console.print(f"  values of {key} from {low:.3g} to {high:.3g} are as good as the best")
    if found.best in (0, len(found.trials) - 1):
        console.print(f"  the best lies at the end of the range: set {key} = {found.value:.3g} and tune again")


def _told(found: Tuning, key: str, picture: Path | None) -> dict[str, Any]:
    """One search, for scripts."""
    return {
        "key": key,
        "value": None if found.flat else found.value,
        "settings": {} if found.flat else found.settings,
        "flat": found.flat,
        "as_good_from": found.range[0],
        "as_good_to": found.range[1],
        "at_the_end": found.best in (0, len(found.trials) - 1),
        "criterion": found.criterion,
        "trials": [{"value": trial.value, "score": trial.score} for trial in found.trials],
        "held_out": found.held_out,
        "figure": picture,
    }


def _use_present_names(document: tomlkit.TOMLDocument) -> None:
    """Keys of earlier versions get the names that they have now, so that a choice replaces them."""
    solver: Any = document.get("solver", {})
    for former, present in FORMER_KEYS.items():
        if former in solver:
            solver[present] = solver.pop(former)


def _tune(
    config: RunConfig,
    base: Path,
    key: str,
    criterion: str | None,
    held_out: int | None,
    iterations: int | None,
    evaluations: int,
    console: Console,
    progress: Console,
) -> Tuning:
    if iterations is not None:
        config = config.model_copy(update={"stop": Stop(iterations=iterations)})
    data = build_acquisition(config, base)
    wanted = criterion_for(data, cast(Criterion | None, criterion))
    with (
        graceful_interrupt() as interrupt,
        progress.status(f"{key}: a first run, where the trials will start") as status,
    ):

        def tell(trial: Trial) -> None:
            console.print(f"  {key} = {trial.value:.4g}   {score_line(trial.score, wanted)}")
            status.update(f"{key}: searching")

        return tune_config(
            data,
            config,
            key=key,
            criterion=wanted,
            held_out=held_out,
            evaluations=evaluations,
            on_trial=tell,
            callbacks=[interrupt],
            doubt=Doubt() if may_be_doubted(config) else None,
        )


def _flatness(found: Tuning) -> str:
    """Why a search found nothing, with the numbers."""
    scores = [trial.score for trial in found.trials if math.isfinite(trial.score)]
    spread = max(scores) - min(scores)
    reach = f"from {found.trials[0].value:.3g} to {found.trials[-1].value:.3g}"
    if found.criterion == "truth":
        return f"the curve is flat: {reach} the SNR varies by {spread:.2g} dB"
    return (
        f"the curve is flat: {reach} the misfit of {len(found.held_out)} held-out frames varies by "
        f"{100 * spread / max(abs(max(scores)), sys.float_info.min):.2g} %, no more than by chance"
    )


def _reason(found: Tuning) -> str:
    if found.criterion == "truth":
        return f"the highest SNR of {len(found.trials)} trials"
    return f"predicts {len(found.held_out)} held-out frames best of {len(found.trials)} trials"


def _set(document: tomlkit.TOMLDocument, key: str, value: float) -> None:
    *path, name = key.split(".")
    table: tomlkit.TOMLDocument | tomlkit.items.Table = document
    try:
        for part in path:
            if part not in table:
                table.add(part, tomlkit.table())
            table = cast(tomlkit.items.Table, table[part])
        table[name] = float(f"{value:.6g}")
    except (TOMLKitError, TypeError) as error:
        raise InvalidInputError(f"{key} cannot be written into the configuration: {error}") from error
