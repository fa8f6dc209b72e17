"""The lineage of artifacts: the graph of their inputs, followed by reference and digest."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from sentcompress.store.artifacts import WorkDirectory
from sentcompress.store.manifests import Artifact
from sentcompress.store.request import KINDS

# The fact of a student that was not distilled itself: the input whose method it is trained further with.
METHOD_OF = "method_of"
# Endings of files that belong to a model. A quantizer's is that of `quantization.quantizer.DOCUMENT`; a manifest is
# that of vectors that `encode` wrote.
OF_MODELS = (".npy", ".onnx", "/quantizer.json", "/manifest.json")
TRAINING = ("distill", "finetune", "train-teacher")


def line_of(
    work: WorkDirectory,
    reference: str,
    digest: str,
    kinds: Container[str] = KINDS,
    through: Callable[[Artifact], bool] = lambda artifact: True,
) -> Iterator[Artifact]:
    """The artifact itself, if it is unchanged in the work directory, then its ancestors, nearest first.

    Of a selection, only the chosen model is followed. Vectors are not followed to the teacher that made them.

    Args:
        reference, digest: reference and digest of the artifact.
        kinds: kinds of artifacts to look at; inputs of other kinds, and what they were made of, are left out.
        through: whether to go on to the inputs of an artifact.
    """
    seen: set[str] = set()
    waiting = [(reference, digest)]
    while waiting:
        reference, digest = waiting.pop(0)
        looked_at = reference.partition("/")[0] in kinds and reference not in seen
        artifact = work.at(reference) if looked_at else None
        if artifact is not None and artifact.digest == digest:
            seen.add(reference)
            yield artifact
            if through(artifact):
                waiting += made_of(artifact).items()


def made_of(artifact: Artifact) -> Mapping[str, str]:
    """Digests of the inputs that an artifact was made of: all, but of a selection only the chosen model."""
    if artifact.manifest["command"] != "select":
        return artifact.inputs
    chosen = artifact.facts.get(METHOD_OF)
    return {reference: digest for reference, digest in artifact.inputs.items() if reference == chosen}


def ancestors(work: WorkDirectory, reference: str, digest: str) -> list[Artifact]:
    """The whole line; see `line_of`."""
    return list(line_of(work, reference, digest))


def taught_by(work: WorkDirectory, reference: str, digest: str) -> str | None:
    """The teacher that a model was distilled from, or its nearest ancestor that was; None if none was."""
    line = line_of(work, reference, digest)
    return next((str(a.facts["teacher"]) for a in line if a.facts.get("teacher")), None)


def weight_format_of(lineage: Sequence[Artifact]) -> str | None:
    """What the last training of a model rounded its weights to, for an export; None if it did not.

    Args:
        lineage: the `ancestors` of the model.
    """
    trained = next((artifact for artifact in lineage if artifact.manifest["command"] in TRAINING), None)
    return trained.parameters.get("weight_format") if trained else None


def measurements(work: WorkDirectory, reference: str, digest: str) -> list[Artifact]:
    """Evaluations of this very model, in the order of their names."""
    found = sorted(work.newest("evaluations"), key=lambda artifact: artifact.name)
    return [artifact for artifact in found if _is_of(artifact, reference, digest)]


def learnt_projection(work: WorkDirectory, reference: str, digest: str, teacher: str) -> Artifact | None:
    """The projection that a model learnt to match, if it was fitted on vectors of a certain teacher.

    Args:
        reference, digest: reference and digest of the model.
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

    A model whose tokens were only counted there, by `weigh-tokens`, is not one of them.
    """
    return [
        artifact
        for artifact in ancestors(work, reference, digest)
        if artifact.manifest["kind"] == "students"
        and artifact.manifest["command"] != "weigh-tokens"
        and artifact.inputs.get(table.reference) == table.digest
    ]


def held_nothing_out(student: Artifact) -> bool:
    """Whether `dev` was given to choose the student's checkpoint: then its training held no sentence out.

    Graded pairs and collections are files; queries that split-documents held out are of an artifact.
    """
    return any(reference.startswith(("file:", "documents/")) for reference in student.inputs)


def is_data(reference: str) -> bool:
    """Whether an input of an evaluation is data, and no model: its vectors, graph and quantizer can be files too."""
    kind = reference.partition("/")[0]
    outside = reference.startswith(("file:", "hub:")) and not reference.endswith(OF_MODELS)
    return outside or kind in ("sentences", "documents")


def _is_of(artifact: Artifact, reference: str, digest: str) -> bool:
    model = artifact.facts.get("model")
    return isinstance(model, dict) and model.get("reference") == reference and model.get("digest") == digest
