"""The picture of a run while it runs: ``snapshot.npz``, for the page.

A checkpoint is for continuing exactly, and holds everything that a solver needs for that. A snapshot is for viewing:
the images cut to the measured window, the pupil, and what is known of each LED. It is written about once per second, or
less often, so that it takes no more than a hundredth of the run's time. A reader never sees half of one. A snapshot is
normally a little older than the run's last iteration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.arriving import arriving_below
from fouriscope.errors import RunFolderError
from fouriscope.run import schema
from fouriscope.run.files import write_arrays
from fouriscope.run.stored_arrays import LARGEST_IMAGE, Header, read_arrays, read_headers
from fouriscope.solvers import Record, Solver

SNAPSHOT_NAME = "snapshot.npz"
SNAPSHOT_SECONDS = 1.0
# A picture changes less and less, and whoever looks on pays for each: later ones come a tenth of a run's age apart, up
# to this.
LONGEST_PAUSE = 3.0
# Of a run's time that snapshots may take: a large object is shown more rarely, not more slowly computed.
SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a run looks like after an iteration.

    Attributes
    ----------
    phase, absorption
        float32, cut to the measured window; ``absorption`` is None for a phase object.
    pupil
        complex64 on the frame's frequency grid, zero frequency at n//2; None where it is not known.
    led_na
        (N, 2) directions (na_y, na_x) as the model has them now; None where they are not known.
    led_weight, led_arrived
        (N,) weight of each LED's frame, and whether it is there.
    iteration, seconds, frames_seen
        As in the last :class:`~fouriscope.solvers.Record`; zeros before the first.
    pixel
        (height, width) of an object pixel in metres.
    wavelength, objective_na, pupil_na_step
        For the scales of spectrum and pupil; 0 where they are not known.
    written
        ``time.time()`` of the snapshot.
    """

    phase: NDArray[np.float32]
    led_weight: NDArray[np.float64]
    led_arrived: NDArray[np.bool_]
    iteration: int
    seconds: float
    frames_seen: int
    pixel: tuple[float, float]
    absorption: NDArray[np.float32] | None = None
    pupil: NDArray[np.complex64] | None = None
    led_na: NDArray[np.float64] | None = None
    wavelength: float = 0.0
    objective_na: float = 0.0
    pupil_na_step: tuple[float, float] = (0.0, 0.0)
    written: float = field(default_factory=time.time)

    @classmethod
    def of(cls, solver: Solver) -> Snapshot:
        """The state of ``solver``."""
        model = solver.fidelity.model
        geometry = model.geometry
        arriving = arriving_below(solver.fidelity.frames)
        images = [
            None if image is None else np.array(image[geometry.object_window], np.float32)
            for image in model.object.phase_and_absorption(np.asarray(solver.x))
        ]
        assert images[0] is not None
        pupil = solver.recovered_pupil
        step_y, step_x = geometry.frequency_step
        wavelength = geometry.optics.wavelength
        last = solver.history.last if len(solver.history) else None
        return cls(
            phase=images[0],
            absorption=images[1],
            pupil=np.asarray(model.pupil_on_grid() if pupil is None else pupil, np.complex64),
            led_na=np.array(geometry.na, np.float64),
            led_weight=np.array(solver.fidelity.weights, np.float64),
            led_arrived=np.ones(len(model), bool) if arriving is None else np.array(arriving.arrived, bool),
            iteration=0 if last is None else last.iteration,
            seconds=0.0 if last is None else last.seconds,
            frames_seen=0 if last is None else last.frames_seen,
            pixel=model.object_pixel,
            wavelength=wavelength,
            objective_na=geometry.optics.na,
            pupil_na_step=(wavelength * step_y, wavelength * step_x),
        )


_ARRAYS = ("phase", "absorption", "pupil", "led_na", "led_weight", "led_arrived")


def write_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Replace ``snapshot.npz`` of a run folder. It is not forced to the disk: the next second replaces it anyway."""
    arrays = {name: array for name in _ARRAYS if (array := getattr(snapshot, name)) is not None}
    values = {f.name: getattr(snapshot, f.name) for f in fields(Snapshot) if f.name not in _ARRAYS}
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    write_arrays(folder / SNAPSHOT_NAME, arrays, values, durable=False)


def read_snapshot(folder: Path) -> Snapshot | None:
    """The last snapshot of a run folder, or None where there is none yet."""
    path = folder / SNAPSHOT_NAME
    if not path.exists():
        return None
    try:
        snapshot_images(folder)  # before memory is taken
        arrays, values = read_arrays(path)
        known = {f.name for f in fields(Snapshot)}
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return Snapshot(**{key: value for key, value in (arrays | values).items() if key in known})
    except (OSError, TypeError) as error:
        raise _unreadable(path, error) from error


def snapshot_images(folder: Path) -> set[str]:
    """Which of phase, absorption and pupil a snapshot holds, by its headers; raises if they are not a snapshot's."""
    path = folder / SNAPSHOT_NAME
    try:
        headers, values = read_headers(path)
        schema.checked(schema.SnapshotValues, values, "state.json")
        _check_headers(headers)
    except OSError as error:
        raise _unreadable(path, error) from error
    return {"phase", "absorption", "pupil"} & headers.keys()


def _check_headers(headers: dict[str, Header]) -> None:
    image = headers["phase"].shape if "phase" in headers else ()
    leds = headers["led_weight"].shape if "led_weight" in headers else ()
    pupil = headers["pupil"].shape if "pupil" in headers else (1, 1)
    expected: dict[str, tuple[tuple[int, ...], type]] = {
        "phase": (image, np.float32),
        "absorption": (image, np.float32),
        "pupil": (pupil, np.complex64),
        "led_na": ((*leds, 2), np.float64),
        "led_weight": (leds, np.float64),
        "led_arrived": (leds, np.bool_),
    }
    for name, (shape, dtype) in expected.items():
        optional = name in ("absorption", "pupil", "led_na")
        if name not in headers and not optional:
            raise RunFolderError(f"{name} is missing")
        if name in headers and headers[name] != (shape, np.dtype(dtype)):
            raise RunFolderError(f"{name} must be {dtype.__name__} of shape {shape}, got {tuple(headers[name])}")
    for name, shape in (("phase", image), ("pupil", pupil)):
        if len(shape) != 2 or not 0 < math.prod(shape) <= LARGEST_IMAGE:
            raise RunFolderError(f"{name} must be an image of at most {LARGEST_IMAGE} pixels, got shape {shape}")
    if len(leds) != 1:
        raise RunFolderError(f"there must be one weight for each LED, got shape {leds}")


def _unreadable(path: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"{path}: not a readable snapshot ({error}); delete it, and the run will write another")


class SnapshotWriter:
    """A callback that keeps ``snapshot.npz`` fresh: after the first iteration, every second, later every three seconds.

    >>> class Clock:
    ...     now = 0.0
    ...     def __call__(self):
    ...         return self.now
    >>> clock, written = Clock(), []
    >>> writer = SnapshotWriter(lambda solver: written.append(clock.now), clock=clock)
    >>> for clock.now in (0.0, 0.4, 0.9, 1.1, 1.5, 2.2):
    ...     _ = writer(None, None)
    >>> written
    [0.0, 1.1, 2.2]
    >>> for clock.now in (30.0, 31.0, 32.9, 33.1):
    ...     _ = writer(None, None)
    >>> written[3:]
    [30.0, 33.1]
    """

    def __init__(self, write: Callable[[Solver], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._began: float | None = None
        self._next = -np.inf

    def __call__(self, solver: Solver, record: Record) -> None:
        began = self._clock()
        if began >= self._next:
            self.now(solver)

    def now(self, solver: Solver) -> None:
        """Write one whatever the time, and put the next off by what this one took."""
        began = self._clock()
        self._write(solver)
        took = self._clock() - began
        self._began = began if self._began is None else self._began
        pause = min(max(SNAPSHOT_SECONDS, (began - self._began) / 10), LONGEST_PAUSE)
        self._next = began + max(pause, took / SHARE)
