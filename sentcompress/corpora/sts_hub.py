"""Graded pairs among the data sets of the hub, by name: `mteb/sts12-sts`, or `mteb` for the seven of the papers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.columns import find_columns
from sentcompress.corpora.hub import HubInput, hub_input
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.sts_senteval import Line
from sentcompress.corpora.text_files import COMPRESSED, format_extension
from sentcompress.errors import InputError

ALL = "mteb"
BENCHMARK = "mteb/stsbenchmark-sts"
SEVEN = (*(f"mteb/sts{year}-sts" for year in (12, 13, 14, 15, 16)), BENCHMARK, "mteb/sickr-sts")
PREFIX = "hub:"
COLUMNS = ("score", "sentence1", "sentence2")
SPLITS = {"dev": "validation"}
FILE_EXTENSIONS = ("tsv", "tab", "csv", "txt")
NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?::([\w.-]+))?")


@dataclass(frozen=True)
class HubPart:
    """One split of a data set: what the set is called, and how to read it."""

    set_name: str
    source: HubInput

    def lines(self) -> Iterator[Line]:
        """Its pairs.

        Raises:
            InputError: a column that is missing.
        """
        places: list[int] | None = None
        for number, row in self.source.rows():
            if places is None:
                places = find_columns(self.source.reference, COLUMNS, list(row))
            score, first, second = ("" if row.get(name) is None else str(row[name]) for name in COLUMNS)
            yield Line(self.source.reference, number, score, first, second)


def names_of(asked: str | Path, split: str) -> list[str]:
    """The data sets that a value of --sts means; none if it means a file or folder."""
    if isinstance(asked, Path) or (Path(asked).exists() and not asked.startswith(PREFIX)):
        return []
    if asked == ALL:
        # Of the seven, only the benchmark has other splits that are graded and not part of the years' tests.
        return list(SEVEN) if split == "test" else [BENCHMARK]
    named = asked.removeprefix(PREFIX)
    is_file = format_extension(named) in FILE_EXTENSIONS or Path(named).suffix in COMPRESSED
    return [named] if NAME.fullmatch(named) and not is_file else []


def find_part(name: str, split: str) -> HubPart:
    """One data set, `owner/name` or `owner/name:configuration`.

    Raises:
        InputError: if there is none of that name, or the hub cannot be reached.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{name!r} is no name of a data set", "it is owner/name or owner/name:configuration")
    repository, configuration = match[1], match[2]
    source = hub_input(repository, configuration, None, ReadOptions(split=SPLITS.get(split, split)))
    short = repository.partition("/")[2].removesuffix("-sts")
    return HubPart(f"{short}-{configuration}" if configuration else short, source)
