"""Known names of columns, which tables can write in another case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from sentcompress.corpora.delimited import Spelt
from sentcompress.corpora.records import KNOWN

# Lists of keys that the rows of a JSON file can have in turn; others are compared again.
_REMEMBERED = 64


def with_known_names(
    rows: Iterable[tuple[int, Mapping[str, object]]], named: Collection[str] = ()
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Numbered rows, with the columns that differ from a wanted name only by case renamed to it: `Title` to `title`.

    A name is kept if several columns of the row differ only by case. Messages show the names in the file.

    Args:
        named: wanted names; `records.KNOWN` are wanted after them.
    """
    wanted: dict[str, str] = {}
    for name in (*named, *KNOWN):
        wanted.setdefault(name.casefold(), name)

    @lru_cache(_REMEMBERED)
    def renamed(there: tuple[str, ...]) -> Mapping[str, str]:
        alike = Counter(name.casefold() for name in there)
        known = {name: wanted.get(name.casefold(), name) for name in there if alike[name.casefold()] == 1}
        return {name: Spelt(usual, name) for name, usual in known.items() if usual != name}

    for number, row in rows:
        if new := renamed(tuple(row)):
            yield number, {new.get(name, name): value for name, value in row.items()}
        else:
            yield number, row
