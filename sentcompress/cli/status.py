"""`sentcompress status`."""

from __future__ import annotations

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options


def command(
    work: options.Work = options.DEFAULT_WORK,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what the work directory holds: fresh, stale or partial, and why."""
    from sentcompress.cli import render
    from sentcompress.stages import status as stage

    with render.reporting(quiet) as reporter:
        rows = stage.run(stage.Params(), WorkDirectory(work), reporter)
    if as_json:
        render.print_json({"work": str(work), "artifacts": rows})
        return
    if not rows:
        render.print_facts({"work directory": str(work), "artifacts": "none yet; start with sentcompress augment FILE"})
        return
    columns = ["artifact", "state", "what", "MB", "why"]
    shown = []
    for row in rows:
        what = ", ".join(f"{key.replace('_', ' ')} {render.show(value)}" for key, value in row["facts"].items())
        drift = "; ".join(f"{name} {change}" for name, change in row["drift"].items())
        why = "; ".join(filter(None, [row["why"], f"made with other libraries: {drift}" if drift else ""]))
        shown.append([f"{row['kind']}/{row['name']}", row["state"], what, round(row["bytes"] / 1e6, 1), why])
    render.print_table(columns, shown)
