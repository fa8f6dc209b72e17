"""The parts of a data set (train, dev, test), by the names of its files or by a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sentcompress.corpora.columns import listed
from sentcompress.corpora.text_files import COMPRESSED
from sentcompress.errors import InputError, did_you_mean

# Names of the same part.
DEV = ("dev", "validation", "valid", "val")
# Which one is taken when none is named.
PREFERRED = ("test", *DEV, "dev.small")


def stem(path: Path) -> str:
    """A file's name without its extension, and without `.gz` or `.zst`."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSED else path).stem


def pick_split(where: str, there: Sequence[str], asked: str | None) -> str:
    """The split that was asked for; otherwise test, else dev, else the only one. dev and validation are one name.

    Raises:
        InputError: if it is not there, or none was named and none of those is there.
    """
    if asked is not None:
        for name in (asked, *DEV) if asked in DEV else (asked,):
            if name in there:
                return name
        raise InputError(f"{where} has no split {asked!r}", did_you_mean(asked, there))
    preferred = next((name for name in PREFERRED if name in there), None)
    if preferred is None and len(there) != 1:
        raise InputError(f"{where} has several splits", f"choose one with --split: {listed(there)}")
    return preferred or there[0]
