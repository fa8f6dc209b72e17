"""What a report consists of: sections with figures and tables, each of which names its sources."""

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
        name: of its PNG file, and of its place in the page.
        caption: what is seen and how to read it.
        draw: gives the picture; called within `drawing.house_style`.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    sources: Sequence[Source]


@dataclass(frozen=True)
class Table:
    """Cells of text under heads.

    Attributes:
        heads: so many columns from the left name a row, the others hold its figures.
        folded: whether a page shows it only when it is asked for, since another table says the most of it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    sources: Sequence[Source]
    heads: int = 1
    folded: bool = False


@dataclass(frozen=True)
class Quotes:
    """Sentences that are shown as they are, a few lines each."""

    title: str
    texts: Sequence[Sequence[str]]
    sources: Sequence[Source]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        name: its anchor.
        protocols: how its figures were measured.
        missing: what was not measured, as commands to type.
    """

    name: str
    title: str
    text: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    quotes: Sequence[Quotes] = ()
    protocols: Sequence[str] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """What is put on a page.

    Attributes:
        title: of the document: the model that it is about first.
        heading: what is compared with what.
        verdict: what the models keep and gain, a sentence each.
        made: when.
    """

    title: str
    heading: str
    verdict: Sequence[str]
    made: datetime
    sections: Sequence[Section]
    evidence: Evidence

    def sources(self) -> list[Source]:
        """Every artifact that something shown comes from, once, in the order of the sections."""
        used: dict[Source, None] = {}
        for section in self.sections:
            parts: list[Chart | Table | Quotes] = [*section.tables, *section.charts, *section.quotes]
            used |= dict.fromkeys(source for part in parts for source in part.sources)
        return list(used)
