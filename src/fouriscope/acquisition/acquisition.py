"""What was measured, and with what: the input of every reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.acquisition.frames import ArrayFrames, Frames
from fouriscope.acquisition.masks import mask_of
from fouriscope.acquisition.streaming import read_through
from fouriscope.acquisition.thumbnails import image_uri, led_map_uri, page
from fouriscope.acquisition.units import frames_of_counts
from fouriscope.checks import door, door_class_but
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Illumination, Optics, Pupil
from fouriscope.optics._points import told_of_directions
from fouriscope.optics.patterns import Multiplexed, lit_leds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _FramesOrArray:
    """The type of a field that is given an array or frames, and holds frames."""

    def __get__(self, owner: Acquisition | None, _: type[Acquisition]) -> Frames:
        if owner is None:
            raise AttributeError("frames")  # so a dataclass learns that there is no default
        frames: Frames = owner.__dict__["frames"]
        return frames

    def __set__(self, owner: Acquisition, given: Frames | NDArray[Any]) -> None:
        owner.__dict__["frames"] = ArrayFrames(given) if isinstance(given, np.ndarray) else given


@door_class_but("frames")
@dataclass(frozen=True, eq=False, repr=False)
class Acquisition:
    r"""Frames, one for each LED in order, with the microscope that took them.

    Intensities are in units of the empty bright field (1 = what an LED inside the pupil gives without a sample). Of
    what a camera counts, :meth:`from_counts` makes them.

    Parameters
    ----------
    optics, illumination
        The microscope and its LEDs; frame i was lit by LED i, or by pattern i of :class:`~fouriscope.Multiplexed`.
    frames
        An array (frames, rows, columns) or anything with ``shape`` and ``frame(i)``.
    pupil
        Known aberrations, if any.
    patch_center
        (y, x) in metres of the frames' centre, from the optical axis.
    weights
        One weight ≥ 0 per frame: how much its misfit counts. 0 leaves a frame out.
    mask
        True where a pixel counts: an array (rows, columns) or (frames, rows, columns). If masks of all frames would
        fill the memory, give anything with that shape and ``frame(i)``, such as :class:`FrameMasks`.
    gains
        How bright each LED is compared with the others, times how long its frame was exposed: y_i = g_i \|H_i o\|².
        All 1 by default. Dark-field frames that were exposed twelve times longer have 12.
    periodic
        Whether the field repeats itself, as in many simulations. The field of a microscope does not: light from beyond
        the frame reaches into it, so a reconstruction adds a margin.
    truth
        The object, if it is known (simulations). It is used only to report the SNR.

    Examples
    --------
    >>> from fouriscope.optics import LEDArray
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    >>> data = Acquisition(optics, leds, np.ones((293, 64, 64), np.float32))
    >>> data
    Acquisition: 293 frames of 64 × 64, NA 0.2, 293 LEDs up to NA 0.477, 513 nm, pixel 0.798 µm
    >>> data.frames[-1].shape
    (64, 64)
    """

    optics: Optics
    illumination: Illumination
    frames: _FramesOrArray = _FramesOrArray()
    pupil: Pupil = field(default_factory=Pupil)
    patch_center: tuple[float, float] = (0.0, 0.0)
    weights: NDArray[Any] | None = None
    mask: Frames | NDArray[Any] | None = None
    gains: NDArray[Any] | None = None
    periodic: bool = False
    truth: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.frames, Frames) or len(self.frames.shape) != 3:
            raise InvalidInputError(
                "frames must be an array (frames, rows, columns) or an object with that shape and a method frame(i), "
                f"got {type(self.frames).__name__}; use np.stack for a list of images, open_frames for a file"
            )
        count, lights = self.frames.shape[0], len(self.illumination)
        if count != lights:
            of = "pattern" if isinstance(self.illumination, Multiplexed) else "LED"
            raise InvalidInputError(
                f"one frame for each {of} is needed: the illumination has {lights} {of}s, the stack has {count} frames"
            )
        if self.weights is not None and np.shape(self.weights) != (count,):
            raise InvalidInputError(f"weights: one per frame is needed, {count}, got shape {np.shape(self.weights)}")
        if self.gains is not None and (np.shape(self.gains) != (count,) or not np.all(np.asarray(self.gains) > 0)):
            raise InvalidInputError(f"gains must be {count} positive numbers, one per frame, got {self.gains!r}")
        if self.mask is not None and not isinstance(self.mask, Frames):
            object.__setattr__(self, "mask", np.asarray(self.mask))
        masks = (self.frame_shape, tuple(self.frames.shape))
        if self.mask is not None and np.shape(self.mask) not in masks:
            raise InvalidInputError(f"a mask must have the shape {masks[0]} or {masks[1]}, got {np.shape(self.mask)}")

    @classmethod
    def from_counts(
        cls,
        optics: Optics,
        illumination: Illumination,
        counts: Frames | NDArray[Any],
        *,
        dark: ArrayLike = 0.0,
        exposures: ArrayLike | None = None,
        bright_field: float | None = None,
        **others: Any,
    ) -> Acquisition:
        r"""An acquisition of what a camera counts, in any number type: frame i becomes

        .. math:: y_i = \frac{(c_i - \mathrm{dark}) \, \min_j t_j / t_i}{\mathrm{bright\_field}}.

        Frames are computed when they are asked for, so ``counts`` may be a stack on disk.

        Parameters
        ----------
        optics, illumination
            As in the constructor.
        counts
            An array (frames, rows, columns) or anything with ``shape`` and ``frame(i)``, as :func:`open_frames` gives.
        dark
            Counts without light: one number, or a frame. Most cameras have some, often 100 of 65535.
        exposures
            t, the exposure time of each frame, in any unit; all the same unless given.
        bright_field
            Counts of the empty bright field, above dark and at the shortest exposure. Unless given, it is the median
            of the medians of up to nine bright-field frames, which is right if most of the field is empty.
        **others
            ``pupil``, ``patch_center``, ``weights``, ``mask``, ``gains``, ``periodic``, ``truth``: as in the
            constructor.

        Examples
        --------
        >>> from fouriscope.optics import LEDArray
        >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> counts = np.full((9, 16, 16), 4100, np.uint16)
        >>> data = Acquisition.from_counts(optics, LEDArray.square(3, pitch=4e-3, height=70e-3), counts, dark=100)
        >>> float(data.frames[0].max())
        1.0
        """
        frames = ArrayFrames(counts) if isinstance(counts, np.ndarray) else counts
        known = cls(optics, illumination, frames, **others)  # says what is wrong, before a frame is read
        return replace(known, frames=frames_of_counts(known, dark, exposures, bright_field))

    def __len__(self) -> int:
        return self.frames.shape[0]

    def __repr__(self) -> str:
        optics, told = self.optics, []
        if not self.pupil.is_clear:
            told.append(repr(self.pupil).replace("Pupil: ", "pupil with "))
        left_out = np.count_nonzero(self.frame_weights == 0)
        told += [f"{left_out} frames left out"] if left_out else []
        told += [word for word, is_so in (("masked", self.mask is not None), ("periodic", self.periodic)) if is_so]
        lights = told_of_directions(lit_leds(self.illumination)[0].directions())
        return (
            "Acquisition: {} frames of {} × {}, ".format(*self.frames.shape)
            + f"NA {optics.na:.3g}, {lights}, {optics.wavelength * 1e9:.4g} nm, "
            + ", ".join([f"pixel {optics.pixel * 1e6:.3g} µm", *told])
        )

    def _repr_html_(self) -> str:
        """For notebooks: the frame of the most central LED, and where the LEDs are."""
        na = self.illumination.directions()
        central = int(np.hypot(na[:, 0], na[:, 1]).argmin())
        return page(
            repr(self),
            {
                f"frame {central}": lambda: image_uri(self.frames.frame(central)),
                "LEDs": lambda: led_map_uri(na, self.optics.na),
            },
        )

    def plot(self) -> Figure:
        """A figure of the acquisition: each frame at the direction of its LED, and how bright each frame is.

        A frame on the wrong side of the circle, which is the objective's NA, or unlike its neighbours, is an LED in the
        wrong place. Every frame is read once. It is :func:`fouriscope.plots.contact_sheet`.

        Examples
        --------
        >>> from fouriscope.optics import LEDArray
        >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        >>> frames = np.random.default_rng(0).random((9, 16, 16))
        >>> figure = Acquisition(optics, LEDArray.square(3, pitch=4e-3, height=70e-3), frames).plot()
        >>> len(figure.axes)
        2
        """
        from fouriscope.plots import contact_sheet

        brightness = [float(np.nanmean(frame)) for frame in read_through(self.frames)]
        left_out = {int(index): "weight 0" for index in np.flatnonzero(self.frame_weights == 0)}
        na = self.illumination.directions(self.patch_center)
        return contact_sheet(self.frames, na, self.optics.na, brightness, left_out)

    @property
    def frame_shape(self) -> tuple[int, int]:
        """(rows, columns) of a frame."""
        return self.frames.shape[1:]

    @property
    def illumination_na(self) -> NDArray[np.float64]:
        """NA under which the patch sees the LED of each frame, or, if it has several, the one nearest to the axis."""
        return np.asarray(np.hypot(*self.illumination.directions(self.patch_center).T))

    @property
    def bright_field(self) -> NDArray[np.bool_]:
        """Whether direct light should pass the pupil in each frame, as far as the described geometry says."""
        return self.optics.passes(self.illumination_na)

    @property
    def frame_weights(self) -> NDArray[np.float64]:
        """One weight for each frame, in a new array: 1 where none was given."""
        return np.ones(len(self)) if self.weights is None else np.array(self.weights, np.float64)

    @door
    def check_frames(self, watch: Callable[[NDArray[Any], NDArray[Any] | None], object] | None = None) -> None:
        """Read every frame once. Raise if one holds NaN or infinite values, or if all are zero.

        Frames of weight 0 and masked pixels do not count, so they may hold anything. Memory is one frame and its mask.
        ``watch`` is called with every frame, in order, and its own mask (None if all frames share one). So a checksum,
        for example, need not read all frames again.
        """
        counted, anything = 0, False
        own = self.mask if self.mask is not None and len(self.mask.shape) == 3 else None
        shared = np.asarray(self.mask) != 0 if self.mask is not None and own is None else None
        for index, frame in enumerate(read_through(self.frames)):
            image, left_out = frame, self.weights is not None and self.weights[index] == 0
            mask = None if own is None else mask_of(own, index)
            if watch is not None:
                watch(image, mask)
            if left_out:
                continue
            counts = mask if mask is not None else shared
            if counts is not None:
                image = image[counts]
            bad = int(image.size - np.count_nonzero(np.isfinite(image)))
            if bad:
                raise InvalidInputError(
                    f"frame {index} holds {bad} NaN or infinite pixels of {image.size}; "
                    "repair the file, or leave the frame out with weight 0"
                )
            counted, anything = counted + image.size, anything or bool(np.any(image))
        if not counted:
            raise InvalidInputError("the mask leaves no pixel of the frames that count; check the mask")
        if not anything:
            raise InvalidInputError("all frames are zero: nothing was measured, or the wrong file was read")
