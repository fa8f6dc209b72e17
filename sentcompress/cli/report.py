"""The output of `sentcompress report`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.terminal import say_page


def document(result: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """The report for `--json`, without the Markdown, which is in a file."""
    return {key: value for key, value in result.items() if key != "markdown"}


def show(result: Mapping[str, Any], call: Call) -> None:
    """Show the verdict, what came of a compression or a row for each result, and the paths; or the Markdown."""
    if call.params.markdown:
        say_page(result["markdown"])
        return
    if result["verdict"]:
        render.print_text("\n".join(result["verdict"]))
    if found := result["result"]:
        render.print_table(found["columns"], found["rows"])
    else:
        other = ", ".join(result["compared_with"]) or "teacher"
        rows = [[line["metric"], *line["shown"]] for line in result["lines"]]
        render.print_table(["metric", result["student"], other, "kept or gained"], rows)
    render.print_paths(result["paths"])
