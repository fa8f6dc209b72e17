"""The generated parts of a page: each is enclosed in `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

PART = re.compile(r"(?<=<!-- generated: )([^>]*)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def names_of(page: str) -> list[str]:
    """The names of a page's generated parts, in order."""
    return [found[1] for found in PART.finditer(page)]


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with up-to-date generated parts, given by name."""
    return PART.sub(lambda found: f"{found[1]}{found[2]}{parts[found[1]]}", page)


def update(target: Path, parts: Mapping[str, str]) -> None:
    """Write the page anew."""
    target.write_text(filled(target.read_text(encoding="utf-8"), parts), encoding="utf-8")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "".join(f"| {' | '.join(line)} |\n" for line in [columns, ["---"] * len(columns), *rows])
