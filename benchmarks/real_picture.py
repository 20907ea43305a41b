"""Draw README's picture of a real acquisition: ``python -m benchmarks.real_picture RUN PICTURE``.

RUN is the folder of a finished run: ``python -m benchmarks real thu_usaf_defocused --out OUT`` leaves one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.gallery import centred_phase
from benchmarks.real import reference_epry, result_of
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import load_config
from fouriscope.run.phases import flattened, unwrap


def flat_phase(field: NDArray[Any]) -> NDArray[Any]:
    """Without the slow background that frames hardly show, as in ``figure.png`` of a run."""
    return np.asarray(flattened(unwrap(centred_phase(field)), np.abs(field)))


def main(run: Path, picture: Path) -> None:
    data = build_acquisition(load_config(run / "config.toml"), run)
    numbers, directions, field = result_of(run)
    optics = (numbers["wavelength_m"], numbers["objective_na"])
    epry = reference_epry(data, directions, optics, numbers["defocus_m"])
    raw = np.asarray(data.frames.frame(int(np.hypot(*directions.T).argmin())), np.float64)
    panels = {
        "one frame of the microscope": raw,
        "plain EPRY, phase": flat_phase(epry),
        "fouriscope, phase": flat_phase(field),
    }
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, image) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        low, high = np.percentile(image, (1, 99))
        axes.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        axes.set_title(title, fontsize=12)
        axes.axis("off")
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
