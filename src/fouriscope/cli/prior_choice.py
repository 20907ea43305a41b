"""`fouriscope tune --priors`: choose a prior, and write it into the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import tomlkit
from rich.markup import escape

from fouriscope.cli.as_json import consoles, print_json
from fouriscope.cli.progress import graceful_interrupt
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import parse_config
from fouriscope.run.doubt import may_be_doubted
from fouriscope.run.files import write_text
from fouriscope.settings import Stop
from fouriscope.tuning import Criterion, compare_priors_config
from fouriscope.tuning.choice import criterion_for


def choose_prior(
    document: tomlkit.TOMLDocument,
    config: Path,
    names: list[str],
    criterion: str | None,
    held_out: int | None,
    iterations: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare priors, each with its automatic strength, and write the best into the configuration.

    The exit code is 1 for a tie: nothing is written then.
    """
    console, progress = consoles(quiet, as_json)
    described = parse_config(document.unwrap(), where=str(config))
    if iterations is not None:
        described = described.model_copy(update={"stop": Stop(iterations=iterations)})
    data = build_acquisition(described, config.parent)
    wanted = criterion_for(data, cast(Criterion | None, criterion))
    with graceful_interrupt() as interrupt, progress.status("comparing priors"):
        found = compare_priors_config(
            data,
            described,
            [{"name": name.strip()} for name in names],
            criterion=wanted,
            held_out=held_out,
            on_prior=lambda prior, score: console.print(f"  {prior.name}   {score_line(score, wanted)}"),
            callbacks=[interrupt],
            doubt=may_be_doubted(described),
        )
    console.print(found.sentence if found.best is not None else f"{found.sentence}; nothing was written")
    written = found.best is not None and not dry_run
    if written and found.best is not None:
        document["prior"] = {"name": found.best.name}
        write_text(config, tomlkit.dumps(document))
        console.print(f"written to {escape(str(config))}; now: fouriscope reconstruct {escape(str(config))}")
    if as_json:
        scores = [
            {"prior": prior.name, "score": score, "as_good_as_the_best": good}
            for prior, score, good in zip(found.priors, found.scores, found.as_good, strict=True)
        ]
        best = None if found.best is None else found.best.name
        print_json("tune", {"config": config, "written": written, "searches": [], "prior": best, "priors": scores})
    return int(found.best is None)


def score_line(score: float, criterion: Criterion) -> str:
    """What a score says, in words."""
    return f"SNR {score:.2f} dB" if criterion == "truth" else f"misfit of held-out frames {-score:.6g}"
