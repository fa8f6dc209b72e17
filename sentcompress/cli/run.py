"""The output of `sentcompress run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.terminal import say
from sentcompress.evaluation.registry import command_for
from sentcompress.numeric import signed
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.recipes.measured import Measured
from sentcompress.recipes.plan import Plan
from sentcompress.recipes.rows import Row
from sentcompress.stages.run import Done, Outcome
from sentcompress.store import Artifact


def document(outcome: Outcome, call: Call) -> dict[str, Any]:
    """The recipe with its commands (dry run) or its results, for `--json`."""
    plan = outcome.plan
    described = {
        "recipe": str(plan.recipe.path),
        "title": plan.recipe.title,
        "paper": plan.recipe.paper,
        "variant": plan.recipe.variant,
        "work": str(call.work),
        "left_out": list(plan.left_out),
        "other_inputs": list(plan.others),
    }
    if call.params.dry_run:
        rows = [row.as_dict() for row in plan.recipe.rows]
        needs = [str(need) for need in outcome.needs]
        return {**described, "rows": rows, "missing": needs, "commands": _lines(outcome, call)}
    rows = [row.as_dict() for row in outcome.measured()]
    return {**described, "rows": rows, "stages": [one.as_dict() for one in outcome.done]}


def show(outcome: Outcome, call: Call) -> str | None:
    """Show the commands (dry run), or tables of the results and of the published figures beside them, and the model."""
    if not call.params.dry_run:
        _print_table(outcome.plan, outcome.done)
        _print_rows(outcome.measured())
        return _model_made([one.artifact for one in outcome.done], call)
    say(f"# {_title(outcome.plan)}")
    for row in outcome.plan.recipe.rows:
        say(f"# {_told(row)}")
    for words in _lines(outcome, call):
        say(shell_line(words))
    for line in (*outcome.plan.left_out, *outcome.plan.others):
        say(f"# {line}")
    for need in outcome.needs:
        say(f"# missing: {need}")
    return None


def _model_made(made: Sequence[Artifact], call: Call) -> str | None:
    """Say where the last model is, an export if there is one; returns the command that measures, exports or reports."""
    kinds = [artifact.manifest["kind"] for artifact in made]
    of = next((kind for kind in ("exports", "students") if kind in kinds), None)
    if of is None:
        return None
    model = next(artifact for artifact in reversed(made) if artifact.manifest["kind"] == of)
    say(f"Model: {model.path if of == 'exports' else model.path / 'model'}")
    if "evaluations" not in kinds:
        return command_for("fidelity", model.name if of == "students" else model.reference, call.work)
    if of == "students":
        return f"sentcompress export --model {shell_word(model.name)} --work {shell_word(call.work)}"
    return f"sentcompress report --work {shell_word(call.work)}"


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
    render.print_table(["stage", "command", "artifact", "", "result"], rows, _title(plan))


def _print_rows(rows: Sequence[Measured]) -> None:
    """The published figures, each beside the measured one; below, why there is none or why they cannot be compared."""
    reasons = {reason: number for number, reason in enumerate(dict.fromkeys(filter(None, map(_reason, rows))), 1)}
    cells = [
        [
            ": ".join(filter(None, (one.row.table, one.row.model or one.row.of))),
            one.row.metric,
            _figure(one.row.score),
            _figure(one.value),
            f"({reasons[reason]})" if (reason := _reason(one)) else signed(one.difference),
        ]
        for one in rows
    ]
    if cells:
        figures = ["published", "measured", "difference"]
        render.print_table(["row", "metric", *figures], cells, whole=figures)
    for reason, number in reasons.items():
        say(f"({number}) {reason}")


def _reason(measured: Measured) -> str:
    """Why there is no measured figure, or why it cannot be compared; empty if it can."""
    if not measured.why or measured.value is None:
        return measured.why
    return f"not compared: {measured.why}"


def _title(plan: Plan) -> str:
    """The title of the recipe, and the variant."""
    return plan.recipe.title + (f" ({plan.recipe.variant})" if plan.recipe.variant else "")


def _told(row: Row) -> str:
    """A published row in words."""
    figure = f"{row.metric} {_figure(row.score)}" if row.score is not None else row.metric
    return ", ".join(filter(None, (row.table, row.model, figure, row.note)))


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
