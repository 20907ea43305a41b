"""What the paper did, as far as it says: the microscope, the noise, the methods, and the numbers it reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fouriscope import settings
from fouriscope.priors import BM3D, TV, NoPrior, Prior

Data = Literal["Batch", "Online", "Full"]
StrengthFrom = Literal["oracle", "held-out", "automatic"]

BATCH = 60
SNR_DB = 40.0
# NoReg-Online at convergence: what the phase range, which the paper does not state, is calibrated to.
CALIBRATION_TARGET = 18.48
# What the calibration came to on the paper's six images, for objects whose own range was not searched for.
PAPER_PHASE_RANGE = 0.3185
STEPS = 6
EPRY_SWEEPS = 60


# Numbers of the paper (figures 1 to 3): SNR in dB, and seconds.
PUBLISHED_SNR = {"NoReg-Online": 18.48, "TV-Online": 19.42, "BM3D-Online": 19.74}
PUBLISHED_SECONDS = {"BM3D-Online": 9.07, "BM3D-Full": 19.66}


@dataclass(frozen=True)
class Method:
    """One way to reconstruct: a prior, the measurements it sees, and how it iterates.

    ``minibatches`` is how many gradients a full-length run takes; the number of iterations follows from ``options``.
    """

    name: str
    prior: Literal["NoReg", "TV", "BM3D"]
    data: Data
    options: dict[str, Any] = field(default_factory=dict)
    in_paper: bool = False
    strength_from: StrengthFrom = "oracle"
    tuned_as: str = ""
    """The method whose stored strength this one uses; its own name unless given."""

    @property
    def strength_key(self) -> str:
        key = self.tuned_as or self.name
        return f"{key}, held-out" if self.strength_from == "held-out" else key

    @property
    def needs_strength(self) -> bool:
        return self.prior != "NoReg" and self.strength_from != "automatic"

    @property
    def gradients_per_iteration(self) -> int:
        if self.options.get("method") == "admm":
            return int(self.options.get("data_steps", 5))
        return int(self.options.get("steps_per_denoising", 1))

    def make_prior(self, strength: float | None) -> Prior:
        value: Any = "auto" if strength is None else strength
        if self.prior == "TV":
            return TV(strength=value)
        if self.prior == "BM3D":
            return BM3D(strength=value, profile="fast")
        return NoPrior()

    def settings(self, frames: int, **kept: Any) -> settings.Method:
        """The settings of this method for this many frames, beside those that are ``kept`` of others."""
        sampling: dict[Data, dict[str, Any]] = {
            "Batch": {"batch": BATCH, "sampler": "fixed"},
            "Online": {"batch": BATCH, "sampler": "stratified"},
            "Full": {"batch": frames, "sampler": "all"},
        }
        return settings.method_of({"loss": "intensity"} | kept | sampling[self.data] | self.options)

    def iterations(self, gradients: int) -> int:
        """For a run of this many gradients."""
        iterations = max(1, round(gradients / self.gradients_per_iteration))
        return min(iterations, EPRY_SWEEPS) if self.options.get("method") == "epry" else iterations

    def milliseconds(self, gradients: int) -> float:
        """About what a run costs, to tell how much of a job is done; measured on two cores."""
        gradient = 28.0 if self.data == "Full" else 7.0
        if self.options.get("method") == "epry":
            return min(gradients, EPRY_SWEEPS) * 40.0
        denoiser = {"NoReg": 0.5, "TV": 4.0, "BM3D": 36.0}[self.prior]
        return gradients * (gradient + denoiser / self.gradients_per_iteration)


def _paper_methods() -> list[Method]:
    priors: tuple[Literal["NoReg", "TV", "BM3D"], ...] = ("NoReg", "TV", "BM3D")
    samplings: tuple[Data, ...] = ("Batch", "Online")
    methods = [Method(f"{prior}-{data}", prior, data, in_paper=True) for prior in priors for data in samplings]
    return [*methods, Method("BM3D-Full", "BM3D", "Full", in_paper=True)]


FAST = f"BM3D-Online × {STEPS}"
METHODS: tuple[Method, ...] = (
    *_paper_methods(),
    Method("NoReg-Full", "NoReg", "Full"),
    Method("TV-Full", "TV", "Full"),
    Method(FAST, "BM3D", "Online", {"steps_per_denoising": STEPS}),
    Method("BM3D-ADMM", "BM3D", "Online", {"method": "admm", "data_steps": 5, "restart": False}),
    Method("BM3D-RED", "BM3D", "Online", {"method": "red"}),
    # The best that this baseline reached here: a new order in every sweep, and steps that shrink.
    Method("EPRY", "NoReg", "Full", {"method": "epry", "order": "random", "decay": 0.3}),
    Method("TV-Online, held-out λ", "TV", "Online", strength_from="held-out", tuned_as="TV-Online"),
    Method(f"{FAST}, held-out λ", "BM3D", "Online", {"steps_per_denoising": STEPS}, False, "held-out", FAST),
    Method("TV-Online, automatic λ", "TV", "Online", strength_from="automatic"),
    Method(f"{FAST}, automatic λ", "BM3D", "Online", {"steps_per_denoising": STEPS}, False, "automatic"),
)


def method(name: str) -> Method:
    """The method of this name."""
    return next(method for method in METHODS if method.name == name)


@dataclass(frozen=True)
class Protocol:
    """Sizes of the experiment: the paper's, unless a test makes them smaller."""

    frame: int = 100
    radius: float = 9.5
    gradients: int = 400
    images: int = 6
    seed: int = 0
    search: bool = True
    """Whether strengths (and the phase range) that are not stored are searched for, or taken automatically."""

    @classmethod
    def quick(cls) -> Protocol:
        """Two images, fewer iterations, no search: a look at everything within three minutes, not converged."""
        return cls(gradients=120, images=2, search=False)
