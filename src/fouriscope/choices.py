"""The arguments of the public Python functions as the settings that a file would hold, the same for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.engines import EngineName
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Loss, LossName, PoissonLoss, as_loss
from fouriscope.optics import Multiplexed
from fouriscope.priors import Prior, PriorLike
from fouriscope.priors.registry import available_priors
from fouriscope.run import doubt
from fouriscope.run.aligned import WITH_PATTERNS
from fouriscope.run.priors import build_prior
from fouriscope.run.recipe import AUTO, completed, is_auto, suits_spectral
from fouriscope.settings import ReconstructionConfig, RunConfig
from fouriscope.settings.explaining import explain
from fouriscope.settings.methods import DEFAULT_METHOD

Auto: TypeAlias = Literal["auto"]
MethodName: TypeAlias = Literal["pnp", "admm", "red", "spectral", "epry"]
ObjectName: TypeAlias = Literal["phase", "complex", "wave"]
StartName: TypeAlias = Literal["flat", "linear", "epry"]
AnyConfig = TypeVar("AnyConfig", bound=ReconstructionConfig)


class Choices(TypedDict, total=False):
    """The arguments of :func:`fouriscope.reconstruct` that the other functions take too; see there."""

    method: Auto | MethodName | settings.Method
    prior: PriorLike
    prior_absorption: PriorLike
    object: Auto | ObjectName | settings.Object
    loss: Auto | LossName | Loss
    batch: Auto | int | None
    align: str | Sequence[str] | settings.Alignment | None
    calibrate: str | Sequence[str] | settings.Calibration | None
    start: Auto | StartName | NDArray[Any]
    iterations: Auto | int
    stop: settings.Stop | None
    seed: Auto | int
    engine: Auto | EngineName | settings.Engine


# The settings that may stand for a choice.
SETTINGS: dict[str, tuple[type[settings.Section], ...]] = {
    "method": tuple(settings.METHODS.values()),
    "object": (settings.Object,),
    "align": (settings.Alignment,),
    "calibrate": (settings.Calibration,),
    "stop": (settings.Stop,),
    "engine": (settings.Engine,),
}


class Objects(TypedDict):
    """What a configuration can name but not hold: priors may be any callable, a start any array."""

    prior: Prior
    prior_absorption: Prior | None
    start: NDArray[Any] | None


@dataclass(frozen=True)
class Chosen:
    """The configuration that a file would hold, checked, and the objects that no file can hold."""

    config: ReconstructionConfig
    objects: Objects


def leaves_object_open(choices: Choices) -> bool:
    """Whether nothing is chosen that depends on what kind of object it is."""
    a_prior = not is_auto(choices.get("prior", AUTO)) or choices.get("prior_absorption") is not None
    return not a_prior and doubt.leaves_object_open(_sections(choices, 0))


def choose(data: Acquisition, *, measured: bool, unexplained: bool = False, **choices: Unpack[Choices]) -> Chosen:
    """The choices as a configuration. With ``measured``, what is left open follows the recipe for measured frames, and
    with ``unexplained`` that for simulated frames which a phase does not explain.

    >>> import numpy as np
    >>> from fouriscope.optics import LEDArray, Optics
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> data = Acquisition(optics, LEDArray.square(3, pitch=4e-3, height=70e-3), np.ones((9, 16, 16)))
    >>> choose(data, measured=True, method=settings.EPRY(pupil_step=0.5)).config.solver.options["decay"]
    0.3
    """
    sections = _sections(choices, len(data))
    if measured and isinstance(data.illumination, Multiplexed):  # the rest of the recipe needs one LED per frame
        sections = {"alignment": settings.switched(settings.Alignment, WITH_PATTERNS)} | sections
    if not measured and is_auto(choices.get("object", AUTO)) and data.truth is not None and data.truth.ndim == 3:
        sections["object"] = {"model": "complex"}  # a truth of phase and absorption
    document = doubt.as_a_wave(sections, data.truth) if unexplained else completed(sections, measured=measured)
    config = _checked(ReconstructionConfig, document)
    prior, second, start = choices.get("prior", AUTO), choices.get("prior_absorption"), choices.get("start")
    first = build_prior(config.prior if is_auto(prior) else prior, where="prior")
    other = None if second is None else build_prior(second, where="prior_absorption")
    specs = {"prior": first.spec(), "prior_absorption": None if other is None else other.spec()}
    objects: Objects = {
        "prior": first,
        "prior_absorption": other,
        "start": start if isinstance(start, np.ndarray) else None,
    }
    return Chosen(config.model_copy(update=specs), objects)


def overlaid(config: RunConfig, **choices: Unpack[Choices]) -> RunConfig:
    """A description in which the choices replace what it says, for workers, which know only what a file can hold."""
    if isinstance(choices.get("start"), np.ndarray):
        raise InvalidInputError("start must be a name here, because each tile has its own object")
    frames = 0 if config.frames.weights is None else len(config.frames.weights)
    document = config.model_dump(mode="json", exclude_unset=True)
    chosen = _sections(choices, frames)
    if config.solver.method == "spectral" and "method" not in chosen["solver"] and not suits_spectral(chosen):
        chosen["solver"]["method"] = DEFAULT_METHOD  # as the recipe does
    for section, keys in chosen.items():
        before = document.get(section, {})
        if section == "solver" and keys.get("method", config.solver.method) != config.solver.method:
            before = {key: value for key, value in before.items() if key in settings.Method.model_fields}
        document[section] = before | keys
    if document["solver"].get("method") == "epry" and "prior" not in choices:
        document["prior"] = {"name": "none"}
    for name in ("prior", "prior_absorption"):
        prior = choices.get(name, AUTO)
        if not is_auto(prior):
            document[name] = None if name != "prior" and prior is None else _nameable(build_prior(prior, where=name))  # type: ignore[arg-type]
    return _checked(RunConfig, document)


def _nameable(prior: Prior) -> dict[str, Any]:
    spec = prior.spec()
    if spec["name"] not in available_priors():
        raise InvalidInputError(f"a prior must have a name here, because workers build their own, got {spec['name']!r}")
    return spec


def _checked(kind: type[AnyConfig], document: dict[str, Any]) -> AnyConfig:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(explain(error, kind, document)) from error


def _sections(choices: Choices, frames: int) -> dict[str, Any]:
    """What is chosen, by the sections and keys of a configuration."""
    _check_kinds(choices)
    document: dict[str, Any] = {
        "object": _keys(choices.get("object", AUTO), "model"),
        "solver": _solver(choices, frames),
        "stop": _stop(choices),
    }
    if not is_auto(engine := choices.get("engine", AUTO)):
        document["engine"] = _keys(engine, "name")
    if not is_auto(align := choices.get("align", AUTO)):
        document["alignment"] = _all_keys(settings.Alignment, align)
    if not is_auto(calibrate := choices.get("calibrate", AUTO)):
        document["calibration"] = _all_keys(settings.Calibration, calibrate)
    return document


def _solver(choices: Choices, frames: int) -> dict[str, Any]:
    """[solver]: what the method's settings say, and the arguments beside them; nothing may be said twice."""
    method, start, loss = (choices.get(key, AUTO) for key in ("method", "start", "loss"))
    keys: dict[str, Any] = {}
    if not is_auto(start):
        keys["start"] = "array" if isinstance(start, np.ndarray) else start
    if not is_auto(loss):
        chosen = as_loss(loss)  # type: ignore[arg-type]
        keys["loss"] = chosen.name
        if isinstance(chosen, PoissonLoss):
            keys["poisson_background"] = chosen.background
        elif chosen.epsilon:
            raise InvalidInputError(
                f"{type(chosen).__name__} has a background, which is an option of the method here; give "
                f"loss={chosen.name!r} and method=fs.settings.Spectral(background={chosen.epsilon:g})"
            )
    batch = choices.get("batch", AUTO)
    if batch is None:
        keys |= {"sampler": "all"} | ({"batch": frames} if frames else {})
    elif not is_auto(batch):
        keys["batch"] = batch
    if not is_auto(seed := choices.get("seed", AUTO)):
        keys["seed"] = seed
    said = _keys(method, "method")
    if {"batch", "sampler"} & set(keys) and said.get("sampler") == "all":
        del said["sampler"]  # what EPRY writes where nobody sets a batch
    twice = sorted(set(said) & set(keys))
    if twice:
        raise InvalidInputError(f"{', '.join(twice)}: given twice, as an argument and in method; give it only once")
    return said | keys


def _check_kinds(choices: Choices) -> None:
    """Raise for a choice that does not exist, and for settings in the place of others."""
    for name, value in choices.items():
        if name not in Choices.__annotations__:
            close = get_close_matches(name, Choices.__annotations__, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(Choices.__annotations__)}"
            raise InvalidInputError(f"unknown choice {name!r}; {hint}")
        kinds = SETTINGS.get(name, ())
        misplaced = isinstance(value, settings.Section) and not isinstance(value, kinds)
        if misplaced or (name == "stop" and value is not None and not isinstance(value, settings.Stop)):
            wanted = " or ".join(f"settings.{kind.__name__}" for kind in kinds) or "no settings"
            raise InvalidInputError(f"{name} takes {wanted}, got {value!r}")


def _stop(choices: Choices) -> dict[str, Any]:
    iterations, stop = choices.get("iterations", AUTO), choices.get("stop")
    if stop is None:
        return {} if is_auto(iterations) else {"iterations": iterations}
    if not is_auto(iterations):
        raise InvalidInputError("iterations and stop are both given; write stop=fs.settings.Stop(iterations=…, …)")
    return stop.model_dump(exclude_unset=True)


def _keys(choice: object, name: str) -> dict[str, Any]:
    """The keys of a section that a choice sets: none for "auto", one for a name, those of a settings object."""
    if isinstance(choice, settings.Section):
        said = choice.model_dump(exclude_unset=True)
        return {name: getattr(choice, name)} | said if name == "method" else said
    return {} if is_auto(choice) else {name: choice}


def _all_keys(section: type[settings.Alignment | settings.Calibration], choice: Any) -> dict[str, Any]:
    """Every switch of a section, so that the recipe adds none."""
    if isinstance(choice, settings.Section):
        return choice.model_dump()
    name = "align" if section is settings.Alignment else "calibrate"
    names = [choice] if isinstance(choice, str) else choice if choice is not None else ()
    if not (isinstance(names, Sequence | set | frozenset) and all(isinstance(one, str) and one for one in names)):
        raise InvalidInputError(
            f"{name} must be names, such as 'gains', or settings.{section.__name__}, got {choice!r}"
        )
    return settings.switched(section, choice, everything="all" if section is settings.Alignment else None)
