"""Encode every sentence with the teacher, once, and keep the vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.teacher_embed import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.compute_plan import ComputePlan, make_plan
from sentcompress.encoding.content_words import ContentWords, SecondReading
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.npy_files import LAYERS_PATTERN, VECTORS_PATTERN, writing_vectors
from sentcompress.encoding.prompted_table import PromptedTable
from sentcompress.encoding.sharded_vectors import (
    Span,
    divided,
    join_file,
    join_parts,
    measured_windows,
    parts_of,
    spans_of,
    spans_of_shard,
    work_of,
)
from sentcompress.errors import InputError, UsageError
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.cautions import told_guess, told_padding
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import has_modules, load_encoder
from sentcompress.models.prompts import OF_ROLE, ROLES, told_prompt
from sentcompress.models.token_weights import function_tokens
from sentcompress.models.vocabulary import token_occurrences
from sentcompress.progress import LOGGED, Reporter, Task
from sentcompress.quantities import counted
from sentcompress.ranks.alone import Ranks
from sentcompress.ranks.builds import find_shared, shared_build
from sentcompress.ranks.group import joined
from sentcompress.ranks.launch import find_launch
from sentcompress.store import MODEL_FILES, SCAFFOLD, Artifact, Build, Request, WorkDirectory
from sentcompress.store.request import TEACHER_VECTORS
from sentcompress.store.shard import find_shard
from sentcompress.store.shards import Part, sharded

PLAN = f"{SCAFFOLD}/plan.json"
# Tokens above this share of the corpus are not content words (about twenty in English).
FREQUENT = 0.004
# Characters per token of English text in a WordPiece vocabulary, including spaces; estimates the work.
CHARACTERS_PER_TOKEN = 5


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write an artifact of kind `teacher-vectors`: a `.npy` file for every file of the sentence table.

    A killed run goes on after its last whole file, with the number format and batch size that it began with.
    With `shard`, writes only one shard of it, for `merge`. Ranks share the work; the bytes are the same.

    Raises:
        MissingArtifactError: if there are no sentences yet.
        InputError: if the teacher cannot be loaded or the device is not there.
        RankError: see `ranks.group.joined`.
    """
    params.check()
    device = pick_device(params.device)
    sentences = work.get("sentences", params.sentences)
    model = find_model(work, params.teacher, revision=params.revision, trust_remote_code=params.trust_remote_code)
    pooling, params = params.pooling, _as_it_taught(params, model)
    prompts = _prompts(model, sentences)
    request = _request(params, sentences, model, prompts)
    embedding = _Embedding(params, model, sentences, prompts, reporter, pooling)
    if shard := find_shard(params.shard):
        if find_launch():
            raise UsageError("`shard` and torchrun both divide the work", "use one of them")
        with sharded(work, request, shard, embedding.plan, force=params.force, reporter=reporter) as part:
            return part if isinstance(part, Artifact) else embedding.shard(part)
    with (
        joined(params, request, device, reporter) as ranks,
        shared_build(ranks, work, request, force=params.force, reporter=reporter) as build,
    ):
        done = build.fresh or embedding.whole(build, ranks)
        ranks.meet()
        return done or find_shared(ranks, work, request)


def _as_it_taught(params: Params, model: NamedModel) -> Params:
    """The options. If the teacher is named by vectors that it made, options that are not given are those of these."""
    return replace(
        params,
        revision=model.revision,
        pooling=model.pooling if params.pooling == "auto" else params.pooling,
        max_length=model.max_length if params.max_length is None else params.max_length,
        normalize=model.normalize if params.normalize is None else params.normalize,
    )


def _prompts(model: NamedModel, sentences: Artifact) -> dict[str, str]:
    """Role -> the teacher's prompt for the sentences of this role, where that is not its default prompt.

    Empty for most models, and if the table does not tell queries from documents.
    """
    if not model.prompts.differ_by_role:
        return {}
    return model.prompts.of_roles(SentenceTable(sentences.path).known_roles(), model.label)


def _request(params: Params, sentences: Artifact, model: NamedModel, prompts: Mapping[str, str]) -> Request:
    # Later stages load the teacher again by its place, wherever they are called from.
    inputs = {sentences.reference: sentences.digest, f"{MODEL_FILES}{model.place}": model.source.digest}
    typed = typed_name(params.teacher, model)
    if typed.startswith(f"{TEACHER_VECTORS}/"):
        # The printed command makes the vectors again when that teacher, or these very vectors, have changed.
        typed = model.place
    resolved: dict[str, Any] = {"teacher": model.place, **({"prompts": prompts} if prompts else {})}
    return Request.of(params, params.name or sentences.name, inputs, resolved, teacher=typed)


def _teacher(params: Params, model: NamedModel, prompts: Mapping[str, str]) -> Encoder:
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
    if params.content_words and (encoder.text.prompt or any(prompts.values())):
        raise InputError(
            f"{label} puts a prompt before a text: content words cannot be encoded alone",
            "omit `content_words`",
        )
    if prompts:
        encoder.text = replace(encoder.text, prompt="")  # the texts have it already
    if params.normalize is not None:
        encoder.normalize = params.normalize
    if params.content_words:
        encoder.normalize = True
    depth = encoder.depth
    if params.layers and params.layers[-1] > depth:
        raise InputError(
            f"{label} has {counted(depth, 'layer')}, not {params.layers[-1]}", f"choose `layers` up to {depth}"
        )
    return encoder


class _Embedding:
    """One run: the teacher, which is loaded when it is needed, and the table."""

    def __init__(
        self,
        params: Params,
        model: NamedModel,
        sentences: Artifact,
        prompts: Mapping[str, str],
        reporter: Reporter,
        pooling: str,
    ) -> None:
        self._params, self._model, self._sentences, self._reporter = params, model, sentences, reporter
        self._pooling = pooling  # as given, also if the teacher is named by vectors that it made
        self._prompts = prompts
        if prompts:
            own = {"": model.prompts.default, **{role: model.prompts.of_role(role) for role in ROLES}}
            self._table: SentenceTable = PromptedTable(sentences.path, own)
        else:
            self._table = SentenceTable(sentences.path)

    @cached_property
    def _encoder(self) -> Encoder:
        encoder = _teacher(self._params, self._model, self._prompts)
        source, asked = self._model.source, self._pooling
        if guess := told_guess(source, self._model.label, self._params.pooling):
            self._reporter.warn(guess)
        if padding := told_padding(encoder, self._model.label):
            self._reporter.warn(padding)
        if asked != Params.pooling and has_modules(source) and encoder.pooling != (asked.removesuffix("-mlp"),):
            own = ", ".join(encoder.pooling)
            self._reporter.warn(f"{source.label} keeps its own pooling, {own}; `pooling` {asked} is ignored")
        self._tell_prompts()
        return encoder

    def _tell_prompts(self) -> None:
        label, prompts = self._model.label, self._model.prompts
        if not self._prompts:
            reason = f"{self._sentences.reference} does not tell queries from documents, as augment documents/NAME does"
            if unused := prompts.told_unused(label, reason if prompts.differ_by_role else ""):
                self._reporter.warn(unused)
            return
        for role, prompt in self._prompts.items():
            self._reporter.note(f"{label} encodes {OF_ROLE[role]} {told_prompt(prompt)}")
        for ignored in prompts.told_not_found(label):
            self._reporter.warn(ignored)

    @property
    def _longest(self) -> int:
        """Characters of a text that count as work; the teacher reads no more."""
        return CHARACTERS_PER_TOKEN * self._encoder.text.max_length

    def whole(self, build: Build, ranks: Ranks) -> Artifact | None:
        """All vectors; None on all ranks but the first."""
        engine = self._engine(build, ranks)
        counting = self._params.content_words and ranks.first
        left_out = ranks.tell(self._function_words() if counting else ([], []))
        spans, cut = spans_of(self._table), list[int]()
        if ranks.count > 1:
            missing = [span.file for span in spans if not build.has(span.name(VECTORS_PATTERN))]
            spans, cut = divided(self._table, ranks.tell(missing), ranks.share)
        by_rank = ranks.collect(self._embed(spans, engine, left_out[0], build))
        for file in cut[ranks.number :: ranks.count]:
            join_file(file, self._table.file_rows[file], build, layers=bool(self._params.layers))
        ranks.meet()
        if not ranks.first:
            return None
        encoded, seconds = sum(encoded for encoded, _ in by_rank), max(seconds for _, seconds in by_rank)
        return build.finish({**self._described(left_out[1]), **_computed(engine, encoded, seconds)})

    def plan(self, build: Build) -> dict[str, Any]:
        """How the vectors are divided into shards and computed."""
        compute = make_plan(
            self._encoder, pick_device(self._params.device), self._params.dtype, self._params.batch_tokens
        )
        with self._reporter.track("planning", total=len(self._table)) as task:
            measured = measured_windows(self._table, self._longest, task)
        left_out = self._function_words() if self._params.content_words else ([], [])
        return {
            "windows": measured,
            "compute": compute.to_json(),
            "left_out": left_out[0],
            "described": self._described(left_out[1]),
        }

    def shard(self, part: Part) -> Artifact:
        """The vectors of one shard."""
        plan = part.plan.facts
        engine = self._engine_of(ComputePlan.from_json(plan["compute"]))
        spans = spans_of_shard(plan["windows"], part.shard)
        encoded, seconds = self._embed(spans, engine, plan["left_out"], part.build)
        rows = sum(span.rows for span in spans)
        return part.finish({**plan["described"], **_computed(engine, encoded, seconds), "rows": rows})

    def _described(self, left_out: list[str]) -> dict[str, Any]:
        """The facts that do not depend on the machine."""
        params, encoder = self._params, self._encoder
        return {
            "rows": len(self._table),
            "dimension": encoder.dimension,
            "layers": list(params.layers),
            "layer_width": encoder.pooled_dimension if params.layers else None,
            "teacher": self._model.source.label,
            "sentences_digest": self._sentences.digest,
            **({"prompts": dict(self._prompts)} if self._prompts else {}),
            # The second pass leaves out these words, and punctuation.
            **({"content_words": params.content_words, "left_out": left_out} if params.content_words else {}),
        }

    def _engine(self, build: Build, ranks: Ranks) -> EncodeEngine:
        """The engine of this build. The first run writes its plan to a file, and runs that resume it use this plan."""
        if ranks.first and not build.has(PLAN):
            params = self._params
            plan = make_plan(self._encoder, pick_device(params.device), params.dtype, params.batch_tokens)
            with build.write(PLAN) as path:
                path.write_text(plan.to_json(), encoding="utf-8")
        ranks.meet()
        return self._engine_of(ComputePlan.from_json((build.path / PLAN).read_text(encoding="utf-8")))

    def _engine_of(self, plan: ComputePlan) -> EncodeEngine:
        if self._params.batch_tokens:  # asked for again, perhaps because the memory did not suffice
            plan = replace(plan, batch_tokens=self._params.batch_tokens)
        engine = EncodeEngine(self._encoder, device=self._params.device, plan=plan, layers=self._params.layers)
        label = self._model.source.label
        self._reporter.note(f"{label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})")
        return engine

    def _function_words(self) -> tuple[list[int], list[str]]:
        """Ids of the tokens that the second pass leaves out, and those of them that are words, not punctuation."""
        with self._reporter.track("counting tokens", total=len(self._table)) as task:
            counts = token_occurrences(self._encoder, self._table.stream(), task)
        tokenizer = self._encoder.tokenizer
        frequent, marks = function_tokens(tokenizer, counts, FREQUENT)
        words = tokenizer.convert_ids_to_tokens(frequent)
        self._reporter.note(f"the second pass leaves out punctuation and these words: {' '.join(words) or 'none'}")
        return sorted({*map(int, frequent), *map(int, marks)}), words

    def _embed(self, spans: list[Span], engine: EncodeEngine, left_out: list[int], build: Build) -> tuple[int, float]:
        """Write the files that are missing; returns how many sentences that were and the seconds it took."""
        reader: EncodeEngine | SecondReading = engine
        if self._params.content_words:
            tokenize = ContentWords(self._encoder, left_out)
            content = EncodeEngine(self._encoder, device=self._params.device, plan=engine.plan, tokenize=tokenize)
            reader = SecondReading(engine, content, self._params.content_words)
        encoded, seconds = 0, 0.0
        with self._reporter.track("encoding", total=sum(span.rows for span in spans)) as task:
            task.set_work(work_of(self._table, spans, self._longest))
            for span in spans:
                if build.has(span.name(VECTORS_PATTERN)):
                    task.advance(span.rows)
                    continue
                started = time.perf_counter()
                encoded += self._embed_span(span, reader, self._encoder.dimension, build, task)
                seconds += time.perf_counter() - started
        return encoded, seconds

    def _embed_span(
        self, span: Span, reader: EncodeEngine | SecondReading, dimension: int, build: Build, task: Task
    ) -> int:
        """Write the vectors of a span, window by window: an interrupted run resumes after the last one.

        Args:
            dimension: width of a vector; a row of the reader may also have states of layers.

        Returns:
            How many sentences were encoded.
        """
        windows = parts_of(self._table, span)
        parts = windows if len(windows) > 1 else [span]
        missing = [part for part in parts if not build.has(part.name(VECTORS_PATTERN))]
        left = sum(part.rows for part in missing)
        task.advance(span.rows - left)
        texts = self._table.texts(span.file)
        # Nothing but the span's own sentences goes in, so that its bytes do not depend on where a run began.
        read = reader.stream([texts[part.start : part.stop] for part in missing], task)
        for part, vectors in zip(missing, read, strict=True):
            self._write(part, vectors, dimension, build)
        if parts is windows:
            join_parts(span, parts, build, layers=bool(self._params.layers))
        return left

    def _write(self, span: Span, vectors: npt.NDArray[np.float32], dimension: int, build: Build) -> None:
        """Write the vectors of one window, of this dimension, and the states of layers beside them, if there are any.

        Args:
            vectors: [n, D]
        """
        rows, row = vectors.shape
        # The vectors' file is finished last: where it is, the layers' file is too.
        with _file(build, span.name(VECTORS_PATTERN), rows, dimension, self._params.store) as append:
            append(vectors[:, :dimension])
            if row > dimension:
                layers = span.name(LAYERS_PATTERN)
                with _file(build, layers, rows, row - dimension, self._params.store) as append_layers:
                    append_layers(vectors[:, dimension:])


def _computed(engine: EncodeEngine, encoded: int, seconds: float) -> dict[str, Any]:
    return {
        "compute_dtype": engine.compute_dtype,
        "compute_dtype_reason": engine.dtype_reason,
        "device": engine.device.type,
        # of the run that finished it: what it encoded itself, without loading
        "sentences_per_second": round(encoded / seconds, 1) if encoded else None,
    }


@contextmanager
def _file(
    build: Build, name: str, rows: int, dimension: int, store: str
) -> Iterator[Callable[[npt.NDArray[np.float32]], None]]:
    with build.write(name) as path, writing_vectors(path, rows, dimension, store) as append:
        yield append
