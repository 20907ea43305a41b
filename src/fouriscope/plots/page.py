"""The page on which every figure is laid out: colours, measures, and placing in inches from the top left corner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1f2430"
QUIET_INK = "#6b7280"
HAIRLINE = "#d6d9de"
ACCENT = "#e69f00"

# All layout is in inches: text has a size in inches too, so nothing overlaps whatever the number of panels.
MARGIN = 0.25
TITLE_HEIGHT = 0.36
COLOUR_BAR_WIDTH = 0.1


class Page:
    """A white figure on which axes and text are placed in inches, measured from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
        FigureCanvasAgg(self.figure)

    def axes(self, left: float, top: float, width: float, height: float, frame: str | None = None) -> Axes:
        place = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place)
        for spine in axes.spines.values():
            spine.set(color=frame or HAIRLINE, linewidth=1.2 if frame else 0.6)
        return axes

    def text(
        self, left: float, top: float, words: str, *, size: float, width: float, weight: str = "normal", ink: str = INK
    ) -> None:
        """A line of text that becomes smaller, and at last shorter, rather than run into its neighbour."""
        text = self.figure.text(
            left / self.width, 1 - top / self.height, words, fontsize=size, fontweight=weight, color=ink, va="top"
        )
        room = width * self.figure.dpi
        needed = text.get_window_extent().width
        if needed > room:
            text.set_fontsize(max(6.5, size * room / needed * 0.98))
        while text.get_window_extent().width > room and len(words) > 1:
            words = words[:-1]
            text.set_text(words.rstrip() + "…")

    def header(self, left: float, axes_top: float, width: float, title: str, caption: str) -> None:
        title_top = axes_top - (0.42 if caption else 0.24)
        self.text(left, title_top, title, size=10.5, weight="bold", width=width)
        if caption:
            self.text(left, axes_top - 0.215, caption, size=8.5, ink=QUIET_INK, width=width)

    def colour_bar(self, mappable: Any, left: float, top: float, height: float, label: str) -> None:
        from matplotlib.ticker import MaxNLocator

        bar_axes = self.axes(left, top, COLOUR_BAR_WIDTH, height)
        bar = self.figure.colorbar(mappable, cax=bar_axes, ticks=MaxNLocator(6, steps=[1, 2, 5, 10]))
        bar.outline.set(edgecolor=HAIRLINE, linewidth=0.6)
        bar.set_label(label, fontsize=8.5, color=INK)
        bar_axes.tick_params(labelsize=8, labelcolor=INK, color=HAIRLINE, width=0.6, length=2.5)
