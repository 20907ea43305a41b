"""Choosing the strength of a prior: against the truth, or against measurements that were held out."""

from fouriscope.tuning.holdout import hold_out
from fouriscope.tuning.search import Trial, log_search
from fouriscope.tuning.trials import Criterion, Tuning, tune, tune_config

__all__ = ["Criterion", "Trial", "Tuning", "hold_out", "log_search", "tune", "tune_config"]
