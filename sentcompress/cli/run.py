"""The output of `sentcompress run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.cli.terminal import say
from sentcompress.plain_text import shell_line
from sentcompress.recipes.plan import Plan
from sentcompress.stages.run import Done, Outcome


def document(outcome: Outcome, call: Call) -> dict[str, Any]:
    """The recipe with its commands (dry run) or its results, for `--json`."""
    plan = outcome.plan
    described = {
        "recipe": str(plan.recipe.path),
        "title": plan.recipe.title,
        "paper": plan.recipe.paper,
        "row": dict(plan.recipe.row),
        "work": str(call.work),
        "left_out": list(plan.left_out),
    }
    if call.params.dry_run:
        return {**described, "commands": _lines(outcome, call)}
    return {**described, "stages": [one.as_dict() for one in outcome.done]}


def show(outcome: Outcome, call: Call) -> None:
    """Show the commands (dry run), or a table of the results."""
    if not call.params.dry_run:
        _print_table(outcome.plan, outcome.done)
        return
    for words in _lines(outcome, call):
        say(shell_line(words))
    for line in outcome.plan.left_out:
        say(f"# {line}")


def _lines(outcome: Outcome, call: Call) -> list[list[str]]:
    return [["sentcompress", *step.words, "--work", str(call.work)] for step in outcome.plan.steps]


def _print_table(plan: Plan, done: Sequence[Done]) -> None:
    rows = []
    for one in done:
        found = one.as_dict()
        result = ", ".join(f"{name.replace('_', ' ')} {render.show(value)}" for name, value in found["result"].items())
        rows.append(
            [str(found["number"]), found["command"], found["artifact"], "fresh" if one.fresh else "made", result]
        )
    render.print_table(["stage", "command", "artifact", "", "result"], rows, plan.recipe.title)
    if "score" in plan.recipe.row:
        published = [str(plan.recipe.row[key]) for key in ("score", "metric", "table") if key in plan.recipe.row]
        render.print_facts({"published": ", ".join(published)})
