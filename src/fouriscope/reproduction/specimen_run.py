"""Figure 4's methods on a measured sample, each result kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope import __version__
from fouriscope.acquisition import Acquisition
from fouriscope.calibration.gains import gain_ratios
from fouriscope.fidelity import DataFidelity
from fouriscope.reproduction.experiment import Listener, curves_of, file_name, keep_arrays, kept_arrays
from fouriscope.reproduction.protocol import METHODS, Method, method
from fouriscope.reproduction.specimen import Specimen
from fouriscope.run.assemble import build_model
from fouriscope.solvers import BY_CALLBACK, INTERRUPTED, Callback, Iterations, Record, Solver

FORMAT = 1
# On the blood smear that this was tried on, the misfit of held-out frames hardly falls after this many iterations.
GRADIENTS = 300
QUICK_GRADIENTS = 60
COLUMNS = ("iteration", "frames_seen", "seconds", "misfit", "residual")

# One denoising an iteration, as in the paper; and the sequential method of laboratories, to stand beside them.
FIGURE_4 = tuple(one for one in METHODS if one.in_paper and one.data != "Full")
# Its steps shrink ten times more slowly than in the simulation, whose pupil is known: here it has one to find. Of the
# decays 0, 0.03, 0.1 and 0.3 this one predicts held-out frames of the blood smear best: the baseline is a strong one.
BASELINE = replace(method("EPRY"), options=method("EPRY").options | {"decay": 0.03})


@dataclass(frozen=True, eq=False)
class MeasuredCell:
    """A measured sample reconstructed with one method, and how well that predicts the frames it has not seen.

    ``plain`` and ``fitted`` are the misfits of the held-out frames (:func:`predict`).
    """

    method: str
    strength: float
    phase: NDArray[np.float32]
    amplitude: NDArray[np.float32] | None
    plain: NDArray[np.float64]
    fitted: NDArray[np.float64]
    curves: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class MeasuredSummary:
    """All of figure 4's cells, by method, with what they were made from."""

    specimen: Specimen
    gradients: int
    cells: dict[str, MeasuredCell]
    pixel: float
    bright: NDArray[np.bool_]
    """Which of the held-out frames are bright-field ones."""

    @property
    def fits_brightness(self) -> bool:
        """Whether the score leaves the brightness of each held-out LED open: where gains are calibrated, it must."""
        return self.specimen.config.calibration.gains

    def score(self, name: str) -> float:
        """The mean misfit of the held-out frames; less is better."""
        cell = self.cells[name]
        return float(np.mean(cell.fitted if self.fits_brightness else cell.plain))

    def better_than_baseline(self) -> dict[str, bool]:
        """Whether the priors, given all measurements, predict unseen frames better than EPRY does."""
        return {name: self.score(name) < self.score(BASELINE.name) for name in ("TV-Online", "BM3D-Online")}

    def as_json(self) -> dict[str, Any]:
        return {
            "data": self.specimen.name,
            "checksum": self.specimen.digest.checksum,
            "held_out": self.specimen.held_out.tolist(),
            "gradients": self.gradients,
            "assumed": list(self.specimen.assumed),
            "alignment": list(self.specimen.notes),
            "methods": {
                name: {
                    "held_out_misfit": self.score(name),
                    "held_out_misfit_plain": float(cell.plain.mean()),
                    "held_out_misfit_brightness_fitted": float(cell.fitted.mean()),
                    "strength": cell.strength,
                    "iterations": int(cell.curves["iteration"][-1]),
                    "seconds": float(cell.curves["seconds"][-1]),
                }
                for name, cell in self.cells.items()
            },
            "better_than_epry": self.better_than_baseline(),
        }


def run_specimen(specimen: Specimen, folder: Path, gradients: int, listener: Listener) -> MeasuredSummary:
    """The six methods of the paper's figure 4 and EPRY, all from the same frames and the same geometry.

    Cells are kept below ``folder``; one that is there already, for the same frames and configuration, is not computed.
    """
    kept = folder / "cells" / file_name(specimen.name)
    specimen = specimen.aligned(kept, listener.tell)
    model = build_model(specimen.acquisition, specimen.config)
    methods = (*FIGURE_4, BASELINE)
    listener.plan(sum(one.milliseconds(gradients) for one in methods))
    done, cells = 0.0, {}
    for one in methods:
        listener.progress(done, f"{specimen.name}: {one.name}")

        def report(solver: Solver, record: Record, done: float = done, one: Method = one) -> None:
            words = f"{specimen.name}: {one.name}  misfit {record.misfit:.4g}"
            listener.progress(done + one.milliseconds(record.iteration), words)

        cells[one.name] = _cell(specimen, one, gradients, kept, [report, listener.interrupt])
        done += one.milliseconds(gradients)
    listener.progress(done, "done")
    bright = model.geometry.bright_field[specimen.held_out]
    return MeasuredSummary(specimen, gradients, cells, model.object_pixel[0], bright)


def _cell(specimen: Specimen, one: Method, gradients: int, folder: Path, callbacks: Sequence[Callback]) -> MeasuredCell:
    path = folder / f"{file_name(one.name)}.npz"
    key = specimen.fingerprint(
        format=FORMAT, version=__version__, method=asdict(one), gradients=gradients, strength=specimen.strength(one)
    )
    found = _read(path, key)
    if found is not None:
        return found
    solver, iterations = specimen.solver(one, gradients)
    solver.solve(Iterations(iterations), callbacks)
    if solver.stop_reason in (INTERRUPTED, BY_CALLBACK):
        raise KeyboardInterrupt
    cell = _measured(specimen, one, solver)
    arrays: dict[str, NDArray[Any]] = {"phase": cell.phase, "plain": cell.plain, "fitted": cell.fitted}
    if cell.amplitude is not None:
        arrays["amplitude"] = cell.amplitude
    keep_arrays(path, arrays, cell.curves, {"key": key, "method": cell.method, "strength": cell.strength})
    return cell


def _measured(specimen: Specimen, one: Method, solver: Solver) -> MeasuredCell:
    """What is kept of a solver that has ended: its images, cut to the frames' field, and its predictions."""
    model = solver.fidelity.model
    window = model.geometry.object_window
    images = [image[window].astype(np.float32) for image in model.object.images(solver.x)]
    prediction = predict(solver, specimen.acquisition, specimen.held_out)
    return MeasuredCell(
        one.name,
        solver.history.last.strength,
        images[0],
        np.exp(-images[1]) if len(images) > 1 else None,
        prediction.plain,
        prediction.fitted,
        {name: solver.history[name] for name in COLUMNS},
    )


class Prediction(NamedTuple):
    """Misfit of each held-out frame, in the order of the LEDs: as predicted, and with its brightness fitted."""

    plain: NDArray[np.float64]
    fitted: NDArray[np.float64]


def predict(solver: Solver, acquisition: Acquisition, held_out: NDArray[np.int64]) -> Prediction:
    """Misfits of ``held_out`` frames under the object, the pupil and the LED positions that ``solver`` found.

    The brightness of an LED whose frame was never seen is unknown. It is 1 in the plain prediction, as bright as the
    bright field in its mean; the fitted one multiplies each frame by the one number that suits it best. Where gains are
    calibrated, the second is what compares methods: the first would mostly measure how far an LED is from the mean.
    """
    model = solver.model
    gains = np.ones(len(model)) if model.gains is None else np.array(model.gains, np.float64)
    gains[held_out] = 1  # whatever the gauge of the others has made of them
    fidelity = DataFidelity.of(acquisition, model.revised(gains=gains), loss=solver.fidelity.loss)
    plain = fidelity.misfits(solver.x, held_out)
    gains[held_out] = gain_ratios(fidelity, solver.x, held_out)
    fidelity.use(model.revised(gains=gains))
    return Prediction(plain, fidelity.misfits(solver.x, held_out))


def _read(path: Path, key: str) -> MeasuredCell | None:
    kept = kept_arrays(path, key)
    if kept is None:
        return None
    arrays, values = kept
    curves = curves_of(arrays)
    return MeasuredCell(
        values["method"],
        float(values["strength"]),
        arrays["phase"],
        arrays.get("amplitude"),
        arrays["plain"],
        arrays["fitted"],
        curves,
    )
