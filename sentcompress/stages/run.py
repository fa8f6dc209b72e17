"""Run a recipe: a chain of stages that a TOML file describes.

The one stage that knows of others. It looks them up by name, when it runs, and sees no more of them than what all
have: Params with `check`, and `run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command, makers
from sentcompress.commands.options import spelled
from sentcompress.commands.run import Params
from sentcompress.errors import SentcompressError, raise_faults
from sentcompress.evaluation.results import headline_of
from sentcompress.progress import LOGGED, Reporter
from sentcompress.recipes.document import read_recipe
from sentcompress.recipes.plan import Asked, Known, Plan, Step, make_plan
from sentcompress.store import Artifact, WorkDirectory

COMMAND = Params.command


@dataclass(frozen=True)
class Done:
    """A stage that was run, or was fresh already."""

    step: Step
    artifact: Artifact
    fresh: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.step.number,
            "command": self.step.command,
            "words": ["sentcompress", *self.step.words],
            "artifact": self.artifact.reference,
            "path": str(self.artifact.path),
            "digest": self.artifact.digest,
            "fresh": self.fresh,
            "result": headline(self.artifact),
        }


@dataclass(frozen=True)
class Outcome:
    """The plan of a recipe, and what came of its steps; nothing in a dry run."""

    plan: Plan
    done: list[Done]


def plan(params: Params, work: WorkDirectory) -> Plan:
    """The steps of the recipe; nothing is run, and no model is looked for.

    Raises:
        InputError: if the recipe cannot be read.
        UsageError: that lists all its faults, each with the number of its stage.
    """
    recipe, faults = read_recipe(params.recipe)
    asked = Asked(params.inputs, params.settings, params.force)
    known = Known(makers(), lambda kind, name: bool(work.find(kind, name) if name else work.names(kind)))
    found, more = make_plan(recipe, asked, known)
    raise_faults([*faults, *more], f"{COMMAND} {params.recipe}")
    return found


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Outcome:
    """Run the stages one after the other; those that are up to date are skipped, each by itself.

    With `dry_run`, nothing is run.

    Raises:
        InputError: if the recipe cannot be read.
        UsageError: that lists all its faults, before anything is run.
        SentcompressError: of the stage that failed, with its number.
    """
    params.check()
    found = plan(params, work)
    done: list[Done] = []
    if params.dry_run:
        return Outcome(found, done)
    for line in found.left_out:
        reporter.note(line)
    for step in found.steps:
        reporter.note(f"stage {step.number} of {len(found.recipe.stages)}: sentcompress {step.command}")
        done.append(_run(step, params.recipe, work, reporter))
    return Outcome(found, done)


def headline(artifact: Artifact) -> dict[str, Any]:
    """The one number that tells most about a result."""
    if artifact.manifest["kind"] == "evaluations":
        return headline_of(artifact)
    facts = artifact.facts
    return next(({key: facts[key]} for key in ("dev", "explained_variance", "rows") if key in facts), {})


def _run(step: Step, recipe: Path, work: WorkDirectory, reporter: Reporter) -> Done:
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    try:
        artifact = find_command(step.command).run(step.params, work, reporter)
    except SentcompressError as error:
        again = f"then run {recipe} again in the same way: finished stages are skipped"
        message = spelled(error.message.removeprefix(f"{step.command}: "), type(step.params))
        hint = (error.hint or "").replace("`force`", f"--set {step.number}.force=true")
        hint = spelled(hint, type(step.params))
        raise error.reworded(f"{step.label}: {message}", f"{hint}; {again}" if hint else again) from error
    return Done(step, artifact, fresh=str(artifact.manifest["finished"]) < started)
