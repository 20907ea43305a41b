"""The sums over boxes that calibrations need, as the engine of the model says: compiled, or in plain NumPy."""

from __future__ import annotations

from typing import Any

from fouriscope.engines import Engine


def box_kernels(engine: Engine) -> Any:
    """The module with ``box_moments`` and ``box_products``."""
    if engine.is_compiled:
        from fouriscope.calibration import _kernels

        return _kernels
    from fouriscope.calibration import _plain_kernels

    return _plain_kernels
