"""Alignment: where the LEDs are and where the focus lies, found from the frames before a reconstruction."""

from fouriscope.alignment.align import Alignment, align
from fouriscope.alignment.aperture import ApertureFit, find_na
from fouriscope.alignment.array import ArrayFit, refine_array
from fouriscope.alignment.circles import CircleFit, find_array
from fouriscope.alignment.curvature import CurvatureFit, find_curvature
from fouriscope.alignment.die import DieFit, find_die
from fouriscope.alignment.exposure import ExposureFit, find_exposure
from fouriscope.alignment.focus import FocusFit, find_focus
from fouriscope.alignment.height import HeightFit, find_height
from fouriscope.alignment.orientation import ORIENTATIONS, Orientation
from fouriscope.alignment.place import PlaceFit, find_place
from fouriscope.alignment.polish import PolishFit, polish
from fouriscope.alignment.prediction import likeness
from fouriscope.alignment.response import ResponseFit, find_response
from fouriscope.alignment.rotation import RotationFit, find_rotation
from fouriscope.alignment.scan import ScanFit, scan
from fouriscope.alignment.sides import sides
from fouriscope.alignment.trials import Trials

__all__ = [
    "ORIENTATIONS",
    "Alignment",
    "ApertureFit",
    "ArrayFit",
    "CircleFit",
    "CurvatureFit",
    "DieFit",
    "ExposureFit",
    "FocusFit",
    "HeightFit",
    "Orientation",
    "PlaceFit",
    "PolishFit",
    "ResponseFit",
    "RotationFit",
    "ScanFit",
    "Trials",
    "align",
    "find_array",
    "find_curvature",
    "find_die",
    "find_exposure",
    "find_focus",
    "find_height",
    "find_na",
    "find_place",
    "find_response",
    "find_rotation",
    "likeness",
    "polish",
    "refine_array",
    "scan",
    "sides",
]
