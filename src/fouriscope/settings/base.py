"""What all settings share: frozen, strict about their keys, every key with its sentence."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Side = Annotated[int, Field(ge=1, le=10**5)]  # pixels
Few = Annotated[int, Field(ge=1, le=1000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = Annotated[float, Field(ge=-1e3, le=1e3)]  # metres, and so are those below
Pair = tuple[Place, Place]
Radius = Annotated[float, Field(ge=0, le=1e3)]
Thickness = Annotated[float, Field(ge=0, le=1)]
RefractiveIndex = Annotated[float, Field(ge=0.5, le=10)]
# Counts of a camera and factors between them: far beyond what there is, and far from where numbers overflow.
Counts = Annotated[float, Field(ge=-1e12, le=1e12)]
Factor = Annotated[float, Field(ge=1e-12, le=1e12)]
Weight = Annotated[float, Field(ge=0, le=1e12)]
Power = Annotated[float, Field(ge=0.01, le=100)]


class Section(BaseModel):
    """One section of a configuration file, and the object that Python takes in its place.

    Each key has one home: its name, type, default and check, and in ``description`` its sentence in the reference
    (:mod:`fouriscope.settings.reference`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
