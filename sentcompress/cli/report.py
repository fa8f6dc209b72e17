"""The output of `sentcompress report`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.cli.terminal import say_page


def document(result: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """The report for `--json`; the Markdown is in a file."""
    return {key: value for key, value in result.items() if key != "markdown"}


def show(result: Mapping[str, Any], call: Call) -> None:
    """The table of one student, or the whole report as Markdown."""
    if call.params.markdown:
        say_page(result["markdown"])
        return
    rows = [
        [line["measure"], line["student"], line["teacher"], _gain(line["ratio"], line["better"])]
        for line in result["lines"]
    ]
    other = ", ".join(result["compared_with"]) or "teacher"
    render.print_table(["measure", result["student"], other, "kept or gained"], rows)
    render.print_facts(result["paths"])


def _gain(ratio: float | None, better: str) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.1f}% kept" if better == "kept" else f"{ratio:.2f}x {better}"
