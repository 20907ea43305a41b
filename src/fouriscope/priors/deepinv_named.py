"""The denoisers of deepinv by name, with weights from a file on this computer."""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, SpecValue, Strength
from fouriscope.priors.torch_module import HOW_TO_INSTALL, NoiseInput, TorchDenoiser, import_torch


@dataclass(frozen=True)
class _Architecture:
    """How deepinv builds it for grey images, how it is told σ, and where matching weights are published."""

    cls: str
    grey: Mapping[str, Any]
    noise_input: NoiseInput
    trained_sigma: float | None
    published: str
    multiple_of: int = 8
    costly_start: bool = False


_HUB = "https://huggingface.co/deepinv"
_ONE_CHANNEL = {"in_channels": 1, "out_channels": 1}
_ARCHITECTURES: dict[str, _Architecture] = {
    "drunet": _Architecture(
        "DRUNet", _ONE_CHANNEL, "scalar", 50 / 255, f"drunet_deepinv_gray_finetune_26k.pth of {_HUB}/drunet", 8, True
    ),
    "gsdrunet": _Architecture(
        "GSDRUNet", _ONE_CHANNEL, "scalar", 50 / 255, f"GSDRUNet_grayscale_torch.ckpt of {_HUB}/gradientstep", 8, True
    ),
    "dncnn": _Architecture("DnCNN", _ONE_CHANNEL, "none", 2 / 255, f"dncnn_sigma2_gray.pth of {_HUB}/dncnn", 1),
    "ffdnet": _Architecture("FFDNet", {"img_channels": 1}, "scalar", 75 / 255, f"ffdnet_gray.pth of {_HUB}/FFDNet", 2),
    "restormer": _Architecture(
        "Restormer", _ONE_CHANNEL, "none", None, f"gaussian_gray_denoising_blind.pth of {_HUB}/restormer"
    ),
    "scunet": _Architecture(
        "SCUNet", {"in_nc": 1}, "none", 25 / 255, "scunet_gray_25.pth of https://github.com/cszn/SCUNet"
    ),
    "swinir": _Architecture(
        "SwinIR",
        {"in_chans": 1},
        "none",
        25 / 255,
        "004_grayDN_DFWB_s128w8_SwinIR-M_noise25.pth of https://github.com/JingyunLiang/SwinIR",
    ),
}


def import_deepinv() -> Any:
    """Return ``deepinv.models``, or say why it cannot be imported: often torchvision is of another build than torch."""
    import_torch()
    try:
        return importlib.import_module("deepinv.models")
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InvalidInputError(
            f"deepinv cannot be imported ({type(error).__name__}: {reason}); install it: {HOW_TO_INSTALL}. "
            "If torchvision fails, install torch and torchvision together, from the same place"
        ) from error


class DeepinvDenoiser(Prior):
    """A trained denoiser of deepinv, such as DRUNet, with weights from a local file.

    The network is built for grey images and gets them in [0, 1], as :class:`fouriscope.priors.TorchDenoiser` does.
    **Nothing is downloaded**: ``weights`` is a file that you fetched. Only tensors are read from it, no pickled code.

    ============  ===========  ====================================================
    ``model``     is told σ    ``trained_sigma`` if "auto"
    ============  ===========  ====================================================
    drunet        yes          50/255 at most
    gsdrunet      yes          50/255 at most
    ffdnet        yes          75/255 at most
    dncnn         no           2/255, as deepinv's weights were
    scunet        no           25/255, as the weights ``scunet_gray_25``
    swinir        no           25/255, as the weights ``…_noise25``
    restormer     no           any: it finds σ itself, and λ changes nothing
    ============  ===========  ====================================================

    For other sizes of these networks, build the module yourself: ``TorchDenoiser(module, noise_input="scalar")``.

    Parameters
    ----------
    model
        One of the names above.
    weights
        A ``.pth``/``.pt``/``.ckpt`` file with a state dict, or a ``.safetensors`` file.
    strength
        λ; ``"auto"`` is the temperature T itself, which suits a denoiser whose σ is a noise level.
    device
        Where it runs, such as ``"cuda"``.
    trained_sigma
        The noise that the weights were trained for, for images in [0, 1]: see ``TorchDenoiser``.

    References
    ----------
    K. Zhang et al., "Plug-and-play image restoration with deep denoiser prior", IEEE Trans. Pattern Anal. Mach. Intell.
    44 (2022) 6360-6376. J. Tachella et al., "DeepInverse: a Python package for solving imaging inverse problems with
    deep learning", J. Open Source Softw. (2025).

    Examples
    --------
    >>> DeepinvDenoiser("drunet", weights="no/such/file.pth")
    Traceback (most recent call last):
    fouriscope.errors.InvalidInputError: no/such/file.pth: no such file of weights; fouriscope downloads nothing: ...
    """

    name = "deepinv"

    def __init__(
        self,
        model: str = "drunet",
        weights: str | os.PathLike[str] | None = None,
        strength: Strength = "auto",
        device: str = "cpu",
        trained_sigma: float | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(strength)
        architecture = _ARCHITECTURES.get(model.strip().lower() if isinstance(model, str) else "")
        if architecture is None:
            raise InvalidInputError(f"unknown deepinv denoiser {model!r}; available: {', '.join(_ARCHITECTURES)}")
        fetch = f"fouriscope downloads nothing: fetch {architecture.published} and pass weights=<its path>"
        if weights is None or not os.fspath(weights):
            raise InvalidInputError(f"the deepinv denoiser {model!r} needs a file of weights; {fetch}")
        path = Path(weights).expanduser()
        if not path.is_file():
            raise InvalidInputError(f"{weights}: no such file of weights; {fetch}")
        self.model = model.strip().lower()
        self.weights = str(path.resolve())  # so that a run can be resumed from another folder
        self.trained_sigma: float | Literal["auto"] = trained_sigma
        self._network = TorchDenoiser(
            _build(architecture, path),
            noise_input=architecture.noise_input,
            device=device,
            trained_sigma=architecture.trained_sigma if trained_sigma == "auto" else float(trained_sigma),
            multiple_of=architecture.multiple_of,
        )

    @staticmethod
    def check_installed() -> None:
        """Raise if this prior cannot be used, and say why."""
        import_deepinv()

    def _denoise(self, image: Image, sigma: float) -> Image:
        return self._network.denoise(image, sigma)

    def denoise_tensor(self, image: Any, sigma: float) -> Any:
        """As :meth:`TorchDenoiser.denoise_tensor`."""
        return self._network.denoise_tensor(image, sigma)

    def spec(self) -> dict[str, SpecValue]:
        return {
            "name": self.name,
            "strength": self.strength,
            "model": self.model,
            "weights": self.weights,
            "device": self._network.device,
            "trained_sigma": self.trained_sigma,
        }


def _build(architecture: _Architecture, path: Path) -> Any:
    models = import_deepinv()
    cls = getattr(models, architecture.cls, None)
    if cls is None:
        raise InvalidInputError(f"the installed deepinv has no {architecture.cls}; update it: pip install -U deepinv")
    state = read_weights(path)
    arguments = {**architecture.grey, "pretrained": None}  # by default it would download
    if architecture.costly_start:
        # DRUNet starts from random orthogonal matrices, which takes 15 s; without memory there is nothing to start.
        with import_torch().device("meta"):
            module = cls(**arguments, device=None)
    else:
        module = cls(**arguments)
    try:
        module.load_state_dict(state, strict=True, assign=architecture.costly_start)
    except RuntimeError as error:
        first = " ".join(str(error).split())[:300]
        raise InvalidInputError(
            f"{path}: the weights do not fit {architecture.cls} for grey images ({first}); expected a file such as "
            f"{architecture.published}. Are these weights for colour, or for another size of the network?"
        ) from error
    return module


def read_weights(path: Path) -> dict[str, Any]:
    """Return the tensors of a state dict by name; a file that would have to be unpickled is refused."""
    torch = import_torch()
    try:
        if path.suffix.lower() == ".safetensors":
            state = importlib.import_module("safetensors.torch").load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise InvalidInputError(f"{path}: reading it needs safetensors; install it: {HOW_TO_INSTALL}") from error
    except Exception as error:  # safetensors has an error of its own, torch half a dozen
        if isinstance(error, MemoryError):
            raise
        hint = "it holds more than tensors" if isinstance(error, pickle.UnpicklingError) else type(error).__name__
        raise InvalidInputError(
            f"{path}: cannot be read as weights ({hint}); expected a state dict that torch.load(weights_only=True) "
            "reads, or a .safetensors file"
        ) from error
    for key in ("state_dict", "params_ema", "params"):  # what training scripts wrap it into
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not (isinstance(state, Mapping) and state and all(isinstance(value, torch.Tensor) for value in state.values())):
        raise InvalidInputError(f"{path}: expected a state dict, that is tensors by name, got {type(state).__name__}")
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}
