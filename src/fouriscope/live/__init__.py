"""Reconstruction while frames arrive: from memory (:func:`stream`) and from a folder (:class:`WatchedFolder`)."""

from fouriscope.live.front import stream
from fouriscope.live.outlook import Outlook, Ring
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.live.watching import WatchedFolder

__all__ = ["LiveReconstruction", "Outlook", "Ring", "WatchedFolder", "stream"]
