"""Pictures of a reconstruction beside plain EPRY: one strip for each set, and all of them on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Strip:
    """The pictures of one set, all of the same window, with what is written above them."""

    name: str
    raw: NDArray[Any]
    epry: NDArray[Any] | None
    ours: NDArray[Any]
    epry_title: str
    ours_title: str


def draw(strips: Sequence[Strip], path: Path) -> None:
    """Raw frame, amplitude and phase of EPRY, amplitude and phase of ours; a row for each strip."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(20, 4.4 * len(strips)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(strips), 5, squeeze=False)
    for row, strip in zip(axes, strips, strict=True):
        _show(row[0], strip.raw, f"{strip.name}: raw, nearest the axis", *np.percentile(strip.raw, (1, 99)))
        for cells, field, name, title in (
            (row[1:3], strip.epry, "EPRY", strip.epry_title),
            (row[3:5], strip.ours, "default", strip.ours_title),
        ):
            if field is None:
                for cell in cells:
                    cell.axis("off")
                cells[0].set_title(title, fontsize=9)
                continue
            amplitude, phase = np.abs(field), centred_phase(field)
            _show(cells[0], amplitude, f"{name}, amplitude\n{title}", *np.percentile(amplitude, (1, 99)))
            reach = max(float(np.percentile(np.abs(phase), 99)), 1e-3)
            _show(cells[1], phase, f"{name}, phase ± {reach:.2f} rad", -reach, reach)
    figure.savefig(path, dpi=80, bbox_inches="tight")


def centred_phase(field: NDArray[Any]) -> NDArray[np.float64]:
    """The phase from the direction of the mean, within ±π."""
    return np.asarray(np.angle(field * np.exp(-1j * np.angle(field.mean()))))


def share_outside(
    field: NDArray[Any], extent: tuple[float, float], wavelength: float, na: float, directions: NDArray[np.float64]
) -> float:
    """Share of the structure (the mean left out) that lies outside the pupils of all LEDs, each widened by two bins.

    ``extent`` is (height, width) of the field in metres. A field that was cut out of a larger one leaks a little.
    """
    energy = np.abs(np.fft.fft2(field)) ** 2
    energy[0, 0] = 0
    y, x = (np.fft.fftfreq(n, size / n) * wavelength for n, size in zip(field.shape, extent, strict=True))
    reach = na + 2 * wavelength / min(extent)
    seen = np.zeros(field.shape, bool)
    for na_y, na_x in directions:
        seen |= (y[:, None] - na_y) ** 2 + (x[None] - na_x) ** 2 < reach**2
    return float(energy[~seen].sum() / energy.sum())


def _show(axes: Any, image: NDArray[Any], title: str, low: float, high: float) -> None:
    axes.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.axis("off")
