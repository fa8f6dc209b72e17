"""The evidence of a report: a work directory's students and evaluations, without damaged and outdated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sentcompress.commands.spelling import DEFAULT_WORK
from sentcompress.errors import DamagedError, InputError
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import MODEL
from sentcompress.evaluation.tables import BESIDE, short
from sentcompress.json_documents import parse_json
from sentcompress.models.names import is_of_work
from sentcompress.reporting.compressions import Compression, compressions, replaced_results
from sentcompress.reporting.drawing import MARKERS, SERIES
from sentcompress.store import CHANGED, LOG, MODEL_FILES, Artifact, WorkDirectory, change_of, damaged

Found = TypeVar("Found")
# Models made by this command are teachers: students are compared with them.
TEACHING = "train-teacher"


@dataclass(frozen=True)
class Source:
    """The source of a table or figure: an artifact, and the command that made it."""

    reference: str
    command: str

    @classmethod
    def of(cls, artifact: Artifact) -> Source:
        return cls(artifact.reference, artifact.command_line())


@dataclass(frozen=True)
class Student:
    """A trained student.

    Attributes:
        log: the training log, one mapping per line.
    """

    artifact: Artifact
    log: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        return self.artifact.name


def sources(found: Iterable[Evaluation | Student]) -> list[Source]:
    """Where the figures of evaluations or students come from."""
    return [Source.of(one.artifact) for one in found]


@dataclass(frozen=True)
class Evidence:
    """The contents of a report.

    Attributes:
        students, evaluations, projections: in the order in which they were finished.
        left_out: reference of an omitted artifact -> the reason.
        work: the work directory as the user named it.
        names: model reference -> display name; reference models first, then students, then guests, then exports.
        guests: references of models from outside that were compared with a reference model, such as another
            compressed model.
        teachers: references of teachers trained in the work directory.
        compressions: the finished ones, in the order in which they were finished.
    """

    students: Sequence[Student]
    evaluations: Sequence[Evaluation]
    projections: Sequence[Artifact]
    left_out: Mapping[str, str]
    work: str = DEFAULT_WORK
    names: Mapping[str, str] = field(default_factory=dict)
    guests: frozenset[str] = frozenset()
    teachers: frozenset[str] = frozenset()
    compressions: Sequence[Compression] = ()

    def compression_of(self, reference: str) -> Compression | None:
        """The compression that ended in this model, as a student or as an export."""
        return next((one for one in self.compressions if reference in one.ends), None)

    def of_kind(self, kind: str) -> list[Evaluation]:
        return [evaluation for evaluation in self.evaluations if evaluation.name == kind]

    def shown(self, model: Mapping[str, Any]) -> str:
        """The display name of a model, also of one without a score of its own."""
        return self.names.get(str(model["reference"]), short(str(model["label"])))

    def colour(self, reference: str) -> str:
        """The colour of a model in every figure: a key of `drawing.COLOURS`."""
        ours = [name for name in self.names if self.compared(name)]
        return SERIES[ours.index(reference) % len(SERIES)] if reference in ours else "teacher"

    def compared(self, reference: str) -> bool:
        """Whether the report is about this model, rather than it being a reference for others."""
        return (is_of_work(reference) and reference not in self.teachers) or reference in self.guests

    def marker(self, reference: str) -> str:
        """The marker of a model, which distinguishes models with the same colour."""
        return MARKERS[list(self.names).index(reference) % len(MARKERS)]


def gather(work: WorkDirectory) -> Evidence:
    """Read a work directory. Damaged and outdated artifacts go to `left_out` with the reason."""
    left_out = replaced_results(work, ("students", "evaluations"))
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
                left_out[evaluation.artifact.reference] = (
                    f"it measured an earlier {reference.removeprefix(MODEL_FILES)}"
                )
    projections = list(_read(work, "projections", lambda artifact: artifact, left_out))
    guests = _guests(evaluations)
    made = compressions(work, evaluations)
    names = _names(students, evaluations, guests)
    return Evidence(
        students=students,
        evaluations=evaluations,
        projections=projections,
        left_out=left_out,
        work=str(work.path),
        names=names,
        guests=guests,
        teachers=teachers,
        compressions=made,
    )


def _read(
    work: WorkDirectory, kind: str, read: Callable[[Artifact], Found], left_out: dict[str, str]
) -> Iterator[Found]:
    """The readable artifacts of a kind; for the others, the reason is added to `left_out`."""
    left_out |= {f"{kind}/{name}": why for name, why in work.damaged(kind).items()}
    for name in work.names(kind):
        if f"{kind}/{name}" in left_out:
            continue
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
    """Why an evaluation is outdated (one of its models was rebuilt or removed); None if it is not."""
    for model in evaluation.models.values():
        reference = str(model["reference"])
        if not is_of_work(reference):
            continue  # from outside the work directory: only other evaluations know its digest
        change = change_of(work, reference, model.get("digest"))
        if change:
            return (
                f"it measured an earlier {reference}"
                if change == CHANGED
                else f"it measured {reference}, which is {change}"
            )
    return None


def _newest_digests(evaluations: Sequence[Evaluation]) -> dict[str, str | None]:
    """The digest of every model from outside when it was last measured; its folder may have changed in between."""
    return {
        str(model["reference"]): model.get("digest")
        for evaluation in evaluations
        for model in evaluation.models.values()
        if not is_of_work(str(model["reference"]))
    }


def _guests(evaluations: Sequence[Evaluation]) -> frozenset[str]:
    """Models from outside that were compared with another one, and that no model was compared with."""
    asked, others = set(), set()
    for evaluation in evaluations:
        found = {role: str(model["reference"]) for role, model in evaluation.models.items()}
        model = found.pop(MODEL, "")
        others |= set(found.values())
        if any(not is_of_work(reference) for reference in found.values()):
            asked.add(model)
    return frozenset(reference for reference in asked - others if reference and not is_of_work(reference))


def _names(students: Sequence[Student], evaluations: Sequence[Evaluation], guests: frozenset[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for evaluation in evaluations:
        for model in evaluation.models.values():
            # A label can be a hub name or a folder; the last part usually identifies the model.
            # That the documents are another model's belongs to the evaluation, whose tables say it.
            label, reference = short(str(model["label"]).partition(BESIDE)[0]), str(model["reference"])
            # Of labels with and without a runtime, the one without.
            labels[reference] = min(labels.get(reference, label), label, key=len)
    for student in students:
        labels.setdefault(student.artifact.reference, student.name)
    finished = [student.artifact.reference for student in students]
    ordered = sorted(labels, key=lambda reference: _place(reference, finished, guests))
    shown = list(labels.values())
    return {r: labels[r] if shown.count(labels[r]) == 1 else r.removeprefix(MODEL_FILES) for r in ordered}


def _place(reference: str, finished: Sequence[str], guests: frozenset[str]) -> tuple[int, str]:
    """Sort key: reference models, then students in the order they were finished, then guests, then exports."""
    if reference in finished:
        return finished.index(reference) + 1, reference
    behind = len(finished) + 1
    return (behind if reference in guests else behind + 1 if reference.startswith("exports/") else 0), reference
