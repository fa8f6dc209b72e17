"""What a work directory knows: its students, what was measured of them, and what is too old to count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sentcompress.documents import parse_json
from sentcompress.errors import DamagedError, InputError
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import MODEL
from sentcompress.evaluation.tables import short
from sentcompress.reporting.drawing import MARKERS, SERIES
from sentcompress.store import CHANGED, LOG, Artifact, WorkDirectory, change_of, damaged

Found = TypeVar("Found")
# Its models are what students are compared with, unless one is asked for.
TEACHING = "train-teacher"


@dataclass(frozen=True)
class Source:
    """Where something that is shown comes from: an artifact, and the command that made it."""

    reference: str
    command: str

    @classmethod
    def of(cls, artifact: Artifact) -> Source:
        return cls(artifact.reference, artifact.command_line())


@dataclass(frozen=True)
class Student:
    """A trained student.

    Attributes:
        log: what training wrote down, a mapping a line.
    """

    artifact: Artifact
    log: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        return self.artifact.name


@dataclass(frozen=True)
class Evidence:
    """Everything that a report is made of.

    Attributes:
        students: in the order in which they were finished.
        evaluations: likewise.
        projections: likewise.
        left_out: what does not count, with the reason.
        work: the folder, as it was named.
        names: reference of a model -> the name to show; what models are held against first, then students, then other
            models from outside that were held against it, then exports.
        guests: the references of those others, such as a model that somebody else made small.
        teachers: the references of teachers that were trained here.
    """

    students: Sequence[Student]
    evaluations: Sequence[Evaluation]
    projections: Sequence[Artifact]
    left_out: Mapping[str, str]
    work: str = "work"
    names: Mapping[str, str] = field(default_factory=dict)
    guests: frozenset[str] = frozenset()
    teachers: frozenset[str] = frozenset()

    def of_kind(self, kind: str) -> list[Evaluation]:
        return [evaluation for evaluation in self.evaluations if evaluation.name == kind]

    def shown(self, model: Mapping[str, Any]) -> str:
        """The name of a model, also of one that only took part beside another."""
        return self.names.get(str(model["reference"]), short(str(model["label"])))

    def colour(self, reference: str) -> str:
        """The colour of a model, the same in every figure: a name of `drawing.COLOURS`."""
        ours = [name for name in self.names if self.compared(name)]
        return SERIES[ours.index(reference) % len(SERIES)] if reference in ours else "teacher"

    def compared(self, reference: str) -> bool:
        """Whether a model is one that the report is about, rather than what those are held against."""
        return (_made_here(reference) and reference not in self.teachers) or reference in self.guests

    def marker(self, reference: str) -> str:
        """Its marker, which tells models apart where colours do not."""
        return MARKERS[list(self.names).index(reference) % len(MARKERS)]


def _made_here(reference: str) -> bool:
    """Whether a model was made in the work directory."""
    return reference.startswith(("students/", "exports/"))


def gather(work: WorkDirectory) -> Evidence:
    """Read a work directory. Damaged artifacts are left out, and listed with the reason."""
    left_out: dict[str, str] = {}
    models = list(_read(work, "students", _student, left_out))
    students = [model for model in models if model.artifact.manifest["command"] != TEACHING]
    teachers = frozenset(model.artifact.reference for model in models if model not in students)
    evaluations = []
    for evaluation in _read(work, "evaluations", read_evaluation, left_out):
        if stale := _stale(work, evaluation):
            left_out[evaluation.artifact.reference] = stale
        else:
            evaluations.append(evaluation)
    for reference, digest in _newest_digests(evaluations).items():
        for evaluation in evaluations[:]:
            if any(m["reference"] == reference and m.get("digest") != digest for m in evaluation.models.values()):
                evaluations.remove(evaluation)
                left_out[evaluation.artifact.reference] = f"it measured an earlier {reference.removeprefix('model:')}"
    projections = list(_read(work, "projections", lambda artifact: artifact, left_out))
    guests = _guests(evaluations)
    names = _names(students, evaluations, guests)
    return Evidence(students, evaluations, projections, left_out, str(work.path), names, guests, teachers)


def _read(
    work: WorkDirectory, kind: str, read: Callable[[Artifact], Found], left_out: dict[str, str]
) -> Iterator[Found]:
    """The readable artifacts of a kind; for the others, the reason is added to `left_out`."""
    left_out |= {f"{kind}/{name}": why for name, why in work.damaged(kind).items()}
    for name in work.names(kind):
        try:
            yield read(work.get(kind, name))
        except DamagedError as error:
            left_out[f"{kind}/{name}"] = error.message


def _student(artifact: Artifact) -> Student:
    path = artifact.path / LOG
    lines = path.read_bytes().splitlines() if path.is_file() else []
    try:
        log = [parse_json(line, f"{LOG}, line {number},") for number, line in enumerate(lines, start=1)]
    except InputError as error:
        raise damaged(artifact, error.message) from None
    return Student(artifact, log)


def _stale(work: WorkDirectory, evaluation: Evaluation) -> str | None:
    """Why an evaluation no longer counts: a model of it has been made anew, or is gone."""
    for model in evaluation.models.values():
        reference = str(model["reference"])
        if not _made_here(reference):
            continue  # from outside the work directory: there is nothing here but other evaluations to compare it with
        change = change_of(work, reference, model.get("digest"))
        if change:
            return (
                f"it measured an earlier {reference}"
                if change == CHANGED
                else f"it measured {reference}, which is {change}"
            )
    return None


def _newest_digests(evaluations: Sequence[Evaluation]) -> dict[str, str | None]:
    """What every model from outside was when it was measured last: its folder may hold another one by now."""
    return {
        str(model["reference"]): model.get("digest")
        for evaluation in evaluations
        for model in evaluation.models.values()
        if not _made_here(str(model["reference"]))
    }


def _guests(evaluations: Sequence[Evaluation]) -> frozenset[str]:
    """Models from outside that were held against another one, and that nothing was held against."""
    asked, others = set(), set()
    for evaluation in evaluations:
        found = {role: str(model["reference"]) for role, model in evaluation.models.items()}
        model = found.pop(MODEL, "")
        others |= set(found.values())
        if any(not _made_here(reference) for reference in found.values()):
            asked.add(model)
    return frozenset(reference for reference in asked - others if reference and not _made_here(reference))


def _names(students: Sequence[Student], evaluations: Sequence[Evaluation], guests: frozenset[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for evaluation in evaluations:
        for model in evaluation.models.values():
            # A label may be a hub's name or a folder: its last part tells models apart well enough.
            labels.setdefault(str(model["reference"]), short(str(model["label"])))
    for student in students:
        labels.setdefault(student.artifact.reference, student.name)
    finished = [student.artifact.reference for student in students]
    ordered = sorted(labels, key=lambda reference: _place(reference, finished, guests))
    shown = list(labels.values())
    return {r: labels[r] if shown.count(labels[r]) == 1 else r.removeprefix("model:") for r in ordered}


def _place(reference: str, finished: Sequence[str], guests: frozenset[str]) -> tuple[int, str]:
    """What models are held against comes first, then students as they were finished, then guests, then exports."""
    if reference in finished:
        return finished.index(reference) + 1, reference
    behind = len(finished) + 1
    return (behind if reference in guests else behind + 1 if reference.startswith("exports/") else 0), reference
