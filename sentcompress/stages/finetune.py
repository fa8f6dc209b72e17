"""Stage 2: train a student on triplets, with hard negatives, and if asked with its teacher beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sentcompress.commands.finetune import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import StsSubset, read_dev
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_shards import VectorShards
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.methods import objective_class
from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.triplets import TripletMethod
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.principal_axes import check_dimension, principal_axes
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Build, Request, WorkDirectory, file_digest
from sentcompress.training.dev import Dev, sts_dev
from sentcompress.training.inputs import embedding
from sentcompress.training.session import Session, finish_trained, tokenised, vector_field
from sentcompress.training.settings import Settings, in_place
from sentcompress.training.teacher_views import check_layer
from sentcompress.training.triplets import KeptSentences, TripletData
from sentcompress.training.views import TripletViews

COMMAND = Params.command
# Sentences that the principal axes of a head's start are fitted on.
AXES_SAMPLE = 20_000


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a student further and write it as another artifact of kind `students`.

    Raises:
        MissingArtifactError: if there is no student, no triplet, or, with `keep`, no teacher vector.
        InputError: if a model or a file cannot be used.
        TrainingError: if the loss is no longer a number.
    """
    params.check()
    model = find_model(
        work,
        params.model,
        revision=params.revision,
        trust_remote_code=params.trust_remote_code,
        besides=COMMAND,
    )
    sentences = find_triplets(work, params.sentences)
    vectors = work.get("teacher-vectors", params.teacher_vectors) if params.objective_options()["keep"] else None
    pairs = read_dev(params.dev) if params.dev else None
    request = _request(params, model, sentences, vectors)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        if finished := finish_trained(build, reporter):
            return finished
        return _Finetuning(params, work, model, sentences, vectors, pairs, build, reporter).run()


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


def _request(params: Params, model: NamedModel, sentences: Artifact, vectors: Artifact | None) -> Request:
    inputs = {model.reference: model.digest, sentences.reference: sentences.digest}
    if vectors is not None:
        inputs[vectors.reference] = vectors.digest
    if params.dev is not None:
        inputs[f"file:{params.dev.resolve()}"] = file_digest(params.dev)
    options = params.objective_options()
    resolved = {
        **params.settings().that_matter(),
        "objective": params.objective,
        "model": model.reference,
        "options": options,
    }
    width = f"-{options['dim']}" if options["dim"] else ""
    return Request.of(
        params,
        params.name or f"{model.slug.lower()}-{params.objective}{width}",
        inputs,
        resolved,
        model=typed_name(params.model, model),
    )


@dataclass
class _Finetuning:
    """One build of a student."""

    params: Params
    work: WorkDirectory
    model: NamedModel
    sentences: Artifact
    vectors: Artifact | None
    pairs: StsSubset | None
    build: Build
    reporter: Reporter

    def run(self) -> Artifact:
        params, options = self.params, self.params.objective_options()
        settings, device = params.settings(), pick_device(params.device)
        encoder = self.model.load()
        encoder.normalize = True
        settings = replace(settings, max_length=min(settings.max_length, encoder.text.max_length))
        layer = int(options.get("layer", 0))
        check_layer(layer, encoder.depth)
        data = self._data(encoder, settings)
        torch.manual_seed(settings.seed)
        method = self._method(encoder, data, options)
        if options["dim"] and options["dim_start"] == "pca" and isinstance(method, TripletMethod):
            self._start_from_axes(method, encoder, options["dim"], settings.seed)
        session = Session(encoder, method, settings, device, self.build, self.reporter, params.trust_remote_code)
        rows, dev = data.rows_and_dev(self._graded(encoder), settings.seed)
        views = TripletViews(encoder, method.needs, layer)
        trained = session.train(data.plan(rows, settings), data.collate, views, dev)
        recipe = in_place(objective_class(params.objective).recipe, params)
        return session.finish(session.facts(trained, len(rows), recipe, self._own_facts(options)))

    def _data(self, encoder: Encoder, settings: Settings) -> TripletData:
        table = SentenceTable(self.sentences.path)
        tokens = tokenised(encoder, settings, table, self.build, self.reporter)
        kept = None
        if self.vectors is not None:
            ordinary = self.work.get("sentences", self.vectors.input_of_kind("sentences"))
            if self.vectors.inputs.get(ordinary.reference) != ordinary.digest:
                raise InputError(
                    f"{self.vectors.reference} is not made of {ordinary.reference} as it is now",
                    f"run: {embedding(ordinary, self.work)}",
                )
            beside = SentenceTable(ordinary.path)
            kept_tokens = tokenised(encoder, settings, beside, self.build, self.reporter, "kept-tokens")
            kept = KeptSentences(kept_tokens, {"teacher": vector_field(VectorShards(self.vectors.path))}, settings)
        return TripletData(table.triplets(), tokens, encoder.tokenizer.pad_token_id or 0, kept)

    def _method(self, encoder: Encoder, data: TripletData, options: dict[str, Any]) -> Method:
        teacher = int(self.vectors.facts["dimension"]) if self.vectors else 0
        hidden = encoder.hidden_size
        shapes = Shapes(encoder.dimension, teacher, hidden=hidden, hard_negatives=data.hard_negatives)
        try:
            return objective_class(self.params.objective)(shapes, options)
        except ValueError as error:
            name = self.params.objective
            raise UsageError(f"{name}: {error}", f"see: sentcompress methods show {shell_word(name)}") from None

    def _start_from_axes(self, method: TripletMethod, encoder: Encoder, dim: int, seed: int) -> None:
        """Let the head begin with the principal axes of the student's vectors, on sentences of the table."""
        table = SentenceTable(self.sentences.path)
        texts = [text for part in table.stream() for text in part]
        rows = np.random.default_rng(seed).permutation(len(texts))[:AXES_SAMPLE]
        check_dimension(dim, encoder.dimension, len(rows), "the student's")
        encoder.normalize = False  # the head sees the vectors before it
        engine = EncodeEngine(encoder, device=self.params.device, dtype="float32")
        encoder.normalize = True
        with self.reporter.track("encoding", total=len(rows)) as task:
            vectors = engine.encode([texts[row] for row in rows], task).astype(np.float64)
        projection = principal_axes([vectors], vectors.shape, dim).projection(whiten=False)
        method.start_head(torch.from_numpy(projection.weight), torch.from_numpy(projection.bias))

    def _graded(self, encoder: Encoder) -> Dev | None:
        if self.pairs is None:
            return None
        pad = encoder.tokenizer.pad_token_id or 0
        return sts_dev(self.pairs.first, self.pairs.second, self.pairs.scores, encoder.tokenize, pad)

    def _own_facts(self, options: dict[str, Any]) -> dict[str, Any]:
        before = self.work.find("students", self.model.label) if self.model.reference.startswith("students/") else None
        inherited = before.facts if before else {}
        return {
            "method": inherited.get("method", self.params.objective)
            if "recipe" in inherited
            else self.params.objective,
            "objective": self.params.objective,
            "student": inherited.get("student", self.model.label),
            "started_from": self.model.reference,
            "teacher": self.vectors.facts.get("teacher") if self.vectors else inherited.get("teacher"),
            "teacher_dimension": inherited.get("teacher_dimension"),
            "options": options,
            "triplets": len(SentenceTable(self.sentences.path).triplets()),
        }
