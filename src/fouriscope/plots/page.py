"""What all figures share: colours, a page that matplotlib lays out, and the headers and colour bars of its panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2430"
QUIET_INK = "#6b7280"
HAIRLINE = "#d6d9de"
ACCENT = "#e69f00"
_HEADER = "header"


def new_page(width: float, height: float, title: str = "") -> Figure:
    """A white figure of about this size in inches; where what goes is the business of matplotlib's layout engine."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0, hspace=0)
    figure = Figure(figsize=(width, height + (0.4 if title else 0)), dpi=150, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK, wrap=True)
    return figure


def finished(figure: Figure) -> Figure:
    """The figure laid out, with headers that become smaller, and at last shorter, than run into their neighbours."""
    from matplotlib.text import Text

    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    figure.set_layout_engine(None)  # or every image would be drawn twice, once to be laid out again
    for text in figure.findobj(lambda artist: artist.get_label() == _HEADER):
        assert isinstance(text, Text)
        assert text.axes is not None
        text.axes.apply_aspect()
        room, words = text.axes.get_window_extent().width, text.get_text()
        needed = text.get_window_extent().width
        if needed > room:
            text.set_fontsize(max(6.5, float(text.get_fontsize()) * room / needed * 0.98))
        while text.get_window_extent().width > room and len(words) > 1:
            words = words[:-1]
            text.set_text(words.rstrip() + "…")
    return figure


def header(axes: Axes, title: str, caption: str = "") -> None:
    """A title above the upper left corner, and a quiet line or more beneath it."""
    above = 5 + 11 * len(caption.splitlines())
    # The layout makes room for a title however wide, so it sees an empty one: words are cut to their panel afterwards.
    axes.set_title(" ", fontsize=10.5, pad=above, y=1)
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "in_layout": False}
    place["label"] = _HEADER
    axes.annotate(title, (0, 1), (0, above), fontsize=10.5, fontweight="bold", color=INK, **place)
    if caption:
        axes.annotate(caption, (0, 1), (0, 4), fontsize=8.5, color=QUIET_INK, **place)


def frame(axes: Axes, colour: str = HAIRLINE, width: float = 0.6) -> None:
    for spine in axes.spines.values():
        spine.set(color=colour, linewidth=width)


def colour_bar(axes: Axes, mappable: Any, label: str) -> None:
    """A bar as high as the panel, on its right."""
    from matplotlib.ticker import MaxNLocator

    tall = max(1.0, axes.get_box_aspect() or 1.0)
    bar_axes = axes.inset_axes((1 + 0.025 * tall, 0, 0.03 * tall, 1))
    bar = axes.figure.colorbar(mappable, cax=bar_axes, ticks=MaxNLocator(6, steps=[1, 2, 5, 10]))
    bar.outline.set(edgecolor=HAIRLINE, linewidth=0.6)
    bar.set_label(label, fontsize=8.5, color=INK)
    bar_axes.tick_params(labelsize=8, labelcolor=INK, color=HAIRLINE, width=0.6, length=2.5)
