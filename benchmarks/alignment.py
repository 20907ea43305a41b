"""What the alignment leaves of a known error, on cropped fields that go on beyond the frames.

Each array is displaced, turned, a whole pitch off or mirrored, and nothing is told. What is left is compared LED by
LED with the true place: the mean displacement, and the turn that fits what remains.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import bar, table
from fouriscope.alignment import align
from fouriscope.alignment.array import as_array
from fouriscope.optics import LEDArray
from fouriscope.simulation import HostileMicroscope
from fouriscope.simulation.frames import Camera
from fouriscope.simulation.samples import SampleName

MICROSCOPE = HostileMicroscope(leds=11, frame=96, camera=Camera(2000, read_noise=3, bits=12, full_well=4000))
FAULTS: dict[str, HostileMicroscope] = {
    "displaced by (2, −1.5) mm": replace(MICROSCOPE, displacement=(2e-3, -1.5e-3)),
    "turned by 2°": replace(MICROSCOPE, rotation=float(np.radians(2))),
    "a pitch off": replace(MICROSCOPE, displacement=(0.0, 4e-3)),
    "mirrored": replace(MICROSCOPE, mirrored="y", displacement=(0.5e-3, 1e-3)),
    "as described": MICROSCOPE,
}
SAMPLES: tuple[SampleName, ...] = ("cells", "target")
BARS = (0.03, 0.1)


def main() -> None:
    rows = []
    for fault, microscope in FAULTS.items():
        for name in SAMPLES:
            data, truth = replace(microscope, sample=name).acquire(0)
            found = as_array(align(data).acquisition.illumination)
            shift, turn = left_over(found, truth.illumination, twin=truth.twin)
            judged = (
                bar(f"alignment, {fault}, {name}: millimetres left", shift * 1e3, BARS[0]),
                bar(f"alignment, {fault}, {name}: degrees left", float(np.degrees(turn)), BARS[1]),
            )
            numbers = [f"{shift * 1e3:.3f}", f"{np.degrees(turn):.2f}"]
            rows.append([fault, name, *numbers, *(verdict for _, verdict in judged)])
            print(f"{fault}, {name}: {shift * 1e3:.3f} mm, {np.degrees(turn):.2f}°", flush=True)
    table(
        f"What the alignment leaves, 11 × 11 LEDs, cropped frames of 96² (bars: {BARS[0]} mm, {BARS[1]}°)",
        ["error", "sample", "mm", "degrees", "mm", "degrees"],
        rows,
    )


def left_over(found: LEDArray, true: LEDArray, *, twin: bool) -> tuple[float, float]:
    """(mean displacement in metres at the true height, turn in radians) of the LEDs; of twins the nearer one."""

    def seen(array: LEDArray) -> NDArray[np.float64]:
        na = array.directions((0.0, 0.0))
        return np.asarray(true.height * na / np.sqrt(1 - np.sum(na**2, axis=1, keepdims=True)))

    goal, sides = seen(true), (1, -1) if twin else (1,)
    place = min((side * seen(found) for side in sides), key=lambda one: float(np.sum((one - goal) ** 2)))
    shift = (place - goal).mean(axis=0)
    y, x = (goal - goal.mean(axis=0)).T
    dy, dx = (place - goal - shift).T
    return float(np.hypot(*shift)), abs(float(np.sum(dy * x - dx * y) / np.sum(y**2 + x**2)))


if __name__ == "__main__":
    main()
