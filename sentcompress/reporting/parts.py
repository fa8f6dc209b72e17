"""The parts of a report: sections with charts and tables, each with its sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sentcompress.reporting.evidence import Evidence, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Chart:
    """A figure that can be drawn.

    Attributes:
        name: name of the PNG file, and anchor in the page.
        caption: what the figure shows, and how to read it.
        draw: draws the figure; called within `drawing.house_style`.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    sources: Sequence[Source]


@dataclass(frozen=True)
class Table:
    """A table of text cells.

    Attributes:
        heads: number of columns on the left that name the row.
        folded: whether the page shows it collapsed, because another table has the main values.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    sources: Sequence[Source]
    heads: int = 1
    folded: bool = False


@dataclass(frozen=True)
class Quotes:
    """Quoted texts of a few lines each."""

    title: str
    texts: Sequence[Sequence[str]]
    sources: Sequence[Source]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        name: anchor in the page.
        protocols: protocol statements.
        missing: commands that would measure what is missing.
        tables_first: whether the page shows the tables that are not folded before the charts.
    """

    name: str
    title: str
    text: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    quotes: Sequence[Quotes] = ()
    protocols: Sequence[str] = ()
    missing: Sequence[str] = ()
    tables_first: bool = False


@dataclass(frozen=True)
class Report:
    """A composed report.

    Attributes:
        title: document title, starting with the model that the report is about.
        heading: which models are compared.
        verdict: sentences on what the model keeps and gains.
        made: time of creation.
    """

    title: str
    heading: str
    verdict: Sequence[str]
    made: datetime
    sections: Sequence[Section]
    evidence: Evidence

    def sources(self) -> list[Source]:
        """The sources of all parts without duplicates, in the order of the sections."""
        used: dict[Source, None] = {}
        for section in self.sections:
            parts: list[Chart | Table | Quotes] = [*section.tables, *section.charts, *section.quotes]
            used |= dict.fromkeys(source for part in parts for source in part.sources)
        return list(used)
