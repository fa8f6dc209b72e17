"""Train a teacher on triplets, as supervised SimCSE does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from sentcompress.commands.train_teacher import Params
from sentcompress.corpora.inputs import Input, open_inputs
from sentcompress.corpora.originals import Limits, write_originals
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import StsSubset, read_dev
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError, UsageError
from sentcompress.methods import objective_class
from sentcompress.methods.base import Shapes
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import hidden_width, load_encoder
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Build, Request, WorkDirectory, file_digest, name_part
from sentcompress.training.dev import Dev, sts_dev
from sentcompress.training.session import STATE, Session, finish_trained, tokenised
from sentcompress.training.teacher_views import check_layer
from sentcompress.training.triplets import TripletData
from sentcompress.training.views import TripletViews

COMMAND = Params.command
POOLINGS = ("cls-mlp", "cls", "mean")
# The sentences while the teacher trains on them.
TABLE = f"{STATE}/table"
READ = f"{TABLE}/read"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Train a teacher and write it as an artifact of kind `students`.

    Raises:
        InputError: if the model or a file cannot be used, or the files hold no triplets.
        TrainingError: if the loss is no longer a number.
    """
    params.check()
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    hidden = hidden_width(model.source)
    pairs = read_dev(params.dev) if params.dev else None
    reading = ReadOptions(None, (), "train")
    with open_inputs(params.triplets, reading, None, None, work.path, reporter) as inputs:
        request = _request(params, hidden, model, inputs)
        with work.build(request, force=params.force, reporter=reporter) as build:
            if build.fresh:
                return build.fresh
            if finished := finish_trained(build, reporter):
                return finished
            _read(inputs, params, build, reporter)
            return _Training(params, hidden, model, pairs, build, reporter).run()


def _request(params: Params, hidden: int, model: NamedModel, inputs: list[Input]) -> Request:
    digests = {model.reference: model.digest, **{given.reference: given.digest for given in inputs}}
    if params.dev is not None:
        digests[f"file:{params.dev.resolve()}"] = file_digest(params.dev)
    resolved = {
        **params.settings(hidden).that_matter(),
        "objective": params.objective,
        "model": model.reference,
        "inputs": [given.reference for given in inputs],
        "options": params.objective_options(),
    }
    name = params.name or f"{name_part(Path(model.label).name).lower()}-{params.objective}"
    return Request.of(params, name, digests, resolved, model=typed_name(params.model, model))


def _read(inputs: list[Input], params: Params, build: Build, reporter: Reporter) -> None:
    """The sentences and triplets of the files, in the build, read once."""
    if build.has(READ):
        return
    bad = BadRecords(params.skip_bad)
    tally = write_originals(inputs, lambda name: build.write(f"{TABLE}/{name}"), Limits(), bad, reporter)
    if bad.count:
        reporter.warn(f"{bad.count} bad lines were skipped; the first: {bad.first}")
    if not tally.triplets:
        raise InputError(
            f"{', '.join(params.triplets)}: no triplets",
            "give triplets, or labelled pairs in which premises have an entailment and a contradiction",
        )
    with build.write(READ) as path:
        path.touch()


@dataclass
class _Training:
    """One build of a teacher."""

    params: Params
    hidden: int
    model: NamedModel
    pairs: StsSubset | None
    build: Build
    reporter: Reporter

    def run(self) -> Artifact:
        params, options = self.params, self.params.objective_options()
        settings, device = params.settings(self.hidden), pick_device(params.device)
        torch.manual_seed(settings.seed)
        encoder = self._encoder()
        settings = replace(settings, max_length=min(settings.max_length, encoder.text.max_length))
        layer = int(options.get("layer", 0))
        check_layer(layer, encoder.depth)
        table = SentenceTable(self.build.path / TABLE)
        tokens = tokenised(encoder, settings, table, self.build, self.reporter)
        data = TripletData(table.triplets(), tokens, encoder.tokenizer.pad_token_id or 0)
        shapes = Shapes(encoder.dimension, 0, hidden=encoder.hidden_size, hard_negatives=1)
        try:
            method = objective_class(params.objective)(shapes, options)
        except ValueError as error:
            name = params.objective
            raise UsageError(f"{name}: {error}", f"see: sentcompress methods show {shell_word(name)}") from None
        session = Session(encoder, method, settings, device, self.build, self.reporter, params.trust_remote_code)
        rows, dev = data.rows_and_dev(self._graded(encoder), settings.seed)
        trained = session.train(
            data.plan(rows, settings), data.collate, TripletViews(encoder, method.needs, layer), dev
        )
        recipe = params.hyperparameters(self.hidden)
        own = {
            "method": params.objective,
            "objective": params.objective,
            "started_from": self.model.source.label,
            "pooling": ", ".join(encoder.pooling) + (" and a new Linear and Tanh" if self._with_head else ""),
            "options": options,
            "triplets": len(data.triplets),
        }
        return session.finish(session.facts(trained, len(rows), recipe, own))

    @property
    def _plain(self) -> bool:
        return not (self.model.source.path / "modules.json").is_file()

    @property
    def _with_head(self) -> bool:
        return self._plain and self.params.pooling == "cls-mlp"

    def _encoder(self) -> Encoder:
        """The model to train; a plain checkpoint gets SimCSE's new head after its first token, if asked."""
        pooling = "cls" if self._with_head else self.params.pooling if self._plain else "auto"
        encoder = load_encoder(self.model.source, pooling=pooling, trust_remote_code=self.params.trust_remote_code)
        if self._with_head:
            width = encoder.pooled_dimension
            encoder.dense.append(Dense(width, width, activation="Tanh"))
        return encoder

    def _graded(self, encoder: Encoder) -> Dev | None:
        if self.pairs is None:
            return None
        pad = encoder.tokenizer.pad_token_id or 0
        return sts_dev(self.pairs.first, self.pairs.second, self.pairs.scores, encoder.tokenize, pad)
