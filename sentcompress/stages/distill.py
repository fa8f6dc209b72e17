"""Train a student on the teacher's cached vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sentcompress.commands.distill import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.errors import InputError, UsageError
from sentcompress.methods.base import Method
from sentcompress.models.catalog import NamedModel, find_model, find_teacher_of, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import check_poolable, has_modules
from sentcompress.models.memory import require_memory
from sentcompress.models.names import PRESETS, is_of_work, refuse_revision
from sentcompress.models.principal_axes import Projection
from sentcompress.models.shape import SENTENCES, WEIGHTS, Shape, layer_count
from sentcompress.models.sources import FetchError, comes_along
from sentcompress.models.students import InitialStudent
from sentcompress.progress import LOGGED, Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.store import MODEL_FILES, Artifact, Build, Request, WorkDirectory, ancestors, weight_format_of
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.data import SentenceData
from sentcompress.training.further import further
from sentcompress.training.given_dev import GivenDev, find_dev
from sentcompress.training.inputs import Inputs, find_inputs
from sentcompress.training.job import CHECKPOINTS, Preparation, TrainingJob, make_method, train, training_request
from sentcompress.training.teacher_views import supply

# Sentences whose tokens are counted to choose a smaller vocabulary.
COUNTED = 200_000
# Sentences on which a teacher's activations are measured to initialise a student.
WATCHED = 4000
OFFLINE = "without a network, start from the teacher's layers (`student` teacher:3) or from a model folder"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a student and write it as an artifact of kind `students`.

    Raises:
        MissingArtifactError: if a stage that has to come first was not run.
        InputError: if the inputs do not belong together, or the student or the dev file cannot be used.
        TrainingError: if the loss or a gradient becomes NaN or infinite.
    """
    params.check()
    params, filled = further(params, work, reporter)
    params.check()
    inputs = find_inputs(
        work,
        sentences=params.sentences,
        vectors=params.teacher_vectors,
        projection=params.projection or (f"pca-{params.dim}" if params.dim else None),
        needs_projection="pca" in params.find_method().needs,
    )
    student, found = _find_student(params, work, inputs.vectors)
    # Another model than a finished student gets the default method, to which the options have to belong.
    replace(params, method=params.method_name).check()
    check_poolable(student.source, params.pooling)
    require_memory(student.source)
    if found and params.weight_format is None:
        _warn_of_rounding(weight_format_of(ancestors(work, found.reference, found.digest)), found.label, reporter)
    dev = find_dev(params, work, inputs.vectors.reference)
    request = _request(params, inputs, student, found, dev)
    distillation = _Distillation(params, filled, inputs, student, found, reporter)
    return train(params, request, work, reporter, distillation.job, dev)


def _warn_of_rounding(weight_format: str | None, label: str, reporter: Reporter) -> None:
    """Warn if a student was trained with rounded weights, and this training, by another method, is not."""
    if weight_format:
        reporter.warn(
            f"{label} was trained with weights rounded to {weight_format}, and this student is not: its export loses "
            f"more; `weight_format` {weight_format} keeps them"
        )


def _find_student(params: Params, work: WorkDirectory, vectors: Artifact) -> tuple[InitialStudent, NamedModel | None]:
    """The student, and the model that it starts from; None in place of the model for layers of the teacher."""
    layers = layer_count(params.student)
    shape = params.part(Shape, layers=layers)
    if layers is None:
        found = _find_start(params, work)
        label = params.student if comes_along(params.student) or params.student in PRESETS else found.source.label
        return _as_asked(InitialStudent(label, found.source, shape, found.pooling), params), found
    refuse_revision(params.revision, params.student)
    # Made of the teacher's own files, and pooled as the teacher is.
    pooling = str(vectors.parameters.get("pooling", "auto"))
    return _as_asked(InitialStudent(params.student, find_teacher_of(vectors), shape, pooling), params), None


def _as_asked(student: InitialStudent, params: Params) -> InitialStudent:
    return replace(student, new_pooling=params.pooling, trust_remote_code=params.trust_remote_code)


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


def _request(
    params: Params, inputs: Inputs, student: InitialStudent, found: NamedModel | None, dev: GivenDev | None
) -> Request:
    used = [inputs.sentences, inputs.vectors, *([inputs.projection] if inputs.projection else [])]
    digests = {artifact.reference: artifact.digest for artifact in used}
    chosen = {}
    if found is None:
        digests[f"{MODEL_FILES}{inputs.vectors.parameters['teacher']}"] = student.source.digest
    else:
        digests[found.reference] = found.digest
        chosen["student"] = typed_name(params.student, found)
    width = f"-{inputs.projection.facts['dimension']}" if inputs.projection else ""
    if inputs.projection:
        params = replace(params, dim=None, projection=inputs.projection.name)  # named in one way in the printed command
    return training_request(
        params,
        f"{params.method_name}-{student.slug}{width}",
        params.settings(student.size),
        digests,
        {"method": params.method_name, "student": student.label},
        dev,
        **chosen,
    )


def _is_sentence_encoder(found: NamedModel) -> bool:
    """Whether a model of this disk, not of the hub, gives sentence vectors already, unlike a bare checkpoint."""
    of_hub = not is_of_work(found.reference) and not comes_along(found.place) and not Path(found.place).is_dir()
    return not of_hub and has_modules(found.source)


@dataclass(frozen=True)
class _Distillation:
    """The inputs and options of one distillation.

    Attributes:
        filled: the sources of the options that were filled in for a finished student, by name.
    """

    params: Params
    filled: Mapping[str, str]
    inputs: Inputs
    student: InitialStudent
    found: NamedModel | None
    reporter: Reporter

    def job(self, build: Build, ranks: Ranks) -> TrainingJob:
        """The training run."""
        params, options, device = self.params, self.params.method_options(), pick_device(self.params.device)
        table = SentenceTable(self.inputs.sentences.path)
        with self.reporter.phase("loading the student"):
            encoder = self._start(table, build, device)
        prepared = Preparation(params, encoder, self.student.size, build, self.reporter, ranks, self.filled)
        needs = params.find_method().needs_with(options)
        domains = table.domains() if "domains" in needs else None
        if domains is not None and not domains.any():
            self.reporter.warn(
                f"{self.inputs.sentences.reference} has only one domain, so {params.method_name} weights all "
                "sentences by one prototype (sentcompress augment --domain COLUMN)"
            )
        supplied = supply(
            needs,
            encoder,
            self.inputs.vectors,
            domains=domains,
            tensors=self._projection(),
            input_layer=int(options.get("layer", 0)),
            residence=prepared.residence,
            trust_remote_code=params.trust_remote_code,
        )
        # Heads start from random values.
        torch.manual_seed(params.seed)
        method = make_method(params, supplied.shapes)
        self._warn_of_new_dimensions(encoder, method)
        name, tokens = self.inputs.sentences.reference, prepared.tokens(table)
        data = SentenceData(name, table, tokens, supplied.fields, encoder.padding, method)
        return prepared.job(method, data, supplied.views, self._facts(options))

    def _start(self, table: SentenceTable, build: Build, device: torch.device) -> Encoder:
        """The student as it starts. With a checkpoint to resume from, only its shape matters, not its weights."""
        student, shape = self.student, self.student.shape
        if Checkpoints(build, CHECKPOINTS).exist():
            student = replace(student, shape=replace(shape, start=WEIGHTS))
        torch.manual_seed(self.params.seed)
        watched = table.spread(WATCHED) if student.shape.start == SENTENCES else []
        return student.load(table.stream(rows=COUNTED), watched, device, self.reporter)

    def _projection(self) -> dict[str, Tensor]:
        if not self.inputs.projection:
            return {}
        projection = Projection.load(self.inputs.projection.path)
        return {"pca_weight": torch.from_numpy(projection.weight), "pca_mean": torch.from_numpy(projection.mean)}

    def _warn_of_new_dimensions(self, encoder: Encoder, method: Method) -> None:
        """Warn if a new head changes the dimension of a finished model's vectors."""
        head = method.deployed_head()
        if head is None or self.found is None or not _is_sentence_encoder(self.found):
            return
        after = head.linear.out_features
        if after != encoder.dimension:
            self.reporter.warn(
                f"the vectors of {self.student.label} change from {encoder.dimension} to {after} dimensions: "
                f"{self.params.method_name} adds a layer with random weights, and what the model has learnt may be "
                "lost (lrn-kd, or an option head=none, adds none)"
            )

    def _facts(self, options: dict[str, Any]) -> dict[str, Any]:
        vectors = self.inputs.vectors
        return {
            "method": self.params.method_name,
            "student": self.student.label,
            **self.student.shape.as_dict(),
            "teacher": vectors.facts.get("teacher"),
            "teacher_dimension": vectors.facts.get("dimension"),
            "options": options,
        }
