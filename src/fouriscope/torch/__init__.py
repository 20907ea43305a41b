"""The microscope for users of torch: a differentiable module, and an operator as deepinv has them.

Importing this package imports torch: ``pip install "fouriscope[torch]"``.
"""

from fouriscope.engines import import_torch

import_torch("fouriscope.torch")

from fouriscope.torch.microscope import Microscope  # noqa: E402
from fouriscope.torch.physics import Physics  # noqa: E402

__all__ = ["Microscope", "Physics"]
