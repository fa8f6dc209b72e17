"""The output of `sentcompress encode`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.stages.encode import Result


def document(result: Result, call: Call) -> dict[str, Any]:
    """The result for `--json`; the fields of shards only with `--shard`."""
    return {name: value for name, value in asdict(result).items() if value is not None}


def show(result: Result, call: Call) -> str | None:
    """Show what was written, and how fast; returns how to read a folder."""
    # Why the number format was chosen is told before the encoding begins.
    render.print_facts({name: value for name, value in document(result, call).items() if name != "dtype_reason"})
    whole = call.params.to_folder and result.shard is None
    return f"in Python, sentcompress.read_vectors({result.output!r})" if whole else None
