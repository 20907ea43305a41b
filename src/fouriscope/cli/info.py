"""`fouriscope info`: what a configuration compiles to, what is in its frames, and whether the two fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import CorrectedFrames, bad_frames, unlike_others
from fouriscope.acquisition.machine_memory import memory_available
from fouriscope.acquisition.suggestions import order_is_wrong, suggest
from fouriscope.acquisition.survey import Survey
from fouriscope.cli.as_json import AsJson, print_json
from fouriscope.cli.info_told import frames_told, optics_told
from fouriscope.cli.last_resort import REFUSED
from fouriscope.cli.options import Config, console_of
from fouriscope.errors import FouriscopeError, InvalidInputError
from fouriscope.fidelity import CameraNoise
from fouriscope.fidelity.camera_noise import noise_of
from fouriscope.optics import Geometry, report_geometry
from fouriscope.run import load_config
from fouriscope.run.assemble import build_geometry
from fouriscope.run.described import Described
from fouriscope.run.execute import check_ready
from fouriscope.run.judged import for_tiles
from fouriscope.run.memory import memory_needed
from fouriscope.settings import FramesSection, RunConfig

WRONG_ORDER = "bright-field frames are no brighter than dark-field ones: wrong order of the LEDs, or wrong NA."
SHOWN = 8  # frames of which the reason is printed without being asked for
VEIL = 0.2  # of a dark frame's mean: stray light that is worth a warning


def show_info(
    config: Config,
    frames: Annotated[bool, typer.Option("--frames", help="Print statistics of the frames, one line per LED.")] = False,
    sheet: Annotated[
        Path | None, typer.Option(help="Write a contact sheet that shows each frame at the position of its LED.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check a configuration and its frames, and say whether they are ready to reconstruct.

    Exit code 2 means that `reconstruct` would refuse the configuration. The last line says why.
    """
    described, base, console = load_config(config), config.parent, console_of(as_json)
    geometry = build_geometry(described, base)
    report = report_geometry(geometry)
    console.print(escape(str(report)), soft_wrap=True)
    needed, free = memory_needed(geometry, described) / 2**20, memory_available() / 2**30
    console.print(f"memory                   {needed:.0f} MiB of {free:.1f} GiB free")
    told: dict[str, Any] = optics_told(config, report, memory_needed(geometry, described), memory_available())
    told["noise"] = None
    if described.frames.path is None:
        if sheet is not None or frames:
            raise InvalidInputError("frames.path is missing: there is nothing to show without frames")
        if as_json:
            print_json("info", told)
        return 0
    seen = Described(described, base)
    # Raises where dark, flat, exposures or background do not fit the frames.
    CorrectedFrames(seen.stored, seen.corrections())
    survey = seen.survey()
    exposures = None if described.frames.exposures is None else np.array(described.frames.exposures)
    rejected = _rejected(seen, survey)
    strange = unlike_others(survey, geometry.na, geometry.optics.na, exposures, seen.levels)
    _show_frames(survey, geometry, rejected, strange, console)
    if frames:
        _show_each(survey, geometry, rejected, strange, console)
    refusal = _refusal(described, base)
    noise = None if refusal else _noise(seen, geometry)
    if noise is not None:
        console.print(f"noise                    {noise}")
    found = [] if refusal else concerns(described.frames, survey, geometry, exposures, rejected, seen.levels)
    if refusal and order_is_wrong(survey, geometry.na, geometry.optics.na, exposures, seen.levels):
        found = [WRONG_ORDER]
    worries = [*report.warnings, *found]
    for worry in found:
        console.print(f"warning: {escape(worry)}")
    verdict = "ready to reconstruct"
    if refusal:
        verdict = f"cannot be reconstructed: {refusal}"
    elif worries:
        verdict = (
            f"look at the {len(worries)} warnings above first" if len(worries) > 1 else "look at the warning above"
        )
    console.print(f"verdict                  {escape(verdict)}")
    if not refusal:
        in_tiles = for_tiles(geometry.frame_shape, periodic=described.object.margin == 0)
        command, why = (
            ("field", ", because light and lens change over frames as large as these")
            if in_tiles
            else ("reconstruct", "")
        )
        console.print(f"next                     fouriscope {command} {escape(str(config))}{why}")
    if sheet is not None:
        from fouriscope.plots import contact_sheet, save_figure

        save_figure(contact_sheet(seen.counts(), geometry.na, geometry.optics.na, survey.mean, rejected), sheet)
        console.print(f"{escape(str(sheet))}: contact sheet")
    if as_json:
        told |= {"frames": frames_told(survey, geometry, rejected, strange, each=frames), "sheet": sheet}
        told["noise"] = (
            None if noise is None else {"read": noise.read, "photon": noise.photon, "relative": noise.relative}
        )
        print_json("info", told | {"warnings": worries, "ready": not refusal, "refusal": refusal, "verdict": verdict})
    return REFUSED if refusal else 0


def _noise(seen: Described, geometry: Geometry) -> CameraNoise:
    acquisition = seen.acquisition()
    used = np.flatnonzero(acquisition.frame_weights > 0)
    return noise_of(acquisition.frames, acquisition.mask, geometry.bright_field, used)


def _refusal(config: RunConfig, base: Path) -> str:
    """What `reconstruct` would say instead of beginning; nothing if it would begin."""
    try:
        check_ready(config, base)
    except FouriscopeError as error:
        return " ".join(str(error).split())
    return ""


def concerns(
    section: FramesSection,
    survey: Survey,
    geometry: Geometry,
    exposures: np.ndarray[tuple[int], np.dtype[np.float64]] | None,
    rejected: dict[int, str],
    levels: np.ndarray[tuple[int], np.dtype[np.float64]] | float = 1.0,
) -> list[str]:
    """What the frames suggest and the configuration does not do."""
    na = geometry.optics.na
    if order_is_wrong(survey, geometry.na, na, exposures, levels):
        return [WRONG_ORDER]
    found = []
    for suggestion in suggest(survey, geometry.na, na, exposures, section.offset or None, levels):
        key, value = suggestion.key, suggestion.value
        if key == "reject":
            left = [index for index in value if index not in rejected]
            if left:
                found.append(f"frames {_listed(left)} look wrong ({suggestion.why}); leave them out: frames.reject.")
        elif key == "saturation" and section.saturation is None:
            found.append(f"saturated pixels are not masked: {suggestion.why}; set frames.saturation = {value:g}.")
        elif key == "offset" and section.offset == 0 and section.dark is None:
            found.append(f"there are {value:g} counts in the dark; subtract them: frames.offset = {value:g}.")
        elif key == "power":
            found.append(f"{suggestion.why}; set frames.power = {value:.6g} to make the intensity linear.")
        elif key == "background" and section.background is None and section.dark is None:
            levels = np.array(value)
            veiled = levels > VEIL * (survey.mean - (section.offset or survey.offset))
            if 2 * veiled.sum() > (levels > 0).sum():
                found.append(
                    f"{veiled.sum()} dark frames have stray light of up to {levels.max():.4g} counts; subtract "
                    'it: frames.background = "auto", or one number per frame, as `fouriscope import` writes them.'
                )
        elif key == "bit_shift":
            found.append(f"{suggestion.why}: frames.bit_shift = {value}.")
        elif key == "gain" and not 0.5 <= value / section.gain <= 2:
            found.append(
                f"the empty bright field is about {value:g} counts, but frames.gain is {section.gain:g}; intensities "
                f"must be in units of the bright field: set frames.gain = {value:g}."
            )
    return found


def _rejected(seen: Described, survey: Survey) -> dict[int, str]:
    """What [frames] leaves out; frames that are named there get the reason that they themselves give, if any."""
    reasons = bad_frames(survey)
    left_out = seen.rejected(survey)
    return {index: reasons.get(index, reason) for index, reason in left_out.items()}


def _show_frames(
    survey: Survey, geometry: Geometry, rejected: dict[int, str], strange: dict[int, str], console: Console
) -> None:
    console.print(
        f"frames                   {len(survey)}, {survey.dtype}, {survey.low.min():.4g} … {survey.high.max():.4g}"
    )
    for name, group in (("bright field", geometry.bright_field), ("dark field", ~geometry.bright_field)):
        if group.any():
            low, middle, high = np.percentile(survey.mean[group], (0, 50, 100))
            console.print(f"{name:<25}{group.sum()} frames, mean {middle:.4g} ({low:.4g} … {high:.4g})")
    for index, reason in rejected.items():
        console.print(f"rejected                 frame {index}: {escape(reason)}")
    for index, reason in list(strange.items())[:SHOWN]:
        console.print(f"unlike others            frame {index}: {escape(reason)}")
    if len(strange) > SHOWN:
        console.print(f"unlike others            and {len(strange) - SHOWN} more: --frames lists them")


def _show_each(
    survey: Survey, geometry: Geometry, rejected: dict[int, str], strange: dict[int, str], console: Console
) -> None:
    """One line per frame, in the order of the LEDs."""
    remarks = {index: f"  unlike others: {reason}" for index, reason in strange.items()}
    remarks |= {index: f"  rejected: {reason}" for index, reason in rejected.items()}
    console.print("frame     na_y     na_x    |na|  field       min   median     mean      max  at max")
    for i, (y, x) in enumerate(geometry.na):
        field = "bright" if geometry.bright_field[i] else "dark"
        console.print(
            f"{i:5d} {y:8.4f} {x:8.4f} {geometry.illumination_na[i]:7.4f}  {field:<6} {survey.low[i]:8.4g} "
            f"{survey.median[i]:8.4g} {survey.mean[i]:8.4g} {survey.high[i]:8.4g} {survey.at_top[i]:7d}"
            + escape(remarks.get(i, ""))
        )


def _listed(indices: list[int]) -> str:
    shown = ", ".join(map(str, indices[:8]))
    return shown + (f" and {len(indices) - 8} more" if len(indices) > 8 else "")
