"""What a report consists of: sections with figures and tables, each of which says where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sentcompress.reporting.evidence import Source

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
