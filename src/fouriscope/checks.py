"""Arguments of public functions: one of the wrong kind raises an error with its name, before anything is done with it.

The kinds are those of the annotations. The function itself checks the rest (range, shape).
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from fouriscope.errors import InvalidInputError

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)
Check = Callable[[Any], bool]

# Arguments are lengths, counts, weights. A larger number is a mistake, and its square would overflow.
LARGEST = 1e100
LARGEST_COUNT = 2**48


def door(function: Callable[P, T], but: tuple[str, ...] = ()) -> Callable[P, T]:
    """A function whose arguments are checked against its annotations; not for what is called in every iteration.

    Those named in ``but`` are left to the function, which takes more than it says.
    """
    parameters = inspect.signature(function).parameters

    @functools.cache
    def kinds() -> dict[str, tuple[Check, str]]:
        checked = {name: one for name, one in parameters.items() if name not in but}
        return {name: kind for name, one in checked.items() if (kind := _kind_of(one, function)) is not None}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in (*zip(parameters, args, strict=False), *kwargs.items()):
            fits = kinds().get(name)
            if fits is not None and not fits[0](value):
                raise InvalidInputError(f"{name} must be {fits[1]}, got {told(value)}")
        return function(*args, **kwargs)

    return checked


def door_but(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A :func:`door` that leaves the arguments ``names`` to the function."""
    return lambda function: door(function, names)


def door_class(kind: C) -> C:
    """A class whose constructor is a :func:`door`."""
    return door_class_but()(kind)


def door_class_but(*names: str) -> Callable[[C], C]:
    """A class whose constructor is a :func:`door`, which takes more than it says of the arguments ``names``."""

    def decorate(kind: C) -> C:
        kind.__init__ = door(kind.__init__, names)  # type: ignore[misc]
        return kind

    return decorate


def require_at_least(name: str, value: float, least: float) -> None:
    """Raise unless ``value``, the argument ``name``, is ``least`` or more."""
    if value < least:
        raise InvalidInputError(f"{name} must be at least {least:g}, got {value:g}")


def told(value: object) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}… ({type(value).__name__})"


def _kind_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> tuple[Check, str] | None:
    annotation = parameter.annotation
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or annotation is parameter.empty:
        return None
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, vars(sys.modules[function.__module__]))
        except NameError:  # known to type checkers alone
            return None
    fits, words = _check_of(annotation)
    return None if fits is _anything else (fits, words)


def _anything(_: object) -> bool:
    return True


def _check_of(annotation: Any) -> tuple[Check, str]:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
        return _anything, ""
    if annotation is None or annotation is type(None):
        return (lambda value: value is None), "None"
    if origin in (typing.Union, types.UnionType):
        return _union(inner)
    if origin is Literal:
        return (lambda value: isinstance(value, str) and value in inner), " or ".join(map(repr, inner))
    if origin is np.ndarray:
        return _array_check(typing.get_args(inner[1])[0])
    if origin is tuple:
        return _tuple_check(inner)
    if origin in (Sequence, list, Iterable, Iterator):
        fits, words = _check_of(inner[0])
        return (lambda value: _is_sequence(value) and all(map(fits, value))), f"a sequence, each item {words or 'any'}"
    if origin is Callable:
        return callable, "a function"
    plain = _PLAIN.get(annotation if origin is None else origin)
    if plain is not None:
        return plain
    kind = annotation if origin is None else origin
    if (
        not isinstance(kind, type)
        or typing.is_typeddict(kind)
        or (getattr(kind, "_is_protocol", False) and not _is_runtime(kind))
    ):
        return _anything, ""
    return (lambda value: isinstance(value, kind)), f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _is_runtime(kind: type) -> bool:
    return bool(getattr(kind, "_is_runtime_protocol", False))


def _union(inner: tuple[Any, ...]) -> tuple[Check, str]:
    if any("_SupportsArray" in str(one) for one in inner):  # numpy's ArrayLike, which is a union itself
        optional = type(None) in inner
        words = "an array of numbers or None" if optional else "an array of numbers"
        return (lambda value: (optional and value is None) or _kind(value) in "biufc"), words
    checks = [_check_of(one) for one in inner]
    if any(fits is _anything for fits, _ in checks):
        return _anything, ""
    return (lambda value: any(fits(value) for fits, _ in checks)), " or ".join(words for _, words in checks)


def _array_check(dtype: Any) -> tuple[Check, str]:
    kinds, words = "biufc", "an array of numbers"
    for kind, letters, meaning in (
        (np.bool_, "biu", "an array of bools"),
        (np.integer, "iu", "an array of whole numbers"),
        (np.floating, "biuf", "an array of real numbers"),
    ):
        if isinstance(dtype, type) and issubclass(dtype, kind):
            kinds, words = letters, meaning
    return (lambda value: _kind(value) in kinds and np.ndim(value) > 0), words


def _kind(value: object) -> str:
    """The kind of an array's numbers; "O" for what is none."""
    if value is None or isinstance(value, str | bytes | Mapping):
        return "O"
    try:
        return np.asarray(value).dtype.kind
    except (TypeError, ValueError):
        return "O"


def numbers(name: str, value: object) -> np.ndarray[Any, Any]:
    """``value`` as an array of numbers, or say that argument ``name`` is none; an array is not copied."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value
    if _kind(value) not in "biufc":
        raise InvalidInputError(f"{name} must be an array of numbers, got {told(value)}")
    return np.asarray(value)


def _tuple_check(inner: tuple[Any, ...]) -> tuple[Check, str]:
    if inner[-1] is Ellipsis:
        return (lambda value: _is_sequence(value)), "a sequence"
    checks = [_check_of(one) for one in inner]

    def fits(value: object) -> bool:
        if not _is_sequence(value):
            return False
        parts = list(typing.cast("Sequence[Any]", value))
        return len(parts) == len(checks) and all(one[0](part) for one, part in zip(checks, parts, strict=True))

    return fits, f"({', '.join(words for _, words in checks)})"


def _is_sequence(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) and hasattr(value, "__len__")


def is_number(value: Any) -> bool:
    """Whether this is one real number, finite and of a size that something can have."""
    if not isinstance(value, float | int | np.floating | np.integer) or isinstance(value, bool):
        return False
    limit = LARGEST_COUNT if isinstance(value, int) else LARGEST  # NumPy keeps larger ones as objects
    return bool(-limit < value < limit)


def is_count(value: object) -> bool:
    """Whether this is a whole number, of a size that something can have; 5.0 and True are none."""
    if isinstance(value, bool | np.ndarray):
        return False
    try:
        return abs(operator.index(typing.cast("typing.SupportsIndex", value))) <= LARGEST_COUNT
    except TypeError:
        return False


def _is_path(value: object) -> bool:
    return isinstance(value, os.PathLike) or (isinstance(value, str) and value != "" and "\0" not in value)


_PLAIN: dict[Any, tuple[Check, str]] = {
    float: (is_number, "a finite number"),
    int: (is_count, "a whole number"),
    typing.SupportsIndex: (is_count, "a whole number"),
    bool: (lambda value: isinstance(value, bool | np.bool_), "True or False"),
    str: (lambda value: isinstance(value, str) and value != "", "text"),
    os.PathLike: (_is_path, "a path"),
    Mapping: (lambda value: isinstance(value, Mapping), "a dict"),
    dict: (lambda value: isinstance(value, dict), "a dict"),
}
