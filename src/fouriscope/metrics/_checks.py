"""Checks of the input of the metrics."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fouriscope.checks import numbers
from fouriscope.errors import InvalidInputError

RealArray: TypeAlias = npt.NDArray[np.float64]
ComplexArray: TypeAlias = npt.NDArray[np.complex128]


def complex_pair(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, names: tuple[str, str] = ("estimate", "truth")
) -> tuple[ComplexArray, ComplexArray]:
    """Two finite arrays of one shape, as complex128."""
    first, second = _finite(estimate, names[0]), _finite(truth, names[1])
    _require_one_shape(first, second, names)
    return first.astype(np.complex128), second.astype(np.complex128)


def real_pair(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, names: tuple[str, str] = ("estimate", "truth")
) -> tuple[RealArray, RealArray]:
    """Two finite real arrays of one shape, as float64."""
    first, second = real_array(estimate, names[0]), real_array(truth, names[1])
    _require_one_shape(first, second, names)
    return first, second


def real_array(values: npt.ArrayLike, name: str) -> RealArray:
    """``values`` as finite float64, or say why argument ``name`` is not."""
    array = _finite(values, name)
    if np.iscomplexobj(array):
        raise InvalidInputError(
            f"{name} must be real, but it is {array.dtype}; pass its phase or amplitude, or use field_nrmse for fields"
        )
    return array.astype(np.float64)


def _require_one_shape(first: npt.NDArray[Any], second: npt.NDArray[Any], names: tuple[str, str]) -> None:
    if first.shape != second.shape:
        raise InvalidInputError(
            f"{names[0]} and {names[1]} must have the same shape, but {names[0]} has {first.shape} and {names[1]} has "
            f"{second.shape}; crop or resample one of them"
        )


def _finite(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = numbers(name, values)
    if array.size == 0:
        raise InvalidInputError(f"{name} must hold at least one value, but its shape is {array.shape}")
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InvalidInputError(
            f"{name} must be finite, but {bad} of its {array.size} values are NaN or infinite; did the solver diverge, "
            "or does the image need a mask?"
        )
    return array
