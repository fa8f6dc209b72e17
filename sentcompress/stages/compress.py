"""Makes a small embedding model for documents within a budget of bytes and time.

Plans, writes the plan as a recipe, and runs it: every step is an ordinary stage, looked up by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.commands.compress import Params
from sentcompress.commands.options import keys_of
from sentcompress.commands.parsing import build
from sentcompress.commands.run import Params as RunParams
from sentcompress.compression.pace import Pace
from sentcompress.compression.plan_file import PLANS, PlanFile, begun_plan, read_plan
from sentcompress.compression.plan_words import told
from sentcompress.compression.planning import absolute, make_plan
from sentcompress.compression.recipe import written_recipe
from sentcompress.compression.verdict import Achieved, verdict_of
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.inputs import check_columns
from sentcompress.corpora.readers import ReadOptions
from sentcompress.errors import MissingArtifactError, SentcompressError, UsageError, raise_faults
from sentcompress.extras import installing, is_installed
from sentcompress.models.catalog import artifact_at, find_model
from sentcompress.models.names import meaning_of
from sentcompress.models.sources import comes_along
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, SILENT, Overview, Reporter
from sentcompress.quantities import read_bytes
from sentcompress.store import Artifact, WorkDirectory, name_part
from sentcompress.store.atomic import beside, make_folder, written
from sentcompress.store.locking import PATIENCE_SECONDS, locked_when_free

COMMAND = Params.command
FRESH = "all stages are up to date: nothing was run (`force` to rerun)"


@dataclass(frozen=True)
class Result:
    """The plan, and what came of it.

    Attributes:
        recipe: the file of the plan.
        plan: in words, one line each.
        seconds: how long this run took.
        verdict: None in a dry run, and if an edited plan does not end with a search of its export.
        report: the page; None without a verdict, and where matplotlib is not installed.
    """

    name: str
    recipe: Path
    plan: Sequence[str]
    seconds: float
    verdict: Achieved | None = None
    report: Path | None = None


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Result:
    """Plan, unless there is a plan for this request already, and run the plan as far as it has not been run.

    Raises:
        UsageError: if no model fits the budget, or the time is too short; it names what would do. Also if a plan of
            that name was made for another request.
        InputError: if the documents or the teacher cannot be used.
    """
    params.check()
    name = _name(params) if params.name is None else params.name
    params = replace(params, name=name, teacher=_place(params.teacher, work))
    path, request = work.path / PLANS / f"{name}.toml", _request(params)
    make_folder(path.parent)
    # Held to the end: another run would replace the plan, and with it what this one makes.
    with locked_when_free(beside(path, "lock"), str(path), max(work.wait, PATIENCE_SECONDS), reporter):
        return _plan_and_run(params, path, request, work, reporter)


def _plan_and_run(
    params: Params, path: Path, request: Mapping[str, Any], work: WorkDirectory, reporter: Reporter
) -> Result:
    started, since, name = time.monotonic(), _now(), path.stem
    before = _plan_there(path)
    plan = before if before and before.is_for(request) and (not params.force or before.to_replace(work)) else None
    changed = plan is not None and (
        _has_other_teacher(plan, params, path, work, reporter)
        or _has_other_documents(plan, params, path, work, reporter)
    )
    if plan and not changed:
        reporter.note(f"using the plan {path}")
        left = plan.seconds_left(work)
    else:
        plan = _replan(params, path, before, request, since if params.force or changed else "", work, reporter)
        left = (plan.seconds or 0.0) + started - time.monotonic()
        if not params.dry_run:
            reporter.note(f"the plan is {path}")
    for line in () if params.dry_run else plan.told:  # the result of a dry run has them
        reporter.note(line)
    ends = time.monotonic() + left
    pace = Pace(plan, path, work, ends, reporter)
    outcome = _run_stages(
        plan, path, work, Overview(reporter, ends), dry_run=params.dry_run, late=lambda step: pace.options(step.number)
    )
    seconds = time.monotonic() - started
    if params.dry_run:
        return Result(name, path, plan.told, seconds)
    if all(one.fresh for one in outcome.done):
        reporter.note(FRESH)
    verdict = verdict_of({one.step.command: one.artifact for one in outcome.done})
    if verdict is None:
        reporter.warn(f"{path} does not end with a search of its export: there is no verdict")
        return Result(name, path, pace.plan.told, seconds)
    if larger := verdict.larger_than(read_bytes(params.max_bytes)):
        reporter.warn(larger)
    return Result(name, path, pace.plan.told, seconds, verdict, _report(name, work, reporter))


def _plan_there(path: Path) -> PlanFile | None:
    """The plan of that name, if there is one."""
    if not path.is_file():
        return None
    if found := read_plan(path):
        return found
    raise UsageError(f"{path} is not a plan of {COMMAND}", "choose another `name`, or remove the file")


def _run_stages(
    plan: PlanFile,
    path: Path,
    work: WorkDirectory,
    reporter: Reporter,
    *,
    dry_run: bool = False,
    only: str = "",
    late: Callable[[Any], Mapping[str, Any]] = lambda _: {},
) -> Any:
    """Run the stages of a plan, or only one, by its number; results that are to be replaced are made again.

    Args:
        late: see the stage `run`.
    """
    again = () if dry_run else tuple(f"{number}.force=true" for number in plan.to_replace(work))
    params = RunParams(recipe=path, dry_run=dry_run, settings=again, only=(only,) if only else ())
    try:
        return find_command(params.command).load().run(params, work, reporter, late)
    except SentcompressError as error:
        # The options of a stage, such as `force` if an edited one would replace a result: only `run` can set them.
        hint = error.hint and error.hint.replace("--set", f"sentcompress run {shell_word(path)} --set")
        raise error.reworded(error.message, hint) from None


def _has_other_teacher(plan: PlanFile, params: Params, path: Path, work: WorkDirectory, reporter: Reporter) -> bool:
    """Whether the teacher's files have changed since the plan was made: it may be of another size."""
    if plan.teacher == find_model(work, params.teacher).digest:
        return False
    told = f"{params.teacher} has changed since {path} was made"
    if params.dry_run and plan.is_begun(work):
        reporter.warn(told)
        return False
    reporter.note(f"{told}: planning again")
    return True


def _has_other_documents(plan: PlanFile, params: Params, path: Path, work: WorkDirectory, reporter: Reporter) -> bool:
    """Whether the documents have changed since the plan was made; they are read again if their files have changed."""
    number = next((str(one.number) for one in plan.results() if one.kind == DOCUMENTS), None)
    if number is None:  # the plan was edited
        return False
    try:
        with reporter.phase("checking the documents"):
            outcome = _run_stages(plan, path, work.looking(), SILENT, only=number)
    except MissingArtifactError as error:
        if params.dry_run and plan.is_begun(work):
            reporter.warn(error.message)
            return False
        outcome = _run_stages(plan, path, work, reporter, only=number)
    changed: bool = outcome.done[0].artifact.digest != plan.documents
    if changed:
        reporter.note(f"the documents have changed since {path} was made: planning again")
    return changed


def _replan(
    params: Params,
    path: Path,
    before: PlanFile | None,
    request: Mapping[str, Any],
    since: str,
    work: WorkDirectory,
    reporter: Reporter,
) -> PlanFile:
    """Plan, and write the plan.

    Args:
        before: the plan that is there.
        since: results that are older than this time are to be replaced; empty if none is.

    Raises:
        UsageError: if that has results, and is not to be replaced.
        InputError: if a named column is missing from the documents.
    """
    # First: a misspelt column is neither another request nor worth replacing a plan for.
    reading = ReadOptions(columns=params.column, id_column=params.id_column)
    check_columns(params.inputs, reading, work, skip_bad=params.skip_bad)
    if before and not since and before.is_begun(work):
        changed = [key for key, value in request.items() if key not in before.request or before.request[key] != value]
        # A misspelt path is not worth replacing a plan for; it can also be a data set of the hub.
        lost = [one for one in params.inputs if "inputs" in changed and not Path(one).exists()]
        raise UsageError(
            f"{path} is a plan for another request: {', '.join(f'`{key}`' for key in changed)} changed",
            (
                *(f"check the path: there is no file or folder {one} here" for one in lost),
                "choose another `name`, or use `force` to replace the plan and its results",
            ),
        )
    force = params.force or _reads_otherwise(before, request)
    since = since or (before.since if before and before.seconds is None else "")
    replaced = before.references() if before else []

    def split(stage: Mapping[str, Any]) -> Artifact:
        # If planning fails or is interrupted, another request can replace the documents that it read.
        if path.is_file() or not _has_documents(path.stem, work):
            _write(path, begun_plan(path.stem, request, since, replaced))
        made: Artifact = _run({**stage, "force": force}, work, reporter)
        return made

    try:
        plan, teacher = make_plan(params, path.stem, work, reporter, split)
    finally:
        if before is None and not _has_documents(path.stem, work):
            path.unlink(missing_ok=True)
    seconds, documents = plan.budget.seconds + plan.budget.judged, work.get(DOCUMENTS, path.stem).digest
    made = PlanFile(request, seconds, since, told(plan), list(plan.stages()), documents, teacher)
    again = set(made.references())
    not_again = [one for one in dict.fromkeys(replaced) if one not in again]
    last = made.last_training()
    made = replace(
        made,
        replaced=not_again,
        afterwards=plan.budget.afterwards + plan.budget.judged,
        training=last.trains if last else None,
    )
    _write(path, written_recipe(plan, made))
    return made


def _reads_otherwise(before: PlanFile | None, request: Mapping[str, Any]) -> bool:
    """Whether the plan that is there was made for other documents, or for the same ones read in another way."""
    reading = {key.field for key in keys_of(find_command("split-documents").params).values()}
    return before is not None and any(before.request.get(key) != request[key] for key in reading & request.keys())


def _has_documents(name: str, work: WorkDirectory) -> bool:
    return work.has(DOCUMENTS, name) or name in work.unfinished(DOCUMENTS)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _report(name: str, work: WorkDirectory, reporter: Reporter) -> Path | None:
    if not is_installed("matplotlib"):
        reporter.note(f"no report is written: matplotlib is not installed (run: {installing('matplotlib')})")
        return None
    return Path(_run({"command": "report", "model": f"exports/{name}"}, work, reporter)["paths"]["report"])


def _run(stage: Mapping[str, Any], work: WorkDirectory, reporter: Reporter) -> Any:
    """Run a stage, given as a table of a recipe."""
    command = find_command(stage["command"])
    params, faults = build(command.params, {name: value for name, value in stage.items() if name != "command"})
    raise_faults(faults, command.name)
    return command.run(params, work, reporter)


def _name(params: Params) -> str:
    return name_part(Path(params.inputs[0]).resolve().name.split(".")[0]) or "documents"


def _request(params: Params) -> dict[str, Any]:
    """What the plan depends on, as text: places are absolute, so that it means the same from any folder."""
    given = {key: value for key, value in vars(params).items() if key not in ("name", "dry_run", "force")}
    given["inputs"] = [absolute(one) for one in params.inputs]
    given["queries"] = [absolute(str(one)) for one in params.queries]
    given["general_text"] = [absolute(one) for one in params.general_text]
    given["judged"] = params.judged and absolute(str(params.judged))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def _place(teacher: str, work: WorkDirectory) -> str:
    """The teacher; a model of the work directory by its reference, another folder by its absolute path."""
    meaning = meaning_of(teacher, lambda kind, name: work.has(kind, name))
    if meaning is not None and meaning.kind == "artifact":
        return meaning.name
    if meaning is None or meaning.kind != "source" or comes_along(meaning.name):
        return teacher
    made_here = artifact_at(work, teacher)
    return made_here.reference if made_here else absolute(teacher)


def _write(path: Path, text: str) -> None:
    with written(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
