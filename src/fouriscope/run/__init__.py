"""The run folder: resolved config, provenance, metrics, checkpoints, results; and running inside it."""

from fouriscope.run.config import load_config
from fouriscope.run.execute import resume_run, start_run
from fouriscope.run.folder import RunFolder
from fouriscope.run.result import Result
from fouriscope.run.result_geometry import ResultGeometry
from fouriscope.settings import ReconstructionConfig, RunConfig

__all__ = [
    "ReconstructionConfig",
    "Result",
    "ResultGeometry",
    "RunConfig",
    "RunFolder",
    "load_config",
    "resume_run",
    "start_run",
]
