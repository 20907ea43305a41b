"""What the user chooses: small frozen objects, the same in a TOML file and in Python.

Each is one section of a configuration file: :class:`Object` is [object], :class:`PnP` is [solver] with
``method = "pnp"``. In Python, use them where a name does not say enough:

>>> import fouriscope as fs
>>> chosen = fs.settings.EPRY(pupil_step=1.0, decay=0.3)
>>> chosen.order
'random'
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fouriscope.settings.base import Section
from fouriscope.settings.engine import Engine
from fouriscope.settings.illumination import (
    ILLUMINATIONS,
    DirectionsSection,
    DiscSection,
    FileSection,
    IlluminationSection,
    PositionsSection,
    RingsSection,
    SpiralSection,
    SquareSection,
)
from fouriscope.settings.measured import FramesSection, MicroscopeSection, PupilSection
from fouriscope.settings.methods import ADMM, EPRY, METHODS, RED, AnyMethod, Method, PnP, Spectral, method_of
from fouriscope.settings.parts import Alignment, Calibration, Object, Output, Stop, Verdict, switched

__all__ = [
    "ADMM",
    "EPRY",
    "ILLUMINATIONS",
    "METHODS",
    "RED",
    "Alignment",
    "AnyMethod",
    "Calibration",
    "DirectionsSection",
    "DiscSection",
    "Engine",
    "FileSection",
    "FramesSection",
    "IlluminationSection",
    "Method",
    "MicroscopeSection",
    "Object",
    "Output",
    "PnP",
    "PositionsSection",
    "PupilSection",
    "ReconstructionConfig",
    "RingsSection",
    "RunConfig",
    "Section",
    "Spectral",
    "SpiralSection",
    "SquareSection",
    "Stop",
    "Verdict",
    "method_of",
    "switched",
]


class ReconstructionConfig(Section):
    """How to reconstruct, whatever the data: the part that ``fs.reconstruct`` takes as arguments.

    Attributes
    ----------
    engine, object, alignment, calibration, solver, stop, output
        The sections of these names.
    prior, prior_absorption
        Name and parameters of the prior, and of another one for the second image of an object.
    """

    engine: Engine = Engine()
    object: Object = Object()
    alignment: Alignment = Alignment()
    calibration: Calibration = Calibration()
    solver: AnyMethod = PnP()
    stop: Stop = Stop()
    output: Output = Output()
    prior: dict[str, Any] = Field(default_factory=lambda: {"name": "tv"})
    prior_absorption: dict[str, Any] | None = None


class RunConfig(ReconstructionConfig):
    """A whole configuration file: the acquisition and how to reconstruct it.

    Attributes
    ----------
    frames, microscope, illumination, pupil, verdict
        The sections of these names, beside those of :class:`ReconstructionConfig`.
    """

    frames: FramesSection
    microscope: MicroscopeSection
    illumination: IlluminationSection
    pupil: PupilSection = PupilSection()
    verdict: Verdict = Verdict()
