"""Train a teacher on triplets, as supervised SimCSE does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from sentcompress.commands.train_teacher import Params
from sentcompress.corpora.inputs import Input, open_inputs
from sentcompress.corpora.originals import Limits, write_originals
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError
from sentcompress.methods.base import Shapes
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import has_modules, load_encoder, load_pooled, model_size
from sentcompress.models.shape import Size
from sentcompress.progress import LOGGED, Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.store import Artifact, Build, Request, WorkDirectory, name_part
from sentcompress.training.data import STATE
from sentcompress.training.given_dev import GivenDev, find_dev
from sentcompress.training.job import Preparation, TrainingJob, make_method, train, training_request
from sentcompress.training.teacher_views import check_layer
from sentcompress.training.triplets import TripletData
from sentcompress.training.views import TripletViews

# The sentences while the teacher trains on them.
TABLE = f"{STATE}/table"
READ = f"{TABLE}/read"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a teacher and write it as an artifact of kind `students`.

    Raises:
        InputError: if the model or a file cannot be used, or the files hold no triplets.
        TrainingError: if the loss or a gradient becomes NaN or infinite.
    """
    params.check()
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    size = model_size(model.source)
    reading = ReadOptions(None, (), "train")
    with open_inputs(params.triplets, reading, None, None, work, reporter) as inputs:
        dev = find_dev(params, work, None)
        request = _request(params, size, model, inputs, dev)
        return train(params, request, work, reporter, _Teaching(params, size, model, inputs, reporter).job, dev)


def _request(params: Params, size: Size, model: NamedModel, inputs: list[Input], dev: GivenDev | None) -> Request:
    digests = {model.reference: model.digest, **{given.reference: given.digest for given in inputs}}
    return training_request(
        params,
        f"{name_part(Path(model.label).name).lower()}-{params.objective}",
        params.settings(size),
        digests,
        {
            "objective": params.objective,
            "model": model.reference,
            "inputs": [given.reference for given in inputs],
        },
        dev,
        model=typed_name(params.model, model),
    )


def _read(inputs: list[Input], params: Params, build: Build, reporter: Reporter) -> None:
    """The sentences and triplets of the files, in the build, read once."""
    if build.has(READ):
        return
    bad = BadRecords(params.skip_bad)
    tally = write_originals(inputs, lambda name: build.write(f"{TABLE}/{name}"), Limits(), bad, reporter)
    bad.warn(reporter)
    if not tally.triplets:
        raise InputError(
            f"{', '.join(params.triplets)}: no triplets",
            "give triplets, or labelled pairs in which premises have an entailment and a contradiction",
        )
    with build.write(READ) as path:
        path.touch()


@dataclass(frozen=True)
class _Teaching:
    """The inputs and options of one training run."""

    params: Params
    size: Size
    model: NamedModel
    inputs: list[Input]
    reporter: Reporter

    def job(self, build: Build, ranks: Ranks) -> TrainingJob:
        """The training run."""
        params, options = self.params, self.params.method_options()
        if ranks.first:
            _read(self.inputs, params, build, self.reporter)
        ranks.meet()
        torch.manual_seed(params.seed)
        encoder = self._start()
        prepared = Preparation(params, encoder, self.size, build, self.reporter, ranks)
        layer = int(options.get("layer", 0))
        check_layer(layer, encoder.depth)
        table = SentenceTable(build.path / TABLE)
        data = TripletData(table.triplets(), prepared.tokens(table), encoder.padding)
        shapes = Shapes(encoder.dimension, 0, hidden=encoder.hidden_size, hard_negatives=1)
        method = make_method(params, shapes)
        facts = {
            "method": params.objective,
            "objective": params.objective,
            "started_from": self.model.source.label,
            "pooling": ", ".join(encoder.pooling) + (" and a new Linear and Tanh" if self._with_head else ""),
            "options": options,
            "triplets": len(data.triplets),
        }
        return prepared.job(method, data, TripletViews(encoder, method.needs, layer), facts)

    @property
    def _with_head(self) -> bool:
        return self.params.pooling == "cls-mlp" and not has_modules(self.model.source)

    def _start(self) -> Encoder:
        """The model to train; only a plain checkpoint is pooled as asked."""
        source, asked, trusted = self.model.source, self.params.pooling, self.params.trust_remote_code
        if not has_modules(source):
            return load_pooled(source, asked, trust_remote_code=trusted)
        encoder = load_encoder(source, trust_remote_code=trusted)
        if asked != Params.pooling and encoder.pooling != (asked,):
            own = ", ".join(encoder.pooling)
            self.reporter.warn(f"{source.label} keeps its own pooling, {own}; `pooling` {asked} is ignored")
        return encoder
