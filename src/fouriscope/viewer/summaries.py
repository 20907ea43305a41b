"""A run in a few lines for people: what came of it, and what it was told, in words and units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fouriscope.run.folder_files import FolderFiles

Rows = list[list[str]]
# Of [microscope] and [illumination]: the key, its name, the factor to the unit that people use, and that unit.
LENGTHS = {
    "microscope": (
        ("wavelength", "Wavelength", 1e9, "nm"),
        ("na", "NA of the objective", 1, ""),
        ("magnification", "Magnification", 1, "×"),
        ("camera_pixel", "Camera pixel", 1e6, "µm"),
    ),
    "illumination": (
        ("kind", "LEDs", 1, ""),
        ("pitch", "Distance between LEDs", 1e3, "mm"),
        ("height", "Height above the sample", 1e3, "mm"),
        ("die", "Size of an LED", 1e3, "mm"),
    ),
}


def summary_of(files: FolderFiles) -> list[dict[str, Any]]:
    """Parts with a ``title`` and ``rows`` (name, value) of text; what is not known is left out.

    A configuration may hold anything: what is no number is shown as it is, and never interpreted.
    """
    config = files.toml("config.toml")
    result = files.json("result/summary.json") if files.exists("result/summary.json") else {}
    provenance = files.json("provenance.json") if files.exists("provenance.json") else {}
    parts = [
        ("Result", _result(result)),
        ("Found by the alignment", [["", note] for note in _sentences(_section(provenance, "alignment"), "notes")]),
        ("Method", _method(config)),
        ("Microscope", _lengths(config, "microscope")),
        ("Illumination", _lengths(config, "illumination")),
        ("Frames", _frames(config)),
    ]
    return [{"title": title, "rows": rows} for title, rows in parts if rows]


def _result(result: Mapping[str, Any]) -> Rows:
    verdict = _section(result, "verdict")
    rows = [["Verdict", _text(verdict.get("sentence"))], *(["Look at", one] for one in _sentences(verdict, "warnings"))]
    shape, pixel = result.get("shape"), result.get("pixel_size_m")
    try:
        (height, width), (down, across) = shape, pixel  # type: ignore[misc]
        rows.append(["Image", f"{height} × {width} pixels of {_number(across, 1e6)} µm"])
        rows.append(["Field", f"{_number(height * down, 1e6)} × {_number(width * across, 1e6)} µm"])
    except (TypeError, ValueError):  # of a field, or of an older version
        pass
    resolution = _section(verdict, "resolution").get("half_pitch_m")
    rows += [
        ["Resolution (half-pitch)", _number(resolution, 1e6, "µm")],
        ["Stopped by", _text(result.get("stopped"))],
        ["Time in iterations", _number(result.get("seconds"), 1, "s")],
        ["Misfit", _number(result.get("misfit"))],
        ["SNR against the truth", _number(result.get("snr"), 1, "dB")],
    ]
    return _known(rows)


def _method(config: Mapping[str, Any]) -> Rows:
    solver, prior, stop = (_section(config, name) for name in ("solver", "prior", "stop"))
    strength = prior.get("strength")
    named = [_text(prior.get("name")), "" if strength is None else f"strength {_number(strength) or strength}"]
    refined = [name for name, value in _section(config, "calibration").items() if value is True]
    return _known(
        [
            ["Object", _text(_section(config, "object").get("model"))],
            ["Solver", _text(solver.get("method"))],
            ["Loss", _text(solver.get("loss"))],
            ["Prior", ", ".join(word for word in named if word)],
            ["Frames per iteration", _text(solver.get("batch"))],
            ["Start", _text(solver.get("start"))],
            ["Refined with the object", ", ".join(refined)],
            ["Iterations", _text(stop.get("iterations"))],
        ]
    )


def _lengths(config: Mapping[str, Any], section: str) -> Rows:
    values = _section(config, section)
    return _known(
        [[name, _number(values.get(key) or None, factor, unit)] for key, name, factor, unit in LENGTHS[section]]
    )


def _frames(config: Mapping[str, Any]) -> Rows:
    frames = _section(config, "frames")
    left_out = frames.get("reject")
    return _known(
        [
            ["From", _text(frames.get("path"))],
            ["Empty bright field", _number(frames.get("gain"), 1, "counts")],
            ["Without light", _number(frames.get("offset") or None, 1, "counts")],
            ["Left out", f"{len(left_out)} frames" if isinstance(left_out, list) and left_out else ""],
        ]
    )


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _sentences(section: Mapping[str, Any], name: str) -> list[str]:
    found = section.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _known(rows: Rows) -> Rows:
    return [row for row in rows if row[1]]


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: object, factor: float = 1, unit: str = "") -> str:
    """A number with its unit; what is none as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return _text(value)
    return f"{value * factor:.4g} {unit}".rstrip()
