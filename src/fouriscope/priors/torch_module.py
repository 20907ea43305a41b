"""Any ``torch`` module as a prior; torch is imported only here and in ``deepinv_named``, and only when it is used."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, SpecValue, Strength, check_sigma
from fouriscope.priors.value_range import ValueRange, denoise_in_unit_range

NoiseInput = Literal["none", "map", "scalar"]
HOW_TO_INSTALL = 'pip install "fouriscope[learned]"'


def import_torch() -> Any:
    """Return the module ``torch``, or say how to install it."""
    try:
        import torch
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise InvalidInputError(
            f"learned denoisers need torch, which cannot be imported ({error}); install it: {HOW_TO_INSTALL}"
        ) from error
    return torch


class TorchDenoiser(Prior):
    r"""A denoiser that is a ``torch.nn.Module`` for grey images with values in [0, 1].

    The image is mapped to [0, 1] by its minimum and maximum and σ with it, the result is mapped back
    (:mod:`fouriscope.priors.value_range`). The module itself, not a copy, is put into eval mode and on ``device``. It
    runs without gradients, in its own dtype, on tensors of shape (1, 1, rows, columns). There is no objective.

    Parameters
    ----------
    module
        The network, with its weights. It is not written into run folders: nothing is pickled.
    strength
        λ; ``"auto"`` is the temperature T itself, which suits a denoiser whose σ is a noise level.
    noise_input
        How the module is told σ: ``"none"``, it is not (blind); ``"map"``, as a constant second channel;
        ``"scalar"``, as a second argument, a tensor of one element (every denoiser of deepinv).
    device
        Where it runs, such as ``"cuda"``.
    trained_sigma
        The noise, in units of [0, 1], that the module was trained for. With a map or scalar it is the largest: a nearly
        flat image is not stretched further than that. For a blind module it is the one level that it removes: the image
        is scaled so that σ becomes this level. **A blind module without it ignores σ and λ.**
    multiple_of
        The image is continued as in a mirror until rows and columns are multiples of it; 2^scales for most U-Nets.

    References
    ----------
    K. Zhang, W. Zuo, L. Zhang, "FFDNet: toward a fast and flexible solution for CNN-based image denoising", IEEE Trans.
    Image Process. 27 (2018) 4608-4622.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> blur = torch.nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)  # doctest: +SKIP
    >>> TorchDenoiser(blur).denoise(np.array([[0.0, 0.0, 9.0]]), sigma=0.1)  # doctest: +SKIP
    array([[0. , 3. , 4.5]])
    """

    name = "torch"

    def __init__(
        self,
        module: Any,
        strength: Strength = "auto",
        noise_input: NoiseInput = "none",
        device: str = "cpu",
        trained_sigma: float | None = None,
        multiple_of: int = 1,
    ) -> None:
        super().__init__(strength)
        torch = import_torch()
        if not isinstance(module, torch.nn.Module):
            raise InvalidInputError(
                f"expected a torch.nn.Module, got {module!r}; a function f(image, sigma) can be a prior directly"
            )
        if noise_input not in get_args(NoiseInput):
            raise InvalidInputError(f'expected noise_input "none", "map" or "scalar", got {noise_input!r}')
        if trained_sigma is not None and not (math.isfinite(trained_sigma) and trained_sigma > 0):
            raise InvalidInputError(f"expected trained_sigma > 0, such as 25/255, got {trained_sigma}")
        if multiple_of != int(multiple_of) or multiple_of < 1:
            raise InvalidInputError(f"expected a whole number multiple_of >= 1, got {multiple_of}")
        try:
            self.module = module.eval().to(device)
        except (RuntimeError, AssertionError) as error:
            raise InvalidInputError(f"the module cannot be put on the device {device!r}: {error}") from error
        self.noise_input: NoiseInput = noise_input
        self.device = str(device)
        self.trained_sigma = trained_sigma
        self.multiple_of = int(multiple_of)

    @staticmethod
    def check_installed() -> None:
        """Raise if this prior cannot be used, and say why."""
        import_torch()

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchDenoiser:
        return copy.copy(self)  # a module keeps nothing between calls: phase and absorption can share its weights

    def _denoise(self, image: Image, sigma: float) -> Image:
        largest_sigma, only_sigma = self._sigmas
        denoised = denoise_in_unit_range(self._run, image, sigma, only_sigma=only_sigma, largest_sigma=largest_sigma)
        self._check(int(denoised.size - np.count_nonzero(np.isfinite(denoised))), denoised.size, sigma)
        return denoised

    def denoise_tensor(self, image: Any, sigma: float) -> Any:
        """:meth:`denoise_next` for a tensor; it stays on its device, if the module is there."""
        torch = import_torch()
        units = ValueRange(*(float(end) for end in image.aminmax()))
        chosen = units.for_denoiser(check_sigma(sigma), torch.finfo(image.dtype).eps, *self._sigmas)
        if chosen is None:
            return image.clone()
        seen = self._applied((image - chosen.low) / chosen.width, chosen.normalise_sigma(sigma))
        denoised = chosen.low + chosen.width * seen.to(image.device, image.dtype)
        self._check(int((~denoised.isfinite()).sum()), denoised.numel(), sigma)
        return denoised

    @property
    def _sigmas(self) -> tuple[float | None, float | None]:
        """The largest σ that the module knows, or the only one."""
        return (None, self.trained_sigma) if self.noise_input == "none" else (self.trained_sigma, None)

    def _check(self, bad: int, size: int, sigma: float) -> None:
        if bad:
            raise InvalidInputError(
                f"{self._described()} returned {bad} of {size} pixels NaN or infinite at sigma={sigma:g}; "
                "are its weights loaded, and is the noise within what it was trained for (trained_sigma)?"
            )

    def _run(self, image: Image, sigma: float) -> Image:
        torch = import_torch()
        denoised: Image = self._applied(torch.from_numpy(image), sigma).to("cpu", torch.float64).numpy()
        return denoised

    def _applied(self, image: Any, sigma: float) -> Any:
        """The module's answer to a tensor in its units."""
        torch = import_torch()
        rows, columns = image.shape
        for dim, size in enumerate(image.shape):
            if size % self.multiple_of:
                places = np.pad(np.arange(size), (0, -size % self.multiple_of), mode="symmetric")
                image = image.index_select(dim, torch.from_numpy(places).to(image.device))
        with torch.no_grad():
            dtype = next((p.dtype for p in self.module.parameters() if p.is_floating_point()), torch.float32)
            given = image[None, None].to(self.device, dtype)
            level = torch.full((1,), sigma, dtype=dtype, device=self.device)
            self.module.eval()  # again: whoever shares the module may have trained it since
            if self.noise_input == "map":
                given = torch.cat([given, level.view(1, 1, 1, 1).expand_as(given)], dim=1)
            result = self.module(given, level) if self.noise_input == "scalar" else self.module(given)
        expected = (1, 1, *image.shape)
        if not isinstance(result, torch.Tensor) or tuple(result.shape) != expected:
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise InvalidInputError(f"{self._described()} must return a tensor of shape {expected}, got {got}")
        return result.detach()[0, 0, :rows, :columns]

    def _described(self) -> str:
        return f"the module {type(self.module).__name__}"

    def spec(self) -> dict[str, SpecValue]:
        """Return what can be written down; a module cannot, so ``prior_from_spec`` asks for it again."""
        spec: dict[str, SpecValue] = {
            "name": self.name,
            "strength": self.strength,
            "module": type(self.module).__name__,
            "noise_input": self.noise_input,
            "device": self.device,
            "multiple_of": self.multiple_of,
        }
        return spec if self.trained_sigma is None else {**spec, "trained_sigma": self.trained_sigma}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Prior:
        raise InvalidInputError(
            f"the prior was the torch module {parameters.get('module', '?')!r}, which cannot be rebuilt from a "
            "description; pass the module itself: TorchDenoiser(module)"
        )
