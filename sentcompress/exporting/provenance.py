"""The teacher and the evaluations of an exported model in the work directory, for its card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sentcompress.errors import DamagedError
from sentcompress.evaluation.results import Evaluation, read_evaluation, with_compared
from sentcompress.evaluation.score import COMPARE, MODEL
from sentcompress.models.catalog import NamedModel, teacher_digests, teacher_made_here
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import MODEL_FILES, Artifact, WorkDirectory, ancestors, made_of, measurements


def teacher_of(model: NamedModel, lineage: Sequence[Artifact]) -> str | None:
    """The label of the model's teacher; of a model from outside without one, its own; None if it is not known.

    Args:
        lineage: the artifacts that the model was made from, most recent first.
    """
    labels = [str(artifact.facts["teacher"]) for artifact in lineage if artifact.facts.get("teacher")]
    outside = model.label if model.reference.startswith(MODEL_FILES) else None
    return labels[0] if labels else outside


def base_of(work: WorkDirectory, model: NamedModel, lineage: Sequence[Artifact]) -> str | None:
    """The label of the model from outside that the teacher was made from in this work directory; or of the teacher."""
    base = teacher_of(model, lineage)
    for line in _lines_of_teachers(work, lineage):
        base = next((str(artifact.facts["teacher"]) for artifact in line if artifact.facts.get("teacher")), base)
    return base


def with_teachers(work: WorkDirectory, lineage: Sequence[Artifact]) -> list[Artifact]:
    """The lineage of a model, then that of its teacher if this was made in the work directory, and so on."""
    every = (artifact for line in (lineage, *_lines_of_teachers(work, lineage)) for artifact in line)
    return list({artifact.reference: artifact for artifact in every}.values())


def _lines_of_teachers(work: WorkDirectory, lineage: Sequence[Artifact]) -> Iterator[list[Artifact]]:
    """The lineage of the teacher if it is a model of the work directory, as it was then; then of its teacher."""
    seen = set[str]()
    while (teacher := _teacher_made_here(work, lineage)) and teacher.reference not in seen:
        seen.add(teacher.reference)
        lineage = ancestors(work, teacher.reference, teacher.digest)
        yield lineage


def _teacher_made_here(work: WorkDirectory, lineage: Sequence[Artifact]) -> Artifact | None:
    vectors = next((one for one in lineage if one.manifest["kind"] == "teacher-vectors"), None)
    return teacher_made_here(work, vectors) if vectors else None


def measurements_of(work: WorkDirectory, model: NamedModel, lineage: Sequence[Artifact]) -> list[Artifact]:
    """The evaluations of the model; also of the one that `select` chose, of which it is a copy."""
    found = measurements(work, model.reference, model.digest)
    own = next((artifact for artifact in lineage if artifact.reference == model.reference), None)
    if own is None or own.manifest["command"] != "select":
        return found
    return found + [one for reference, digest in made_of(own).items() for one in measurements(work, reference, digest)]


def evaluations_of(
    work: WorkDirectory, measured: Sequence[Artifact], lineage: Sequence[Artifact], reporter: Reporter
) -> list[Evaluation]:
    """The evaluations of the model that can be read.

    An evaluation without a compared model is combined with one of a teacher (by digest) with the same protocol and
    data, if there is one.

    Args:
        measured: from `measurements_of`.
        reporter: warned of those that cannot be read.
    """
    teachers = _digests_of_teachers(work, lineage)
    every = [found for artifact in work.newest("evaluations") if (found := _read(artifact, LOGGED))]
    of_teachers = [one for one in every if one.models[MODEL].get("digest") in teachers]
    evaluations = []
    for artifact in measured:
        found = _read(artifact, reporter)
        if found is None:
            continue
        beside = next((one for one in of_teachers if _is_alike(one, found)), None)
        alone = COMPARE not in found.models
        evaluations.append(with_compared(found, beside) if alone and beside else found)
    return evaluations


def _digests_of_teachers(work: WorkDirectory, lineage: Sequence[Artifact]) -> set[str]:
    vectors = [artifact for artifact in lineage if artifact.reference.startswith("teacher-vectors/")]
    return {digest for one in vectors for digest in teacher_digests(work, one)}


def _read(artifact: Artifact, reporter: Reporter) -> Evaluation | None:
    try:
        return read_evaluation(artifact)
    except DamagedError as error:
        reporter.warn(f"{error.message}; it is omitted from the card")
        return None


def _is_alike(one: Evaluation, other: Evaluation) -> bool:
    return (one.name, one.data, one.facts["protocol"]) == (other.name, other.data, other.facts["protocol"])
