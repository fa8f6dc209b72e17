"""`sentcompress run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli.terminal import say
from sentcompress.plain_text import shell_line
from sentcompress.store import WorkDirectory

if TYPE_CHECKING:
    from sentcompress.recipes.plan import Plan
    from sentcompress.stages.run import Done


def command(
    recipe: Annotated[Path, typer.Argument(help="A recipe: a TOML file that lists stages.", show_default=False)],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=FILE", help="An input that the recipe wants; may be given several times."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.OPTION=VALUE",
            help="In place of what the recipe says. STAGE is a command, a number, or all; "
            "STAGE.set.NAME=VALUE is a switch of the method.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, print the commands, run none.")] = False,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a whole chain of stages that a TOML file describes; finished ones are skipped."""
    from sentcompress.cli import render
    from sentcompress.stages import run as stage

    params = stage.Params(recipe, tuple(inputs or ()), tuple(settings or ()), force)
    plan = stage.plan(params, WorkDirectory(work))
    if dry_run:
        _print_commands(plan, work, as_json)
        return
    with render.reporting(quiet) as reporter:
        done = stage.run(params, WorkDirectory(work), reporter)
    if as_json:
        render.print_json({**_described(plan, work), "stages": [one.as_dict() for one in done]})
    else:
        _print_table(plan, done)


def _described(plan: Plan, work: Path) -> dict[str, object]:
    recipe = plan.recipe
    return {
        "recipe": str(recipe.path),
        "title": recipe.title,
        "paper": recipe.paper,
        "row": dict(recipe.row),
        "work": str(work),
        "left_out": list(plan.left_out),
    }


def _print_commands(plan: Plan, work: Path, as_json: bool) -> None:
    from sentcompress.cli import render

    lines = [["sentcompress", *step.words, "--work", str(work)] for step in plan.steps]
    if as_json:
        render.print_json({**_described(plan, work), "commands": lines})
        return
    for words in lines:
        say(shell_line(words))
    for line in plan.left_out:
        say(f"# {line}")


def _print_table(plan: Plan, done: list[Done]) -> None:
    from sentcompress.cli import render

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
