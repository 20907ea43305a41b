"""What a set of patterns sees: how much is measured per unknown, and whether phase leaves a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fouriscope.optics.geometry import Geometry

# Of NA: where the middle of a frame's bright field lies nearer to the axis, the sidebands of a phase object cancel.
_BALANCED = 0.02
# Measured numbers per unknown below which nothing but a prior decides what the object is.
_TOO_FEW = 1.0


@dataclass(frozen=True)
class PatternReport:
    """The numbers of :func:`report_patterns`.

    Attributes
    ----------
    frames, bright_frames
        How many there are, and how many have bright field.
    fewest, most
        Sources of one frame; an LED that is a point is one.
    one_sided
        Frames whose bright field lies to one side of the axis: they show phase to first order.
    redundancy
        Pixels of all frames divided by the unknowns of a complex object, two for each frequency that some pupil covers.
    """

    frames: int
    bright_frames: int
    fewest: int
    most: int
    one_sided: int
    redundancy: float

    def rows(self) -> list[tuple[str, str]]:
        """Lines for a table."""
        together = f"{self.most}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
        return [
            ("patterns", f"{self.frames} frames of {together} sources, {self.bright_frames} of them with bright field"),
            ("phase contrast", f"{self.one_sided} frames whose bright field lies to one side of the axis"),
            ("measured per unknown", f"{self.redundancy:.2f} (for a complex object; twice as many for a phase)"),
        ]

    def warnings(self) -> tuple[str, ...]:
        """What endangers a reconstruction, with a remedy."""
        found = []
        if self.bright_frames and not self.one_sided:
            found.append(
                "the bright field of every pattern is balanced around the axis, where phase has no first-order "
                "contrast; light half circles, or bright-field LEDs one by one."
            )
        if self.redundancy < _TOO_FEW:
            found.append(
                f"the frames have {self.redundancy:.2f} pixels per unknown of a complex object: a prior must make up "
                "for the rest; use more patterns of fewer LEDs."
            )
        return tuple(found)


def report_patterns(geometry: Geometry, coverage: float) -> PatternReport:
    """What the frames see together; ``coverage`` is the part of the synthetic-NA disc that some pupil covers."""
    sources, optics = geometry.sources, geometry.optics
    passing = optics.passes(np.hypot(sources.na[:, 0], sources.na[:, 1])) * sources.weights
    begin = sources.offsets[:-1]
    light = np.add.reduceat(passing, begin)
    middle = np.add.reduceat(passing[:, None] * sources.na, begin, axis=0) / np.maximum(light, 1e-300)[:, None]
    one_sided = (light > 0) & (np.hypot(middle[:, 0], middle[:, 1]) > _BALANCED * optics.na)
    counts = np.diff(sources.offsets)
    bins = np.pi * (geometry.synthetic_na / optics.wavelength) ** 2 / np.prod(geometry.frequency_step)
    return PatternReport(
        frames=len(geometry.na),
        bright_frames=int(geometry.bright_field.sum()),
        fewest=int(counts.min()),
        most=int(counts.max()),
        one_sided=int(one_sided.sum()),
        redundancy=float(len(geometry.na) * np.prod(geometry.frame_shape) / (2 * coverage * bins)),
    )
