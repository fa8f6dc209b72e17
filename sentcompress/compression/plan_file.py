"""The plan of `compress` as a file: a recipe whose first line is a comment with the request and its time limit."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.errors import SentcompressError
from sentcompress.numeric import at_least, at_most
from sentcompress.store import LOG, Artifact, WorkDirectory
from sentcompress.store.atomic import beside

# The folder of a work directory with the plans of `compress`.
PLANS = "plans"
STUDENTS = "students"
_MARK = "# compress "
# Further fields of the first line.
_TEXTS = ("since", "documents", "teacher")
_TIMES = ("afterwards", "training", "spent")
# `compress` does not write larger numbers of minutes or seconds.
_LONGEST = 1e19


@dataclass(frozen=True)
class Planned:
    """The artifact that a stage of a plan makes.

    Attributes:
        number: the number of the stage, from 1.
        trains: its limit of training time in seconds; 0 if it does not train, or has no limit.
    """

    number: int
    kind: str
    name: str
    trains: float


@dataclass(frozen=True)
class PlanFile:
    """A plan as read from its file.

    Attributes:
        request: the options of `compress` that the plan was made for.
        seconds: planned total time; None if planning was not completed.
        since: with `force`, when planning began, in UTC: older results are to be replaced. Otherwise empty.
        told: the plan as lines of text.
        stages: the tables of the recipe; None if the user's changes have made them invalid.
        documents, teacher: digests of the documents and the teacher; empty if planning was not completed.
        replaced: references of results of earlier plans that this plan replaced and does not make again.
        afterwards: seconds reserved for the stages after the last training; None if the file does not have them.
        training: planned seconds of the last training; None if nothing is trained.
        spent: seconds that planning took, with the reading of the documents if they had not been read before; None if
            planning was not completed.
    """

    request: Mapping[str, Any]
    seconds: float | None
    since: str
    told: Sequence[str]
    stages: Sequence[Mapping[str, Any]] | None
    documents: str = ""
    teacher: str = ""
    replaced: Sequence[str] = ()
    afterwards: float | None = None
    training: float | None = None
    spent: float | None = None

    @property
    def head(self) -> str:
        """The first line of the file."""
        said = {name: getattr(self, name) for name in ("request", "seconds", "replaced", *_TIMES, *_TEXTS)}
        # JSON escapes all control characters but this one, and TOML allows none in comments.
        return _MARK + json.dumps(said, sort_keys=True).replace("\x7f", "\\u007f")

    def is_for(self, request: Mapping[str, Any]) -> bool:
        """Whether it is a finished plan for a request."""
        return self.seconds is not None and self.request == request

    def results(self) -> Iterator[Planned]:
        """The artifacts that the stages make, in order."""
        for number, stage in enumerate(self.stages or (), 1):
            if kind := find_command(stage["command"]).makes:
                trains = 60 * stage.get("max-minutes", 0) if kind == STUDENTS else 0
                yield Planned(number, kind, stage["name"], trains)

    def references(self) -> list[str]:
        """References of its results, and of those of the plans that it replaced."""
        return [*self.replaced, *(f"{one.kind}/{one.name}" for one in self.results())]

    def is_begun(self, work: WorkDirectory) -> bool:
        """Whether a stage is finished, not counting the documents, which planning already reads."""
        if self.stages is None:
            return True
        return any(one.kind != DOCUMENTS and work.has(one.kind, one.name) for one in self.results())

    def to_replace(self, work: WorkDirectory) -> list[int]:
        """The numbers of the stages whose results are older than `since`, or missing; none if that is empty."""
        return [one.number for one in self.results() if not self._made(one, work)] if self.since else []

    def seconds_left(self, work: WorkDirectory) -> float:
        """The rest of `seconds`, after the finished stages and the training time of an interrupted one.

        What an interrupted stage has done besides training is not known.
        """
        return max(0.0, (self.seconds or 0.0) - sum(self._used(one, work) for one in self.results()))

    def last_training(self) -> Planned | None:
        """The last stage that trains for a limited time."""
        return next((one for one in reversed(list(self.results())) if one.trains), None)

    def spare_seconds(self, last: Planned, left: float) -> float:
        """The part of the remaining time that neither the last training nor the stages after it need."""
        return left - last.trains - self.afterwards if self.afterwards is not None else 0.0

    def is_as_planned(self, last: Planned) -> bool:
        """Whether the last training still has its planned time."""
        return self.training is not None and abs(last.trains - self.training) < 1

    def is_made_or_begun(self, one: Planned, work: WorkDirectory) -> bool:
        """Whether a stage is finished or interrupted, so that changing its options would lose a result."""
        kept = self._made(one, work) if self.since else work.has(one.kind, one.name)
        return bool(kept) or one.name in work.unfinished(one.kind)

    def _made(self, one: Planned, work: WorkDirectory) -> Artifact | None:
        """The result of a stage, if it exists, is undamaged and is not to be replaced."""
        found = work.find(one.kind, one.name) if work.has(one.kind, one.name) else None
        if found is None or found.damage():
            return None
        return found if str(found.manifest["finished"]) >= self.since else None

    def _used(self, one: Planned, work: WorkDirectory) -> float:
        if found := self._made(one, work):
            if one.kind == DOCUMENTS and self.spent is not None:
                return self.spent
            return one.trains or float(found.manifest["seconds"])
        if one.trains and one.name in work.unfinished(one.kind):
            return min(one.trains, _logged_seconds(beside(work.path / one.kind / one.name, "partial") / LOG))
        return 0.0


def _logged_seconds(log: Path) -> float:
    """The time of the last line of a training log; 0 if it has none."""
    try:
        return float(json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["seconds"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0


def read_plan(path: Path) -> PlanFile | None:
    """The plan in a file; None if `compress` did not write it.

    Raises:
        OSError: if the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    return parsed_plan(text)


def parsed_plan(text: str) -> PlanFile | None:
    """The plan in the text of a file; None if `compress` did not write it."""
    try:
        first, *rest = text.split("\n")
        head = json.loads(first.removeprefix(_MARK)) if first.startswith(_MARK) else {}
        request, seconds = head["request"], head["seconds"]
        texts, times = ({name: head[name] for name in names} for names in (_TEXTS, _TIMES))
        replaced = head["replaced"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(request, dict) or not all(one is None or _is_time(one) for one in (seconds, *times.values())):
        return None
    if not isinstance(replaced, list) or not all(isinstance(text, str) for text in (*texts.values(), *replaced)):
        return None
    told = [line.removeprefix("# ") for line in rest if line.startswith("# ")]
    stages = _stages("\n".join(rest))
    return PlanFile(request, seconds, told=told, stages=stages, replaced=replaced, **times, **texts)


def _stages(text: str) -> Sequence[Mapping[str, Any]] | None:
    try:
        stages = tomllib.loads(text)["stage"]
    except (ValueError, KeyError, RecursionError):
        return None
    return stages if isinstance(stages, list) and all(map(_is_stage, stages)) else None


def _is_stage(stage: Any) -> bool:
    if not isinstance(stage, dict) or not all(isinstance(stage.get(key), str) for key in ("command", "name")):
        return False
    try:
        find_command(stage["command"])
    except SentcompressError:
        return False
    return _is_time(stage.get("max-minutes", 0))


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and at_least(value, 0) and at_most(value, _LONGEST)


def begun_plan(name: str, request: Mapping[str, Any], since: str, replaced: Sequence[str] = ()) -> str:
    """The placeholder for a plan that is being made: a recipe without stages."""
    head = PlanFile(request, None, since, (), (), replaced=replaced).head
    return f"{head}\ntitle = {json.dumps(f'{name}: not planned yet')}\nstage = []\n"
