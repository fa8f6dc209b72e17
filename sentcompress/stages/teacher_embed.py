"""Encode every sentence with the teacher, once, and keep the vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.teacher_embed import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.compute_plan import ComputePlan
from sentcompress.encoding.content_words import ContentWords, SecondReading
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_shards import LAYER_SHARD_PATTERN, SHARD_PATTERN, writing_vectors
from sentcompress.errors import InputError
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder
from sentcompress.models.token_weights import function_tokens
from sentcompress.models.vocabulary import token_occurrences
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Build, Request, WorkDirectory
from sentcompress.store.manifests import LOG

COMMAND = Params.command
STORES = ("float32", "float16")
# Tokens that are more than this share of a corpus are no content words: some twenty of English.
FREQUENT = 0.004


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write an artifact of kind `teacher-vectors`: a `.npy` shard beside every shard of the sentence table.

    A killed run goes on after its last whole shard, with the number format and batch size that it began with.

    Raises:
        MissingArtifactError: if there are no sentences yet.
        InputError: if the teacher cannot be loaded or the device is not there.
    """
    params.check()
    pick_device(params.device)
    sentences = work.get("sentences", params.sentences)
    model = find_model(work, params.teacher, revision=params.revision, trust_remote_code=params.trust_remote_code)
    params = _as_it_taught(params, model)
    with work.build(_request(params, sentences, model), force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        encoder = _teacher(params, model)
        engine = _engine(params, encoder, build)
        reporter.note(f"{model.source.label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})")
        table = SentenceTable(sentences.path)
        reader, left_out = _reader(params, encoder, engine, table, reporter)
        encoded, seconds = _embed(table, reader, (encoder.dimension, engine.dimension), params.store, build, reporter)
        facts: dict[str, Any] = {
            "rows": len(table),
            "dimension": encoder.dimension,
            "layers": list(params.layers),
            "layer_width": encoder.pooled_dimension if params.layers else None,
            "teacher": model.source.label,
            "sentences_digest": sentences.digest,
            "compute_dtype": engine.compute_dtype,
            "compute_dtype_reason": engine.dtype_reason,
            "device": engine.device.type,
            # The second reading does without these words, and without punctuation.
            **({"content_words": params.content_words, "left_out": left_out} if params.content_words else {}),
            # of the run that finished it: what it encoded itself, without loading
            "sentences_per_second": round(encoded / seconds, 1) if encoded else None,
        }
        return build.finish(facts)


def _as_it_taught(params: Params, model: NamedModel) -> Params:
    """The options, with those of the vectors that a teacher made before, where it is named by these."""
    return replace(
        params,
        revision=model.revision,
        pooling=model.pooling if params.pooling == "auto" else params.pooling,
        max_length=model.max_length if params.max_length is None else params.max_length,
        normalize=model.normalize or params.normalize,
    )


def _request(params: Params, sentences: Artifact, model: NamedModel) -> Request:
    # Later stages load the teacher again by its place, wherever they are called from.
    inputs = {sentences.reference: sentences.digest, f"model:{model.place}": model.source.digest}
    name = params.name or sentences.name
    return Request.of(params, name, inputs, {"teacher": model.place}, teacher=typed_name(params.teacher, model))


def _teacher(params: Params, model: NamedModel) -> Encoder:
    label = model.source.label
    encoder = load_encoder(model.source, pooling=params.pooling, trust_remote_code=params.trust_remote_code)
    if params.max_length is not None:
        positions = encoder.max_positions
        if positions is not None and params.max_length > positions:
            raise InputError(
                f"{label} reads at most {positions} tokens, not {params.max_length}",
                f"use `max_length` {positions} or less",
            )
        encoder.text = replace(encoder.text, max_length=params.max_length)
    if params.content_words and encoder.text.prompt:
        raise InputError(f"{label} puts a prompt before every text", "its content words cannot be read by themselves")
    encoder.normalize = encoder.normalize or params.normalize or params.content_words > 0
    depth = encoder.depth
    if params.layers and params.layers[-1] > depth:
        raise InputError(f"{label} has {depth} layers, not {params.layers[-1]}", f"choose `layers` up to {depth}")
    return encoder


def _engine(params: Params, encoder: Encoder, build: Build) -> EncodeEngine:
    """The engine of this build; the first run decides and writes it down, those that resume it follow."""
    if not build.has(LOG):
        engine = EncodeEngine(
            encoder,
            device=params.device,
            dtype=params.dtype,
            batch_tokens=params.batch_tokens,
            layers=params.layers,
        )
        with build.write(LOG) as path:
            path.write_text(engine.plan.to_json(), encoding="utf-8")
        return engine
    plan = ComputePlan.from_json((build.path / LOG).read_text(encoding="utf-8"))
    if params.batch_tokens:  # asked for again, perhaps because the memory did not suffice
        plan = replace(plan, batch_tokens=params.batch_tokens)
    return EncodeEngine(encoder, device=params.device, plan=plan, layers=params.layers)


def _reader(
    params: Params, encoder: Encoder, engine: EncodeEngine, table: SentenceTable, reporter: Reporter
) -> tuple[EncodeEngine | SecondReading, list[str]]:
    """What reads the texts, and the words that a second reading does without."""
    if not params.content_words:
        return engine, []
    with reporter.track("counting tokens", total=len(table)) as task:
        counts = token_occurrences(encoder, table.stream(), task)
    frequent, marks = function_tokens(encoder.tokenizer, counts, FREQUENT)
    left_out = [str(word) for word in encoder.tokenizer.convert_ids_to_tokens(frequent)]
    reporter.note(f"read a second time without punctuation and these words: {' '.join(left_out) or 'none'}")
    tokenize = ContentWords(encoder, {*frequent, *marks})
    content = EncodeEngine(encoder, device=params.device, plan=engine.plan, tokenize=tokenize)
    return SecondReading(engine, content, params.content_words), left_out


def _embed(
    table: SentenceTable,
    reader: EncodeEngine | SecondReading,
    widths: tuple[int, int],
    store: str,
    build: Build,
    reporter: Reporter,
) -> tuple[int, float]:
    """Write the shards that are missing; returns how many sentences that were and the seconds it took.

    Args:
        widths: of a vector, and of a row of the reader, which may go on with layers.
    """
    dimension, row = widths
    encoded, seconds = 0, 0.0
    with reporter.track("encoding", total=len(table)) as task:
        for shard, rows in enumerate(table.shard_rows):
            name = SHARD_PATTERN.format(shard)
            if build.has(name):
                task.advance(rows)
                continue
            started = time.perf_counter()
            with ExitStack() as stack:
                # The vectors' shard is finished last: where it is, the layers' shard is too.
                append = stack.enter_context(_shard(build, name, rows, dimension, store))
                beside = row - dimension
                layers = LAYER_SHARD_PATTERN.format(shard)
                append_layers = stack.enter_context(_shard(build, layers, rows, beside, store)) if beside else None
                # Nothing but the shard's own sentences goes in, so that its bytes do not depend on where a run began.
                for vectors in reader.stream([table.texts(shard)], task):
                    append(vectors[:, :dimension])
                    if append_layers:
                        append_layers(vectors[:, dimension:])
            encoded, seconds = encoded + rows, seconds + time.perf_counter() - started
    return encoded, seconds


@contextmanager
def _shard(
    build: Build, name: str, rows: int, dimension: int, store: str
) -> Iterator[Callable[[npt.NDArray[np.float32]], None]]:
    with build.write(name) as path, writing_vectors(path, rows, dimension, store) as append:
        yield append
