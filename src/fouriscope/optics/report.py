"""What a geometry can and cannot see, in numbers, before any frame is recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriscope.optics.geometry import Geometry
from fouriscope.optics.objective import pupil_overlap
from fouriscope.optics.pattern_report import PatternReport, report_patterns

_RASTER = 400
_LOW_OVERLAP = 0.35
_LOW_COVERAGE = 0.9
_ONE_SIDED = 0.6  # the shortest reach divided by the longest; for a square array, however large, it is above 0.7
_ANGLES = 90
_ON_AXIS = 0.02  # of the objective's NA: nearer to the axis the two sidebands of a phase object still cancel


@dataclass(frozen=True)
class OpticsReport:
    """The numbers of :func:`report_geometry`; ``print`` shows them as a table. Lengths are in metres.

    Attributes
    ----------
    leds, bright_field, dark_field
        Counts.
    patterns
        What a set of patterns sees; None if each frame has its own LED.
    na, largest_illumination_na, synthetic_na
        NA of the objective, of the outermost LED, and their sum.
    half_pitch
        λ/(2 NA_syn), the finest line that the object can show.
    frame_shape, margin, object_shape
        Pixels of a frame, around a frame, and of the object.
    pixel, object_pixel
        Size of a frame pixel at the sample, and of an object pixel.
    nyquist_field_pixel, nyquist_intensity_pixel
        λ/(2 NA) and λ/(4 NA): the largest frame pixels that sample the field, and the intensity.
    coverage, coverage_of_outline
        Fraction of the synthetic-NA disc that at least one pupil covers, and of the convex outline of all pupils. A
        square array necessarily leaves the disc's rim open between its corners; gaps are what is missing inside the
        outline.
    least_na
        The aperture in the direction in which the pupils reach least far; ``synthetic_na`` is the one in which they
        reach farthest.
    overlap_min, overlap_median
        Common area of the pupils of neighbouring LEDs, as a fraction of one; None for a single LED.
    phase_gap_na, phase_gap_period
        NA − the largest bright-field |na|, and λ divided by it: phase that is slower than this period leaves no
        first-order trace in any frame. None without bright field.
    warnings, notes
        What endangers a reconstruction, with a remedy; and what is good to know.
    """

    leds: int
    bright_field: int
    dark_field: int
    na: float
    largest_illumination_na: float
    synthetic_na: float
    half_pitch: float
    frame_shape: tuple[int, int]
    margin: int
    object_shape: tuple[int, int]
    object_pixel: tuple[float, float]
    pixel: float
    nyquist_field_pixel: float
    nyquist_intensity_pixel: float
    coverage: float
    coverage_of_outline: float
    least_na: float
    overlap_min: float | None
    overlap_median: float | None
    phase_gap_na: float | None
    phase_gap_period: float | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    patterns: PatternReport | None = None

    def __str__(self) -> str:
        margin = f" + margin {self.margin}" if self.margin else ""
        overlap, gap = "no neighbour", "no bright field"
        if self.overlap_min is not None and self.overlap_median is not None:
            overlap = f"min {self.overlap_min:.1%}, median {self.overlap_median:.1%}"
        if self.phase_gap_na is not None and self.phase_gap_period is not None:
            gap = "none"
            if self.phase_gap_na > 1e-6:
                gap = f"{self.phase_gap_na:.4f} NA: periods above {_micrometres(self.phase_gap_period)}"
        rows = [
            ("LEDs", f"{self.leds}: {self.bright_field} bright-field, {self.dark_field} dark-field"),
            *([] if self.patterns is None else self.patterns.rows()),
            ("objective NA", f"{self.na:.4g}"),
            ("largest illumination NA", f"{self.largest_illumination_na:.4f}"),
            ("synthetic NA", f"{self.synthetic_na:.4f}"),
            ("half-pitch resolution", _micrometres(self.half_pitch)),
            ("frame", f"{self.frame_shape[0]} × {self.frame_shape[1]}{margin}"),
            ("object", f"{self.object_shape[0]} × {self.object_shape[1]}"),
            ("object pixel", " × ".join(_micrometres(size) for size in self.object_pixel)),
            ("camera pixel at sample", _micrometres(self.pixel)),
            ("limit for the field", f"{_micrometres(self.nyquist_field_pixel)}  λ/(2NA)"),
            ("limit for the intensity", f"{_micrometres(self.nyquist_intensity_pixel)}  λ/(4NA)"),
            ("spectrum coverage", f"{self.coverage:.1%} of the disc, {self.coverage_of_outline:.1%} of its outline"),
            ("neighbour overlap", overlap),
            ("phase gap", gap),
        ]
        lines = [f"{name:<25}{value}" for name, value in rows]
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"note: {text}" for text in self.notes]
        return "\n".join(lines)


def report_geometry(geometry: Geometry) -> OpticsReport:
    """Resolution, coverage, overlap and blind spots of a geometry.

    Two pupils of radius NA whose LEDs are d apart share the fraction (2/π)(acos q − q√(1 − q²)) of their area, with
    q = d/(2NA). Phase retrieval stitches the spectrum across these overlaps.

    Parameters
    ----------
    geometry
        The microscope as compiled: :meth:`Geometry.compile`, or ``model.geometry``.

    Examples
    --------
    >>> from fouriscope.optics import LEDArray, Optics
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    >>> report = report_geometry(Geometry.compile(optics, leds, (100, 100)))
    >>> print("\\n".join(str(report).splitlines()[:4]))
    LEDs                     293: 37 bright-field, 256 dark-field
    objective NA             0.2
    largest illumination NA  0.4766
    synthetic NA             0.6766
    """
    optics, sizes = geometry.optics, np.hypot(*geometry.led_na.T)
    bright_sizes = sizes[optics.passes(sizes)]
    gap = max(0.0, optics.na - float(bright_sizes.max())) if len(bright_sizes) else None
    overlaps = _neighbour_overlaps(geometry.led_na, optics.na)
    coverage, of_outline = _spectrum_coverage(geometry.led_na, optics.na, geometry.synthetic_na)
    least = float(_reach(geometry.led_na, optics.na).min())
    median = float(np.median(overlaps)) if len(overlaps) else None
    patterns = report_patterns(geometry, coverage) if geometry.is_multiplexed else None
    notes = []
    if optics.pixel > optics.nyquist_intensity_pixel:
        notes.append(
            f"the pixel of {_micrometres(optics.pixel)} is larger than λ/(4NA) = "
            f"{_micrometres(optics.nyquist_intensity_pixel)}, so intensities alias; the model accounts for this."
        )
    return OpticsReport(
        leds=len(sizes),
        bright_field=len(bright_sizes),
        dark_field=len(sizes) - len(bright_sizes),
        na=optics.na,
        largest_illumination_na=float(sizes.max()),
        synthetic_na=geometry.synthetic_na,
        half_pitch=optics.wavelength / (2 * geometry.synthetic_na),
        frame_shape=geometry.frame_shape,
        margin=geometry.margin,
        object_shape=geometry.object_shape,
        object_pixel=geometry.object_pixel,
        pixel=optics.pixel,
        nyquist_field_pixel=optics.nyquist_field_pixel,
        nyquist_intensity_pixel=optics.nyquist_intensity_pixel,
        coverage=coverage,
        coverage_of_outline=of_outline,
        least_na=least,
        overlap_min=float(overlaps.min()) if len(overlaps) else None,
        overlap_median=median,
        phase_gap_na=gap,
        phase_gap_period=None if gap is None else (optics.wavelength / gap if gap > 0 else float("inf")),
        warnings=(
            *_warnings(geometry, bright_sizes, median, of_outline, least),
            *(() if patterns is None else patterns.warnings()),
        ),
        notes=tuple(notes),
        patterns=patterns,
    )


def _warnings(
    geometry: Geometry,
    bright_sizes: NDArray[np.float64],
    median_overlap: float | None,
    of_outline: float,
    least: float,
) -> tuple[str, ...]:
    na, sizes = geometry.optics.na, np.hypot(*geometry.led_na.T)
    found = []
    if len(sizes) == 1:
        found.append("a single LED gives one frame, which cannot determine phase; use several overlapping directions.")
    if len(bright_sizes) == 0:
        found.append(
            f"no bright-field LED: the smallest |na| is {sizes.min():.4f} and the objective's NA is {na:.4g}; "
            "check height, offset and patch_center, or add LEDs near the axis."
        )
    elif bright_sizes.max() < _ON_AXIS * na:
        found.append(
            f"the only bright field is on the axis (|na| ≤ {bright_sizes.max():.4f}), where phase has no first-order "
            f"contrast; add LEDs with |na| just below {na:.4g}."
        )
    if median_overlap is not None and median_overlap < _LOW_OVERLAP:
        found.append(
            f"neighbouring pupils overlap by {median_overlap:.1%} (median), below {_LOW_OVERLAP:.0%}; "
            "use a smaller pitch or a larger height of the LEDs."
        )
    if of_outline < _LOW_COVERAGE:
        found.append(
            f"the pupils cover {of_outline:.1%} of what their outline encloses, below {_LOW_COVERAGE:.0%}: nothing is "
            "known of the rest; add LEDs in the gaps."
        )
    if least < _ONE_SIDED * geometry.synthetic_na:
        found.append(
            f"the resolution of NA {geometry.synthetic_na:.4f} holds in some directions only; in others it is that of "
            f"NA {least:.4f}; add LEDs there, or check offset and patch_center."
        )
    return tuple(found)


def _neighbour_overlaps(directions: NDArray[np.float64], na: float) -> NDArray[np.float64]:
    if len(directions) < 2:
        return np.empty(0)
    nearest = np.empty(len(directions))
    for i, (y, x) in enumerate(directions):
        distance = np.hypot(directions[:, 0] - y, directions[:, 1] - x)
        distance[i] = np.inf
        nearest[i] = distance.min()
    return pupil_overlap(nearest, na)


def _spectrum_coverage(directions: NDArray[np.float64], na: float, synthetic_na: float) -> tuple[float, float]:
    """How much of the synthetic-NA disc, and of the convex outline of the pupils, some pupil covers."""
    axis = ((np.arange(_RASTER) + 0.5) / _RASTER * 2 - 1) * synthetic_na
    covered = np.zeros((_RASTER, _RASTER), dtype=bool)
    for y, x in directions:
        rows = slice(*np.searchsorted(axis, (y - na, y + na)))
        columns = slice(*np.searchsorted(axis, (x - na, x + na)))
        covered[rows, columns] |= np.hypot(axis[rows, None] - y, axis[None, columns] - x) <= na
    disc = np.hypot(axis[:, None], axis[None, :]) <= synthetic_na
    # A point lies in the convex hull if in no direction it lies beyond the farthest pupil: y sin + x cos ≤ farthest,
    # so each direction bounds x in each row, on the right or on the left.
    angles = np.arange(_ANGLES) * 2 * np.pi / _ANGLES
    sines, cosines = np.sin(angles), np.cos(angles)  # no cosine is exactly 0
    farthest = (directions @ np.stack([sines, cosines])).max(axis=0) + na
    bounds = (farthest - axis[:, None] * sines) / cosines
    right = np.where(cosines > 0, bounds, np.inf).min(axis=1)
    left = np.where(cosines < 0, bounds, -np.inf).max(axis=1)
    outline = disc & (left[:, None] <= axis) & (axis <= right[:, None])
    return float(covered[disc].mean()), float(covered[outline].mean())


def _reach(directions: NDArray[np.float64], na: float) -> NDArray[np.float64]:
    """How far the pupils reach from the axis, direction by direction; 0 where none lies."""
    angles = np.arange(_ANGLES) * 2 * np.pi / _ANGLES
    along = directions @ np.stack([np.sin(angles), np.cos(angles)])
    aside = directions @ np.stack([np.cos(angles), -np.sin(angles)])
    ends = np.where(np.abs(aside) <= na, along + np.sqrt(np.maximum(na**2 - aside**2, 0)), 0.0)
    return np.asarray(np.maximum(ends.max(axis=0), 0.0))


def _micrometres(length: float) -> str:
    return f"{length * 1e6:.4g} µm"
