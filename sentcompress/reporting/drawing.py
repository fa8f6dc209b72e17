"""The style of figures, and their conversion to SVG and PNG. The only module that sets up matplotlib.

A figure is drawn once, in the colours of the light theme. In the SVG, each colour is then replaced by a CSS variable
of the page, so that the figure follows the dark theme; text stays text, in the reader's font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# CSS variable -> its colours in the light and the dark theme. Light colours must be distinct.
COLOURS = {
    "paper": ("#fdfdfc", "#14171c"),
    "ink": ("#1c2127", "#e6e9ee"),
    "soft": ("#59626d", "#a3acb8"),
    "grid": ("#dde1e6", "#343b45"),
    "teacher": ("#747c87", "#b4bcc8"),
    "series1": ("#2463ad", "#74abf2"),
    "series2": ("#c5560c", "#f29a55"),
    "series3": ("#2c7a45", "#66c283"),
    "series4": ("#8847ad", "#c592e4"),
    "series5": ("#b02548", "#f37d98"),
    "series6": ("#0e7988", "#54c2d1"),
    "series7": ("#86691a", "#d2b353"),
    "series8": ("#4a4fc9", "#a0a6ff"),
}
SERIES = [name for name in COLOURS if name.startswith("series")]
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
# Inches. Narrow, so that text stays legible on a phone, which shows the figure at about this size.
WIDTH = 4.5
DOTS_PER_INCH = 200


def colour(name: str) -> str:
    """The colour to draw with: that of the light theme."""
    return COLOURS[name][0]


@contextmanager
def house_style(salt: str) -> Iterator[None]:
    """Apply the matplotlib settings within a block; with the same salt, the same figure gives the same bytes."""
    import matplotlib

    settings: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9.5,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "text.color": colour("ink"),
        "axes.labelcolor": colour("ink"),
        "axes.titlecolor": colour("ink"),
        "axes.edgecolor": colour("soft"),
        "xtick.color": colour("soft"),
        "ytick.color": colour("soft"),
        "xtick.labelcolor": colour("soft"),
        "ytick.labelcolor": colour("soft"),
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": colour("grid"),
        "grid.linewidth": 0.7,
        "lines.linewidth": 1.6,
        "axes.unicode_minus": False,
        "text.parse_math": False,  # names may contain dollar signs
    }
    with matplotlib.rc_context(settings):
        yield


def new_figure(height: float) -> Figure:
    """An empty figure of the given height in inches, with constrained layout; without a window or global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def new_axes(x: str, y: str, height: float) -> tuple[Figure, Axes]:
    """A figure with one pair of labelled axes."""
    figure = new_figure(height)
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def legend_below(figure: Figure) -> None:
    """Add one legend for all axes, below them."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if found:
        columns = 1 if max(map(len, found)) > 26 else 2
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def logarithmic(axis: Any, shown: Callable[[float], str]) -> None:
    """Make an axis logarithmic, with ticks at 1, 2 and 5 times powers of ten, formatted by `shown`."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
    axis.set_major_formatter(lambda value, _: shown(value))
    axis.set_minor_formatter(NullFormatter())


def whole_numbers(axis: Axis) -> None:
    """Place ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=7, integer=True))


def as_png(figure: Figure) -> bytes:
    """The figure as PNG, in the light theme."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DOTS_PER_INCH, facecolor=colour("paper"), metadata={"Software": None})
    return stream.getvalue()


def as_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as a self-contained `<svg>` element, with colours as CSS variables and ids prefixed with `name`."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    for variable, (light, _) in COLOURS.items():
        text = text.replace(light, f"var(--{variable})")
    box = re.search(r'viewBox="([^"]*)"', text)
    assert box is not None
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    opening = f'<svg viewBox="{box[1]}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">'
    return re.sub(r"\s*\n\s*", "\n", opening + text[text.index(">") + 1 :]).strip()
