"""The loops of the forward model on the host: compiled ones, or the same in plain NumPy, as the engine says.

Both modules have the same functions. They are imported when they are used: numba takes a while.
"""

from __future__ import annotations

from typing import Any

from fouriscope.engines import Engine


def kernels_of(engine: Engine) -> Any:
    """The module with the forward model's loops."""
    if engine.is_compiled:
        from fouriscope.forward import kernels

        return kernels
    from fouriscope.forward import plain_kernels

    return plain_kernels


def pupil_kernels_of(engine: Engine) -> tuple[Any, Any]:
    """``evaluate_pupils`` and ``evaluate_coloured_pupils``."""
    if engine.is_compiled:
        from fouriscope.forward._coloured_pupil_kernels import evaluate_coloured_pupils
        from fouriscope.forward._pupil_kernels import evaluate_pupils

        return evaluate_pupils, evaluate_coloured_pupils
    from fouriscope.forward import _plain_pupil_kernels as plain

    return plain.evaluate_pupils, plain.evaluate_coloured_pupils
