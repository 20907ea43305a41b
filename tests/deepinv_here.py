"""deepinv where torchvision was built for another torch: it has to be imported, but nothing of it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

OPERATORS = ("nms", "qnms")
_declared: list[Any] = []  # as long as this lives, so do the operators


def deepinv_or_skip() -> Any:
    """The module ``deepinv``. Without its own operators, torchvision gets two that are declared and do nothing."""
    torch = pytest.importorskip("torch", reason='torch is not installed: pip install "fouriscope[torch]"')
    for name in ("deepinv", "torchvision"):
        if find_spec(name) is None:
            pytest.skip(f'{name} is not installed: pip install "fouriscope[learned]"')
    try:
        import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("deepinv", "torchvision")]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in OPERATORS:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)
    return import_module("deepinv")
