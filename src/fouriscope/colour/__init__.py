"""Three wavelengths: a set of ordinary runs that share a description, registered to each other and put together."""

from fouriscope.colour.reconstruct import reconstruct_colour
from fouriscope.colour.result import ColourResult

__all__ = ["ColourResult", "reconstruct_colour"]
