"""How the object is found: the section [solver], one kind for each method."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from fouriscope.fidelity import LossName
from fouriscope.settings.base import Count, Few, NotNegative, Positive, Section, Share

DEFAULT_METHOD = "pnp"
# Frames per iteration, at most, by default: the paper's. A share of the frames is no less than the other.
BATCH, LEAST_BATCH = 60, 20
# … and the least if the loss is found from the noise: with fewer frames, a step that suits the brightest minibatch is
# half as long, and slow parts of the object stay behind (81 LEDs).
LEAST_FROM_NOISE = 30


class Method(Section):
    """What every method has: the data fidelity, the minibatches, the start."""

    takes_prior: ClassVar[bool] = True
    finds_loss: ClassVar[bool] = True  # or has one

    loss: LossName | Literal["auto"] = Field(
        default="auto",
        description='the data fidelity; "auto" is the loss that fits the noise in the frames, approached step by step '
        '(amplitude for "spectral" and "epry"; docs/solver.md)',
    )
    poisson_background: Positive = Field(
        default=0.01, description="ε of the Poisson loss, in units of the empty bright field"
    )
    sampler: Literal["stratified", "epochs", "uniform", "fixed", "all", "warm-up"] = Field(
        default="stratified",
        description="how the frames of an iteration are chosen; "
        '"warm-up" is minibatches for five passes or more, then all frames',
    )
    batch: Count | Literal["auto"] = Field(
        default="auto",
        description='frames per iteration; "auto" is a third of them (20 to 60) for "spectral", a tenth (20 to 60) '
        'in a warm-up of it, a tenth (30 to 60) if the loss is "auto", otherwise 60',
    )
    start: Literal["flat", "linear", "epry", "array"] = Field(
        default="flat",
        description='the first estimate; "array" records that it was given in Python and is in no file',
    )
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=0,
        description="seed of all random numbers; the recipe tries later ones if starts lead to different objects",
    )

    @property
    def options(self) -> dict[str, Any]:
        """What belongs to this method alone, by the names of its solver's arguments."""
        return {
            key: getattr(self, key) for key in type(self).model_fields if key not in (*Method.model_fields, "method")
        }

    @property
    def loss_from_noise(self) -> bool:
        """Whether the loss is to be found from the noise in the frames."""
        return self.finds_loss and self.loss == "auto"

    def batch_of(self, frames: int) -> int:
        """How many frames an iteration sees, if there are this many.

        >>> PnP().batch_of(293), PnP().batch_of(49), PnP(loss="intensity").batch_of(293), Spectral().batch_of(121)
        (30, 30, 60, 40)
        """
        return min(self._automatic_batch(frames) if self.batch == "auto" else self.batch, frames)

    def _automatic_batch(self, frames: int) -> int:
        return min(max(frames // 10, LEAST_FROM_NOISE), BATCH) if self.loss_from_noise else BATCH

    @property
    def recovers_pupil(self) -> bool:
        """Whether the method finds a pupil by itself, without a calibration."""
        return False


class _Descent(Method):
    step: Positive | Literal["auto"] = Field(default="auto", description="γ, the size of a step")
    acceleration: bool = Field(default=True, description="use momentum")


class PnP(_Descent):
    """PnP-ISTA, PnP-FISTA and PnP-SGD: gradient steps and denoising in turn. See :class:`fouriscope.solvers.PnP`.

    Examples
    --------
    >>> PnP(batch=20).options
    {'step': 'auto', 'acceleration': True, 'steps_per_denoising': 1, 'momentum': 'auto'}
    """

    method: Literal["pnp"] = "pnp"
    steps_per_denoising: Few | Literal["auto"] = Field(
        default=1, description="minibatches per denoising; use about six for a slow denoiser"
    )
    momentum: Share | Literal["auto"] = Field(
        default="auto", description='the largest momentum; "auto" is 0.9 with minibatches, 1 with all frames'
    )


class ADMM(_Descent):
    """PnP-ADMM with inexact data steps. See :class:`fouriscope.solvers.ADMM`."""

    method: Literal["admm"] = "admm"
    data_steps: Few = Field(default=5, description="gradient steps towards the proximal operator of the data fidelity")
    restart: bool = Field(
        default=True, description="restart the momentum when an iteration moves more than those before"
    )


class RED(_Descent):
    """Regularisation by denoising. See :class:`fouriscope.solvers.RED`."""

    method: Literal["red"] = "red"
    denoiser_weight: Positive = Field(default=0.25, description="τ, in units of the curvature 1/γ")


class Spectral(_Descent):
    """Each spatial frequency has its own step; for a wave and the amplitude loss.

    See :class:`fouriscope.solvers.Spectral`.
    """

    finds_loss: ClassVar[bool] = False

    method: Literal["spectral"] = "spectral"
    denoiser_weight: Positive = Field(default=1.0, description="τ, how hard the prior pulls compared with the data")
    balance: bool = Field(default=True, description="weight frames by how well a model can explain them")
    background: NotNegative | Literal["auto"] = Field(
        default="auto",
        description='ε of the amplitude loss, in units of the empty bright field; "auto" is twice the noise of dark '
        "frames",
    )
    strength_factor: Positive | Literal["auto"] = Field(
        default="auto",
        description='factor of automatic strengths; "auto" is the one with which a patch predicts unseen frames best '
        "(1 for whole fields and live)",
    )
    long_steps: bool | Literal["auto"] = Field(
        default="auto",
        description='steps fade only when the estimate no longer travels; "auto" is what predicts unseen frames better '
        "(true for whole fields and live)",
    )

    def _automatic_batch(self, frames: int) -> int:
        # Nearly all frames of a small array would be no minibatch: few steps, and most of the object not yet found. The
        # noise of smaller ones does not matter in a warm-up.
        return min(max(frames // (10 if self.sampler == "warm-up" else 3), LEAST_BATCH), BATCH)


class EPRY(Method):
    """The sequential method of laboratories, without a prior. See :class:`fouriscope.solvers.EPRY`.

    An iteration is a sweep over all LEDs, unless ``batch`` or ``sampler`` is given.
    """

    takes_prior: ClassVar[bool] = False
    finds_loss: ClassVar[bool] = False

    method: Literal["epry"] = "epry"
    order: Literal["na", "random", "sampler"] = Field(default="random", description="order of the LEDs in a sweep")
    object_step: Positive = Field(default=1.0, description="α, how much of each LED's correction the object takes")
    pupil_step: NotNegative = Field(
        default=0.0, description="β, the same for the pupil: 0 for a known pupil, 1 for measured frames"
    )
    decay: NotNegative = Field(
        default=0.0, description="both steps are divided by 1 + decay · (k − 1) in iteration k; 0.3 for measured frames"
    )

    @property
    def recovers_pupil(self) -> bool:
        return self.pupil_step > 0

    @model_validator(mode="before")
    @classmethod
    def _sweeps(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and not {"batch", "sampler"} & set(keys):
            return keys | {"sampler": "all"}  # written down, so that a record of the run says so
        return keys


METHODS: dict[str, type[Method]] = {"pnp": PnP, "admm": ADMM, "red": RED, "spectral": Spectral, "epry": EPRY}

# Keys of earlier versions, and what they are called now.
FORMER_KEYS = {
    "epry_order": "order",
    "epry_step": "object_step",
    "epry_pupil_step": "pupil_step",
    "epry_decay": "decay",
}


def own_keys_only(keys: Any) -> Any:
    """[solver] with its method filled in if it is missing, and without the options of other methods.

    Earlier versions wrote the options of all methods into the record of a run. At their defaults they are left out.
    Otherwise the user meant something by them, and an error says that this method has no such option.
    """
    if isinstance(keys, Method) or not isinstance(keys, dict):
        return keys
    keys = {"method": DEFAULT_METHOD} | keys
    chosen = METHODS.get(keys["method"]) if isinstance(keys["method"], str) else None
    if chosen is None:
        return keys
    kept: dict[str, Any] = {}
    for key, value in keys.items():
        name = FORMER_KEYS.get(key, key)
        owners = {other: cls.model_fields[name].default for other, cls in METHODS.items() if name in cls.model_fields}
        if name != key and name in keys:
            raise ValueError(f"{key} is now called {name}, and both are given: delete {key}")
        if name in chosen.model_fields:
            if not (key == "denoiser_weight" and value == "auto"):  # what an earlier version called the default
                kept[name] = value
        elif not owners:
            kept[key] = value  # an error of its own
        elif value not in owners.values() and value != "auto":
            listed = " and ".join(repr(other) for other in owners)
            raise ValueError(f"{key} is an option of method {listed}, but the method is {keys['method']!r}: delete it")
    return kept


def without_other_methods(keys: dict[str, Any]) -> dict[str, Any]:
    """[solver] of a record: options of other methods, which earlier versions accepted and ignored, are left out.

    >>> without_other_methods({"method": "pnp", "batch": 20, "epry_decay": 0.3})
    {'method': 'pnp', 'batch': 20}
    """
    chosen = METHODS.get(keys.get("method", DEFAULT_METHOD), Method)
    options = {name for cls in METHODS.values() for name in cls.model_fields} - set(chosen.model_fields)
    return {key: value for key, value in keys.items() if FORMER_KEYS.get(key, key) not in options}


def _method_as_said(keys: Any, checked: ValidatorFunctionWrapHandler) -> Any:
    """A method that was filled in does not count as said (``model_fields_set``)."""
    section = checked(keys)
    if isinstance(keys, dict) and "method" not in keys:
        section.model_fields_set.discard("method")
    return section


AnyMethod = Annotated[
    Annotated[PnP | ADMM | RED | Spectral | EPRY, Field(discriminator="method")],
    BeforeValidator(own_keys_only),
    WrapValidator(_method_as_said),
]


def method_of(keys: dict[str, Any]) -> AnyMethod:
    """The settings of the method that ``keys`` names, as [solver] of a file.

    Parameters
    ----------
    keys
        The keys of [solver]; ``method`` says which method it is.

    Examples
    --------
    >>> method_of({"method": "epry", "pupil_step": 1}).recovers_pupil
    True
    """
    return _ANY.validate_python(keys)


_ANY: TypeAdapter[AnyMethod] = TypeAdapter(AnyMethod)
