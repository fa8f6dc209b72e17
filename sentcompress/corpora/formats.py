"""Which format a file has: by its name, checked against its first bytes, or as the user says."""

from __future__ import annotations

import io
import json
from typing import cast

from sentcompress.corpora.records import LAYOUTS
from sentcompress.corpora.text_files import Source, open_bytes, refuse_foreign
from sentcompress.errors import InputError, UsageError, did_you_mean

FORMATS = ("jsonl", "csv", "tsv", "parquet", "text")
_EXTENSIONS = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "parquet": "parquet",
    "pq": "parquet",
}
_PARQUET_MAGIC = b"PAR1"


def check_format(name: str) -> None:
    """Raise UsageError for a format that does not exist."""
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}", did_you_mean(name, FORMATS))


def find_format(source: Source, asked: str | None) -> str:
    """One of `FORMATS`: the one asked for, or what the name says, or what the content looks like.

    Raises:
        InputError: if the content is plainly something else than its name says.
    """
    with open_bytes(source) as stream:
        head = cast(io.BufferedReader, stream).peek(65536)[:65536]
    is_parquet = head.startswith(_PARQUET_MAGIC)
    if asked == "parquet" or (asked is None and _EXTENSIONS.get(source.extension) == "parquet"):
        if not is_parquet:
            raise InputError(f"{source.name} is not a Parquet file", "name its format with --format")
        return "parquet"
    if asked:
        return asked
    named = _EXTENSIONS.get(source.extension)
    if is_parquet and named is None:
        return "parquet"
    refuse_foreign(source.name, head)
    looks = _looks_like(head)
    if named == "jsonl" and looks != "jsonl":
        what = "one JSON array" if head.lstrip().startswith(b"[") else "not JSON"
        raise InputError(f"{source.name}, line 1: {what}", "give one JSON object a line, or name its --format")
    if named:
        return named
    if looks == "jsonl" and source.extension == "txt":
        raise InputError(
            f"{source.name} is named as plain text but holds JSON", "say which with --format jsonl or --format text"
        )
    return looks


def _looks_like(head: bytes) -> str:
    """The format of a first line: an object is jsonl; a header of a known layout is tsv or csv; all else is text."""
    line = head.decode("utf-8", errors="replace").removeprefix("\ufeff").lstrip().partition("\n")[0].partition("\r")[0]
    if line.startswith("{"):
        try:
            if isinstance(json.loads(line), dict):
                return "jsonl"
        except (ValueError, RecursionError):
            # A first record longer than the head cannot be parsed; a sentence hardly begins like this.
            if line.startswith(('{"', "{ ")):
                return "jsonl"
    for name, delimiter in (("tsv", "\t"), ("csv", ",")):
        header = {field.strip('"') for field in line.split(delimiter)}
        if any(set(layout.columns) <= header for layout in LAYOUTS if len(layout.columns) > 1):
            return name
    return "text"
