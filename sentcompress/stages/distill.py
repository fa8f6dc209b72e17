"""Train a student on the teacher's cached vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sentcompress.commands.distill import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import StsSubset, read_dev
from sentcompress.errors import InputError, UsageError
from sentcompress.methods import method_class, package_of
from sentcompress.methods.base import Method, Shapes
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.names import PRESETS
from sentcompress.models.principal_axes import Projection
from sentcompress.models.shape import WEIGHTS, Shape, layer_count
from sentcompress.models.sources import EMBEDDED, FetchError
from sentcompress.models.students import InitialStudent
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Build, Request, WorkDirectory, file_digest
from sentcompress.training.batches import Batch, BatchPlan, Rows, collate
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.dev import Dev, held_out_dev, hold_out, sts_dev
from sentcompress.training.inputs import Inputs, find_inputs, find_teacher_of
from sentcompress.training.session import CHECKPOINTS, Session, finish_trained, tokenised
from sentcompress.training.settings import in_place
from sentcompress.training.teacher_views import supply

COMMAND = Params.command
# Sentences that a smaller vocabulary is chosen by.
COUNTED = 200_000
# Sentences that a teacher is watched on, where a student starts from what it does with them.
WATCHED = 4000
# Held-out sentences whose similarities say something.
AGREEING = 3
OFFLINE = "without a network, start from the teacher's layers (`student` teacher:3) or from a model folder"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a student and write it as an artifact of kind `students`.

    Raises:
        MissingArtifactError: if a stage that has to come first was not run.
        InputError: if the inputs do not belong together, or the student or the dev file cannot be used.
        TrainingError: if the loss is no longer a number.
    """
    params.check()
    needs = method_class(params.method).needs
    inputs = find_inputs(
        work,
        sentences=params.sentences,
        vectors=params.teacher_vectors,
        projection=params.projection or (f"pca-{params.dim}" if params.dim else None),
        needs_projection="pca" in needs,
    )
    student, found = _find_student(params, work, inputs.vectors)
    pairs = read_dev(params.dev) if params.dev else None
    request = _request(params, inputs, student, found)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        if finished := finish_trained(build, reporter):
            return finished
        return _Distillation(params, inputs, student, pairs, build, reporter).run()


def _find_student(params: Params, work: WorkDirectory, vectors: Artifact) -> tuple[InitialStudent, NamedModel | None]:
    """The student, and the model that it is, unless it is made of the teacher's layers."""
    layers = layer_count(params.student)
    if layers is None:
        found = _find_start(params, work)
        label = params.student if params.student in (EMBEDDED, *PRESETS) else found.source.label
        given = InitialStudent(label, found.source, pooling=found.pooling, trust_remote_code=params.trust_remote_code)
        return given, found
    # Made of the teacher's own files, and pooled as the teacher is.
    pooling = str(vectors.parameters.get("pooling", "auto"))
    shape = params.part(Shape, layers=layers)
    return InitialStudent(params.student, find_teacher_of(vectors), shape, pooling, params.trust_remote_code), None


def _find_start(params: Params, work: WorkDirectory) -> NamedModel:
    try:
        found = find_model(
            work, params.student, revision=params.revision, trust_remote_code=params.trust_remote_code, layers=True
        )
    except FetchError as error:
        raise InputError(error.message, OFFLINE) from None
    if found.reference == f"students/{params.name}":
        raise UsageError(f"`name` {params.name} would replace the student it starts from", "choose another `name`")
    return found


def _request(params: Params, inputs: Inputs, student: InitialStudent, found: NamedModel | None) -> Request:
    used = [inputs.sentences, inputs.vectors, *([inputs.projection] if inputs.projection else [])]
    digests = {artifact.reference: artifact.digest for artifact in used}
    chosen = {}
    if found is None:
        digests[f"model:{student.source.label}"] = student.source.digest
    else:
        digests[found.reference] = found.digest
        chosen["student"] = typed_name(params.student, found)
    if params.dev is not None:
        digests[f"file:{params.dev.resolve()}"] = file_digest(params.dev)
    resolved = {
        **params.settings().that_matter(),
        "method": params.method,
        "student": student.label,
        "options": params.method_options(),
        **package_of(params.method),
    }
    width = f"-{inputs.projection.facts['dimension']}" if inputs.projection else ""
    if inputs.projection:
        params = replace(params, dim=None, projection=inputs.projection.name)  # named in one way in the printed command
    return Request.of(params, params.name or f"{params.method}-{student.slug}{width}", digests, resolved, **chosen)


def _first(table: SentenceTable, count: int) -> Iterator[list[str]]:
    for texts in table.stream():
        yield texts[:count]
        count -= len(texts)
        if count <= 0:
            return


@dataclass
class _Distillation:
    """One build of a student."""

    params: Params
    inputs: Inputs
    student: InitialStudent
    pairs: StsSubset | None
    build: Build
    reporter: Reporter

    def run(self) -> Artifact:
        params = self.params
        settings, device = params.settings(), pick_device(params.device)
        table = SentenceTable(self.inputs.sentences.path)
        encoder = self._student(table, device)
        settings = replace(settings, max_length=min(settings.max_length, encoder.text.max_length))
        options = params.method_options()
        domains = table.domains()
        if "domains" in method_class(params.method).needs and not domains.any():
            self.reporter.warn(
                f"{self.inputs.sentences.reference} tells of one domain only, so that {params.method} weighs all "
                "sentences by one prototype (sentcompress augment --domain COLUMN)"
            )
        supplied = supply(
            method_class(params.method).needs_with(options),
            encoder,
            self.inputs.vectors,
            domains=domains,
            tensors=self._projection(),
            input_layer=int(options.get("layer", 0)),
            device=device,
            trust_remote_code=params.trust_remote_code,
        )
        # Heads start from random values.
        torch.manual_seed(settings.seed)
        method = self._method(supplied.shapes)
        session = Session(encoder, method, settings, device, self.build, self.reporter, params.trust_remote_code)
        tokens = tokenised(encoder, settings, table, self.build, self.reporter)
        pad = encoder.tokenizer.pad_token_id or 0

        def tensors(rows: Rows) -> Batch:
            return collate(rows, tokens, supplied.fields, pad)

        rows, dev = self._rows_and_dev(encoder, method, table, tensors)
        budget = settings.token_budget(method.contrastive)
        plan = BatchPlan(rows, tokens.lengths[rows], settings.batch_size, budget, settings.seed)
        trained = session.train(plan, tensors, supplied.views, dev)
        recipe = in_place(method_class(params.method).recipe, params)
        return session.finish(session.facts(trained, len(rows), recipe, self._own_facts(options)))

    def _student(self, table: SentenceTable, device: torch.device) -> Encoder:
        """The student as it starts; where there is a checkpoint, which brings its weights, only in the same shape."""
        student, shape = self.student, self.student.shape
        if Checkpoints(self.build, CHECKPOINTS).exist():
            student = replace(student, shape=replace(shape, start=WEIGHTS))
        watched = [] if student.shape.start == WEIGHTS else table.spread(WATCHED)
        return student.load(_first(table, COUNTED), watched, device, self.reporter)

    def _projection(self) -> dict[str, Tensor]:
        if not self.inputs.projection:
            return {}
        projection = Projection.load(self.inputs.projection.path)
        return {"pca_weight": torch.from_numpy(projection.weight), "pca_mean": torch.from_numpy(projection.mean)}

    def _method(self, shapes: Shapes) -> Method:
        try:
            return method_class(self.params.method)(shapes, self.params.method_options())
        except ValueError as error:
            name = self.params.method
            raise UsageError(f"{name}: {error}", f"see: sentcompress methods show {shell_word(name)}") from None

    def _rows_and_dev(
        self, encoder: Encoder, method: Method, table: SentenceTable, tensors: Callable[[Rows], Batch]
    ) -> tuple[Rows, Dev]:
        """The rows to train on, and what chooses the best checkpoint."""
        if self.pairs is not None:
            pad, first, second = encoder.tokenizer.pad_token_id or 0, self.pairs.first, self.pairs.second
            return np.arange(len(table)), sts_dev(first, second, self.pairs.scores, encoder.tokenize, pad)
        target = method.target if method.has_target() else None
        rows, held = hold_out(table.parents(), self.params.seed)
        if len(rows) == 0 or (target is None and len(held) < AGREEING):
            raise InputError(
                f"{self.inputs.sentences.reference} has too few sentences to hold some out",
                "add more sentences, or choose by graded pairs with `dev`",
            )
        return rows, held_out_dev(held, tensors, target)

    def _own_facts(self, options: dict[str, Any]) -> dict[str, Any]:
        vectors = self.inputs.vectors
        return {
            "method": self.params.method,
            "student": self.student.label,
            **self.student.shape.as_dict(),
            "teacher": vectors.facts.get("teacher"),
            "teacher_dimension": vectors.facts.get("dimension"),
            "options": options,
        }
