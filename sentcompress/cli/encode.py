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


def show(result: Result, call: Call) -> None:
    """What was written, and how fast."""
    render.print_facts(document(result, call))
