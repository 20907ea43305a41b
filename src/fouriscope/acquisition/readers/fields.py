"""Numbers from other people's files, with errors that name file and field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import read_text
from fouriscope.acquisition.stored import first_line
from fouriscope.errors import InvalidInputError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(read_text(path, "a JSON file"))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # RecursionError: brackets within brackets, without end
        raise InvalidInputError(f"{path}: not a readable JSON file ({first_line(error)})") from error
    if not isinstance(content, dict):
        raise InvalidInputError(f"{path}: a JSON object was expected, got {type(content).__name__}")
    return content


def number(path: Path, field: str, value: Any, *, positive: bool = True) -> float:
    """One finite number, in any wrapping: MATLAB and HDF5 have scalars of shape (), (1,) and (1, 1)."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size != 1 or not np.isfinite(array).all() or (positive and array.item() <= 0):
        kind = "a positive number" if positive else "a number"
        raise InvalidInputError(f"{path}: {field} must be {kind}, got {_shown(value)}")
    return float(array.item())


def numbers(path: Path, fields: Mapping[str, tuple[str, Any, float]]) -> dict[str, float]:
    """Key → number for ``fields`` of key → (name in the file, value or None, factor to SI); what is None is left out.

    >>> numbers(Path("a.json"), {"wavelength": ("lambda", 0.5, 1e-6), "na": ("NA", None, 1.0)})
    {'wavelength': 5e-07}
    """
    found = {key: (name, value, unit) for key, (name, value, unit) in fields.items() if value is not None}
    return {key: float(f"{number(path, name, value) * unit:.12g}") for key, (name, value, unit) in found.items()}


def named_numbers(path: Path, content: Mapping[str, Any], **names: str) -> dict[str, float]:
    """Key → number for ``names`` of key = name in the file, in SI units; what ``content`` lacks is left out.

    >>> named_numbers(Path("a.json"), {"NA": 0.1}, na="NA", wavelength="lambda")
    {'na': 0.1}
    """
    return numbers(path, {key: (name, content.get(name), 1.0) for key, name in names.items()})


def pairs(path: Path, field: str, values: Any) -> NDArray[np.float64]:
    """An (N, 2) array of finite numbers."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape == (2,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise InvalidInputError(f"{path}: {field} must be of shape (frames, 2), got shape {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"{path}: {field} must be finite, got {array[~finite][0].tolist()} for LED {finite.argmin()}"
        )
    return array


def record(path: Path, field: str, value: Any) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"{path}: {field} must be an object with named fields, got {_shown(value)}")
    return value


def records(path: Path, field: str, value: Any) -> list[dict[str, Any]]:
    """A JSON list of at least one object."""
    if not isinstance(value, list) or not value:
        raise InvalidInputError(f"{path}: {field} must be a list of at least one object, got {_shown(value)}")
    return [record(path, f"{field}[{place}]", item) for place, item in enumerate(value)]


def required(path: Path, content: Mapping[str, Any], field: str) -> Any:
    """``content[field]`` of a file in which it must be."""
    if field not in content:
        raise InvalidInputError(f"{path}: {field} is missing; the file holds {', '.join(content) or 'nothing'}")
    return content[field]


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
    return text if len(text) < 60 else f"{type(value).__name__} of shape {np.shape(value)}"
