"""What a run has found until its last checkpoint, for the page."""

from __future__ import annotations

import numpy as np

from fouriscope.errors import RunFolderError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward.objects import RealArray
from fouriscope.run.assemble import build_acquisition, build_loss, build_model, solver_with
from fouriscope.run.config import parse_config
from fouriscope.run.folder import RunFolder


def found_so_far(run: RunFolder, *, most: int | None = None) -> tuple[DataFidelity, RealArray]:
    """d, with the model that predicts frames as the run has found it, and x.

    Frames are read when they are needed. Priors are not built: a network may be large, and predicts nothing.
    ``most`` is the largest size of the checkpoint, in bytes.
    """
    document = run.config()
    if "frames" not in document:
        raise RunFolderError(
            "this run was saved from Python, so its frames are not on the disk; predictions need a run of `fouriscope "
            "reconstruct`"
        )
    config = parse_config(document, where="config.toml", is_record=True)
    config = config.model_copy(update={"prior": {"name": "none"}, "prior_absorption": None})
    acquisition = build_acquisition(config, run.path)
    fidelity = DataFidelity.of(acquisition, build_model(acquisition, config), loss=build_loss(config))
    solver = solver_with(fidelity, AllLEDs(np.arange(len(fidelity))), acquisition, config, "flat")
    if not run.restore(solver.load_estimate, most=most):
        raise RunFolderError("a prediction needs a checkpoint, which a run writes every ten seconds and at its end")
    fidelity.use(solver.model)  # nobody goes on with this solver
    return fidelity, solver.x
