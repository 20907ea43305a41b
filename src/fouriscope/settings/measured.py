"""What was measured: the sections [frames], [microscope] and [pupil]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.acquisition.colours import Colour, Mosaic, unmixing
from fouriscope.optics.zernike_polynomials import HIGHEST_MODE
from fouriscope.settings.base import (
    Counts,
    Factor,
    Finite,
    Pair,
    Positive,
    Power,
    Section,
    Side,
    Thickness,
    Weight,
)

Shares = tuple[Weight, Weight, Weight]


class FramesSection(Section):
    """[frames]: where the frames are, how they are stored, and how counts become intensity: (counts − offset) / gain.

    Before there are any frames, ``shape`` replaces ``path``; that is enough for ``fouriscope info``.
    """

    path: str | None = Field(
        default=None,
        description="a file, or a folder with one image per frame, in the order of the LEDs (docs/formats.md)",
    )
    shape: tuple[Side, Side] | None = Field(
        default=None, description="[rows, columns] of a frame, instead of `path` while there are no frames"
    )
    kind: Literal["npy", "npz", "tiff", "zarr", "hdf5", "mat", "folder"] | None = Field(
        default=None, description="how the frames are stored, if the name does not say it"
    )
    dataset: str | None = Field(
        default=None, description="the array inside npz, HDF5, MATLAB or Zarr, if there are several"
    )
    axes: str | None = Field(
        default=None,
        description="the axes of the array: n for frames, y for rows, x for columns, 1 for an axis of length one; "
        '"yxn" for MATLAB',
    )
    pattern: str | None = Field(
        default=None, description="in a folder: which files to read, in natural order (_2 before _10)"
    )
    files: tuple[str, ...] | None = Field(default=None, description="in a folder: the files, in the order of the LEDs")
    roi: tuple[int, int, int, int] | None = Field(
        default=None, description="(row, column, height, width): only this part of the frames is read"
    )
    plane: Colour | None = Field(
        default=None, description="for a colour camera: which pixels are read (docs/colour.md)"
    )
    mosaic: Mosaic | None = Field(
        default=None,
        description="the colours of the sensor's first two rows, if the file holds the sensor's own numbers",
    )
    crosstalk: tuple[Shares, Shares, Shares] | None = Field(
        default=None,
        description="with `plane`: a row each for red, green and blue pixels, how much they count for red, green and "
        "blue light; it is corrected",
    )
    bit_shift: Annotated[int, Field(ge=0, le=15)] = Field(
        default=0, description="unused low bits, such as 4 for 12 bits stored in the upper bits of 16"
    )
    amplitude: bool = Field(default=False, description="if true, intensity is the square of the stored numbers")
    power: Power | None = Field(default=None, description="p in stored = intensity^p; `amplitude = true` means 0.5")
    offset: Counts = Field(default=0.0, description="counts in the dark")
    dark: str | tuple[str, ...] | None = Field(
        default=None, description="a dark frame, a stack of them or a list of files: the mean is subtracted"
    )
    flat: str | None = Field(
        default=None, description="the image of an empty, evenly lit field; its mean does not matter"
    )
    exposures: tuple[Factor, ...] | None = Field(
        default=None, description="one per frame; counts are scaled to the shortest"
    )
    brightness: tuple[Factor, ...] | None = Field(
        default=None,
        description="g_i in y_i = g_i \\|H_i o\\|², one per frame, for LED and exposure; the alignment finds it",
    )
    background: Counts | tuple[Counts, ...] | Literal["auto"] | None = Field(
        default=None,
        description='stray light: one number per frame, one number for the dark field, or "auto" from each dark frame',
    )
    floor: Weight = Field(default=0.0, description="in dark field, counts up to this level are only noise")
    gain: Factor = Field(default=1.0, description="counts of the empty bright field")
    saturation: Factor | Literal["auto"] | None = Field(
        default=None, description="pixels at or above this level are masked, in counts after `bit_shift`"
    )
    bad_pixels: Literal["auto"] | None = Field(
        default=None, description="mask dead and hot pixels, which stand out in every frame"
    )
    mask: str | None = Field(default=None, description="an image, nonzero where a pixel counts")
    weights: tuple[Weight, ...] | None = Field(default=None, description="one per frame; 0 leaves a frame out")
    reject: tuple[int, ...] | Literal["auto"] = Field(default=(), description="frames to leave out, counted from 0")
    truth: str | None = Field(default=None, description="the object, if it is known; used only to report the SNR")
    memory: int | str | None = Field(
        default=None,
        description='memory for frames read from disk, such as "256MB"; the default is a quarter of the free memory, '
        "at most 1 GiB",
    )

    @property
    def exponent(self) -> float:
        """p in stored = intensity^p."""
        return (0.5 if self.amplitude else 1.0) if self.power is None else self.power

    @property
    def is_corrected(self) -> bool:
        """Whether intensities differ from the numbers that are stored."""
        plain = type(self).model_fields
        keys = ("bit_shift", "amplitude", "power", "offset", "dark", "flat", "exposures", "background", "floor", "gain")
        return any(getattr(self, key) != plain[key].default for key in keys)

    @field_validator("memory")
    @classmethod
    def _is_a_size(cls, memory: int | str | None) -> int | str | None:
        if memory is not None:
            parse_bytes(memory)
        return memory

    @model_validator(mode="after")
    def _path_or_shape(self) -> FramesSection:
        if (self.path is None) == (self.shape is None):
            raise ValueError(
                "give either path, the file that holds the frames, or, if there are none yet, shape = [rows, columns]"
            )
        if self.pattern is not None and self.files is not None:
            raise ValueError("give either pattern or files, not both")
        if self.plane is None and (self.mosaic or self.crosstalk):
            key = "mosaic" if self.mosaic else "crosstalk"
            raise ValueError(f'{key} is for a colour camera: give plane = "red", "green" or "blue" too')
        if self.crosstalk is not None:
            unmixing(self.crosstalk)
            if self.bit_shift or self.exponent != 1 or self.dark is not None or self.saturation == "auto":
                raise ValueError(
                    "crosstalk is corrected on the stored counts: give offset instead of dark, saturation as a "
                    "number, and no bit_shift, amplitude or power"
                )
        if self.amplitude and self.power is not None:
            raise ValueError(
                f"amplitude = true means power = 0.5, but power = {self.power:g} is given too: delete one of them"
            )
        return self


class MicroscopeSection(Section):
    """[microscope]: the objective and the camera, in metres."""

    wavelength: Positive = Field(description="wavelength of the light, λ")
    bandwidth: Thickness = Field(
        default=0.0, description="full width at half maximum of the light around λ; 0 is one wavelength"
    )
    spectrum: tuple[Pair, ...] | None = Field(
        default=None, description="instead of `bandwidth`: [[wavelength, weight], …] (docs/sources.md)"
    )
    na: Positive = Field(description="numerical aperture of the objective")
    magnification: Positive = Field(description="magnification of objective and tube lens together")
    camera_pixel: Positive = Field(description="pitch of the camera's pixels")
    medium_index: Positive = Field(default=1.0, description="refractive index around the sample")
    patch_center: Pair = Field(
        default=(0.0, 0.0), description="(y, x) of the centre of whole frames, from the optical axis"
    )
    wave_curvature: Finite | None = Field(
        default=None,
        description="curvature of the LEDs' light as the objective sees it, in 1/m: 1 / height if the objective is "
        "telecentric (docs/physics.md)",
    )


class PupilSection(Section):
    """[pupil]: known aberrations."""

    zernike: dict[Annotated[int, Field(ge=1, le=HIGHEST_MODE)], Finite] = Field(
        default_factory=dict, description="coefficients: Noll index → radians rms"
    )
    defocus: Finite = Field(default=0.0, description="defocus in metres")
    array: str | None = Field(default=None, description="a complex .npy on the frame's frequency grid, DC at n // 2")
