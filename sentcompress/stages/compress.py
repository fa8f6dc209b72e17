"""Makes a small embedding model for documents within a budget of bytes and time.

Plans, writes the plan as a recipe, and runs it: every step is an ordinary stage, looked up by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.commands.compress import Params
from sentcompress.compression.budget import (
    LEAST_TRAINING,
    SAME_FOR_ALL,
    Budget,
    EmbeddingLoad,
    TooShortError,
    share_out,
)
from sentcompress.compression.plan_file import PLANS, PlanFile, begun_plan, read_plan
from sentcompress.compression.recipe import GENERAL, CompressionPlan, Documents, told, told_documents, written_recipe
from sentcompress.compression.shapes import Candidate, TeacherSize, fitting, own_shape, smallest, told_shapes
from sentcompress.compression.verdict import Achieved, verdict_of
from sentcompress.compression.workload import judged_seconds, measured_workload
from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.errors import InputError, MissingArtifactError, SentcompressError, UsageError
from sentcompress.extras import installing, is_installed
from sentcompress.models.catalog import NamedModel, artifact_at, find_model
from sentcompress.models.factorised import is_factorisable
from sentcompress.models.families import WITH_LAYERS
from sentcompress.models.model_files import read_config, transformer_folder
from sentcompress.models.names import meaning_of
from sentcompress.models.sources import EMBEDDED_LABEL, comes_along
from sentcompress.models.vocabulary import is_word_piece
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, SILENT, Overview, Reporter
from sentcompress.quantities import read_bytes, read_seconds, told_bytes, told_time
from sentcompress.store import WorkDirectory, name_part
from sentcompress.store.atomic import beside, make_folder, written
from sentcompress.store.locking import PATIENCE_SECONDS, locked_when_free

COMMAND = Params.command
FRESH = "all stages are up to date: nothing was run (`force` to rerun)"
# The options that split-documents depends on.
READING = ("inputs", "queries", "column", "id_column", "text_as", "skip_bad", "seed")
# Candidates to try: few where the first is good from the start, because it was trained for hours or is the teacher. In
# less than so many seconds, a new shape is not tried beside these: of twelve runs of 30 minutes, one was won by one.
BESIDE_GOOD, CANDIDATES = 2, 4
FOR_NEW_SHAPES = 3600.0


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
        plan = _make_plan(params, path, before, request, since if params.force or changed else "", work, reporter)
        left = (plan.seconds or 0.0) + started - time.monotonic()
        if not params.dry_run:
            reporter.note(f"the plan is {path}")
    for line in () if params.dry_run else plan.told:  # the result of a dry run has them
        reporter.note(line)
    overview = Overview(reporter, time.monotonic() + left)
    outcome = _run_stages(plan, path, work, overview, dry_run=params.dry_run)
    seconds = time.monotonic() - started
    if params.dry_run:
        return Result(name, path, plan.told, seconds)
    if all(one.fresh for one in outcome.done):
        reporter.note(FRESH)
    verdict = verdict_of({one.step.command: one.artifact for one in outcome.done})
    if verdict is None:
        reporter.warn(f"{path} does not end with a search of its export: there is no verdict")
        return Result(name, path, plan.told, seconds)
    if larger := verdict.larger_than(read_bytes(params.max_bytes)):
        reporter.warn(larger)
    return Result(name, path, plan.told, seconds, verdict, _report(name, work, reporter))


def _plan_there(path: Path) -> PlanFile | None:
    """The plan of that name, if there is one."""
    if not path.is_file():
        return None
    if found := read_plan(path):
        return found
    raise UsageError(f"{path} is not a plan of {COMMAND}", "choose another `name`, or remove the file")


def _run_stages(
    plan: PlanFile, path: Path, work: WorkDirectory, reporter: Reporter, *, dry_run: bool = False, only: str = ""
) -> Any:
    """Run the stages of a plan, or only one, by its number; results that are to be replaced are made again."""
    again = () if dry_run else tuple(f"{number}.force=true" for number in plan.to_replace(work))
    chosen = (only,) if only else ()
    try:
        return _run("run", work, reporter, recipe=path, dry_run=dry_run, settings=again, only=chosen)
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


def _make_plan(
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
    """
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
    others = before is not None and any(before.request.get(key) != request[key] for key in READING)
    since = since or (before.since if before and before.seconds is None else "")
    replaced = before.references() if before else []

    def begin() -> None:
        # If planning fails or is interrupted, another request can replace the documents that it read.
        if path.is_file() or not _has_documents(path.stem, work):
            _write(path, begun_plan(path.stem, request, since, replaced))

    try:
        plan, teacher = _plan(params, path.stem, work, reporter, begin, force=params.force or others)
    finally:
        if before is None and not _has_documents(path.stem, work):
            path.unlink(missing_ok=True)
    seconds, documents = plan.budget.seconds + plan.budget.judged, work.get(DOCUMENTS, path.stem).digest
    made = PlanFile(request, seconds, since, told(plan), list(plan.stages()), documents, teacher)
    again = set(made.references())
    made = replace(made, replaced=[one for one in dict.fromkeys(replaced) if one not in again])
    _write(path, written_recipe(plan, made))
    return made


def _has_documents(name: str, work: WorkDirectory) -> bool:
    return work.has(DOCUMENTS, name) or name in work.unfinished(DOCUMENTS)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _report(name: str, work: WorkDirectory, reporter: Reporter) -> Path | None:
    if not is_installed("matplotlib"):
        reporter.note(f"no report is written: matplotlib is not installed (run: {installing('matplotlib')})")
        return None
    return Path(_run("report", work, reporter, model=f"exports/{name}")["paths"]["report"])


def _run(command_name: str, work: WorkDirectory, reporter: Reporter, **options: Any) -> Any:
    command = find_command(command_name)
    options_of: Any = command.params
    return command.run(options_of(**options), work, reporter)


def _name(params: Params) -> str:
    return name_part(Path(params.inputs[0]).resolve().name.split(".")[0]) or "documents"


def _request(params: Params) -> dict[str, Any]:
    """What the plan depends on, as text: places are absolute, so that it means the same from any folder."""
    given = {key: value for key, value in vars(params).items() if key not in ("name", "dry_run", "force")}
    given["inputs"] = [_absolute(one) for one in params.inputs]
    given["queries"] = [_absolute(str(one)) for one in params.queries]
    given["general_text"] = [_absolute(one) for one in params.general_text]
    given["judged"] = params.judged and _absolute(str(params.judged))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def _place(teacher: str, work: WorkDirectory) -> str:
    """The teacher; a model of the work directory by its reference, another folder by its absolute path."""
    meaning = meaning_of(teacher, lambda kind, name: work.has(kind, name))
    if meaning is not None and meaning.kind == "artifact":
        return meaning.name
    if meaning is None or meaning.kind != "source" or comes_along(meaning.name):
        return teacher
    made_here = artifact_at(work, teacher)
    return made_here.reference if made_here else _absolute(teacher)


def _absolute(place: str) -> str:
    return str(Path(place).resolve()) if Path(place).exists() else place


def _write(path: Path, text: str) -> None:
    with written(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _plan(
    params: Params,
    name: str,
    work: WorkDirectory,
    reporter: Reporter,
    begin: Callable[[], None],
    *,
    force: bool,
) -> tuple[CompressionPlan, str]:
    """The plan, and the digest of the teacher."""
    started = time.monotonic()
    if params.judged:
        collection_data_set(params.judged, None)  # before the documents are read
    with reporter.phase(f"loading the teacher {params.teacher}"):
        found = find_model(work, params.teacher)
        config = read_config(transformer_folder(found.source.path))
        encoder = found.load()
    teacher = TeacherSize.of(
        config,
        encoder.dimension,
        can_cut=config.get("model_type") in WITH_LAYERS,
        can_factorise=is_factorisable(config),
        can_trim=is_word_piece(encoder.tokenizer),
    )
    if teacher is None:
        raise InputError(
            f"the configuration of {found.label} does not name its layers and widths",
            "compress needs a transformer as the teacher; other models can be distilled step by step",
        )
    most = read_bytes(params.max_bytes)
    candidates = _candidates(params, found, teacher, most)
    vector_bytes = params.vector_bytes or teacher.vector
    documents = Documents(
        inputs=[_absolute(one) for one in params.inputs],
        queries=[_absolute(str(one)) for one in params.queries],
        judged=_absolute(str(params.judged)) if params.judged else None,
        columns=list(params.column),
        id_column=params.id_column,
        skip_bad=params.skip_bad,
        text_as=params.text_as,
        general=[_absolute(one) for one in params.general_text],
    )
    asked: dict[str, Any] = {"inputs": tuple(documents.inputs), "name": name, "seed": params.seed}
    asked |= {"skip_bad": params.skip_bad, "text_as": params.text_as, "id_column": params.id_column}
    asked |= {"queries": tuple(map(Path, documents.queries))} if documents.queries else {}
    asked |= {"column": tuple(documents.columns)} if documents.columns else {}
    begin()
    artifact = _run("split-documents", work, reporter, **asked, force=force)
    load = measured_workload(artifact, encoder, reporter, started)
    load = load.with_more(GENERAL) if documents.general else load
    if not candidates[0].untrained:
        most_work = max(one.multiplications for one in candidates) / teacher.multiplications()
        load = replace(load, student_cost=most_work + SAME_FOR_ALL)
    budget = _budget(params, load, candidates, vector_bytes)
    plan = CompressionPlan(
        name=name,
        teacher=params.teacher,
        documents=documents,
        budget=budget,
        candidates=candidates,
        keep_index=params.keep_index,
        seed=params.seed,
        read=told_documents(artifact.facts),
    )
    return plan, found.digest


def _candidates(params: Params, found: NamedModel, teacher: TeacherSize, most: int) -> list[Candidate]:
    own = own_shape(teacher, params.teacher)
    if own.bytes <= most:
        return [own]
    published = found.source.label == EMBEDDED_LABEL
    shapes = fitting(teacher, most, with_published=published, count=CANDIDATES)
    if shapes and shapes[0].is_good:
        enough = read_seconds(params.time) >= FOR_NEW_SHAPES
        shapes = [shape for shape in shapes if enough or shape.is_good][: 1 if shapes[0].whole else BESIDE_GOOD]
    if not shapes:
        least = smallest(teacher) or own
        least_is = f"the smallest has {told_shapes([least])}"
        if least.untrained:
            least_is = f"the teacher itself is {told_bytes(least.bytes)} as an int8 graph"
        raise UsageError(
            f"no model cut from {found.label} fits into {told_bytes(most)}"
            if teacher.can_cut
            else f"{found.label} cannot be made smaller: the layers of its architecture cannot be cut",
            f"{least_is}: allow `max_bytes` {ceil(least.bytes / 1e5) / 10:.1f}MB",
        )
    return shapes


def _budget(params: Params, load: EmbeddingLoad, candidates: Sequence[Candidate], vector_bytes: int) -> Budget:
    seconds, most = read_seconds(params.time), read_bytes(params.max_bytes)
    trained = 0 if candidates[0].untrained else len(candidates)
    try:
        budget = share_out(seconds, load, trained, most, vector_bytes)
    except TooShortError as error:
        raise UsageError(
            f"`time` {params.time} is too short to train on {load.texts:,} texts: at this machine's current speed, "
            f"{told_time(error.embedding)} are needed to encode them with the teacher, "
            f"{told_time(error.measuring)} to measure the result, and {told_time(LEAST_TRAINING)} to train",
            f"allow `time` {ceil(error.needed / 60)}m",
        ) from None
    return replace(budget, judged=judged_seconds(params.judged, load)) if params.judged else budget
