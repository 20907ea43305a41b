"""The optics: objective, light source and pupil, compiled into the directions and grids of the forward model."""

from __future__ import annotations

from fouriscope.optics.directions import Adjusted, Directions
from fouriscope.optics.geometry import Geometry, SupportBox
from fouriscope.optics.grid_shapes import automatic_object_shape
from fouriscope.optics.illumination import Illumination, LEDArray
from fouriscope.optics.margin import automatic_margin
from fouriscope.optics.objective import Optics
from fouriscope.optics.pattern_makers import annuli, half_circles, random_patterns
from fouriscope.optics.patterns import Multiplexed
from fouriscope.optics.pupil import Pupil
from fouriscope.optics.report import OpticsReport, report_geometry
from fouriscope.optics.slide import GlassSlide
from fouriscope.optics.sources import Sources
from fouriscope.optics.zernike_polynomials import noll_to_nm, zernike

__all__ = [
    "Adjusted",
    "Directions",
    "Geometry",
    "GlassSlide",
    "Illumination",
    "LEDArray",
    "Multiplexed",
    "Optics",
    "OpticsReport",
    "Pupil",
    "Sources",
    "SupportBox",
    "annuli",
    "automatic_margin",
    "automatic_object_shape",
    "half_circles",
    "noll_to_nm",
    "random_patterns",
    "report_geometry",
    "zernike",
]
