"""`sentcompress report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli.terminal import say_page
from sentcompress.store import WorkDirectory


def command(
    model: Annotated[
        str | None,
        typer.Option(
            help="The student, or the model from outside that was measured, of the table. By default the student "
            "finished last that was measured."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page, an HTML file. By default report/report.html in the work directory."
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the report as Markdown instead of a table, for a README.")
    ] = False,
    work: options.Work = options.DEFAULT_WORK,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what a student keeps and saves; put all that was measured of all models on one page, with figures."""
    from sentcompress.cli import render
    from sentcompress.stages import report as stage

    with render.reporting(quiet) as reporter:
        result = stage.run(stage.Params(model, output), WorkDirectory(work), reporter)
    text = result.pop("markdown")
    if as_json:
        render.print_json(result)
        return
    if markdown:
        say_page(text)
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
