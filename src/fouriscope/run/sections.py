"""The sections of a configuration file: every key, its meaning and its default. Unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.calibration.zernike_pupil import MODES
from fouriscope.fidelity import LossName
from fouriscope.optics.spiral import Start

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Pair = tuple[float, float]


class Section(BaseModel):
    """Frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FramesSection(Section):
    """[frames]: where the frames are, how they are stored, and how counts become intensity: (counts − offset) / gain.

    Before there are any frames, ``shape`` = (rows, columns) stands in for ``path``; ``fouriscope info`` needs no more.
    Every key, and the order in which corrections are made, is in ``docs/configuration.md``.
    """

    path: str | None = None
    shape: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    kind: Literal["npy", "npz", "tiff", "zarr", "hdf5", "mat", "folder"] | None = None
    dataset: str | None = None
    axes: str | None = None
    pattern: str | None = None
    files: tuple[str, ...] | None = None
    roi: tuple[int, int, int, int] | None = None
    bit_shift: Annotated[int, Field(ge=0, le=15)] = 0
    amplitude: bool = False
    power: Positive | None = None
    offset: float = 0.0
    dark: str | tuple[str, ...] | None = None
    flat: str | None = None
    exposures: tuple[Positive, ...] | None = None
    brightness: tuple[Positive, ...] | None = None
    background: float | tuple[float, ...] | Literal["auto"] | None = None
    floor: Annotated[float, Field(ge=0)] = 0.0
    gain: Positive = 1.0
    saturation: Positive | Literal["auto"] | None = None
    bad_pixels: Literal["auto"] | None = None
    mask: str | None = None
    weights: tuple[float, ...] | None = None
    reject: tuple[int, ...] | Literal["auto"] = ()
    truth: str | None = None
    memory: int | str | None = None

    @property
    def exponent(self) -> float:
        """p of stored = intensity^p."""
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
                "give path, the file that holds the frames, or, where there are none yet, shape = [rows, columns]; "
                "one of the two"
            )
        if self.pattern is not None and self.files is not None:
            raise ValueError("give pattern or files, one of the two")
        if self.amplitude and self.power is not None:
            raise ValueError(
                f"amplitude = true means power = 0.5, there is power = {self.power:g} too: delete one of them"
            )
        return self


class MicroscopeSection(Section):
    """[microscope], in metres. ``patch_center`` is (y, x) of the frames' centre from the optical axis."""

    wavelength: Positive
    na: Positive
    magnification: Positive
    camera_pixel: Positive
    medium_index: Positive = 1.0
    patch_center: Pair = (0.0, 0.0)


class _LEDs(Section):
    height: Positive
    rotation: float = 0.0
    offset: Pair = (0.0, 0.0)
    slide_thickness: Annotated[float, Field(ge=0)] = 0.0
    slide_index: Positive = 1.52


class SquareSection(_LEDs):
    """[illumination] kind = "square": rows × columns LEDs on a square lattice."""

    kind: Literal["square"]
    shape: tuple[int, int]
    pitch: Positive


class DiscSection(_LEDs):
    """[illumination] kind = "disc": the LEDs of a lattice within ``radius`` pitches."""

    kind: Literal["disc"]
    pitch: Positive
    radius: Positive


class SpiralSection(_LEDs):
    """[illumination] kind = "spiral": ``size`` × ``size`` LEDs of a lattice from the centre, or the first ``count``.

    ``start`` is the way of the first step; rows run down and columns to the right.
    """

    kind: Literal["spiral"]
    size: Annotated[int, Field(ge=1)]
    pitch: Positive
    count: Annotated[int, Field(ge=1)] | None = None
    start: Start = "right"
    clockwise: bool = True


class RingsSection(_LEDs):
    """[illumination] kind = "rings": ``counts[k]`` LEDs on a ring of radius ``radii[k]``."""

    kind: Literal["rings"]
    radii: tuple[float, ...]
    counts: tuple[int, ...]
    start_angle: float = 0.0


class PositionsSection(_LEDs):
    """[illumination] kind = "positions": (y, x) of every LED in metres, in the order of the frames."""

    kind: Literal["positions"]
    positions: tuple[Pair, ...]


class DirectionsSection(Section):
    """[illumination] kind = "directions": (na_y, na_x) of every LED, in the order of the frames.

    ``rotation`` turns them; an ``offset`` in metres moves the LEDs, for which their ``height`` must be known.
    """

    kind: Literal["directions"]
    na: tuple[Pair, ...]
    height: Positive | None = None
    rotation: float = 0.0
    offset: Pair = (0.0, 0.0)


class FileSection(Section):
    """[illumination] kind = "file": a CSV with one line per LED: na_y, na_x, or y, x in metres, or row, column."""

    kind: Literal["file"]
    path: str
    height: Positive | None = None
    pitch: Positive | None = None
    rotation: float = 0.0
    offset: Pair = (0.0, 0.0)
    slide_thickness: Annotated[float, Field(ge=0)] = 0.0
    slide_index: Positive = 1.52


ILLUMINATIONS: dict[str, type[Section]] = {
    "square": SquareSection,
    "disc": DiscSection,
    "spiral": SpiralSection,
    "rings": RingsSection,
    "positions": PositionsSection,
    "directions": DirectionsSection,
    "file": FileSection,
}
IlluminationSection = Annotated[
    SquareSection | DiscSection | SpiralSection | RingsSection | PositionsSection | DirectionsSection | FileSection,
    Field(discriminator="kind"),
]


class PupilSection(Section):
    """[pupil]: Zernike coefficients (Noll index → radians rms), defocus in metres, or a complex array in a .npy."""

    zernike: dict[int, float] = Field(default_factory=dict)
    defocus: float = 0.0
    array: str | None = None


class ObjectSection(Section):
    """[object]: what is reconstructed, and on which grid."""

    model: Literal["phase", "complex", "wave"] = "phase"
    shape: tuple[int, int] | Literal["auto"] = "auto"
    margin: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    precision: Literal["single", "double"] = "single"


class SolverSection(Section):
    """[solver]: method, data fidelity, sampling and step; see ``fouriscope.solvers``.

    ``steps_per_denoising`` belongs to "pnp", ``data_steps`` and ``restart`` to "admm", ``denoiser_weight`` to "red" and
    "spectral", ``balance`` to "spectral", ``epry_…`` to "epry", which takes no prior. An iteration of "epry" is a sweep
    over all LEDs, unless ``batch`` or ``sampler`` is given.

    ``start = "array"`` records that Python was given a starting point, which no file holds.
    """

    method: Literal["pnp", "admm", "red", "spectral", "epry"] = "pnp"
    loss: LossName = "intensity"
    poisson_background: Positive = 0.01
    sampler: Literal["stratified", "epochs", "uniform", "fixed", "all"] = "stratified"
    batch: Annotated[int, Field(ge=1)] = 60
    step: Positive | Literal["auto"] = "auto"
    acceleration: bool = True
    steps_per_denoising: Annotated[int, Field(ge=1)] | Literal["auto"] = 1
    data_steps: Annotated[int, Field(ge=1)] = 5
    restart: bool = True
    denoiser_weight: Positive | Literal["auto"] = "auto"
    balance: bool = True
    epry_order: Literal["na", "random", "sampler"] = "random"
    epry_step: Positive = 1.0
    epry_pupil_step: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    epry_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    start: Literal["flat", "linear", "epry", "array"] = "flat"
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="before")
    @classmethod
    def _epry_sweeps(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and keys.get("method") == "epry" and not {"batch", "sampler"} & set(keys):
            return keys | {"sampler": "all"}  # written down, so that a record of the run says so
        return keys


class AlignmentSection(Section):
    """[alignment]: what is found from the frames before the reconstruction; see ``fouriscope.alignment``.

    ``circles`` places the LED array by its bright frames and the circles in their spectra and tells its orientation,
    ``exposure`` finds how much longer dark-field frames were exposed than bright-field ones, ``focus`` finds the
    defocus within ±``focus_reach`` metres, ``na`` the objective's aperture, ``array`` moves the LED array as a
    rigid body (``motions``) to where short reconstructions of a small patch explain the frames best, and ``edge``
    leaves out LEDs whose direct light passes in part.
    """

    circles: bool = False
    exposure: bool = False
    focus: bool = False
    focus_reach: Annotated[float, Field(gt=0, lt=0.1)] = 300e-6
    na: bool = False
    array: bool = False
    edge: bool = False
    motions: tuple[Literal["shift", "rotation", "height", "pitch"], ...] = ("shift", "rotation", "height")

    @property
    def is_wanted(self) -> bool:
        return self.circles or self.exposure or self.focus or self.na or self.array or self.edge


class CalibrationSection(Section):
    """[calibration]: what is refined beside the object; see ``fouriscope.calibration``.

    ``zernike`` are aberrations (the Noll indices ``zernike_modes``), ``pixels`` the pupil bin by bin, ``gains`` the
    brightness of each LED within a factor ``gains_bound``, ``leds`` the direction of each LED within ``leds_bound``
    frequency bins.
    """

    zernike: bool = False
    zernike_modes: tuple[Annotated[int, Field(ge=4)], ...] = MODES
    pixels: bool = False
    gains: bool = False
    gains_bound: Annotated[float, Field(gt=1)] = 3.0
    leds: bool = False
    leds_bound: Positive = 2.0


class StopSection(Section):
    """[stop]: whichever comes first."""

    iterations: Annotated[int, Field(ge=1)] | Literal["unlimited"] | None = 300
    seconds: Positive | None = None
    residual: Positive | None = None

    @field_validator("iterations", mode="before")
    @classmethod
    def _none_is_unlimited(cls, value: Any) -> Any:
        return "unlimited" if value is None else value  # TOML has no None: a key left out would mean the default

    @field_validator("residual")
    @classmethod
    def _below_one(cls, value: float | None) -> float | None:
        if value is not None and value >= 1:
            raise ValueError("a relative residual must be below 1")
        return value


class VerdictSection(Section):
    """[verdict]: whether a finished run is asked if it is good; see ``fouriscope.verdict``."""

    enabled: bool = True


class ReconstructionConfig(Section):
    """How to reconstruct, whatever the data: the part that ``fs.reconstruct`` takes as arguments."""

    object: ObjectSection = ObjectSection()
    alignment: AlignmentSection = AlignmentSection()
    calibration: CalibrationSection = CalibrationSection()
    solver: SolverSection = SolverSection()
    stop: StopSection = StopSection()
    prior: dict[str, Any] = Field(default_factory=lambda: {"name": "tv"})
    prior_absorption: dict[str, Any] | None = None


class RunConfig(ReconstructionConfig):
    """A whole configuration file: the acquisition and how to reconstruct it."""

    frames: FramesSection
    microscope: MicroscopeSection
    illumination: IlluminationSection
    pupil: PupilSection = PupilSection()
    verdict: VerdictSection = VerdictSection()
