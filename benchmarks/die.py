"""LEDs with a size: what a model of points makes of their frames, what that of the die does, what it costs, and whether
the size is found from the frames.

Frames are simulated from 9 × 9 points of each die, which neither model knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.microscope import leds, optics
from benchmarks.microscope import sample as sample_x
from benchmarks.report import bar, table
from benchmarks.timing import interleaved
from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.alignment import find_die
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.metrics import field_nrmse
from fouriscope.reconstruction import reconstruct
from fouriscope.simulation import Camera, simulate
from fouriscope.simulation.samples import sample

FRAME, OBJECT, ELECTRONS = (64, 64), (320, 320), 2000
DIES = (0.0, 0.5e-3, 1e-3)
LIMITS = {0.5e-3: 1.3, 1e-3: 1.6}
TIME_LIMIT = 1.35
SIZE_LIMIT, FOUND_LIMIT = 0.2, 1.1
METHODS: dict[str, dict[str, Any]] = {
    "PnP, amplitude, EPRY start": {"method": "pnp", "loss": "amplitude", "prior": None, "start": "epry"},
    "PnP, Poisson, TV": {"method": "pnp", "loss": "poisson", "prior": "tv", "prior_absorption": "tv", "start": "epry"},
    "EPRY": {"method": settings.EPRY(decay=0.3), "loss": "amplitude", "prior": None},
}
ITERATIONS = {"EPRY": 20}


def truth() -> NDArray[np.complex64]:
    """A sample within the band that the LEDs reach, so that nothing is asked of a method that no frame shows."""
    model = ForwardModel(optics(), leds(), FRAME, object_shape=OBJECT, object="wave")
    o = sample("cells", OBJECT, np.random.default_rng(1))
    return np.asarray(np.fft.ifft2(np.where(model.coverage() > 0, np.fft.fft2(o), 0)), np.complex64)


def error(data: Acquisition, o: NDArray[Any], name: str) -> float:
    result = reconstruct(
        data,
        object=settings.Object(model="complex", shape=OBJECT, margin=0),
        align=(),
        calibrate=(),
        iterations=ITERATIONS.get(name, 100),
        seed=0,
        **METHODS[name],
    )
    return field_nrmse(result.transmittance, o)


def seconds_a_pass(data: Acquisition, die: float) -> dict[str, float]:
    """Of a gradient over all frames, with the model of points and with that of the die."""
    calls = {}
    for name, size in (("points", 0.0), ("die", die)):
        model = ForwardModel(optics(), replace(leds(), die=size), FRAME, object="complex", object_shape=OBJECT)
        fidelity, x = DataFidelity(model, np.asarray(data.frames, np.float32)), sample_x(model.x_shape)
        calls[name] = lambda fidelity=fidelity, x=x: fidelity.gradient(x)
    return interleaved(calls, 40)


def found_row(data: Acquisition, die: float, o: NDArray[Any], errors: dict[str, float]) -> list[str]:
    """The size that is found where none is given, and what EPRY makes of it beside the true one."""
    fit = find_die(replace(data, illumination=leds()))
    cells = [f"{die * 1e3:g} mm", f"{fit.die * 1e3:.3f} mm"]
    if not die:
        return [*cells, "", *bar("points stay points", fit.die * 1e3, 0.0), "", "", ""]
    away = abs(fit.die / die - 1)
    ratio = error(replace(data, illumination=fit.illumination), o, "EPRY") / errors["EPRY"]
    size = bar(f"dies of {die * 1e3:g} mm found, relative error", away, SIZE_LIMIT)
    return [
        *cells,
        f"{away:.2f}",
        *size,
        f"{ratio:.2f}",
        *bar(f"NRMSE with dies of {die * 1e3:g} mm found", ratio, FOUND_LIMIT),
    ]


def main() -> None:
    o = truth()
    errors: dict[tuple[float, str, str], float] = {}
    times, found = [], []
    for die in DIES:
        model = ForwardModel(optics(), replace(leds(), die=die), FRAME, object="complex", object_shape=OBJECT)
        data = simulate(model, o, camera=Camera(ELECTRONS, offset=100), seed=0)
        for name in METHODS:
            errors[die, name, "points"] = error(replace(data, illumination=leds()), o, name)
            if die:
                errors[die, name, "die"] = error(data, o, name)
        found.append(found_row(data, die, o, {name: errors.get((die, name, "die"), 0.0) for name in METHODS}))
        if die:
            seconds = seconds_a_pass(data, die)
            ratio, count = seconds["die"] / seconds["points"], len(model.sources)
            limit = bar("a pass with dies of 0.5 mm", ratio, TIME_LIMIT) if die == 0.5e-3 else ["", ""]
            milliseconds = [f"{1e3 * seconds[name]:.1f}" for name in ("points", "die")]
            times.append([f"{die * 1e3:g} mm", str(count), *milliseconds, f"{ratio:.2f}", *limit])
    rows = []
    for name in METHODS:
        ideal = errors[0.0, name, "points"]
        rows.append([name, "a point", f"{ideal:.3f}", "", "", "", ""])
        for die, limit_of in LIMITS.items():
            ratio = errors[die, name, "die"] / ideal
            cells = [f"{errors[die, name, kind]:.3f}" for kind in ("points", "die")]
            limit = bar(f"{name}, dies of {die * 1e3:g} mm", ratio, limit_of)
            rows.append([name, f"{die * 1e3:g} mm", *cells, f"{ratio:.2f}", *limit])
    title = f"NRMSE of the field, {len(leds())} LEDs, frames of 64², {ELECTRONS} electrons"
    table(title, ("method", "die", "as points", "with the die", "beside a point", "bar", ""), rows)
    header = ("die", "sources", "points / ms", "die / ms", "ratio", "bar", "")
    table("A gradient over all frames", header, times)
    columns = ("die", "found", "off by", "bar", "", "NRMSE beside the true die", "bar", "")
    table("The size, found from the frames (EPRY)", columns, found)


if __name__ == "__main__":
    main()
