"""Sizes and thresholds of BM3D: the published ones, those of the profiles, and their checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fouriscope.errors import InvalidInputError
from fouriscope.priors._bm3d_transforms import GROUP_TRANSFORMS, block_transform

LARGEST_BLOCK = 16
LARGEST_RADIUS = 127


@dataclass(frozen=True)
class StageParameters:
    """One of the two stages.

    Attributes
    ----------
    block
        Height and width of a block, in pixels.
    step
        Pixels from one reference block to the next, at most ``block``; smaller is better and slower. A step that
        divides the block (4), or leaves 2 of 8 (3), is matched fastest.
    radius
        Blocks are compared with those at most this many pixels away in each direction (19: a window of 39 × 39).
    dense_radius
        Beyond this distance only every second displacement is tried, like the black squares of a chessboard.
    group
        Similar blocks that are filtered together at most, a power of two.
    match_threshold
        τ: blocks are similar if their mean squared difference is below τσ². Two noisy copies of one block differ by
        2σ² on average. (The published thresholds are in squared grey levels of 8-bit images; τσ² makes the result
        independent of the units of the image.)
    shrinkage
        First stage: λ, coefficients below λσ are set to zero. Second stage: the μ of the factors s²/(s² + μσ²).
    transform
        Of a block: ``"bior1.5"``, ``"dct"``, ``"haar"`` or ``"identity"``.
    group_transform
        Along a group: ``"haar"`` or ``"hadamard"``.
    kaiser_beta
        Shape of the Kaiser window that weighs the pixels of a block; 0 weighs them equally.
    """

    block: int = 8
    step: int = 3
    radius: int = 19
    dense_radius: int = 19
    group: int = 16
    match_threshold: float = 1e4
    shrinkage: float = 2.7
    transform: str = "bior1.5"
    group_transform: str = "haar"
    kaiser_beta: float = 2.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("block", 1, LARGEST_BLOCK),
            ("step", 1, self.block),
            ("radius", 0, LARGEST_RADIUS),
            ("dense_radius", 0, LARGEST_RADIUS),
            ("group", 1, self._largest_group()),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
                raise InvalidInputError(f"expected a whole number for {name}, got {value!r}")
            if not low <= value <= high:
                raise InvalidInputError(f"expected {low} <= {name} <= {high}, got {value}")
            object.__setattr__(self, name, int(value))
        if self.group & (self.group - 1):
            raise InvalidInputError(f"expected a power of two for group, got {self.group}")
        for name in ("match_threshold", "shrinkage", "kaiser_beta"):
            value = float(getattr(self, name))
            if not (math.isfinite(value) and value >= 0):
                raise InvalidInputError(f"expected a finite {name} >= 0, got {value}")
            object.__setattr__(self, name, value)
        block_transform(self.transform, self.block)
        if self.group_transform not in GROUP_TRANSFORMS:
            raise InvalidInputError(
                f"expected a group transform among {GROUP_TRANSFORMS}, got {self.group_transform!r}"
            )

    def _largest_group(self) -> int:
        return 64 if self.block <= 8 else 32


@dataclass(frozen=True)
class BM3DParameters:
    """The ``hard`` threshold stage and the ``wiener`` stage; the defaults are the published ones.

    Parameters
    ----------
    hard, wiener
        Parameters of each stage.
    """

    hard: StageParameters = field(default_factory=StageParameters)
    wiener: StageParameters = field(default_factory=lambda: StageParameters(group=32, shrinkage=1.0, transform="dct"))

    def with_overrides(self, overrides: Mapping[str, Any]) -> BM3DParameters:
        """Return a copy with some values replaced, named as ``hard_step``, ``wiener_group`` and so on.

        >>> BM3DParameters().with_overrides({"hard_step": 4}).hard.step
        4
        """
        stages = {}
        for stage in ("hard", "wiener"):
            prefix = f"{stage}_"
            changes = {name.removeprefix(prefix): value for name, value in overrides.items() if name.startswith(prefix)}
            stages[stage] = dataclasses.replace(getattr(self, stage), **changes)
        return BM3DParameters(**stages)

    def flat(self) -> dict[str, Any]:
        """Return all values by the names of :meth:`with_overrides`."""
        return {
            f"{stage}_{name}": value
            for stage in ("hard", "wiener")
            for name, value in dataclasses.asdict(getattr(self, stage)).items()
        }


PUBLISHED = BM3DParameters()
PROFILES: dict[str, BM3DParameters] = {
    "normal": PUBLISHED,
    # A larger step, a chessboard of half the displacements, not so far, and a smaller second group.
    "fast": PUBLISHED.with_overrides(
        {
            "wiener_group": 16,
            **{f"{stage}_step": 4 for stage in ("hard", "wiener")},
            **{f"{stage}_radius": 16 for stage in ("hard", "wiener")},
            **{f"{stage}_dense_radius": 2 for stage in ("hard", "wiener")},
        }
    ),
}
OVERRIDES = tuple(PUBLISHED.flat())
