"""Run a recipe: a chain of stages that a TOML file describes.

The one stage that knows of others. It looks them up by name, when it runs, and sees no more of them than what all
have: Params with `check`, and `run`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.errors import SentcompressError, raise_faults
from sentcompress.evaluation.results import headline_of
from sentcompress.progress import SILENT, Reporter
from sentcompress.recipes.document import read_recipe
from sentcompress.recipes.plan import Asked, Known, Plan, Step, make_plan
from sentcompress.store import Artifact, WorkDirectory

COMMAND = "run"
# The commands that make an artifact, and so can be a stage of a recipe.
STAGES = (
    "augment",
    "train-teacher",
    "teacher-embed",
    "fit-pca",
    "distill",
    "mine-negatives",
    "finetune",
    "whiten",
    "weigh-tokens",
    "average",
    "eval-sts",
    "eval-retrieval",
    "eval-transfer",
    "eval-fidelity",
    "bench",
    "export",
)


@dataclass(frozen=True)
class Params:
    """Which recipe, and what the user adds to it.

    Attributes:
        recipe: the TOML file.
        inputs: `name=value` for the inputs it wants; a name may come several times.
        settings: `STAGE.OPTION=VALUE` in place of what it says; STAGE is a number, a command, or `all`.
        force: do every stage again, fresh or not.
    """

    recipe: Path
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    force: bool = False


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


def plan(params: Params, work: WorkDirectory) -> Plan:
    """The steps of the recipe; nothing is run, and no model is looked for.

    Raises:
        InputError: if the recipe cannot be read.
        UsageError: that lists all its faults, each with the number of its stage.
    """
    recipe, faults = read_recipe(params.recipe)
    asked = Asked(params.inputs, params.settings, params.force)
    known = Known(STAGES, _params_of, lambda kind, name: bool(work.find(kind, name) if name else work.names(kind)))
    found, more = make_plan(recipe, asked, known)
    raise_faults([*faults, *more], f"{COMMAND} {params.recipe}")
    return found


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> list[Done]:
    """Run the stages one after the other; those that are fresh are skipped, each by itself.

    Raises:
        InputError: if the recipe cannot be read.
        UsageError: that lists all its faults, before anything is run.
        SentcompressError: of the stage that failed, with its number.
    """
    found = plan(params, work)
    for line in found.left_out:
        reporter.note(line)
    done = []
    for step in found.steps:
        reporter.note(f"stage {step.number} of {len(found.recipe.stages)}: sentcompress {step.command}")
        done.append(_run(step, params.recipe, work, reporter))
    return done


def headline(artifact: Artifact) -> dict[str, Any]:
    """The one number that tells most about a result."""
    if artifact.manifest["kind"] == "evaluations":
        return headline_of(artifact)
    facts = artifact.facts
    return next(({key: facts[key]} for key in ("dev", "explained_variance", "rows") if key in facts), {})


def _run(step: Step, recipe: Path, work: WorkDirectory, reporter: Reporter) -> Done:
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    try:
        artifact = _stage(step.command).run(step.params, work, reporter)
    except SentcompressError as error:
        again = f"then run {recipe} again in the same way: finished stages are skipped"
        hint = f"{error.hint}; {again}" if error.hint else again
        raise type(error)(f"{step.label}: {error.message}", hint) from error
    return Done(step, artifact, fresh=str(artifact.manifest["finished"]) < started)


def _stage(command: str) -> Any:
    return importlib.import_module(f"sentcompress.stages.{command.replace('-', '_')}")


def _params_of(command: str) -> type:
    return _stage(command).Params  # type: ignore[no-any-return]
