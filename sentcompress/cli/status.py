"""`sentcompress status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.errors import DamagedError
from sentcompress.store import WorkDirectory

# Facts that are names of models.
MODELS = ("teacher", "model", "compared_with")


def command(
    work: options.Work = options.DEFAULT_WORK,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the SHA-256 of every file; exit 1 if one differs.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what the work directory holds: fresh, stale or partial, and why."""
    from sentcompress.cli import render
    from sentcompress.stages import status as stage

    with render.reporting(quiet) as reporter:
        rows = stage.run(stage.Params(verify=verify), WorkDirectory(work), reporter)
    show(rows, work, as_json=as_json)
    damaged = [f"{row['kind']}/{row['name']}" for row in rows if row["state"] == "damaged"]
    if verify and damaged:
        raise DamagedError(f"damaged: {', '.join(damaged)}", "run their commands again with --force to rebuild them")


def show(rows: Sequence[Mapping[str, Any]], work: Path, *, as_json: bool = False) -> None:
    """Print a line for each artifact, and below it what is wrong with it and what it is."""
    from sentcompress.cli import render

    if as_json:
        render.print_json({"work": str(work), "artifacts": rows})
    elif rows:
        entries = [
            ([f"{row['kind']}/{row['name']}", row["state"], f"{row['bytes'] / 1e6:,.1f}"], list(_lines(row)))
            for row in rows
        ]
        render.print_entries(["artifact", "state", "MB"], entries)
    else:
        render.print_facts({"work directory": str(work), "artifacts": "none yet; start with sentcompress augment FILE"})


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with an artifact, what it is, and what else is worth knowing."""
    from sentcompress.cli import render

    if row["why"]:
        yield row["why"]
    # Of a model's name the last part says enough here.
    facts = {key: str(value).rsplit("/", 1)[-1] if key in MODELS else value for key, value in row["facts"].items()}
    if facts:
        yield ", ".join(f"{key.replace('_', ' ')} {render.show(value)}" for key, value in facts.items())
    if row["gone"]:
        yield f"made from what is no longer there: {', '.join(row['gone'])}"
    if row["from_the_future"]:
        yield f"dated {row['finished'][:10]}, in the future: it counts as the oldest of its kind"
    if row["drift"]:
        yield f"made with {', '.join(f'{library} {change}' for library, change in row['drift'].items())}"
