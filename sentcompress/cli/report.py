"""`sentcompress report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    show(result, markdown=markdown, as_json=as_json)


def show(result: dict[str, Any], *, markdown: bool = False, as_json: bool = False) -> None:
    """Print the verdict and a line for each measured thing, then where everything is."""
    from sentcompress.cli import render

    text = result.pop("markdown")
    if as_json:
        render.print_json(result)
        return
    if markdown:
        say_page(text)
        return
    if result["verdict"]:
        render.print_text("\n".join(result["verdict"]))
    other = ", ".join(result["compared_with"]) or "teacher"
    rows = [[line["measure"], *line["shown"]] for line in result["lines"]]
    render.print_table(["measure", result["student"], other, "kept or gained"], rows)
    render.print_paths(result["paths"])
