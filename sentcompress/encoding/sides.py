"""The sources of document and query vectors: one model for both, or the teacher and its student."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sentcompress.encoding.embedder import Embedder, MappedEmbedder, Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource
from sentcompress.errors import InputError
from sentcompress.models.names import KINDS
from sentcompress.models.principal_axes import Projection
from sentcompress.models.prompts import DOCUMENT, OF_ROLE, QUERY, told_prompt
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import MODEL_FILES, Artifact, WorkDirectory, line_of

# Whitening rotates and scales a student's vectors, so the teacher's projection no longer matches them.
WHITEN = "whiten"


@dataclass(frozen=True)
class TeacherProjection:
    """The projection of the teacher that a student was trained on.

    Attributes:
        artifact: the artifact, of kind `projections`.
        projection: its content.
        centred: whether the student's target was the centred vector, W (t - mean), or W t.
    """

    artifact: Artifact
    projection: Projection
    centred: bool

    def apply(self, vectors: Vectors) -> Vectors:
        """Project teacher vectors: [N, D_t] -> [N, d]."""
        projected = self.projection.apply(vectors)
        return projected if self.centred else np.asarray(projected - self.projection.bias, dtype=np.float32)


@dataclass(frozen=True)
class Sides:
    """The sources of document and query vectors, each with the prompt of its texts; nothing is loaded yet.

    See `in_roles` and `sides_of`.

    Attributes:
        documents, queries: the same model, or two with comparable vectors.
        projection: maps vectors of the documents' model, the teacher, to the space of the queries' model, its student.
    """

    documents: EmbedderSource
    queries: EmbedderSource
    projection: TeacherProjection | None = None

    @property
    def symmetric(self) -> bool:
        """Whether both sides have the same model."""
        return self.queries.is_model_of(self.documents)

    @property
    def prompts(self) -> dict[str, str]:
        """Role -> what precedes its texts, where that is not the default prompt of the model; usually empty."""
        found = {QUERY: self.queries.prompt, DOCUMENT: self.documents.prompt}
        return {role: prompt for role, prompt in found.items() if prompt is not None}

    @property
    def label(self) -> str:
        """The name to show."""
        if self.symmetric:
            return self.queries.label
        return f"{self.queries.label}, documents by {self.documents.label}" + (
            " (projected)" if self.projection else ""
        )

    @property
    def slug(self) -> str:
        """The label as part of a file name."""
        return self.queries.slug if self.symmetric else f"{self.queries.slug}-documents-{self.documents.slug}"[:150]

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs to record in a request: digest by reference."""
        found = {**self.documents.inputs, **self.queries.inputs}
        if self.projection:
            found[self.projection.artifact.reference] = self.projection.artifact.digest
        return found

    def open(self, *, device: str, dtype: str, reporter: Reporter = SILENT) -> tuple[Embedder, Embedder]:
        """Load the embedders of documents and queries, and report the prompts.

        Raises:
            InputError: if one cannot be loaded, or their dimensions differ.
        """
        self.tell_prompts(reporter)
        bare = self.documents.open_bare(device=device, dtype=dtype, reporter=reporter)
        documents = self.documents.prompted(bare)
        if self.symmetric:
            return documents, self.queries.prompted(bare)
        if self.projection:
            width = int(self.projection.projection.weight.shape[0])
            documents = MappedEmbedder(documents, self.projection.apply, width)
        queries = self.queries.prompted(self.queries.open_bare(device=device, dtype=dtype, reporter=reporter))
        if documents.dimension != queries.dimension:
            raise InputError(
                f"{self.documents.label} has {documents.dimension} dimensions and {self.queries.label} "
                f"{queries.dimension}: they cannot be compared",
                "the teacher's document vectors are projected for students trained on a projection of its vectors "
                "(sentcompress distill --method hpd); otherwise, both models need the same dimension",
            )
        return documents, queries

    def tell_prompts(self, reporter: Reporter) -> None:
        """Report what precedes the texts, and warn of a prompt for documents that sentence-transformers ignores."""
        for role, source in ((QUERY, self.queries), (DOCUMENT, self.documents)):
            if source.prompt is not None:
                reporter.note(f"{source.label} encodes {OF_ROLE[role]} {told_prompt(source.prompt)}")
        if self.documents.model:
            for ignored in self.documents.model.prompts.told_not_found(self.documents.label):
                reporter.warn(ignored)


def in_roles(documents: EmbedderSource, queries: EmbedderSource, projection: TeacherProjection | None = None) -> Sides:
    """Both sides, each with the prompt of `encode_document` or `encode_query`, if its model has one.

    Raises:
        InputError: see `EmbedderSource.of_role`.
    """
    return Sides(documents.of_role(DOCUMENT), queries.of_role(QUERY), projection)


def recorded_prompts(sides: Mapping[str, Sides]) -> dict[str, Any]:
    """The entry `prompts` of a request: those of each role by the name of the model's option; empty without any."""
    found = {name: of.prompts for name, of in sides.items() if of.prompts}
    return {"prompts": found} if found else {}


def sides_of(work: WorkDirectory, documents: EmbedderSource, queries: EmbedderSource) -> Sides:
    """Both sides, with the projection from one to the other, if there is one.

    Raises:
        InputError: see `projection_between` and `in_roles`.
    """
    projection = None if documents == queries else projection_between(work, documents, queries)
    return in_roles(documents, queries, projection)


def projection_between(
    work: WorkDirectory, documents: EmbedderSource, queries: EmbedderSource
) -> TeacherProjection | None:
    """The projection from the teacher's vectors to a student's, or None.

    There is one if the queries' model is a student (or its export) with a projected target, and the documents' model is
    the teacher whose vectors the projection was fitted on.

    Raises:
        InputError: if the projection or the vectors have changed since the student was trained.
    """
    student = _taught_by_projection(work, queries)
    if student is None or documents.model is None:
        return None
    name = student.input_of_kind("projections")
    assert name is not None
    projection = _unchanged(work, student, "projections", name)
    vectors_name = projection.input_of_kind("teacher-vectors")
    assert vectors_name is not None
    vectors = _unchanged(work, projection, "teacher-vectors", vectors_name)
    of_teacher = {digest for reference, digest in vectors.inputs.items() if reference.startswith(MODEL_FILES)}
    if documents.digest != vectors.digest and documents.model.source.digest not in of_teacher:
        return None
    loaded = Projection.load(projection.path)
    return TeacherProjection(projection, loaded, bool(student.facts.get("options", {}).get("centre", True)))


def _taught_by_projection(work: WorkDirectory, source: EmbedderSource) -> Artifact | None:
    """The student itself, or the nearest one that it was made from, that was trained on projected vectors."""

    def taught(student: Artifact) -> bool:
        return str(student.manifest["command"]) != WHITEN

    line = line_of(work, source.reference, source.digest, KINDS, taught)
    return next((found for found in line if taught(found) and found.input_of_kind("projections")), None)


def _unchanged(work: WorkDirectory, user: Artifact, kind: str, name: str) -> Artifact:
    found = work.find(kind, name)
    if found is None or user.inputs.get(f"{kind}/{name}") != found.digest:
        state = "no longer exists" if found is None else "has changed since"
        raise InputError(
            f"{user.reference} was made with {kind}/{name}, which {state}",
            ("train the student again", "choose a `document_model` that needs no projection"),
        )
    return found
