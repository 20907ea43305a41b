"""A stained sample in three wavelengths: one array of LEDs, a focus and a shift for each colour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.colours import COLOURS, Colour, Mosaic, mosaic_pixels
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics, Pupil
from fouriscope.simulation.frames import Camera
from fouriscope.simulation.samples import sample

Stored = Literal["files", "planes", "mosaic"]
Three = tuple[float, float, float]

# What two stains absorb of red, green and blue: as haematoxylin and eosin do.
STAINS = ((0.65, 0.70, 0.29), (0.07, 0.99, 0.11))
NO_CROSSTALK = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class ColourMicroscope:
    """A microscope with three colours of light, or one colour camera.

    Parameters
    ----------
    leds
        Where the LEDs are, for all colours.
    wavelengths, defocus
        Wavelength and defocus of red, green and blue, in metres.
    shifts
        (y, x) in metres by which the image of each colour is shifted against the sample.
    na, magnification, camera_pixel
        As in :class:`~fouriscope.Optics`.
    frame, surround
        Pixels per side of a frame, and by how many the sample continues beyond it on every side.
    stored
        "files": a stack of frames for each colour, taken one after the other. "planes": colour images. "mosaic": the
        counts of a sensor with ``mosaic``, with all colours on at once.
    crosstalk
        How much red, green and blue pixels count for red, green and blue light, for "planes" and "mosaic".
    camera
        Counts, with noise and offset.

    Examples
    --------
    >>> microscope = ColourMicroscope(LEDArray.square(3, pitch=4e-3, height=70e-3), frame=32, stored="planes")
    >>> frames = microscope.acquire(seed=0)
    >>> frames.shape, frames.dtype
    ((9, 32, 32, 3), dtype('uint16'))
    """

    leds: LEDArray
    wavelengths: Three = (630e-9, 525e-9, 470e-9)
    defocus: Three = (4e-6, 0.0, -3e-6)
    shifts: tuple[tuple[float, float], ...] = ((0.4e-6, -0.7e-6), (0.0, 0.0), (-0.3e-6, 0.5e-6))
    na: float = 0.2
    magnification: float = 8.1485
    camera_pixel: float = 6.5e-6
    frame: int = 64
    surround: int = 16
    stored: Stored = "files"
    mosaic: Mosaic = "RGGB"
    crosstalk: tuple[Three, Three, Three] = NO_CROSSTALK
    camera: Camera = field(default_factory=lambda: Camera(10_000, offset=100))

    def __post_init__(self) -> None:
        if self.stored not in ("files", "planes", "mosaic"):
            raise InvalidInputError(f"stored must be 'files', 'planes' or 'mosaic', got {self.stored!r}")
        if self.stored == "files" and self.crosstalk != NO_CROSSTALK:
            raise InvalidInputError("crosstalk is for a colour camera: use stored = 'planes' or 'mosaic'")

    @property
    def gain(self) -> float:
        """Counts of the empty bright field."""
        return self.camera.photons * self.camera.counts_per_electron

    def model(self, colour: Colour) -> ForwardModel:
        """H of one colour; all have one object grid, fine enough for the shortest wavelength."""
        place = COLOURS.index(colour)
        grid, pixel = self.frame + 2 * self.surround, self.camera_pixel / self.magnification
        reach = (float(np.abs(self.leds.directions()).max()) + self.na) / min(self.wavelengths)
        factor = int(np.ceil((2 * reach * grid * pixel + 3) / grid))
        return ForwardModel(
            Optics(self.wavelengths[place], self.na, self.magnification, self.camera_pixel),
            self.leds,
            (self.frame, self.frame),
            pupil=Pupil(defocus=self.defocus[place]),
            object="complex",
            object_shape=(factor * grid, factor * grid),
            margin=self.surround,
        )

    def field(self, colour: Colour, seed: int, *, shifted: bool = True) -> NDArray[np.complex128]:
        """The sample as one colour sees it, over frame and surround; unless ``shifted``, where it lies."""
        model, place = self.model(colour), COLOURS.index(colour)
        wavelength = self.wavelengths[place]
        logarithm = np.zeros(model.object_shape, np.complex128)
        for number, stain in enumerate(STAINS):
            cells = np.log(sample("cells", model.object_shape, np.random.default_rng([seed, number])))
            # The same optical path has more radians at a shorter wavelength; a stain absorbs its share.
            logarithm += stain[place] * cells.real + 0.5j * self.wavelengths[1] / wavelength * cells.imag
        if not shifted:
            return np.asarray(np.exp(logarithm))
        from scipy.ndimage import fourier_shift

        pixels = [shift / step for shift, step in zip(self.shifts[place], model.object_pixel, strict=True)]
        moved = fourier_shift(np.fft.fft2(logarithm), pixels)
        return np.asarray(np.exp(np.fft.ifft2(moved)))

    def truth(self, colour: Colour, seed: int) -> NDArray[np.complex128]:
        """The sample where it lies, in the window of the frames."""
        return self.field(colour, seed, shifted=False)[self.model(colour).geometry.object_window]

    def light(self, seed: int) -> NDArray[Any]:
        """(3, N, rows, columns): the ideal frames of red, green and blue; 1 is the empty bright field."""
        frames = []
        for colour in COLOURS:
            seen = self.field(colour, seed)
            frames.append(self.model(colour).intensity(np.stack([np.angle(seen), -np.log(np.abs(seen))])))
        return np.stack(frames)

    def acquire(self, seed: int) -> NDArray[np.uint16]:
        """Counts as they are stored: (3, N, rows, columns) "files", (N, rows, columns, 3) "planes", (N, rows, columns)
        "mosaic". Same seed, same counts."""
        counted = np.einsum("cl,lnyx->cnyx", np.array(self.crosstalk), self.light(seed))
        rng = np.random.default_rng([seed, len(STAINS)])
        if self.stored == "mosaic":
            whole = slice(0, self.frame)
            seen = np.zeros(counted.shape[1:])
            for colour, frames in zip(COLOURS, counted, strict=True):
                seen += frames * mosaic_pixels(self.mosaic, colour, whole, whole)
            return self.camera.expose(seen, rng)
        counts = self.camera.expose(counted, rng)
        return np.moveaxis(counts, 0, -1) if self.stored == "planes" else counts
