"""Run a recipe: a chain of stages described by a TOML file.

Only this stage and `compress` run others. They look them up by name at run time, and use only their common interface:
Params with `check`, and `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command, makers
from sentcompress.commands.options import keys_of
from sentcompress.commands.run import Params
from sentcompress.commands.spelling import OPTION, spelled, spelled_hint
from sentcompress.errors import SentcompressError, UsageError, raise_faults
from sentcompress.evaluation.results import headline_of
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, SILENT, Reporter
from sentcompress.recipes.document import read_recipe
from sentcompress.recipes.measured import Measured, measured
from sentcompress.recipes.needs import Need, missing, raise_missing
from sentcompress.recipes.plan import Asked, Plan, Step, make_plan
from sentcompress.recipes.references import Known
from sentcompress.recipes.selection import StageSelection, needed
from sentcompress.signals import GO_ON, StoppedError
from sentcompress.store import Artifact, WorkDirectory
from sentcompress.store.artifacts import NOTHING_KEPT

COMMAND = Params.command
EXACT_HINT = "`exact` stops at such inputs"
EARLIER_KEPT = "the stages before it are finished; run the same command again to resume"


@dataclass(frozen=True)
class Done:
    """A stage that was run, or skipped because it was up to date (`fresh`)."""

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
    """The plan of a recipe and the finished steps.

    Attributes:
        done: none in a dry run.
        needs: in a dry run, what is missing for the plan to run.
    """

    plan: Plan
    done: list[Done]
    needs: Sequence[Need] = ()

    def measured(self) -> list[Measured]:
        """The published figures of the recipe, each with the measured one; if only some stages ran, those they have."""
        found = measured(self.plan.recipe.rows, [(one.step, one.artifact) for one in self.done])
        return found if len(self.done) == len(self.plan.steps) else [one for one in found if one.value is not None]


def plan(params: Params, work: WorkDirectory) -> Plan:
    """Plan the steps of the recipe; nothing is run, and models are not looked up.

    Raises:
        InputError: if the recipe cannot be read.
        UsageError: if the recipe has errors; it lists all of them with their stage numbers. Also if it has no such
            variant, or has variants and none was chosen.
    """
    recipe, faults = read_recipe(params.recipe)
    try:
        recipe = recipe.of_variant(params.variant)
    except UsageError as error:
        if faults:
            raise_faults([*faults, f"{error.message}; {error.hint}"], f"{COMMAND} {params.recipe}")
        raise
    asked = Asked(params.inputs, params.settings, params.force, params.exact)
    known = Known(makers(), lambda kind, name: bool(work.find(kind, name) if name else work.names(kind)))
    found, more = make_plan(recipe, asked, known)
    raise_faults([*faults, *more], f"{COMMAND} {recipe.name}")
    return found


def run(
    params: Params,
    work: WorkDirectory,
    reporter: Reporter = LOGGED,
    late: Callable[[Step], Mapping[str, Any]] = lambda _: {},
) -> Outcome:
    """Run the stages in order; each stage that is up to date is skipped. With `dry_run`, nothing is run.

    Args:
        late: the options of a stage, by field, that are known only when it is about to run.

    Raises:
        InputError: if the recipe cannot be read, or a package, model or data set that it needs is missing; it lists
            everything that is, and is raised before anything is run.
        UsageError: if the recipe has errors; it lists all of them, and is raised before anything is run.
        MissingArtifactError: if a stage that is not to be run is not up to date, and one that is to be run needs it.
        SentcompressError: the error of the stage that failed, with its number.
    """
    params.check()
    found = plan(params, work)
    chosen, used = _chosen(params, found)
    needs = missing(found, lambda kind, name: work.find(kind, name) is not None, {step.number for step in chosen})
    done: list[Done] = []
    if params.dry_run:
        return Outcome(replace(found, steps=tuple(chosen)), done, needs)
    raise_missing(found, needs)
    for line in found.others:
        reporter.warn(line)
    if found.others:
        reporter.warn(f"the recipe's figures were made from other inputs; {EXACT_HINT}")
    for line in found.left_out:
        reporter.note(line)
    # Defaults such as the newest sentence table see what this recipe has made, and nothing else.
    made: dict[str, list[str]] = {}
    within = work.within(made)
    for step in found.steps:
        if step in used:
            artifact = _up_to_date(step, params.recipe, within)
        elif step in chosen:
            place = chosen.index(step) + 1
            number = "" if step.number == place else f" (number {step.number} of the recipe)"
            doing = find_command(step.command).doing
            reporter.step(f"stage {place} of {len(chosen)}{number}: sentcompress {step.command} ({doing})")
            done.append(_run(step.with_options(late(step)), params, within, reporter))
            artifact = done[-1].artifact
        else:
            continue
        made.setdefault(artifact.manifest["kind"], []).append(artifact.name)
    return Outcome(found, done)


def _chosen(params: Params, found: Plan) -> tuple[list[Step], list[Step]]:
    """The steps to run, and the others whose results they use.

    Raises:
        UsageError: if the recipe has no such stage.
    """
    faults: list[str] = []
    chosen = StageSelection(params.only, params.first, params.last).of(found.steps, faults)
    raise_faults(faults, f"{COMMAND} {params.recipe}")
    return chosen, needed(chosen, found.steps)


def _up_to_date(step: Step, recipe: Path, work: WorkDirectory) -> Artifact:
    """The result of a step that is not to be run.

    Raises:
        SentcompressError: if it is not up to date.
    """
    first = f"run it first: sentcompress run {shell_word(recipe)} --only {step.number}, with the same options"
    try:
        params = replace(step.params, force=False)
        artifact: Artifact = find_command(step.command).run(params, work.looking(), SILENT)
    except SentcompressError as error:
        raise error.reworded(f"{step.label}: {error.message}", first) from error
    return artifact


def headline(artifact: Artifact) -> dict[str, Any]:
    """The most important value of a result."""
    if artifact.manifest["kind"] == "evaluations":
        return headline_of(artifact)
    facts = artifact.facts
    return next(({key: facts[key]} for key in ("dev", "explained_variance", "rows") if key in facts), {})


def _run(step: Step, asked: Params, work: WorkDirectory, reporter: Reporter) -> Done:
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    try:
        artifact = find_command(step.command).run(step.params, work, reporter)
    except SentcompressError as error:
        message = spelled(error.message.removeprefix(f"{step.command}: "), type(step.params))
        hints = [
            hint for hint in (_hint(error, step), f"then run the same command again: {_skipping(step, asked)}") if hint
        ]
        raise error.reworded(f"{step.label}: {message}", "; ".join(hints)) from error
    except StoppedError as stop:
        of_stage = stop.hint if stop.hint != NOTHING_KEPT or step.number == 1 else EARLIER_KEPT
        stop.hint = f"stopped in {step.label}: {of_stage or GO_ON}"
        if asked.force:
            stop.hint += f" ({_skipping(step, asked)})"
        raise
    return Done(step, artifact, fresh=str(artifact.manifest["finished"]) < started)


def _hint(error: SentcompressError, step: Step) -> str | None:
    """The hint of the error of a stage, for whoever runs the recipe: an option of the stage is set with `--set`."""
    alternatives = [one.replace("`force`", f"--set {step.number}.force=true") for one in error.alternatives]
    hint = spelled_hint(alternatives, type(step.params))
    fields = {key.field for key in keys_of(type(step.params)).values()}
    if hint and any(fields.intersection(OPTION.findall(one)) for one in alternatives):
        return f"{hint} ({spelled(f'as `settings` {step.number}.OPTION=VALUE', Params)})"
    return hint


def _skipping(step: Step, asked: Params) -> str:
    """What the same command does with the stages that are finished."""
    if not asked.force:
        return "finished stages are skipped"
    omitted = "" if asked.only else f"; `first` {step.number} omits them"
    return spelled(f"`force` runs finished stages again{omitted}", Params)
