"""The output of `sentcompress encode`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.stages.encode import Result


def document(result: Result, call: Call) -> dict[str, Any]:
    """The result for `--json`; without shards, nothing of them."""
    return {name: value for name, value in asdict(result).items() if value is not None}


def show(result: Result, call: Call) -> str | None:
    """What was written, and how fast; returns how a folder is read."""
    render.print_facts(document(result, call))
    whole = call.params.to_folder and result.shard is None
    return f"in Python, sentcompress.read_vectors({result.output!r})" if whole else None
