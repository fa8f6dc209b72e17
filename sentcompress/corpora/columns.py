"""Finding columns by name, and listing columns in errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sentcompress.errors import InputError

# A file of another format may have a header of any length.
_LISTED = 20
_SHOWN = 60


def listed(names: Iterable[str]) -> str:
    """Names for an error: at most _LISTED, each cut to _SHOWN characters."""
    there = list(names)
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..." for name in there[:_LISTED]]
    more = [f"and {len(there) - _LISTED} more"] if len(there) > _LISTED else []
    return ", ".join([*shown, *more]) or "none"


def find_columns(name: str, wanted: Sequence[str], header: Sequence[str]) -> list[int]:
    """The positions of the wanted columns in a header.

    Raises:
        InputError: if one is missing; the hint lists the columns of the file.
    """
    missing = [column for column in wanted if column not in header]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        message = f"{name} has no column{plural} {', '.join(map(repr, missing))}"
        raise InputError(message, f"columns there: {listed(header)}")
    return [list(header).index(column) for column in wanted]


def refuse_repeated(name: str, header: Iterable[str]) -> None:
    """Raise InputError if two columns have the same name; columns without a name do not count."""
    repeated = sorted(column for column, count in Counter(header).items() if column and count > 1)
    if repeated:
        raise InputError(f"{name} has several columns of the same name: {listed(repeated)}", "rename them")
