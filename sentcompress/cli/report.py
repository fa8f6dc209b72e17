"""`sentcompress report`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options


def command(
    student: Annotated[
        str | None, typer.Option("--model", help="A student's name. By default the one finished last.")
    ] = None,
    work: options.Work = options.DEFAULT_WORK,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show in one table what a student keeps of its teacher's quality, and what it saves."""
    from sentcompress.cli import render
    from sentcompress.stages import report as stage

    with render.reporting(quiet) as reporter:
        result = stage.run(stage.Params(student), WorkDirectory(work), reporter)
    if as_json:
        render.print_json(result)
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
