"""What `fouriscope info --json` says. docs/json.md lists the keys."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.survey import Survey
from fouriscope.optics import Geometry
from fouriscope.optics.report import OpticsReport


def optics_told(config: Path, report: OpticsReport, needed: float, free: float) -> dict[str, Any]:
    """Everything that is known without frames, and null for what they would tell."""
    numbers = asdict(report)
    warnings, notes = numbers.pop("warnings"), numbers.pop("notes")
    return {
        "config": config,
        "optics": numbers,
        "memory_needed_bytes": needed,
        "memory_free_bytes": free,
        "frames": None,
        "warnings": warnings,
        "notes": notes,
        "ready": None,
        "refusal": "",
        "verdict": None,
        "sheet": None,
    }


def frames_told(
    survey: Survey, geometry: Geometry, rejected: dict[int, str], strange: dict[int, str], *, each: bool
) -> dict[str, Any]:
    """What is in the frames; with ``each``, also one by one."""
    bright = geometry.bright_field
    return {
        "count": len(survey),
        "dtype": str(survey.dtype),
        "low": survey.low.min(),
        "high": survey.high.max(),
        "bright_field": _means(survey, bright),
        "dark_field": _means(survey, ~bright),
        "rejected": [{"frame": index, "reason": reason} for index, reason in rejected.items()],
        "unlike_others": [{"frame": index, "reason": reason} for index, reason in strange.items()],
        "each": [_one(survey, geometry, index) for index in range(len(survey))] if each else None,
    }


def _means(survey: Survey, group: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> dict[str, Any] | None:
    if not group.any():
        return None
    low, middle, high = np.percentile(survey.mean[group], (0, 50, 100))
    return {"count": group.sum(), "mean_low": low, "mean_median": middle, "mean_high": high}


def _one(survey: Survey, geometry: Geometry, index: int) -> dict[str, Any]:
    return {
        "na_y": geometry.na[index, 0],
        "na_x": geometry.na[index, 1],
        "bright_field": geometry.bright_field[index],
        "low": survey.low[index],
        "median": survey.median[index],
        "mean": survey.mean[index],
        "high": survey.high[index],
        "at_high": survey.at_top[index],
    }
