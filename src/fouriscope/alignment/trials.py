"""How well a guess about the microscope explains the frames, judged by a short reconstruction of a small patch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames, center_of_region
from fouriscope.acquisition.masks import mask_of
from fouriscope.alignment.brightness import counted_pixels, frame_means, sides_of_edge
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import Illumination, Pupil
from fouriscope.optics.frame_sources import coarse_sources
from fouriscope.parallel import run_sliced
from fouriscope.solvers import EPRY, Iterations

# Sweeps of a trial. Three bring EPRY near its end, and the comparison needs no more.
SWEEPS = 3
SWEEPS_OF_A_FREE_PUPIL = 5
# The frames of a trial go on beyond its patch.
MARGIN = 16
# Side of the patch in frame pixels: a trial takes a fraction of a second, and the LEDs have one direction in it.
PATCH = 64
# Of a larger one, where a few trials decide much. Its bins are finer, and its frames hold four times as much.
LARGE_PATCH = 128
# LEDs nearer to the pupil's edge than this, in frequency bins of the patch, take no part in trials...
EDGE = 0.6
# ... if this many remain inside it.
LEAST_BRIGHT = 3


class Belief(TypedDict, total=False):
    """What a trial believes of the microscope; the rest is that of the patch."""

    illumination: Illumination | None
    pupil: Pupil | None
    na: float | None
    gains: NDArray[Any] | None
    free_pupil: bool


@dataclass(frozen=True, eq=False)
class Trials:
    """Short reconstructions of one patch, all from the same start, so that their misfits can be compared.

    A guess that is wrong by a fraction of a frequency bin leaves a misfit that no object explains, so the minimum over
    guesses is sharp. The misfit at a fixed object would hardly change, because that object has adapted to its guess.

    Parameters
    ----------
    patch
        The part of the acquisition that is reconstructed.
    object_shape
        (rows, columns) of its object.
    margin
        Frame pixels around the patch that are estimated too.
    whole_dies
        Whether every LED has all the sources that its size asks for. By default only LEDs near the pupil's edge have:
        the others cost most of the time, and their size hardly changes which guess is better.
    """

    patch: Acquisition
    object_shape: tuple[int, int]
    margin: int
    whole_dies: bool = False

    @classmethod
    def of(
        cls,
        acquisition: Acquisition,
        *,
        side: int = PATCH,
        room: float = 0.5,
        every_edge: bool = False,
        whole_dies: bool = False,
    ) -> Trials:
        """Trials on the patch of ``side`` pixels with the most structure; LEDs may move by ``room`` (in units of NA).

        With ``every_edge``, frames at the pupil's edge are used even if they contradict its place.
        """
        patch = most_detailed_patch(acquisition, side)
        # A measured pupil lies on the grid of the whole frame; trials do not use it.
        # Frames count in units of the object, however long they were exposed.
        weights = patch.frame_weights if every_edge else _without_the_edge(patch)
        weights = weights / (1.0 if patch.gains is None else np.asarray(patch.gains))
        patch = replace(patch, pupil=replace(patch.pupil, array=None), weights=weights)
        optics = patch.optics
        reach = float(patch.illumination_na.max()) + (1 + room) * optics.na
        margin = 0 if patch.periodic else MARGIN
        grid = tuple(size + 2 * margin for size in patch.frame_shape)
        rows, columns = (max(size, _even(2 * reach / optics.wavelength * size * optics.pixel + 4)) for size in grid)
        return cls(patch, (rows, columns), margin, whole_dies)

    def at(self, illumination: Illumination) -> Trials:
        """The same trials of the same patch, beginning at another place of the LEDs."""
        return replace(self, patch=replace(self.patch, illumination=illumination))

    def misfit(
        self,
        *,
        illumination: Illumination | None = None,
        pupil: Pupil | None = None,
        na: float | None = None,
        gains: NDArray[Any] | None = None,
        free_pupil: bool = False,
    ) -> float:
        """The misfit, in the amplitude loss, of the last of a few sweeps of EPRY with this guess.

        With ``free_pupil`` the pupil is recovered too, in some more sweeps, so that aberrations hide less of what the
        guess explains. A free pupil would absorb a defocus.
        """
        patch = self.patch
        try:
            model = self.model(
                patch.illumination if illumination is None else illumination, pupil=pupil, na=na, gains=gains
            )
            return self.sweeps(model, patch, free_pupil=free_pupil).history.last.misfit
        except (InvalidInputError, DivergenceError):
            return math.inf  # an LED beyond the object's spectrum, or a guess that explains nothing

    def misfits(self, beliefs: Sequence[Belief]) -> list[float]:
        """The :meth:`misfit` of each belief, given by its arguments. All cores share the work."""
        found = [math.nan] * len(beliefs)

        def work(start: int, stop: int) -> None:
            for index in range(start, stop):
                found[index] = self.misfit(**beliefs[index])

        run_sliced(work, len(beliefs))
        return found

    def model(
        self,
        illumination: Illumination,
        *,
        pupil: Pupil | None = None,
        na: float | None = None,
        gains: NDArray[Any] | None = None,
    ) -> ForwardModel:
        """The patch with a guess."""
        patch = self.patch
        optics = patch.optics if na is None else replace(patch.optics, na=na)
        return ForwardModel(
            optics,
            illumination,
            patch.frame_shape,
            pupil=patch.pupil if pupil is None else pupil,
            object="wave",
            object_shape=self.object_shape,
            margin=self.margin,
            patch_center=patch.patch_center,
            gains=patch.gains if gains is None else gains,
            sources=None if self.whole_dies else coarse_sources(illumination, optics, patch.patch_center),
        )

    @staticmethod
    def sweeps(model: ForwardModel, frames: Acquisition, *, free_pupil: bool = False, count: int | None = None) -> EPRY:
        """A few sweeps of EPRY, or ``count``, over those of ``frames`` that have a weight."""
        fidelity = DataFidelity.of(frames, model, loss="amplitude")
        leds = AllLEDs(np.flatnonzero(fidelity.weights > 0))
        if free_pupil:
            solver = EPRY(fidelity, leds, pupil_step=1.0, pupil_start=2, decay=0.3, seed=0)
        else:
            solver = EPRY(fidelity, leds, decay=0.2, seed=0)
        solver.solve(Iterations(count or (SWEEPS_OF_A_FREE_PUPIL if free_pupil else SWEEPS)))
        return solver

    @property
    def bin_na(self) -> tuple[float, float]:
        """NA of one frequency bin of the patch along (y, x)."""
        optics = self.patch.optics
        rows, columns = (size + 2 * self.margin for size in self.patch.frame_shape)
        return optics.wavelength / (rows * optics.pixel), optics.wavelength / (columns * optics.pixel)


def _without_the_edge(patch: Acquisition) -> NDArray[np.float64]:
    """The weights of the patch, 0 for LEDs near the pupil's edge whose frames contradict the side they are believed on.

    One LED on the wrong side adds or removes direct light, which outweighs everything else that a trial can tell. If
    the brightness of frames at the edge agrees with their sides, they are the best evidence, and are kept.
    """
    weights, optics = patch.frame_weights, patch.optics
    radius, inside = patch.illumination_na, patch.bright_field
    sides = sides_of_edge(frame_means(patch), inside)
    if not np.any((sides > 0) & ~inside) and not np.any((sides < 0) & inside):
        return weights
    bin_na = optics.wavelength / (min(patch.frame_shape) * optics.pixel)
    clear = np.abs(radius - optics.na) > EDGE * bin_na
    if np.count_nonzero(clear & inside & (weights > 0)) < LEAST_BRIGHT:
        return weights
    return np.where(clear, weights, 0.0)


def most_detailed_patch(acquisition: Acquisition, side: int) -> Acquisition:
    """The part of at most ``side`` × ``side`` pixels with the most fine structure, kept in memory."""
    return patch_at(acquisition, most_detailed_place(acquisition, side))


def most_detailed_place(acquisition: Acquisition, side: int) -> tuple[int, int, int, int]:
    """(top, left, rows, columns) of the part of at most ``side`` × ``side`` pixels with the most fine structure."""
    rows, columns = acquisition.frame_shape
    height, width = min(side, rows), min(side, columns)
    # Directions without a height are known at the centre only: there the patch must stay.
    movable = getattr(acquisition.illumination, "height", None) is not None
    if movable and (height, width) != (rows, columns):
        return (*most_detailed_corner(acquisition, height, width), height, width)
    return (rows - height) // 2, (columns - width) // 2, height, width


def patch_at(acquisition: Acquisition, place: tuple[int, int, int, int]) -> Acquisition:
    """The part of ``acquisition`` at (top, left, rows, columns), kept in memory."""
    top, left, height, width = place
    part = (slice(top, top + height), slice(left, left + width))
    stack = np.stack([np.asarray(acquisition.frames.frame(led)[part]) for led in range(len(acquisition))])
    return replace(
        acquisition,
        frames=ArrayFrames(stack.astype(np.float32)),
        mask=None if acquisition.mask is None else _part_of_mask(acquisition, part),
        patch_center=center_of_patch(acquisition, place),
        periodic=acquisition.periodic and (height, width) == acquisition.frame_shape,
        truth=None,
    )


def center_of_patch(acquisition: Acquisition, place: tuple[int, int, int, int]) -> tuple[float, float]:
    """The ``patch_center`` of the part at (top, left, rows, columns)."""
    optics, lights = acquisition.optics, acquisition.illumination
    frame, center = acquisition.frame_shape, acquisition.patch_center
    return center_of_region(center, place, frame, optics.pixel, lights, optics.wave_curvature)


def _part_of_mask(acquisition: Acquisition, part: tuple[slice, slice]) -> NDArray[Any]:
    mask = acquisition.mask
    assert mask is not None
    return np.stack([mask_of(mask, led)[part] for led in range(len(acquisition))])


def most_detailed_corner(acquisition: Acquisition, height: int, width: int) -> tuple[int, int]:
    """(top, left) of the part with the most fine structure in the frame that is lit most nearly along the axis.

    Fine structure scatters light into all frames; one large dark square would have a large variance but tell nothing.
    """
    from scipy.ndimage import gaussian_laplace, uniform_filter

    radius = acquisition.illumination_na
    if acquisition.weights is not None:
        radius = np.where(np.asarray(acquisition.weights) > 0, radius, np.inf)
    led = int(radius.argmin())
    frame = np.asarray(acquisition.frames.frame(led), np.float64)
    good = counted_pixels(acquisition, led, frame)
    frame = gaussian_laplace(np.where(good, frame, frame[good].mean() if good.any() else 0.0), 1.0)
    mean = uniform_filter(frame, (height, width))
    variance = uniform_filter(frame**2, (height, width)) - mean**2
    rows, columns = frame.shape
    inside = variance[height // 2 : rows - (height - 1) // 2, width // 2 : columns - (width - 1) // 2]
    row, column = np.unravel_index(int(inside.argmax()), inside.shape)
    return int(row), int(column)


def _even(size: float) -> int:
    from scipy.fft import next_fast_len

    smallest = int(next_fast_len(math.ceil(size)))
    return smallest if smallest % 2 == 0 else _even(smallest + 1)
