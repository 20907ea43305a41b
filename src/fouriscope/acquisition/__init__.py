"""y_i: frames on demand, what is done to them, and the acquisition they belong to."""

from fouriscope.acquisition.acquisition import Acquisition
from fouriscope.acquisition.arriving import ArrivingFrames, arriving_below
from fouriscope.acquisition.corrections import CorrectedFrames, Corrections
from fouriscope.acquisition.description import Description
from fouriscope.acquisition.frames import ArrayFrames, CalibratedFrames, Frames, open_frames
from fouriscope.acquisition.images import FolderFrames, TiffFrames
from fouriscope.acquisition.masks import FrameMasks, find_bad_pixels, simplified_masks
from fouriscope.acquisition.multiplexing import multiplex
from fouriscope.acquisition.readers import describe
from fouriscope.acquisition.readers.ptylab import write_ptylab
from fouriscope.acquisition.regions import center_of_region, field_scale
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.acquisition.stacks import Hdf5Frames, NpyFrames, ZarrFrames
from fouriscope.acquisition.streaming import StreamedFrames, stream_below
from fouriscope.acquisition.survey import Survey, survey_frames
from fouriscope.acquisition.suspects import bad_frames, unlike_others
from fouriscope.acquisition.tiled_store import verify_tiled, write_tiled

__all__ = [
    "Acquisition",
    "ArrayFrames",
    "ArrivingFrames",
    "CalibratedFrames",
    "CorrectedFrames",
    "Corrections",
    "Description",
    "FolderFrames",
    "FrameMasks",
    "FrameSequence",
    "Frames",
    "Hdf5Frames",
    "NpyFrames",
    "StreamedFrames",
    "Survey",
    "TiffFrames",
    "ZarrFrames",
    "arriving_below",
    "bad_frames",
    "center_of_region",
    "describe",
    "field_scale",
    "find_bad_pixels",
    "multiplex",
    "open_frames",
    "simplified_masks",
    "stream_below",
    "survey_frames",
    "unlike_others",
    "verify_tiled",
    "write_ptylab",
    "write_tiled",
]
