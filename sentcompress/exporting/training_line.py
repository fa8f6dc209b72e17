"""What a student learnt from, as the work directory remembers it."""

from __future__ import annotations

from sentcompress.exporting.lineage import ancestors
from sentcompress.store import Artifact, WorkDirectory


def learnt_projection(work: WorkDirectory, reference: str, digest: str, teacher: str) -> Artifact | None:
    """The projection that a model learnt to match, if it was fitted on vectors of a certain teacher.

    Args:
        reference, digest: of the model.
        teacher: the digest of the teacher's files, or of its vectors.
    """
    line = ancestors(work, reference, digest)
    made = {artifact.reference: artifact for artifact in line}
    for projection in (artifact for artifact in line if artifact.manifest["kind"] == "projections"):
        for source, source_digest in projection.inputs.items():
            vectors = made.get(source)
            if vectors is not None and teacher in (source_digest, *vectors.inputs.values()):
                return projection
    return None


def students_of(work: WorkDirectory, reference: str, digest: str, table: Artifact) -> list[Artifact]:
    """The students in a model's line, itself included, that were trained on a sentence table as it is now.

    What had its tokens counted there alone, by `weigh-tokens`, was not.
    """
    return [
        artifact
        for artifact in ancestors(work, reference, digest)
        if artifact.manifest["kind"] == "students"
        and artifact.manifest["command"] != "weigh-tokens"
        and artifact.inputs.get(table.reference) == table.digest
    ]


def chose_by_graded_pairs(student: Artifact) -> bool:
    """Whether graded pairs chose the student's checkpoint: then its training held no sentence out."""
    return any(reference.startswith("file:") for reference in student.inputs)
