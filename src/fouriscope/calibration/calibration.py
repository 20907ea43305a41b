"""Several calibrators as one, and their state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fouriscope.calibration.base import Calibrator
from fouriscope.calibration.model_arrays import model_arrays, model_from_arrays
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Contributions, DataFidelity, Minibatch, Observer
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray


class Calibration:
    """Calibrators that take turns, alone or together, with any solver.

    Set it as ``solver.calibration`` before the first step. Each gradient of the solver is shown to those that watch.
    After it, each may revise the model, with which the solver then continues. The model as found is
    ``solver.fidelity.model``: its ``pupil``, ``illumination`` and ``gains``.

    Parameters
    ----------
    calibrators
        In the order in which they take their turns; none twice.
    """

    def __init__(self, calibrators: Sequence[Calibrator]) -> None:
        self.calibrators = list(calibrators)
        names = [one.name for one in self.calibrators]
        if len(set(names)) != len(names):
            raise InvalidInputError(f"each kind of calibration can be used only once, got {', '.join(names)}")
        self._watchers = [one for one in self.calibrators if one.watches]

    @property
    def finds_the_pupil(self) -> bool:
        """Whether the pupil of the model is one of the things that are refined."""
        return any(one.finds_the_pupil for one in self.calibrators)

    @property
    def observer(self) -> Observer | None:
        """What a gradient is to be shown to."""
        return self._watch if self._watchers else None

    def _watch(self, seen: Contributions) -> None:
        for one in self._watchers:
            one.watch(seen)

    def forget(self) -> None:
        """What was watched belongs to a gradient that is not used."""
        for one in self._watchers:
            one.forget()

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> bool:
        """Let each calibrator revise the model of ``fidelity``; True if one did."""
        revised = False
        for one in self.calibrators:
            model = one.revise(fidelity, x, batch)
            if model is not None:
                fidelity.use(model)
                revised = True
        return revised

    def measurements_grew(self, share: float) -> None:
        """What was all of the measurements is now ``share`` of them, and so are the passes that were made."""
        for one in self.calibrators:
            one.measurements_grew(share)

    def state_arrays(self, model: ForwardModel) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue exactly, including the model as found."""
        own = {f"{one.name}.{key}": array for one in self.calibrators for key, array in one.state_arrays().items()}
        return own | {f"model.{key}": array for key, array in model_arrays(model).items()}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]], fidelity: DataFidelity) -> None:
        """Take back what :meth:`state_arrays` gave; ``fidelity`` gets the model that was found."""
        for one in self.calibrators:
            one.load_state_arrays(_part(arrays, one.name))
        fidelity.use(model_from_arrays(fidelity.model, _part(arrays, "model")))


def _part(arrays: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
