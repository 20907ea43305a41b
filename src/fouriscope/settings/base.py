"""What all settings share: frozen, strict about their keys, every key with its sentence."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Pair = tuple[float, float]


class Section(BaseModel):
    """One section of a configuration file, and the object that Python takes in its place.

    Each key has one home: its name, type, default and check, and in ``description`` its sentence in the reference
    (:mod:`fouriscope.settings.reference`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
