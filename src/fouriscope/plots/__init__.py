"""Figures for people: a comparison of images, curves of convergence, and one page that sums up a run.

Every function returns a :class:`matplotlib.figure.Figure` on an Agg canvas. pyplot is never imported and no global
setting changes, so figures can be drawn on a server, in a thread, or in a session that has its own plots.

Images are gray by default, which is perceptually uniform; any map of matplotlib can be given, and a uniform one such as
``"viridis"`` is advised: maps like ``"jet"`` draw edges where the phase has none.
"""

from __future__ import annotations

from fouriscope.plots.aperture import LEDView, PupilView
from fouriscope.plots.colour import colour_figure
from fouriscope.plots.comparison import Panel, check_zoom, comparison_figure, snr_panel
from fouriscope.plots.curves import convergence_figure, tuning_figure
from fouriscope.plots.field import field_figure
from fouriscope.plots.grid import grid_figure
from fouriscope.plots.result import result_figure
from fouriscope.plots.saving import save_figure
from fouriscope.plots.sheet import contact_sheet
from fouriscope.plots.sources import sources_figure

__all__ = [
    "LEDView",
    "Panel",
    "PupilView",
    "check_zoom",
    "colour_figure",
    "comparison_figure",
    "contact_sheet",
    "convergence_figure",
    "field_figure",
    "grid_figure",
    "result_figure",
    "save_figure",
    "snr_panel",
    "sources_figure",
    "tuning_figure",
]
