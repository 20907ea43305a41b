"""What pytest leaves out: modules that import torch, where torch is not installed."""

from __future__ import annotations

from importlib.util import find_spec

NEED_TORCH = (
    *("forward/torch_objects.py", "forward/torch_optics.py", "forward/torch_spectra.py", "forward/torch_threads.py"),
    *("fidelity/torch_frames.py", "fidelity/torch_pipeline.py", "priors/_tv_torch.py"),
    *("torch/microscope.py", "torch/physics.py"),
)
collect_ignore_glob = [] if find_spec("torch") else [f"src/fouriscope/{path}" for path in NEED_TORCH]
