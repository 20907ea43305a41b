"""Choosing a prior and its strength: against the truth, or against measurements that were held out."""

from fouriscope.tuning.choice import Criterion, Tuning
from fouriscope.tuning.holdout import hold_out
from fouriscope.tuning.priors import PriorComparison, compare_priors, compare_priors_config
from fouriscope.tuning.search import Trial, log_search
from fouriscope.tuning.trials import tune, tune_config

__all__ = [
    "Criterion",
    "PriorComparison",
    "Trial",
    "Tuning",
    "compare_priors",
    "compare_priors_config",
    "hold_out",
    "log_search",
    "tune",
    "tune_config",
]
