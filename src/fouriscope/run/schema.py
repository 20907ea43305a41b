"""What the files of a run folder may hold. Readers check a file here, and get its content unchanged.

Keys that are not named are allowed, because other versions write more. Numbers must be finite and plausible.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError

from fouriscope.errors import RunFolderError

Number = Annotated[float, Strict(), Field(ge=-1e300, le=1e300, allow_inf_nan=False)]
Positive = Annotated[float, Strict(), Field(gt=0, le=1e300, allow_inf_nan=False)]
NotNegative = Annotated[float, Strict(), Field(ge=0, le=1e300, allow_inf_nan=False)]
Count = Annotated[int, Strict(), Field(ge=0, lt=2**63)]
Text = Annotated[str, Strict()]
Truth = Annotated[bool, Strict()]
Pair = tuple[Number, Number]
PositivePair = tuple[Positive, Positive]


class Part(BaseModel):
    """An object of JSON of which some keys are known."""

    model_config = ConfigDict(extra="allow")


class Status(Part):
    """status.json."""

    state: Literal["running", "finished", "interrupted", "failed"]
    reason: Text = ""
    pid: Annotated[int, Strict(), Field(gt=0, lt=2**31)] | None = None
    host: Text | None = None


class Input(Part):
    checksum: Text | None = None
    files: dict[str, Text] = {}


class Alignment(Part):
    notes: list[Text] = []
    nominal_na: list[Pair] | None = None


class Watch(Part):
    complete: Truth


class Provenance(Part):
    """provenance.json."""

    format: Count
    kind: Text | None = None
    input: Input = Input()
    alignment: Alignment = Alignment()
    watch: Watch | None = None
    request: dict[str, Any] | None = None
    unless_a_phase: dict[str, Any] | None = None


class Line(BaseModel):
    """A line of metrics.jsonl; what a run did not know is left out."""

    model_config = ConfigDict(extra="forbid")

    iteration: Count
    frames_seen: Count = 0
    seconds: Number = 0.0
    misfit: Number = 0.0
    residual: Number = 0.0
    step: Number = 0.0
    strength: Number = 0.0
    snr: Number = 0.0
    snr_raw: Number = 0.0
    frames_arrived: Number = 0.0
    averaged: Number = 0.0


class Checkpoint(Part):
    """state.json of checkpoint.npz; what ``solver`` is, the solver knows."""

    iterations: Count
    solver: dict[str, Any]


class SnapshotValues(Part):
    """state.json of snapshot.npz."""

    iteration: Count
    seconds: NotNegative
    frames_seen: Count
    pixel: PositivePair
    wavelength: NotNegative = 0.0
    objective_na: NotNegative = 0.0
    pupil_na_step: tuple[NotNegative, NotNegative] = (0.0, 0.0)
    written: Number = 0.0


class Summary(Part):
    """result/summary.json of a run."""

    pixel_size_m: PositivePair
    stopped: Text
    verdict: dict[str, Any] | None = None


class Slide(Part):
    thickness_m: Number
    index: Number


class PupilNumbers(Part):
    source: Literal["recovered", "model"]
    na_step: PositivePair


class Geometry(Part):
    """result/geometry.json."""

    wavelength_m: Positive
    objective_na: Positive
    patch_center_m: Pair
    margin_frame_pixels: Count
    zernike_rad_rms: dict[Annotated[str, Field(pattern="^[0-9]{1,6}$")], Number]
    defocus_m: Number
    height_m: Number | None
    rotation_rad: Number | None
    offset_m: Pair | None
    slide: Slide | None
    die_m: Number = 0.0
    wave_curvature_per_m: Number | None = None
    die_shape: Literal["square", "round"] = "square"
    pupil: PupilNumbers | None = None


def checked(schema: type[BaseModel] | TypeAdapter[Any], value: Any, where: object) -> Any:
    """``value`` as it is, if it is what ``schema`` says; raises and names the first thing that is not."""
    try:
        validate = schema.validate_python if isinstance(schema, TypeAdapter) else schema.model_validate
        validate(value)
    except ValidationError as error:
        raise RunFolderError(f"{where}: not written by a run ({first_problem(error)})") from error
    return value


def first_problem(error: ValidationError) -> str:
    """Which key is wrong and why, in a few words."""
    problem = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part)[:40] for part in problem["loc"])
    message = problem["msg"][:1].lower() + problem["msg"][1:]
    return f"{key}: {message}" if key else message
