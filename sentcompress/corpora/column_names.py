"""Names of columns: known ones, which tables can write in another case, and those of fields inside of JSON objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sentcompress.corpora.delimited import Spelt
from sentcompress.corpora.records import KNOWN

# Lists of keys that the rows of a JSON file can have in turn; others are compared again.
_REMEMBERED = 64


def with_known_names(
    rows: Iterable[tuple[int, Mapping[str, object]]], named: Collection[str] = ()
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Numbered rows, with the columns that differ from a wanted name only by case renamed to it: `Title` to `title`.

    A name is kept if several columns of the row differ only by case. Messages show the names in the file. A wanted name
    such as `meta.title`, which no column has, means the field `title` of the object in the column `meta`; it is added
    as a column.

    Args:
        named: wanted names; `records.KNOWN` are wanted after them.
    """
    paths = {name: name.split(".") for name in named if "." in name}
    wanted: dict[str, str] = {}
    for name in (*named, *KNOWN):
        wanted.setdefault(name.casefold(), name)

    @lru_cache(_REMEMBERED)
    def renamed(there: tuple[str, ...]) -> Mapping[str, str]:
        alike = Counter(name.casefold() for name in there)
        known = {name: wanted.get(name.casefold(), name) for name in there if alike[name.casefold()] == 1}
        return {name: Spelt(usual, name) for name, usual in known.items() if usual != name}

    for number, row in rows:
        inner = {name: found for name, path in paths.items() if name not in row for found in _fields(row, path)}
        if new := renamed(tuple(row)):
            row = {new.get(name, name): value for name, value in row.items()}
        yield number, {**inner, **row} if inner else row


def _fields(row: Mapping[str, object], path: Sequence[str]) -> list[object]:
    """The value at a path of names inside of a row, alone in a list; empty if there is none."""
    value: object = row
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return []
        value = value[name]
    return [value]
