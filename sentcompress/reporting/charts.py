"""Chart types: numbers in, a matplotlib figure out. The sections know what the numbers mean."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentcompress.reporting.drawing import colour, legend_below, logarithmic, new_axes, new_figure, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Interval = tuple[float, float]
DASHES = (0, (4, 3))


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot: a model, or a model with an index.

    Attributes:
        colour: a key of `drawing.COLOURS`.
        x_interval, y_interval: drawn as error bars.
        legend: the legend entry; None if another point has it already.
    """

    x: float
    y: float
    colour: str
    marker: str
    legend: str | None = None
    y_interval: Interval | None = None
    x_interval: Interval | None = None


@dataclass(frozen=True)
class Line:
    """A curve; `dashed` for a reference."""

    legend: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashed: bool = False
    marker: str = ""


@dataclass(frozen=True)
class Outline:
    """The outline of a histogram: a value for each bin."""

    legend: str
    values: Sequence[float]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class HorizontalLine:
    """A horizontal line across the whole chart."""

    legend: str
    y: float
    colour: str


def scatter(
    points: Sequence[Point],
    *,
    x: str,
    y: str,
    log_x: Callable[[float], str] | None = None,
    levels: Sequence[HorizontalLine] = (),
    lines: Sequence[Line] = (),
    keys: Sequence[tuple[str, str]] = (),
    frontier: bool = False,
) -> Figure:
    """A scatter plot.

    Args:
        points: the points.
        x, y: axis labels.
        log_x: tick formatter of a logarithmic x axis; None for a linear axis.
        levels: horizontal lines.
        lines: curves.
        keys: (marker, meaning) legend entries that apply to all colours.
        frontier: draw the Pareto front (lower x and higher y are better).
    """
    rows = len({point.legend for point in points if point.legend}) + len(levels) + len(lines) + len(keys)
    figure, axes = new_axes(x, y, height=2.9 + 0.2 * (rows / 2))
    for level in levels:
        axes.axhline(level.y, color=colour(level.colour), linestyle=DASHES, linewidth=1.1, label=level.legend)
    for line in lines:
        _draw_line(axes, line)
    for point in points:
        _draw(axes, point)
    for marker, meaning in keys:
        axes.scatter([], [], s=36, color=colour("soft"), marker=marker, label=meaning)
    axes.margins(0.12)
    if log_x is not None:
        logarithmic(axes.xaxis, log_x)
    if frontier:
        best = _unbeaten(points)
        axes.plot(
            [p.x for p in best], [p.y for p in best], color=colour("soft"), linestyle=":", linewidth=1.2, zorder=1
        )
    legend_below(figure)
    return figure


def dots(labels: Sequence[str], points: Sequence[Point], *, x: str, level: float) -> Figure:
    """A dot plot: a row for each label, top down, with a point for each model.

    Args:
        labels: row names.
        points: their `y` is close to the row number, starting at 0.
        x: axis label.
        level: position of a vertical line.
    """
    figure, axes = new_axes(x, "", height=1.3 + 0.36 * len(labels))
    axes.axvline(level, color=colour("teacher"), linestyle=DASHES, linewidth=1.1)
    for point in points:
        _draw(axes, point)
    axes.set_yticks(range(len(labels)), ["\n".join(textwrap.wrap(label, 24)) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.margins(x=0.08)
    legend_below(figure)
    return figure


def _draw(axes: Any, point: Point) -> None:
    """Draw a point with error bars."""
    axes.scatter(
        [point.x],
        [point.y],
        s=46,
        color=colour(point.colour),
        marker=point.marker,
        zorder=3,
        label=point.legend or "_",
    )
    for interval, at in ((point.y_interval, "y"), (point.x_interval, "x")):
        if interval is None:
            continue
        ends = ([point.x, point.x], list(interval)) if at == "y" else (list(interval), [point.y, point.y])
        axes.plot(*ends, color=colour(point.colour), linewidth=1.1, alpha=0.65)


def _draw_line(axes: Any, line: Line) -> None:
    axes.plot(
        line.x,
        line.y,
        color=colour(line.colour),
        linestyle=DASHES if line.dashed else "-",
        # A single point would be invisible without a marker.
        marker=line.marker or ("o" if len(line.x) < 2 else ""),
        markersize=4,
        label=line.legend,
    )


def _unbeaten(points: Sequence[Point]) -> list[Point]:
    """The Pareto front from left to right: no other point has a lower or equal x and a higher y."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, -p.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best


def curves(lines: Sequence[Line], *, x: str, y: str, log_y: Callable[[float], str] | None = None) -> Figure:
    """Lines over a common integer axis, such as steps or dimensions."""
    figure, axes = new_axes(x, y, height=2.9 + 0.1 * len(lines))
    for line in lines:
        _draw_line(axes, line)
    axes.margins(x=0.03, y=0.08)
    whole_numbers(axes.xaxis)
    if log_y is not None:
        logarithmic(axes.yaxis, log_y)
    legend_below(figure)
    return figure


def heat_maps(matrices: Sequence[tuple[str, Sequence[Sequence[float | None]]]]) -> Figure:
    """Square matrices side by side, each with its own colour scale symmetric around zero; None is blank."""
    figure = new_figure(height=2.95)
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    for axes, (title, matrix) in zip(panels, matrices, strict=True):
        filled = [[float("nan") if value is None else value for value in row] for row in matrix]
        limit = max((abs(value) for row in matrix for value in row if value is not None), default=0.0) or 1.0
        # Edges of the same colour: without them, browsers show gaps between the cells.
        drawn = axes.pcolormesh(filled, cmap="RdBu_r", vmin=-limit, vmax=limit, edgecolors="face", linewidth=0.4)
        axes.invert_yaxis()
        axes.set(aspect="equal", xticks=[], yticks=[])
        axes.set_title("\n".join(textwrap.wrap(title, 22)))
        axes.grid(False)
        axes.spines[:].set_visible(False)
        bar: Any = figure.colorbar(drawn, ax=axes, orientation="horizontal", shrink=0.8, ticks=[-limit, 0, limit])
        bar.ax.set_xticklabels([f"{-limit:.2g}", "0", f"{limit:.2g}"])
        bar.ax.tick_params(labelsize=8)
        # Vector areas like those above instead of an embedded bitmap.
        bar.solids.set(rasterized=False, edgecolor="face", linewidth=0.4)
        bar.outline.set_visible(False)
    return figure


def histograms(edges: Sequence[float], outlines: Sequence[Outline], *, x: str, y: str) -> Figure:
    """Histogram outlines over the same bins, cropped to the bins that are not empty in all of them."""
    figure, axes = new_axes(x, y, height=2.9 + 0.1 * len(outlines))
    filled = [n for n in range(len(edges) - 1) if any(outline.values[n] > 0 for outline in outlines)]
    first, last = (filled[0], filled[-1] + 1) if filled else (0, len(edges) - 1)
    for outline in outlines:
        axes.stairs(
            outline.values[first:last],
            edges[first : last + 1],
            color=colour(outline.colour),
            linewidth=1.6,
            linestyle=DASHES if outline.dashed else "-",
            label=outline.legend,
        )
    axes.margins(x=0.02)
    axes.set_ylim(bottom=0)
    legend_below(figure)
    return figure
