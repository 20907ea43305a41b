"""y_i: frames on demand and the acquisition they belong to."""

from fouriscope.acquisition.acquisition import Acquisition
from fouriscope.acquisition.frames import (
    ArrayFrames,
    CalibratedFrames,
    Frames,
    NpyFrames,
    TiffFrames,
    ZarrFrames,
    open_frames,
)

__all__ = [
    "Acquisition",
    "ArrayFrames",
    "CalibratedFrames",
    "Frames",
    "NpyFrames",
    "TiffFrames",
    "ZarrFrames",
    "open_frames",
]
