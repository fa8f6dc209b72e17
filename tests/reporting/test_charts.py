"""Figures: what is drawn is what was given, nothing lies outside, and the SVG is fit for a page."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from sentcompress.reporting import charts, drawing
from sentcompress.reporting.charts import Line, Outline, Point


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with drawing.house_style("test"):
        yield


def cut_off(figure: Figure) -> list[str]:
    """Texts that are drawn and reach over the edge of the picture."""
    svg = ElementTree.fromstring(drawing.as_svg(figure, "test", "test"))
    # matplotlib keeps labels of ticks beyond the ends of an axis, and does not draw them.
    drawn = {"".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    found = []
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        box, whole = text.get_window_extent(), figure.bbox
        inside = whole.x0 - 1 <= box.x0 <= box.x1 <= whole.x1 + 1 and -1 <= box.y0 <= box.y1 <= whole.y1 + 1
        if text.get_text() in drawn and not inside:
            found.append(text.get_text())
    return found


def test_the_frontier_holds_the_points_that_no_other_beats() -> None:
    generator = random.Random(1)
    points = [Point(generator.randint(0, 9), generator.randint(0, 9), "teacher", "o", str(n)) for n in range(40)]
    beaten = {(p.x, p.y) for p in points for q in points if q.x <= p.x and q.y >= p.y and (q.x, q.y) != (p.x, p.y)}
    figure = charts.scatter(points, x="size", y="quality", frontier=True)
    line = figure.axes[0].get_lines()[-1]
    assert {(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)} == {
        (p.x, p.y) for p in points
    } - beaten


def test_dots_have_a_row_for_each_label_from_the_top_down() -> None:
    labels = ["STS-B", "a collection with a rather long name, nDCG@10"]
    points = [Point(99.0, 0, "series1", "o", "small"), Point(86.0, 1, "series1", "o")]
    figure = charts.dots(labels, points, x="kept, %", level=100)
    axes = figure.axes[0]
    top, bottom = (axes.transData.transform((100, row))[1] for row in (0, 1))
    assert top > bottom
    assert [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()] == labels
    left, right = axes.get_xlim()
    assert left < 86 < 100 < right
    assert cut_off(figure) == []


def test_a_wide_logarithmic_axis_and_long_names_are_not_cut_off() -> None:
    points = [Point(10**n, n, f"series{n}", "o", f"a student with a rather long name, number {n}") for n in range(2, 8)]
    figure = charts.scatter(points, x="bytes of the index", y="MRR@10 x 100", log_x=lambda value: f"{value:g} B")
    assert figure.axes[0].get_xscale() == "log"
    assert cut_off(figure) == []
    assert "1e+06 B" in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_dollar_signs_in_names_are_not_formulas() -> None:
    points = [Point(1.0, 0, "series1", "o", "$y^$")]
    svg = drawing.as_svg(charts.dots(["$x^$"], points, x="kept, %", level=100), "test", "test")
    assert "$x^$" in svg
    assert "$y^$" in svg


def test_curves_have_ticks_at_whole_numbers_and_show_a_single_look() -> None:
    figure = charts.curves(
        [Line("a", [3], [5.0], "series1"), Line("b", [1, 2], [1.0, 2.0], "series2")], x="step", y="dev"
    )
    axes = figure.axes[0]
    assert all(tick == int(tick) for tick in axes.get_xticks())
    assert axes.get_lines()[0].get_marker() == "o"


def test_heat_maps_are_even_around_zero_and_leave_blanks() -> None:
    figure = charts.heat_maps([("teacher", [[0.5, None], [-2.0, 0.1]]), ("student " * 9, [[0.0, 0.0], [0.0, 0.0]])])
    first = figure.axes[0].collections[0]
    assert first.get_clim() == (-2.0, 2.0)
    values = first.get_array()
    assert values is not None
    assert bool(values.mask[0, 1])
    assert cut_off(figure) == []
    assert "<image" not in drawing.as_svg(figure, "heat", "Covariance")


def test_histograms_leave_out_what_is_empty_at_both_ends() -> None:
    outlines = [Outline("a", [0, 0, 3, 0, 1, 0], "series1"), Outline("b", [0, 1, 0, 0, 0, 0], "teacher", dashed=True)]
    figure = charts.histograms([0, 1, 2, 3, 4, 5, 6], outlines, x="cosine", y="%")
    assert list(figure.axes[0].patches[0].get_data().edges) == [1, 2, 3, 4, 5]


def test_svg_is_the_same_twice_and_two_figures_share_no_id() -> None:
    def picture(name: str) -> str:
        with drawing.house_style(name):
            figure = charts.curves([Line("a & b", [1, 2], [1.0, 2.0], "series1")], x="step", y="<loss>")
            return drawing.as_svg(figure, name, 'Loss of "a" & <b>')

    assert picture("one") == picture("one")
    ids = [set(re.findall(r'\bid="(.*?)"', picture(name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]
    root = ElementTree.fromstring(picture("one"))
    assert root.attrib["aria-label"] == 'Loss of "a" & <b>'
    assert "<loss>" in {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}


def test_no_two_colours_of_the_light_page_are_the_same() -> None:
    light = [of[0] for of in drawing.COLOURS.values()]
    assert len(set(light)) == len(light)
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for pair in drawing.COLOURS.values() for colour in pair)


@pytest.mark.parametrize("mode", [0, 1])
def test_text_and_lines_stand_out_from_the_paper(mode: int) -> None:
    """Contrast ratios of WCAG 2: 4.5 for text, 3 for what is drawn."""

    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    paper = luminance(drawing.COLOURS["paper"][mode])
    for name, colours in drawing.COLOURS.items():
        if name in ("paper", "grid"):
            continue
        other = luminance(colours[mode])
        ratio = (max(paper, other) + 0.05) / (min(paper, other) + 0.05)
        assert ratio >= (4.5 if name in ("ink", "soft") else 3), name
