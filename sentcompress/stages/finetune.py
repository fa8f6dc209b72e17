"""Stage 2: train a student on triplets with hard negatives, optionally with a distillation term."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sentcompress.commands.finetune import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.methods.base import Shapes
from sentcompress.methods.triplets import TripletMethod
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import check_poolable, model_size
from sentcompress.models.names import TEACHER
from sentcompress.models.principal_axes import check_dimension, principal_axes
from sentcompress.progress import LOGGED, Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.store import METHOD_OF, Artifact, Build, Request, WorkDirectory, ancestors, weight_format_of
from sentcompress.training.given_dev import GivenDev, find_dev
from sentcompress.training.job import Preparation, TrainingJob, make_method, train, training_request
from sentcompress.training.teacher_views import check_layer
from sentcompress.training.triplets import KeptSentences, TripletData
from sentcompress.training.views import TripletViews

COMMAND = Params.command
# Sentences for fitting the principal axes that initialise a head.
AXES_SAMPLE = 20_000


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a student further and write it as another artifact of kind `students`.

    Raises:
        MissingArtifactError: if there is no student, no triplet, or, with `keep`, no teacher vector.
        InputError: if a model or a file cannot be used.
        TrainingError: if the loss or a gradient becomes NaN or infinite.
    """
    params.check()
    model = find_model(
        work,
        params.model,
        revision=params.revision,
        trust_remote_code=params.trust_remote_code,
        besides=COMMAND,
    )
    check_poolable(model.source, params.pooling)
    sentences = find_triplets(work, params.sentences)
    vectors = work.get("teacher-vectors", params.teacher_vectors) if params.method_options()["keep"] else None
    dev = find_dev(params, work, vectors.reference if vectors else TEACHER)
    rounded = weight_format_of(ancestors(work, model.reference, model.digest))
    if rounded and params.weight_format is None:
        reporter.note(f"{model.label} was trained with weights rounded to {rounded}, and so is this one")
        params = replace(params, weight_format=rounded)
    request = _request(params, model, sentences, vectors, dev)
    job = _Finetuning(params, work, model, sentences, vectors, reporter).job
    return train(params, request, work, reporter, job, dev)


def find_triplets(work: WorkDirectory, name: str | None) -> Artifact:
    """The sentence table named, or the newest one that has triplets.

    Raises:
        MissingArtifactError: if there is none.
    """
    for found in [work.get("sentences", name)] if name else work.newest("sentences"):
        if len(SentenceTable(found.path).triplets()):
            return found
    where = f"sentences/{name}" if name else f"any sentence table of {work.path}"
    raise MissingArtifactError(
        f"there are no triplets in {where}",
        "run: sentcompress augment with labelled pairs or triplets, or sentcompress mine-negatives",
    )


def _request(
    params: Params, model: NamedModel, sentences: Artifact, vectors: Artifact | None, dev: GivenDev | None
) -> Request:
    inputs = {model.reference: model.digest, sentences.reference: sentences.digest}
    if vectors is not None:
        inputs[vectors.reference] = vectors.digest
    dim = params.method_options()["dim"]
    width = f"-{dim}" if dim else ""
    return training_request(
        params,
        f"{model.slug.lower()}-{params.objective}{width}",
        params.settings(model_size(model.source)),
        inputs,
        {"objective": params.objective, "model": model.reference},
        dev,
        model=typed_name(params.model, model),
        # Other inputs of this kind are models.
        teacher_vectors=vectors.name if vectors else None,
    )


@dataclass(frozen=True)
class _Finetuning:
    """The inputs and options of one fine-tuning run."""

    params: Params
    work: WorkDirectory
    model: NamedModel
    sentences: Artifact
    vectors: Artifact | None
    reporter: Reporter

    def job(self, build: Build, ranks: Ranks) -> TrainingJob:
        """The training run."""
        params, options = self.params, self.params.method_options()
        torch.manual_seed(params.seed)
        encoder = self.model.load(params.pooling)
        encoder.normalize = True
        prepared = Preparation(params, encoder, model_size(self.model.source), build, self.reporter, ranks)
        layer = int(options.get("layer", 0))
        check_layer(layer, encoder.depth)
        data = self._data(prepared)
        torch.manual_seed(params.seed)
        hidden, teacher = encoder.hidden_size, int(self.vectors.facts["dimension"]) if self.vectors else 0
        shapes = Shapes(encoder.dimension, teacher, hidden=hidden, hard_negatives=data.hard_negatives)
        method = make_method(params, shapes)
        if options["dim"] and options["dim_start"] == "pca" and isinstance(method, TripletMethod):
            self._start_from_axes(method, encoder, options["dim"], params.seed)
        return prepared.job(method, data, TripletViews(encoder, method.needs, layer), self._facts(options))

    def _data(self, prepared: Preparation) -> TripletData:
        table = SentenceTable(self.sentences.path)
        tokens = prepared.tokens(table)
        kept = None
        if self.vectors is not None:
            ordinary = self.work.get("sentences", self.vectors.input_of_kind("sentences"))
            if self.vectors.inputs.get(ordinary.reference) != ordinary.digest:
                raise InputError(
                    f"{self.vectors.reference} was not made from {ordinary.reference} as it is now",
                    f"run: {self.vectors.command_line()}",
                )
            kept_tokens = prepared.tokens(SentenceTable(ordinary.path), "kept-tokens")
            teacher = prepared.residence.vectors(NpyFiles(self.vectors.path), "teacher vectors")
            kept = KeptSentences(kept_tokens, {"teacher": teacher}, prepared.settings)
        return TripletData(table.triplets(), tokens, prepared.encoder.padding, kept)

    def _start_from_axes(self, method: TripletMethod, encoder: Encoder, dim: int, seed: int) -> None:
        """Let the head begin with the principal axes of the student's vectors, on sentences of the table."""
        texts = list(SentenceTable(self.sentences.path).sentences())
        rows = np.random.default_rng(seed).permutation(len(texts))[:AXES_SAMPLE]
        check_dimension(dim, encoder.dimension, len(rows), "the student's")
        encoder.normalize = False  # the head sees the vectors before it
        engine = EncodeEngine(encoder, device=self.params.device, dtype="float32")
        encoder.normalize = True
        with self.reporter.track("encoding", total=len(rows)) as task:
            vectors = engine.encode([texts[row] for row in rows], task).astype(np.float64)
        projection = principal_axes([vectors], vectors.shape, dim).projection(whiten=False)
        method.start_head(torch.from_numpy(projection.weight), torch.from_numpy(projection.bias))

    def _facts(self, options: dict[str, Any]) -> dict[str, Any]:
        before = self.work.find("students", self.model.label) if self.model.reference.startswith("students/") else None
        inherited = before.facts if before else {}
        return {
            "method": inherited.get("method", self.params.objective)
            if "recipe" in inherited
            else self.params.objective,
            "objective": self.params.objective,
            "student": inherited.get("student", self.model.label),
            METHOD_OF: self.model.reference,
            "teacher": self.vectors.facts.get("teacher") if self.vectors else inherited.get("teacher"),
            "teacher_dimension": inherited.get("teacher_dimension"),
            "options": options,
            "triplets": len(SentenceTable(self.sentences.path).triplets()),
        }
