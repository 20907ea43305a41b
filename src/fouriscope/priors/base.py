"""The contract of a prior: what every regulariser and denoiser promises to a solver."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fouriscope.checks import numbers
from fouriscope.errors import InvalidInputError
from fouriscope.placement import namespace, on_host

Image = npt.NDArray[np.floating[Any]]
Strength = float | Literal["auto"]
SpecValue = float | str | bool


class Prior(ABC):
    r"""What is known about an image before it is measured, as an operation that a solver can call.

    A plug-and-play solver alternates a step of length γ down the data fidelity with

    .. math:: x \leftarrow \mathrm{denoise}_\sigma(z), \qquad \sigma = \sqrt{\gamma \lambda},

    where λ is the ``strength`` of the prior. When the prior has an objective r, the denoiser is its proximal operator

    .. math:: \mathrm{denoise}_\sigma(z) = \arg\min_x \tfrac12 \|x - z\|^2 + \sigma^2 r(x),

    so that the solver minimises d(x) + λ r(x). Otherwise ``has_objective`` is False and σ is the standard deviation of
    the noise that the denoiser assumes.

    A subclass writes ``_denoise``; the checks are here. ``denoise`` keeps shape and dtype, does not change its
    input and returns new memory. A prior may keep a *warm state* from call to call, which changes results only
    within its stated accuracy: give every solver its own object, and do not call one object from two threads at once.

    Parameters
    ----------
    strength
        λ ≥ 0, or ``"auto"``: the solver then uses λ = T · ``natural_strength(x)`` with T the temperature of the noise.

    Attributes
    ----------
    name
        How the prior is called in configuration files (see :func:`fouriscope.priors.available_priors`).
    has_objective
        Whether ``objective`` can be evaluated and ``denoise`` is its proximal operator.
    rough
        A solver sets this while its loss is not yet the last one. A costly prior may then do less in ``denoise_next``:
        the image is still on its way, and nothing of this is left in the end.
    """

    name: str
    rough: bool = False
    has_objective: ClassVar[bool] = False
    _acts_at_zero_sigma: ClassVar[bool] = False

    def __init__(self, strength: Strength = "auto") -> None:
        self.strength: Strength = _checked_strength(strength)

    def denoise(self, image: Image, sigma: float) -> Image:
        """Return ``image`` denoised at noise level σ; σ = 0 returns a copy."""
        image = check_image(image)
        sigma = check_sigma(sigma)
        if sigma == 0 and not self._acts_at_zero_sigma:
            return image.copy()
        return self._denoise(image, sigma)

    def denoise_next(self, image: Image, sigma: float) -> Image:
        """The same inside an iteration, where each image resembles the one before, so that a prior may save work.

        If that changes the result, the prior says how. Here it is :meth:`denoise`.
        """
        return self.denoise(image, sigma)

    def denoise_tensor(self, image: Any, sigma: float) -> Any:
        """:meth:`denoise_next` for a tensor, on its device; here it travels to the host and back."""
        return namespace(image).from_numpy(self.denoise_next(on_host(image), sigma)).to(image.device)

    @abstractmethod
    def _denoise(self, image: Image, sigma: float) -> Image:
        """Do the work on a checked image; must neither change ``image`` nor return its memory."""

    def objective(self, image: Image) -> float:
        """Return r(x), where the prior has one (``has_objective``)."""
        if not self.has_objective:
            raise InvalidInputError(
                f"the prior {self.name!r} is a denoiser without an objective r(x); check `prior.has_objective` first, "
                "and follow the fixed-point residual of the solver instead"
            )
        return self._objective(check_image(image))

    def _objective(self, image: Image) -> float:
        raise NotImplementedError(f"{type(self).__name__} says has_objective but does not write _objective")

    def natural_strength(self, image: Image) -> float:
        r"""Return the scale-free part of an automatic strength: λ = T · ``natural_strength(x)``.

        T is the temperature of the noise: the data fidelity d is T times a negative log-likelihood. A denoiser whose σ
        is a noise level needs nothing more and returns 1. A prior :math:`\exp(-\tau r(x))` with r of degree one has a
        normaliser proportional to :math:`\tau^{-\theta n}`; the most likely τ given x is θn/r(x) [1]_. It is
        ``inf`` if r(x) = 0, as for a constant image: any strength would do.

        References
        ----------
        .. [1] J. P. Oliveira, J. M. Bioucas-Dias, M. A. T. Figueiredo, "Adaptive total variation image deblurring: a
           majorization-minimization approach", Signal Processing 89 (2009) 1683-1693.
        """
        check_image(image)
        return 1.0

    def natural_strength_of_tensor(self, image: Any) -> float:
        """:meth:`natural_strength` for a tensor; here it travels to the host."""
        return self.natural_strength(on_host(image))

    def reset(self) -> None:  # noqa: B027 - a prior without memory has nothing to forget
        """Forget everything kept between calls."""

    def state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of the warm state by name, for a checkpoint; empty for a prior that keeps none."""
        return {}

    def load_state_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what :meth:`state_arrays` returned; the calls that follow then repeat bit for bit."""
        self.reset()
        if arrays:
            raise InvalidInputError(
                f"the prior {self.name!r} keeps no state, but the checkpoint holds {sorted(arrays)}; "
                "was it written with another prior?"
            )

    def spec(self) -> dict[str, SpecValue]:
        """Return the parameters, with ``"name"``, from which ``prior_from_spec`` builds an equal prior.

        These are the attributes with the names of the constructor's parameters, as far as a file can hold them.
        """
        found = {key: getattr(self, key, None) for key in inspect.signature(type(self)).parameters}
        return {"name": self.name} | {
            key: value for key, value in found.items() if isinstance(value, float | int | str)
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Prior:
        """Build the prior from the parameters of :meth:`spec`, without ``"name"``."""
        return cls(**parameters)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{key}={value!r}" for key, value in self.spec().items() if key != "name")
        return f"{type(self).__name__}({parameters})"


def scale_likelihood_strength(theta: float, size: int, objective: float) -> float:
    """Return θn/r(x), or ``inf`` for r(x) = 0; see :meth:`Prior.natural_strength`."""
    return theta * size / objective if objective > 0 else math.inf


def check_image(image: Image) -> Image:
    """Return ``image`` as an array if a prior can work on it; the error says what to do otherwise."""
    image = numbers("image", image)
    if np.iscomplexobj(image):
        raise InvalidInputError(f"expected a real image, got {image.dtype}; denoise phase and absorption separately")
    if image.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInputError(
            f"expected an image of float32 or float64, got {image.dtype}; convert it: image.astype(np.float32)"
        )
    if image.ndim != 2:
        raise InvalidInputError(
            f"expected a 2-D image (rows, columns), got shape {image.shape}; denoise the images of a stack one by one"
        )
    if image.size == 0:
        raise InvalidInputError(f"expected an image with at least one pixel, got shape {image.shape}")
    # A finite sum proves finite pixels in one pass; only a suspicious one is worth the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(np.sum(image))
    if not math.isfinite(total):
        bad = int(image.size - np.count_nonzero(np.isfinite(image)))
        if bad:
            raise InvalidInputError(
                f"expected an image of finite pixels, got {bad} of {image.size} NaN or infinite; "
                "a diverging solver needs a smaller step, a camera's bad pixels a mask"
            )
    return image


def check_sigma(sigma: float) -> float:
    """Return σ as a float if it is finite and not negative."""
    try:
        value = float(sigma)
    except (TypeError, ValueError):
        raise InvalidInputError(f"expected sigma to be a number, got {sigma!r}") from None
    if not (math.isfinite(value) and value >= 0):
        raise InvalidInputError(f"expected a finite noise level sigma >= 0, got {value}; sigma is √(γλ)")
    return value


def _checked_strength(strength: Strength) -> Strength:
    if isinstance(strength, str):
        if strength == "auto":
            return "auto"
    elif not isinstance(strength, bool):
        try:
            value = float(strength)
        except (TypeError, ValueError):
            value = math.nan
        if math.isfinite(value) and value >= 0:
            return value
    raise InvalidInputError(f'expected a strength λ >= 0, finite, or "auto", got {strength!r}')
