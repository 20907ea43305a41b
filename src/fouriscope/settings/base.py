"""What all settings share: they are frozen and strict about their keys, and every key has a description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fouriscope.errors import InvalidInputError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Side = Annotated[int, Field(ge=1, le=10**5)]  # pixels
Share = Annotated[float, Field(ge=0, le=1)]
Few = Annotated[int, Field(ge=1, le=1000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = Annotated[float, Field(ge=-1e3, le=1e3)]  # metres, as are those below
Pair = tuple[Place, Place]
Radius = Annotated[float, Field(ge=0, le=1e3)]
Thickness = Annotated[float, Field(ge=0, le=1)]
RefractiveIndex = Annotated[float, Field(ge=0.5, le=10)]
# Counts of a camera and factors between them: far beyond any real camera, and far from where numbers overflow.
Counts = Annotated[float, Field(ge=-1e15, le=1e15)]
Factor = Annotated[float, Field(ge=1e-15, le=1e15)]
Weight = Annotated[float, Field(ge=0, le=1e12)]
Power = Annotated[float, Field(ge=0.01, le=100)]


class Section(BaseModel):
    """One section of a configuration file, and the object that Python takes in its place.

    Everything about a key is in one place: its name, type, default and check, and in ``description`` its text in the
    reference (:mod:`fouriscope.settings.reference`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    if not TYPE_CHECKING:  # type checkers take the arguments from the fields

        def __init__(self, **keys: Any) -> None:
            try:
                super().__init__(**keys)
            except ValidationError as error:
                from fouriscope.settings.explaining import explain

                raise InvalidInputError(
                    f"settings.{type(self).__name__}: {explain(error, type(self), keys)}"
                ) from None  # pydantic's own error says the same in several lines

        # As pydantic marks its own: a section inside a document is checked with it, not by calling this.
        __init__.__pydantic_base_init__ = True
