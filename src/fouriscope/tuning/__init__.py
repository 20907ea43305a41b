"""Choosing the strength of a prior: against the truth, or against measurements that were held out."""

from fouriscope.tuning.choice import Criterion, Tuning
from fouriscope.tuning.holdout import hold_out
from fouriscope.tuning.search import Trial, log_search
from fouriscope.tuning.trials import tune, tune_config

__all__ = ["Criterion", "Trial", "Tuning", "hold_out", "log_search", "tune", "tune_config"]
