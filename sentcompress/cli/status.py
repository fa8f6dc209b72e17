"""The output of `sentcompress status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.errors import DamagedError
from sentcompress.evaluation.tables import short
from sentcompress.quantities import told_time
from sentcompress.store.lookup import WHOLE
from sentcompress.store.running import SILENT_SECONDS

# Facts that are model names.
MODELS = ("teacher", "model", "compared_with")
# Shards that are being written, of one artifact.
MOST_SHARDS = 20


def document(rows: list[dict[str, Any]], call: Call) -> dict[str, Any]:
    """The rows for `--json`."""
    return {"work": str(call.work), "artifacts": rows}


def show(rows: list[dict[str, Any]], call: Call) -> None:
    """Show a table of the artifacts."""
    if rows:
        _print_table(rows)
    else:
        start = f"none yet; start with {WHOLE.usage}"
        render.print_facts({"work directory": str(call.work), "artifacts": start})


def failure(rows: list[dict[str, Any]], call: Call) -> DamagedError | None:
    """With `--verify`, the error to raise after the table if an artifact is damaged."""
    damaged = [f"{row['kind']}/{row['name']}" for row in rows if row["state"] == "damaged"]
    if not call.params.verify or not damaged:
        return None
    return DamagedError(f"damaged: {', '.join(damaged)}", "run their commands again with --force to rebuild them")


def _print_table(rows: list[dict[str, Any]]) -> None:
    entries = [
        ([f"{row['kind']}/{row['name']}", row["state"], f"{row['bytes'] / 1e6:,.1f}"], list(_lines(row)))
        for row in rows
    ]
    render.print_entries(["artifact", "state", "MB"], entries)


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    """The explanation of an artifact's state, its facts, and anything unusual about it."""
    if row["why"]:
        yield row["why"]
    if row["progress"]:
        yield _told(row["progress"], running=row["state"] == "running")
    for part in row["shards"][:MOST_SHARDS]:
        yield f"shard {part['shard']} {part['why']}"
        if part["progress"]:
            yield f"  {_told(part['progress'], running=True)}"
    if (more := len(row["shards"]) - MOST_SHARDS) > 0:
        yield f"and {more} more shards; --json has them all"
    # The last part of a model's name is enough here.
    facts = {key: short(str(value)) if key in MODELS else value for key, value in row["facts"].items()}
    if facts:
        yield ", ".join(f"{key.replace('_', ' ')} {render.show(value)}" for key, value in facts.items())
    if row["gone"]:
        yield f"inputs that no longer exist: {', '.join(row['gone'])}"
    if row["from_the_future"]:
        yield f"dated {row['finished'][:10]}, in the future: treated as the oldest of its kind"
    if row["drift"]:
        yield f"made with {', '.join(f'{library} {change}' for library, change in row['drift'].items())}"


def _told(progress: Mapping[str, Any], *, running: bool) -> str:
    """The last progress line of an unfinished build, and its age."""
    age = told_time(progress["age_seconds"])
    if not running:
        return f"last seen {age} ago: {progress['line']}"
    if progress["age_seconds"] > SILENT_SECONDS:
        since = progress["time"][:16].replace("T", " ")
        return f"silent since {since} UTC ({age}): {progress['line']}"
    return f"{progress['line']} ({age} ago)"
