"""From a name, a description or a plain function to a prior."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, SpecValue
from fouriscope.priors.from_callable import CallablePrior
from fouriscope.priors.none import NoPrior

# Modules by name rather than classes, so that a heavy prior is imported only by those who ask for it.
_CLASSES: dict[str, tuple[str, str]] = {
    "none": ("fouriscope.priors.none", "NoPrior"),
    "box": ("fouriscope.priors.box", "Box"),
    "l1": ("fouriscope.priors.l1", "L1"),
    "tv": ("fouriscope.priors.tv", "TV"),
    "bm3d": ("fouriscope.priors.bm3d", "BM3D"),
    "cnn": ("fouriscope.priors.cnn", "SmallCNN"),
    "nlm": ("fouriscope.priors.nlm", "NLM"),
    "wavelet": ("fouriscope.priors.wavelet", "Wavelet"),
    "deepinv": ("fouriscope.priors.deepinv_named", "DeepinvDenoiser"),
}
# These wrap an object of the user's: a description names them, but only Python can make them.
_FROM_PYTHON: dict[str, tuple[str, str]] = {
    "callable": ("fouriscope.priors.from_callable", "CallablePrior"),
    "torch": ("fouriscope.priors.torch_module", "TorchDenoiser"),
}


class Denoises(Protocol):
    """Anything with a method ``denoise(image, sigma)`` that returns an image."""

    def denoise(self, image: Image, sigma: float, /) -> Any: ...


PriorLike = Prior | Denoises | Callable[[Image, float], Any] | str | Mapping[str, SpecValue] | None


def available_priors() -> tuple[str, ...]:
    """Return the names that configuration files and :func:`as_prior` understand.

    Examples
    --------
    >>> "tv" in available_priors()
    True
    """
    return tuple(_CLASSES)


@dataclass(frozen=True)
class PriorInfo:
    """What :func:`installed_priors` says about one prior.

    Attributes
    ----------
    name, description
        As in a configuration, and in a few words.
    has_objective
        Whether the prior minimises an r(x).
    missing
        Why it cannot be used here; None if it can.
    from_python
        Whether it wraps an object of the user's, so that it cannot be made by name.
    """

    name: str
    description: str
    has_objective: bool
    missing: str | None
    from_python: bool


def installed_priors() -> tuple[PriorInfo, ...]:
    """Return every prior with what it is and whether it can be used. This imports what heavy priors need.

    Examples
    --------
    >>> [info.missing for info in installed_priors() if info.name == "tv"]
    [None]
    """
    return tuple(_info(name) for name in (*_CLASSES, *_FROM_PYTHON))


def _info(name: str) -> PriorInfo:
    cls = _class_named(name)
    missing: str | None = None
    try:
        getattr(cls, "check_installed", lambda: None)()
    except InvalidInputError as error:
        missing = str(error)
    description = (inspect.getdoc(cls) or "").partition("\n")[0].replace("``", "")
    return PriorInfo(name, description, cls.has_objective, missing, name in _FROM_PYTHON)


def prior_from_spec(spec: Mapping[str, SpecValue]) -> Prior:
    """Build the prior that ``prior.spec()`` describes.

    Parameters
    ----------
    spec
        What ``prior.spec()`` returned: a mapping with ``"name"`` and parameters.

    Examples
    --------
    >>> prior_from_spec({"name": "l1", "strength": 0.5})
    L1(strength=0.5)
    """
    return prior_class(spec).from_parameters({key: value for key, value in spec.items() if key != "name"})


def prior_class(spec: Mapping[str, SpecValue]) -> type[Prior]:
    """The class that a description names; raises for a name or parameter that does not exist, and builds nothing."""
    if "name" not in spec:
        raise InvalidInputError(f'expected the description of a prior to hold "name", got the keys {sorted(spec)}')
    cls = _class_named(spec["name"])
    if cls is not CallablePrior:
        known = list(inspect.signature(cls).parameters)
        unknown = sorted(set(spec) - {"name"} - set(known))
        if unknown:
            raise InvalidInputError(
                f"the prior {spec['name']!r} has no parameter {', '.join(map(repr, unknown))}; known: {known or 'none'}"
            )
    return cls


def as_prior(prior: PriorLike) -> Prior:
    """Return a prior, whatever it was given as.

    ``None`` is no prior. A prior is returned as it is. A name or a description (a mapping with ``"name"``) is built.
    Of any other object its method ``denoise(image, sigma)`` is the denoiser or, without one, the object itself:
    a function ``f(image, sigma)``.

    Parameters
    ----------
    prior
        None, a prior, a name, a description or a function.

    Examples
    --------
    >>> as_prior("l1"), as_prior(None)
    (L1(strength='auto'), NoPrior())
    >>> class Halve:
    ...     def denoise(self, image, sigma):
    ...         return image / 2
    >>> as_prior(Halve())
    CallablePrior(function='Halve', strength='auto')
    """
    if prior is None:
        return NoPrior()
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        return prior_from_spec({"name": prior})
    if isinstance(prior, Mapping):
        return prior_from_spec(prior)
    denoise = getattr(prior, "denoise", None)
    if isinstance(prior, type) and (issubclass(prior, Prior) or denoise is not None):
        raise InvalidInputError(f"expected a prior, got the class {prior.__name__}; make one: {prior.__name__}()")
    if callable(denoise):
        return CallablePrior(denoise, name=type(prior).__name__)
    if callable(prior):
        return CallablePrior(prior)
    raise InvalidInputError(
        f"expected a prior, a name among {list(available_priors())}, a function f(image, sigma), an object with a "
        f"method denoise(image, sigma), or None, got {prior!r}"
    )


def _class_named(name: object) -> type[Prior]:
    key = name.strip().lower() if isinstance(name, str) else ""
    if key not in _CLASSES and key not in _FROM_PYTHON:
        close = difflib.get_close_matches(key, _CLASSES, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise InvalidInputError(f"unknown prior {name!r}; {hint}available: {', '.join(_CLASSES)}")
    module, class_name = _CLASSES.get(key) or _FROM_PYTHON[key]
    cls: type[Prior] = getattr(import_module(module), class_name)
    return cls
