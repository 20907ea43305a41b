"""Is it good? What can be said about a finished reconstruction without knowing the truth, and one sentence about it."""

from fouriscope.verdict.halves import Resolution, resolution_of_halves
from fouriscope.verdict.heldout import HeldOut, hold_out
from fouriscope.verdict.measures import gains_at_bounds, share_outside_band, slow_background
from fouriscope.verdict.suspects import Contradiction, contradictions
from fouriscope.verdict.words import Verdict, not_judged, verdict_of

__all__ = [
    "Contradiction",
    "HeldOut",
    "Resolution",
    "Verdict",
    "contradictions",
    "gains_at_bounds",
    "hold_out",
    "not_judged",
    "resolution_of_halves",
    "share_outside_band",
    "slow_background",
    "verdict_of",
]
