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
from sentcompress.commands.parsing import build
from sentcompress.commands.run import Params as RunParams
from sentcompress.compression.pace import Pace
from sentcompress.compression.plan_file import PLANS, PlanFile, begun_plan, read_plan
from sentcompress.compression.planning import make_plan, plan_file_of
from sentcompress.compression.recipe import written_recipe
from sentcompress.compression.request import changed_options, reads_otherwise, request_of, with_name_and_teacher
from sentcompress.compression.verdict import Achieved, verdict_of
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.inputs import check_columns
from sentcompress.corpora.readers import ReadOptions
from sentcompress.errors import MissingArtifactError, SentcompressError, UsageError, raise_faults
from sentcompress.extras import check_installed, installing, is_installed
from sentcompress.models.catalog import find_model
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, SILENT, Overview, Reporter
from sentcompress.quantities import read_bytes
from sentcompress.recipes.needs import ONNX
from sentcompress.store import Artifact, WorkDirectory
from sentcompress.store.atomic import beside, make_folder, written
from sentcompress.store.locking import PATIENCE_SECONDS, locked_when_free

COMMAND = Params.command
FRESH = "all stages are up to date: nothing was run (`force` to rerun)"


@dataclass(frozen=True)
class Result:
    """The plan, and what came of it.

    Attributes:
        recipe: the file of the plan.
        plan: the plan as lines of text.
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
    """Make a plan, unless there is one for this request, and run its unfinished stages.

    Raises:
        UsageError: if no model fits the budget, or the time is too short; it names what would do. Also if a plan of
            that name was made for another request.
        InputError: if the documents or the teacher cannot be used.
    """
    params.check()
    params = with_name_and_teacher(params, work)
    path = work.path / PLANS / f"{params.name}.toml"
    make_folder(path.parent)
    # Held to the end: another run would replace the plan, and with it what this one makes.
    with locked_when_free(beside(path, "lock"), str(path), max(work.wait, PATIENCE_SECONDS), reporter):
        return _Compression(params, path, work, reporter).run()


class _Compression:
    """One run of `compress`: it finds or makes a plan, and runs its unfinished stages.

    Args:
        path: the plan's file.
    """

    def __init__(self, params: Params, path: Path, work: WorkDirectory, reporter: Reporter) -> None:
        self._params, self._path, self._work, self._reporter = params, path, work, reporter
        self._name, self._request = path.stem, request_of(params)
        self._started, self._began = time.monotonic(), datetime.now(UTC).isoformat(timespec="microseconds")

    def run(self) -> Result:
        plan, left = self._find_or_make_plan()
        dry_run = self._params.dry_run
        for line in () if dry_run else plan.told:  # the result of a dry run has them
            self._reporter.note(line)
        ends = time.monotonic() + left
        pace = Pace(plan, self._path, self._work, ends, self._reporter)
        outcome = self._run_plan(
            plan, Overview(self._reporter, ends), dry_run=dry_run, late=lambda step: pace.options(step.number)
        )
        for need in outcome.needs:  # of a dry run; otherwise they are an error
            self._reporter.warn(f"the plan cannot be run yet: {need}")
        result = Result(self._name, self._path, pace.plan.told, time.monotonic() - self._started)
        return result if dry_run else self._with_verdict(result, outcome)

    def _with_verdict(self, result: Result, outcome: Any) -> Result:
        """The result of a plan that was run, with what came out of it.

        Args:
            outcome: the outcome of the stage `run`.
        """
        if all(one.fresh for one in outcome.done):
            self._reporter.note(FRESH)
        verdict = verdict_of({one.step.command: one.artifact for one in outcome.done})
        if verdict is None:
            self._reporter.warn(f"{self._path} does not end with a search of its export: there is no verdict")
            return result
        if larger := verdict.larger_than(read_bytes(self._params.max_bytes)):
            self._reporter.warn(larger)
        return replace(result, verdict=verdict, report=self._report())

    def _report(self) -> Path | None:
        if not is_installed("matplotlib"):
            self._reporter.note(f"no report is written: matplotlib is not installed (run: {installing('matplotlib')})")
            return None
        made = self._run_stage({"command": "report", "model": f"exports/{self._name}"})
        return Path(made["paths"]["report"])

    def _find_or_make_plan(self) -> tuple[PlanFile, float]:
        """The plan to run, and the seconds that are left for it.

        It is the one that is there, if that was made for this request, these documents and this teacher, and `force`
        does not replace it.
        """
        params, before = self._params, self._plan_there()
        changed = False
        if before and before.is_for(self._request) and (not params.force or before.to_replace(self._work)):
            changed = self._has_other_teacher(before) or self._has_other_documents(before)
            if not changed:
                self._reporter.note(f"using the plan {self._path}")
                return before, before.seconds_left(self._work)
        made = self._make_plan(before, self._began if params.force or changed else "")
        left = (made.seconds or 0.0) - (time.monotonic() - self._started)
        if not params.dry_run:
            self._reporter.note(f"the plan is {self._path}")
        return made, left

    def _plan_there(self) -> PlanFile | None:
        """The plan of that name, if there is one."""
        if not self._path.is_file():
            return None
        if found := read_plan(self._path):
            return found
        raise UsageError(f"{self._path} is not a plan of {COMMAND}", "choose another `name`, or remove the file")

    def _has_other_teacher(self, plan: PlanFile) -> bool:
        """Whether the teacher's files have changed since the plan was made: it may be of another size."""
        teacher = self._params.teacher
        if plan.teacher == find_model(self._work, teacher).digest:
            return False
        told = f"{teacher} has changed since {self._path} was made"
        if self._params.dry_run and plan.is_begun(self._work):
            self._reporter.warn(told)
            return False
        self._reporter.note(f"{told}: planning again")
        return True

    def _has_other_documents(self, plan: PlanFile) -> bool:
        """Whether the documents have changed since the plan was made; read again if their files have changed."""
        number = next((str(one.number) for one in plan.results() if one.kind == DOCUMENTS), None)
        if number is None:  # the plan was edited
            return False
        try:
            with self._reporter.phase("checking the documents"):
                outcome = self._run_plan(plan, SILENT, work=self._work.looking(), only=number)
        except MissingArtifactError as error:
            if self._params.dry_run and plan.is_begun(self._work):
                self._reporter.warn(error.message)
                return False
            outcome = self._run_plan(plan, self._reporter, only=number)
        changed: bool = outcome.done[0].artifact.digest != plan.documents
        if changed:
            self._reporter.note(f"the documents have changed since {self._path} was made: planning again")
        return changed

    def _make_plan(self, before: PlanFile | None, since: str) -> PlanFile:
        """Plan, and write the plan.

        Args:
            before: the plan that is there.
            since: results that are older than this time are to be replaced; empty if none is.

        Raises:
            UsageError: if that has results, and is not to be replaced.
            InputError: if a named column is missing from the documents, or a package that every plan needs.
        """
        params = self._params
        check_installed(*ONNX)
        if params.judged:
            check_installed("faiss")
        # First: a misspelt column is neither another request nor worth replacing a plan for.
        reading = ReadOptions(columns=params.column, id_column=params.id_column)
        check_columns(params.inputs, reading, self._work, skip_bad=params.skip_bad)
        if before and not since and before.is_begun(self._work):
            raise self._plan_for_another_request(before)
        since = since or (before.since if before and before.seconds is None else "")
        replaced = before.references() if before else []
        force = params.force or (before is not None and reads_otherwise(before.request, self._request))

        def split(stage: Mapping[str, Any]) -> Artifact:
            # If planning fails or is interrupted, another request can replace the documents that it read.
            if self._path.is_file() or not self._has_documents():
                self._write(begun_plan(self._name, self._request, since, replaced))
            made: Artifact = self._run_stage({**stage, "force": force})
            return made

        try:
            plan = make_plan(params, self._name, self._work, self._reporter, split)
        finally:
            if before is None and not self._has_documents():
                self._path.unlink(missing_ok=True)
        made = plan_file_of(plan, self._request, since=since, replaced=replaced)
        self._write(written_recipe(plan, made))
        return made

    def _plan_for_another_request(self, before: PlanFile) -> UsageError:
        """The error of a plan that has results of another request."""
        changed = changed_options(before.request, self._request)
        # A misspelt path is not worth replacing a plan for; it can also be a data set of the hub.
        lost = [one for one in self._params.inputs if "inputs" in changed and not Path(one).exists()]
        return UsageError(
            f"{self._path} is a plan for another request: {', '.join(f'`{key}`' for key in changed)} changed",
            (
                *(f"check the path: there is no file or folder {one} here" for one in lost),
                "choose another `name`, or use `force` to replace the plan and its results",
            ),
        )

    def _has_documents(self) -> bool:
        return self._work.has(DOCUMENTS, self._name) or self._name in self._work.unfinished(DOCUMENTS)

    def _write(self, text: str) -> None:
        with written(self._path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")

    def _run_plan(
        self,
        plan: PlanFile,
        reporter: Reporter,
        *,
        work: WorkDirectory | None = None,
        dry_run: bool = False,
        only: str = "",
        late: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    ) -> Any:
        """Run the stages of a plan, or only one, by its number; results that are to be replaced are made again.

        Args:
            work: by default, that of this run.
            late: see the stage `run`.
        """
        work = work or self._work
        again = () if dry_run else tuple(f"{number}.force=true" for number in plan.to_replace(work))
        params = RunParams(recipe=self._path, dry_run=dry_run, settings=again, only=(only,) if only else ())
        try:
            return find_command(params.command).load().run(params, work, reporter, late)
        except SentcompressError as error:
            # The options of a stage, such as `force` if an edited one would replace a result: only `run` can set them.
            line = f"sentcompress run {shell_word(self._path)} --work {shell_word(work.path)} --set"
            hint = error.hint and error.hint.replace("--set", line)
            raise error.reworded(error.message, hint) from None

    def _run_stage(self, stage: Mapping[str, Any]) -> Any:
        """Run a stage, given as a table of a recipe."""
        command = find_command(stage["command"])
        params, faults = build(command.params, {name: value for name, value in stage.items() if name != "command"})
        raise_faults(faults, command.name)
        return command.run(params, self._work, self._reporter)
