"""Every engine computes what the compiled loops compute, within the rounding of single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fouriscope.calibration import Calibration, LEDGains, PixelPupil, ZernikePupil
from fouriscope.fidelity import AllLEDs, AmplitudeLoss, Contributions, PoissonLoss
from fouriscope.fidelity.array_losses import PIXELS, pixels_of
from fouriscope.fidelity.losses import LOSSES
from fouriscope.solvers import EPRY, Iterations
from tests.engines.problems import CASES, OTHERS, an_x, difference, fidelity_of, model_of

CLOSE = 1e-5
EVERY_LOSS = [*LOSSES, AmplitudeLoss(background=0.1), PoissonLoss(background=0.3)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", OTHERS)
def test_gradient_of_every_case(engine: str, case: str) -> None:
    ours, other = (fidelity_of(case, name, "amplitude") for name in ("numba", engine))
    x = an_x(ours.model)
    expected, found = ours.gradient(x), other.gradient(x)
    assert found.value == pytest.approx(expected.value, rel=CLOSE)
    assert difference(found.gradient, expected.gradient) < CLOSE
    assert found.gradient.dtype == expected.gradient.dtype
    leds = [3, 30, 7, 3] if case != "weights" else [3, 30, 3]
    assert difference(other.misfits(x, leds), ours.misfits(x, leds)) < CLOSE
    assert other.value(x) == pytest.approx(expected.value, rel=CLOSE)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
@pytest.mark.parametrize("case", ["margin", "sums, margin, mask"])
@pytest.mark.parametrize("engine", OTHERS)
def test_gradient_of_every_loss(engine: str, case: str, loss: Any) -> None:
    ours, other = (fidelity_of(case, name, loss, np.float64) for name in ("numba", engine))
    x = an_x(ours.model)
    expected, found = ours.gradient(x), other.gradient(x)
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    assert difference(found.gradient, expected.gradient) < 1e-10


def test_every_loss_has_an_array_form() -> None:
    assert set(LOSSES) <= set(PIXELS)
    for loss in LOSSES.values():
        assert pixels_of(loss()) is PIXELS[loss.name]


@pytest.mark.parametrize("case", CASES)
def test_forward_model_in_plain_numpy(case: str) -> None:
    ours, plain = (model_of(case, name, np.float64) for name in ("numba", "scipy"))
    x = an_x(ours)
    sources = np.arange(len(ours.sources))
    assert difference(plain.pupils(sources)[0], ours.pupils(sources)[0]) < 1e-12
    assert difference(plain.intensity(x), ours.intensity(x)) < 1e-12
    assert difference(plain.coverage([1, 5, 30], [0.5, 1, 2]), ours.coverage([1, 5, 30], [0.5, 1, 2])) < 1e-12
    assert difference(plain.transmittance(x), ours.transmittance(x)) < 1e-12


def watched(engine: str, case: str) -> list[Contributions]:
    """What a gradient shows to whoever watches it, copied."""
    seen: list[Contributions] = []
    fidelity = fidelity_of(case, engine, "amplitude")
    fidelity.gradient(
        an_x(fidelity.model), observer=lambda group: seen.append(group._replace(boxes=group.boxes.copy()))
    )
    return seen


@pytest.mark.parametrize("case", ["margin", "sums"])
@pytest.mark.parametrize("engine", OTHERS)
def test_what_a_calibration_watches(engine: str, case: str) -> None:
    expected, found = watched("numba", case), watched(engine, case)
    for key in ("boxes", "weights", "leds", "sources"):
        together, other = (np.concatenate([getattr(group, key) for group in groups]) for groups in (expected, found))
        # Of single sources, before they are summed: each engine is some 7e-6 from double precision.
        assert difference(other, together) < 2 * CLOSE
    assert difference(found[0].spectrum, expected[0].spectrum) < CLOSE


@pytest.mark.parametrize("engine", OTHERS)
def test_calibrations_revise_alike(engine: str) -> None:
    arrays = []
    for name in ("numba", engine):
        fidelity = fidelity_of("margin", name, "amplitude")
        calibration = Calibration([ZernikePupil((4, 5, 6)), PixelPupil(start=0.0), LEDGains(every=1, start=0.0)])
        x, batch = an_x(fidelity.model), AllLEDs(np.arange(len(fidelity))).draw(np.random.default_rng(0))
        for _ in range(2):
            fidelity.gradient(x, batch, calibration.observer)
            calibration.revise(fidelity, x, batch)
        assert fidelity.model.engine.name == name
        arrays.append((fidelity.model.pupil_on_grid(), fidelity.model.gains))
    assert difference(arrays[1][0], arrays[0][0]) < 1e-4
    gains = [np.asarray(found) for _, found in arrays]
    assert difference(gains[1], gains[0]) < 1e-4


@pytest.mark.parametrize("case", ["margin", "sums, margin, mask"])
@pytest.mark.parametrize("loss", ["amplitude", "intensity"])
def test_epry_in_plain_numpy(case: str, loss: str) -> None:
    found = []
    for name in ("numba", "scipy"):
        fidelity = fidelity_of(case, name, loss, np.float64)
        solver = EPRY(fidelity, AllLEDs(np.arange(len(fidelity))), pupil_step=0.7, start=an_x(fidelity.model))
        history = solver.solve(Iterations(2))
        found.append((history["misfit"], solver.x, solver.pupil))
    for expected, other in zip(*found, strict=True):
        assert difference(other, expected) < 1e-9
