"""Where an estimate lies: a NumPy array in memory, or a tensor on the device of the engine.

Between two iterations an estimate stays where it is. It comes to the host when somebody asks for it: a callback, a
checkpoint, a calibration, a prior that computes there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.engines import Engine, import_torch


def belongs_on_device(engine: Engine) -> bool:
    """Whether estimates stay on the device of ``engine``. On the CPU they are arrays, whatever the engine: nothing has
    to travel there, and the compiled priors are faster than those of torch."""
    return engine.name == "torch" and engine.device != "cpu"


def on_device(array: NDArray[Any], engine: Engine) -> Any:
    """A copy of ``array`` on the device of ``engine``."""
    torch = import_torch()
    return torch.from_numpy(np.array(array)).to(engine.device)


def on_host(array: Any) -> NDArray[Any]:
    """An array that lies in memory as it is, or a copy of a tensor.

    >>> on_host(np.zeros(2))
    array([0., 0.])
    """
    if isinstance(array, np.ndarray):
        return array
    copied: NDArray[Any] = array.detach().cpu().numpy()
    return copied


def namespace(array: Any) -> Any:
    """The module whose functions suit ``array``: numpy or torch.

    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    return np if isinstance(array, np.ndarray) else import_torch()
