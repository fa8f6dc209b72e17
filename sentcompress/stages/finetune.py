"""Stage 2: train a student on triplets, with hard negatives, and if asked with its teacher beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import StsSubset, read_dev
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_shards import VectorShards
from sentcompress.errors import InputError, MissingArtifactError, UsageError, raise_faults
from sentcompress.methods import OBJECTIVES, hint_for, objective_class
from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.hyperparameters import parse_options
from sentcompress.methods.triplets import TripletMethod
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.principal_axes import check_dimension, principal_axes
from sentcompress.models.students import PRESETS
from sentcompress.plain_text import shell_word
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import Artifact, Build, Request, WorkDirectory, file_digest
from sentcompress.training.dev import Dev, sts_dev
from sentcompress.training.inputs import embedding
from sentcompress.training.session import Session, finish_trained, tokenised, vector_field
from sentcompress.training.settings import Overrides, Settings
from sentcompress.training.teacher_views import check_layer
from sentcompress.training.triplets import KeptSentences, TripletData
from sentcompress.training.views import TripletViews

COMMAND = "finetune"
# Sentences that the principal axes of a head's start are fitted on.
AXES_SAMPLE = 20_000


@dataclass(frozen=True)
class Params:
    """What to train on. `dim` and `keep` are the switches of that name; `numbers` stand in place of the recipe."""

    objective: str = "simcse"
    model: str | None = None
    dim: int | None = None
    keep: float | None = None
    numbers: Overrides = field(default_factory=Overrides)
    options: tuple[str, ...] = ()
    dev: Path | None = None
    sentences: str | None = None
    teacher_vectors: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    name: str | None = None
    force: bool = False

    def settings(self) -> Settings:
        """Recipe and flags put together."""
        return Settings.of(objective_class(self.objective).recipe, self.numbers)

    def _given(self) -> tuple[str, ...]:
        own = [f"{name}={value}" for name, value in (("dim", self.dim), ("keep", self.keep)) if value is not None]
        return (*self.options, *own)

    def objective_options(self) -> dict[str, Any]:
        """All switches of the objective, with what `--set`, `--dim` and `--keep` say."""
        return parse_options(objective_class(self.objective).options, self._given())[0]

    def check(self) -> None:
        """Raise UsageError that lists every fault."""
        faults = []
        if self.objective not in OBJECTIVES:
            faults.append(f"no objective {self.objective!r}; {hint_for(self.objective, OBJECTIVES)}")
        else:
            faults += parse_options(objective_class(self.objective).options, self._given())[1]
            faults += self.settings().faults()
        if self.dev is not None and not self.dev.is_file():
            faults.append(f"--dev {self.dev}: no such file")
        raise_faults(faults, COMMAND)


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> Artifact:
    """Train a student further and write it as another artifact of kind `students`.

    Raises:
        MissingArtifactError: if there is no student, no triplet, or, with `keep`, no teacher vector.
        InputError: if a model or a file cannot be used.
        TrainingError: if the loss is no longer a number.
    """
    params.check()
    model = find_model(
        work,
        PRESETS.get(params.model or "", params.model),
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
    asked = {
        **params.settings().that_matter(),
        "objective": params.objective,
        "model": model.reference,
        "options": options,
    }
    width = f"-{options['dim']}" if options["dim"] else ""
    return Request("students", params.name or f"{model.slug.lower()}-{params.objective}{width}", COMMAND, asked, inputs)


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
        settings, device = params.settings(), pick_device(params.numbers.device)
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
        recipe = params.numbers.apply(objective_class(params.objective).recipe)
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
        engine = EncodeEngine(encoder, device=self.params.numbers.device, dtype="float32")
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
