"""Engines compute misfits and gradients, on a device. Choosing one imports nothing, except torch if it is chosen."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

from fouriscope.errors import InvalidInputError

EngineName: TypeAlias = Literal["numba", "scipy", "torch"]
ENGINES: tuple[str, ...] = get_args(EngineName)
DEVICE = re.compile(r"(cpu|cuda(:\d+)?|mps)\Z")
DEVICES = '"cpu", "cuda", "cuda:1" or "mps"'
HOW_TO_INSTALL_TORCH = 'pip install "fouriscope[torch]"'


@dataclass(frozen=True)
class Engine:
    """The code that computes misfits and gradients.

    ``"numba"`` compiles loops that take one LED at a time through the cache. ``"scipy"`` does the same in plain NumPy
    with SciPy's FFTs. It needs no compiler, and the tests compare the other engines with it. ``"torch"`` computes
    groups of LEDs with batched FFTs on a device.

    Parameters
    ----------
    name
        "numba", "scipy" or "torch".
    device
        For torch: "cpu", "cuda", "cuda:1" or "mps". The other engines use the CPU.
    deterministic
        For torch: the same bits each time, at some cost in speed.
    memory
        For torch: the most bytes that it may use on the device. None means three quarters of the free memory.

    Examples
    --------
    >>> Engine("scipy").is_compiled
    False
    >>> Engine("numba", device="cuda")
    Traceback (most recent call last):
    fouriscope.errors.InvalidInputError: the engine "numba" computes on the CPU, got device='cuda'; use engine="torch"
    """

    name: EngineName = "numba"
    device: str = "cpu"
    deterministic: bool = False
    memory: int | None = None

    def __post_init__(self) -> None:
        check_names(self.name, self.device, known=ENGINES)
        if self.name != "torch" and self.device != "cpu":
            raise InvalidInputError(
                f'the engine "{self.name}" computes on the CPU, got device={self.device!r}; use engine="torch"'
            )
        if self.memory is not None and not self.memory > 0:
            raise InvalidInputError(f"memory of an engine is a number of bytes above 0, got {self.memory}")

    @property
    def is_compiled(self) -> bool:
        """Whether loops on the host are compiled by numba. With torch they are, if numba is installed."""
        return self.name == "numba" or (self.name == "torch" and numba_is_installed())


def as_engine(engine: str | Engine = "auto", device: str = "cpu") -> Engine:
    """The engine called ``engine``, if this machine has it.

    "auto" is what the environment variable ``FOURISCOPE_ENGINE`` says. Without it, "auto" is numba if numba is
    installed, and otherwise scipy.

    >>> as_engine("scipy")
    Engine(name='scipy', device='cpu', deterministic=False, memory=None)
    >>> as_engine("numpy")
    Traceback (most recent call last):
    fouriscope.errors.InvalidInputError: engine must be one of auto, numba, scipy, torch, got 'numpy'
    """
    if isinstance(engine, Engine):
        chosen = engine
    else:
        check_names(engine, device)
        chosen = Engine(_automatic() if engine == "auto" else engine, device)  # type: ignore[arg-type]
    if chosen.name == "numba" and not numba_is_installed():
        raise InvalidInputError(
            'the engine "numba" needs numba and rocket-fft, which are not installed; install both, or use '
            'engine="scipy"'
        )
    if chosen.name == "torch":
        torch_device(chosen.device)
    return chosen


def check_names(engine: object, device: object, *, known: tuple[str, ...] = ("auto", *ENGINES)) -> None:
    """Raise if there is no such engine or no such kind of device."""
    if engine not in known:
        raise InvalidInputError(f"engine must be one of {', '.join(known)}, got {engine!r}")
    if not isinstance(device, str) or not DEVICE.match(device):
        raise InvalidInputError(f"device must be {DEVICES}, got {device!r}")


@cache
def numba_is_installed() -> bool:
    """Whether numba and rocket-fft are installed. Neither is imported."""
    return find_spec("numba") is not None and find_spec("rocket_fft") is not None


def require_numba(what: str, instead: str) -> None:
    """Raise if numba is not installed: ``what`` needs it, and ``instead`` does not."""
    if not numba_is_installed():
        raise InvalidInputError(f"{what} needs numba, which is not installed; install it, or use {instead}")


def _automatic() -> str:
    wanted = os.environ.get("FOURISCOPE_ENGINE", "auto") or "auto"
    if wanted not in ("auto", *ENGINES):
        raise InvalidInputError(f"FOURISCOPE_ENGINE must be one of auto, {', '.join(ENGINES)}, got {wanted!r}")
    return ("numba" if numba_is_installed() else "scipy") if wanted == "auto" else wanted


def import_torch(what: str = "the engine") -> Any:
    """The module ``torch``. If it cannot be imported, the error says how to install it."""
    try:
        import torch
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise InvalidInputError(
            f"{what} needs torch, which cannot be imported ({error}); install it: {HOW_TO_INSTALL_TORCH}"
        ) from error
    return torch


def torch_device(name: str) -> Any:
    """The ``torch.device`` called ``name``. Raises if this machine does not have it."""
    torch = import_torch('the engine "torch"')
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            there, instead = f"{count} CUDA devices, cuda:0 to cuda:{count - 1}", 'one of those, or device="cpu"'
            if not count:
                there, instead = "no CUDA device", 'device="cpu", or a torch that is built for CUDA'
            raise InvalidInputError(f"device {name!r}: torch finds {there} here; use {instead}")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InvalidInputError(f'device {name!r}: torch finds no Apple GPU here; use device="cpu"')
    return device
