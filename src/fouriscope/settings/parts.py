"""The rest of a reconstruction: the object, what is found before and during it, and when to stop."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from fouriscope.calibration.zernike_pupil import MODES
from fouriscope.errors import InvalidInputError
from fouriscope.optics.zernike_polynomials import HIGHEST_MODE
from fouriscope.settings.base import Count, Positive, Section, Side

# What iterations = "auto" is, unless unseen frames show that more pay (fouriscope.run.rehearsal).
AUTO_ITERATIONS = 150


class Object(Section):
    """[object]: what is reconstructed, and on which grid.

    Examples
    --------
    >>> Object(model="wave", margin=8).margin
    8
    """

    model: Literal["phase", "complex", "wave"] = Field(
        default="phase", description="a phase; phase and absorption; or the complex wave itself (docs/solver.md)"
    )
    shape: tuple[Side, Side] | Literal["auto"] = Field(default="auto", description="[rows, columns] of the object")
    margin: Annotated[int, Field(ge=0, le=10**4)] | Literal["auto"] = Field(
        default="auto",
        description='frame pixels around the frame that are estimated but not measured; "auto" is 16 to 24',
    )
    precision: Literal["single", "double"] = Field(
        default="single", description="precision of all arrays of the reconstruction"
    )


class Alignment(Section):
    """[alignment]: what is found from the frames before the reconstruction. See :func:`fouriscope.align`.

    Examples
    --------
    >>> Alignment(focus=True).is_wanted, Alignment().is_wanted
    (True, False)
    """

    circles: bool = Field(
        default=False, description="find the place and orientation of the LED array, from the bright frames alone"
    )
    exposure: bool = Field(
        default=False,
        description="find how much longer dark-field frames were exposed than bright-field ones: `frames.brightness`",
    )
    focus: bool = Field(default=False, description="find the focus: `pupil.defocus`")
    focus_reach: Annotated[float, Field(gt=0, lt=0.1)] = Field(
        default=300e-6, description="how far to search for the focus, to both sides, in metres"
    )
    response: bool = Field(
        default=False, description="find whether counts are a power of the intensity: `frames.power`"
    )
    na: bool = Field(default=False, description="find `microscope.na`, from 0.7 to 1.2 times the one given")
    array: bool = Field(
        default=False,
        description="move the LED array as a rigid body, by short reconstructions of a small patch",
    )
    die: bool = Field(default=False, description="find `illumination.die`, the size of the LEDs")
    edge: bool = Field(
        default=False, description="leave out frames of LEDs whose direct light passes the pupil only in part"
    )
    curvature: bool = Field(
        default=False,
        description="find `microscope.wave_curvature`: how directions change over the field",
    )
    motions: tuple[Literal["shift", "rotation", "height", "pitch"], ...] = Field(
        default=("shift", "rotation", "height"), description="what `array` may change"
    )

    @property
    def is_wanted(self) -> bool:
        return any(getattr(self, name) for name in switches(Alignment))


class Calibration(Section):
    """[calibration]: what is refined during the reconstruction. See :mod:`fouriscope.calibration`.

    Examples
    --------
    >>> Calibration(zernike=True).zernike_modes[0]
    4
    """

    zernike: bool = Field(default=False, description="refine aberrations, c_j; not with epry")
    zernike_modes: tuple[Annotated[int, Field(ge=4, le=HIGHEST_MODE)], ...] = Field(
        default=MODES, description="Noll indices j, from 4 on"
    )
    pixels: bool = Field(
        default=False,
        description="refine the pupil bin by bin, modulus and phase, and smooth it; not with epry",
    )
    gains: bool = Field(default=False, description="refine g_i, the brightness of each LED")
    gains_bound: Annotated[float, Field(gt=1, le=1e6)] = Field(
        default=3.0, description="gains change at most by this factor"
    )
    gains_by: Literal["auto", "contrast", "brightness"] = Field(
        default="auto",
        description='what decides the gains of dark-field frames; "auto" is "contrast", or what predicts unseen frames '
        "better (docs/calibration.md)",
    )
    leds: bool = Field(default=False, description="refine δ_i, the direction of each LED")
    leds_bound: Annotated[float, Field(gt=0, le=1e3)] = Field(
        default=2.0, description="directions change at most by this many frequency bins"
    )

    @field_validator("zernike_modes")
    @classmethod
    def _each_once(cls, modes: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(modes)) < len(modes):
            raise ValueError("a mode is given twice; give each once")
        return modes


class Stop(Section):
    """[stop]: when to stop. The first of these rules ends the run.

    Examples
    --------
    >>> Stop(iterations=None, seconds=60).iterations
    'unlimited'
    >>> Stop().settled, Stop(iterations=300).settled
    (True, False)
    >>> Stop(iterations="auto").limit
    150
    """

    iterations: Count | Literal["auto", "unlimited"] | None = Field(
        default=300,
        description='number of iterations; "auto": 150, or 600 if unseen frames show that it pays; "unlimited" needs '
        "seconds or residual",
    )
    seconds: Positive | None = Field(
        default=None, description="time of the iterations, without the work before and after them"
    )
    residual: Positive | None = Field(
        default=None, description="stop when the relative change of the object per iteration falls below this"
    )

    settled: bool = Field(
        default=True,
        description="stop when the mean of the estimates over minibatches has settled; off by default if one of the "
        "other keys is given",
    )

    @property
    def limit(self) -> int | None:
        """The number of iterations; None if unlimited. While nobody has looked whether more pay, "auto" is 150."""
        if self.iterations == "auto":
            return AUTO_ITERATIONS
        return self.iterations if isinstance(self.iterations, int) else None

    @model_validator(mode="before")
    @classmethod
    def _as_asked(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and keys and "settled" not in keys:
            return keys | {"settled": False}  # written down, so that a record of the run says so
        return keys

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


class Verdict(Section):
    """[verdict]: whether a finished run is judged (docs/results.md)."""

    enabled: bool = Field(default=True, description="judge the run, which takes a few seconds at its end")


class Output(Section):
    """[output]: what is written at the end of a run.

    >>> Output(phase_background="plane").phase_background
    'plane'
    """

    phase_background: Literal["none", "constant", "plane", "curved"] = Field(
        default="curved",
        description="what is subtracted in `phase_flat`: nothing (it is not written then), a constant, a ramp too, or "
        "curvature too",
    )


def switches(section: type[Section]) -> list[str]:
    """The keys of a section that are on or off."""
    return [key for key, field in section.model_fields.items() if field.annotation is bool]


def switched(section: type[Section], names: str | Any, *, everything: str | None = None) -> dict[str, bool]:
    """All switches of a section, on or off.

    Parameters
    ----------
    section
        Such as :class:`Alignment`.
    names
        The switches that are on: one name, several, or None for none.
    everything
        The name that stands for all of them.
    """
    known = switches(section)
    if everything is not None and names == everything:
        return dict.fromkeys(known, True)
    on = [names] if isinstance(names, str) else () if names is None else names
    numbers = [name for name in on if name in section.model_fields and name not in known]
    if numbers:
        raise InvalidInputError(f"{numbers[0]} is a value, not a switch: give {section.__name__}({numbers[0]}=…)")
    return dict.fromkeys(known, False) | dict.fromkeys(on, True)
