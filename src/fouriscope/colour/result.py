"""Three results of one field on one grid: colours for the eye, amplitudes and phases to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.colours import COLOURS, Colour
from fouriscope.checks import door
from fouriscope.colour.registration import Shift, common_window, find_shift, resampled
from fouriscope.errors import InvalidInputError
from fouriscope.run import Result
from fouriscope.run.folder import RunFolder
from fouriscope.run.phases import flattened

FloatArray = NDArray[np.float64]

# Channels that are less alike than this have nothing in common: they are not shifted.
LEAST_LIKENESS = 0.2
# The share of pixels that are darker than white, and the exponent of screens.
WHITE = 0.9
GAMMA = 2.2


@dataclass(frozen=True, eq=False, repr=False)
class ColourResult:
    """The channels of a colour reconstruction, registered to one of them.

    Attributes
    ----------
    channels
        The result of each channel as it was found, by its name.
    reference
        The channel to which the others were registered.
    shifts
        By how much each channel was shifted against the reference, in pixels of :attr:`pixel`, and how alike they are.
    pixel
        (height, width) of a pixel in metres, that of the finest channel.
    fields
        The complex transmittance of each channel on the common grid, cropped to the area where all are measured.
    """

    channels: dict[Colour, Result]
    reference: Colour
    shifts: dict[Colour, Shift]
    pixel: tuple[float, float]
    fields: dict[Colour, NDArray[Any]]

    @classmethod
    @door
    def of(cls, channels: Mapping[Colour, Result], reference: Colour = "green") -> ColourResult:
        """Register three results of one field: find the shift of each against the reference, and undo it.

        An object of optical path l has a phase of 2πl/λ, so phases are compared as paths. The shift is the one with
        which two channels correlate best (:func:`~fouriscope.colour.registration.find_shift`). One interpolation brings
        a channel to the finest grid of the three and to its place.

        Examples
        --------
        >>> import numpy as np, fouriscope as fs
        >>> leds = fs.LEDArray.square(5, pitch=4e-3, height=70e-3)
        >>> found = {}
        >>> for name, wavelength in {"red": 630e-9, "green": 525e-9, "blue": 470e-9}.items():
        ...     optics = fs.Optics(wavelength=wavelength, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
        ...     model = fs.ForwardModel(optics, leds, (32, 32), object_shape=(160, 160))
        ...     path = 50e-9 * (np.indices((160, 160)) // 32).sum(axis=0) % 100e-9
        ...     data = fs.simulate(model, 2 * np.pi * path / wavelength, snr_db=40, seed=0)
        ...     found[name] = fs.reconstruct(data, batch=25, iterations=20, object=fs.settings.Object(shape=(160, 160)))
        >>> colours = fs.ColourResult.of(found)
        >>> colours.phase.shape, colours.rgb.shape, all(abs(s.down) < 0.1 for s in colours.shifts.values())
        ((3, 160, 160), (160, 160, 3), True)
        """
        if set(channels) != set(COLOURS):
            raise InvalidInputError(f"channels must be {', '.join(COLOURS)}, got {', '.join(map(str, channels))}")
        if reference not in channels:
            raise InvalidInputError(f"reference must be one of {', '.join(COLOURS)}, got {reference!r}")
        extents = {name: _extent(result) for name, result in channels.items()}
        if not all(np.allclose(extent, extents[reference], rtol=1e-6) for extent in extents.values()):
            raise InvalidInputError(
                "channels must show the same field, cut to the same window, but these have the sizes "
                + ", ".join(f"{y * 1e6:.4g} × {x * 1e6:.4g} µm ({name})" for name, (y, x) in extents.items())
            )
        finest = min(channels.values(), key=lambda result: result.pixel)
        rows, columns = finest.phase.shape
        paths = {name: _as_path(channels[name], channels[reference]) for name in COLOURS}
        paths = {name: resampled(path, (rows, columns), (0.0, 0.0)) for name, path in paths.items()}
        shifts = {name: _believable(find_shift(paths[reference], paths[name])) for name in COLOURS}
        shifts[reference] = Shift(0.0, 0.0, 1.0)
        window = common_window((rows, columns), [(shift.down, shift.across) for shift in shifts.values()])
        fields = {
            name: _placed(channels[name].transmittance, (rows, columns), shifts[name])[window] for name in COLOURS
        }
        return cls({name: channels[name] for name in COLOURS}, reference, shifts, finest.pixel, fields)

    @classmethod
    @door
    def load(cls, path: str | Path) -> ColourResult:
        """The channels of a folder that ``fouriscope colour`` wrote, put together again."""
        folder = RunFolder.open(path)
        config = folder.config()
        if folder.provenance().get("kind") != "colour":
            raise InvalidInputError(f"{path} is a run of one wavelength: load it with fs.Result.load")
        return cls.of({name: Result.load(folder.path / name) for name in COLOURS}, config["colour"]["reference"])

    def __repr__(self) -> str:
        rows, columns = self.fields[self.reference].shape
        size = f"{rows} × {columns} pixels of {self.pixel[1] * 1e6:.3g} µm"
        return f"ColourResult: red, green and blue of {size}; {'; '.join(self.told())}"

    @property
    def amplitude(self) -> FloatArray:
        """(3, rows, columns) |o| of red, green and blue; 1 is the empty bright field."""
        return np.stack([np.abs(self.fields[name]) for name in COLOURS]).astype(np.float64)

    @property
    def phase(self) -> FloatArray:
        """(3, rows, columns) the phase of red, green and blue in (−π, π], each up to a constant."""
        return np.stack([np.angle(self.fields[name]) for name in COLOURS]).astype(np.float64)

    @cached_property
    def flattened_phase(self) -> FloatArray:
        """(3, rows, columns) unwrapped, without ramp and curvature of the background: for viewing."""
        pairs = zip(self.phase, self.amplitude, strict=True)
        return np.stack([flattened(phase, amplitude) for phase, amplitude in pairs])

    @property
    def rgb(self) -> NDArray[np.uint8]:
        """(rows, columns, 3) what the eye would see: transmitted light, balanced so that an empty place is white."""
        light = self.amplitude**2
        white = np.quantile(light, WHITE, axis=(1, 2), keepdims=True)
        shown = np.clip(light / np.maximum(white, 1e-12), 0, 1) ** (1 / GAMMA)
        return np.moveaxis(np.rint(255 * shown).astype(np.uint8), 0, -1)

    @property
    def focus(self) -> dict[Colour, float]:
        """The defocus of each channel in metres, as it was described or found."""
        found = {name: result.geometry for name, result in self.channels.items()}
        return {name: 0.0 if geometry is None else geometry.defocus for name, geometry in found.items()}

    def told(self) -> list[str]:
        """Shift and focus of each channel relative to the reference, in words."""
        lines = []
        for name in COLOURS:
            if name == self.reference:
                continue
            shift, (height, width) = self.shifts[name], self.pixel
            apart = (self.focus[name] - self.focus[self.reference]) * 1e6
            place = (
                f"shifted by ({shift.down * height * 1e6:+.3f}, {shift.across * width * 1e6:+.3f}) µm against "
                f"{self.reference}"
                if shift.likeness
                else f"not registered, because it is too unlike {self.reference}"
            )
            lines.append(f"{name}: {place}, focus {apart:+.2f} µm away")
        return lines


def _extent(result: Result) -> tuple[float, float]:
    (rows, columns), (height, width) = result.phase.shape, result.pixel
    return rows * height, columns * width


def _as_path(result: Result, reference: Result) -> NDArray[np.complex128]:
    """The transmittance with its background subtracted and its phase as at the reference's wavelength."""
    ratio = 1.0
    if result.geometry is not None and reference.geometry is not None:
        ratio = result.geometry.wavelength / reference.geometry.wavelength
    return np.asarray(result.amplitude * np.exp(1j * ratio * result.flattened("curved").astype(np.float64)))


def _believable(shift: Shift) -> Shift:
    return shift if shift.likeness >= LEAST_LIKENESS else Shift(0.0, 0.0, 0.0)


def _placed(field: NDArray[Any], shape: tuple[int, int], shift: Shift) -> NDArray[Any]:
    steps = [old / new for old, new in zip(field.shape, shape, strict=True)]
    return resampled(field, shape, (shift.down * steps[0], shift.across * steps[1]))
