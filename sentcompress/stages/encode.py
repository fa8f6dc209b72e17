"""Encode texts into one `.npy` or Parquet file of vectors, or into a folder of numbered files with ids."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sentcompress.commands.encode import Params
from sentcompress.commands.shared import PLAIN_STORES, STDIN
from sentcompress.commands.spelling import words
from sentcompress.corpora.identified_texts import IdentifiedTexts
from sentcompress.encoding import text_vectors
from sentcompress.encoding.compute_plan import ComputePlan
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.npy_files import VECTORS_PATTERN
from sentcompress.encoding.sharded_folder import QUANTIZER as PLANNED_QUANTIZER
from sentcompress.encoding.storage import Storage
from sentcompress.encoding.text_vectors import TextVectors, in_files
from sentcompress.encoding.token_counts import count_first, count_tokens
from sentcompress.encoding.vector_folder import finished_folder, write_files, writing_folder
from sentcompress.errors import InputError, UsageError
from sentcompress.exporting.graph_embedder import TORCH, Graph, GraphEmbedder, find_graph
from sentcompress.json_documents import read_json
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.cautions import told_guess, told_padding
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.passages.opened_texts import open_texts
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantization.codecs import AUTO, QUANTIZER
from sentcompress.quantization.lookup import FoundQuantizer, find_quantizer
from sentcompress.signals import StoppedError
from sentcompress.store import MANIFEST, Build, Request, WorkDirectory
from sentcompress.store.artifacts import KEPT, NOTHING_KEPT
from sentcompress.store.atomic import beside, check_place, written
from sentcompress.store.locking import locked
from sentcompress.store.lookup import is_sharded
from sentcompress.store.shard import Shard, find_shard
from sentcompress.store.shards import Part, Shards

COMMAND = Params.command


@dataclass(frozen=True)
class Result:
    """Facts about what was written; `seconds` excludes loading the model.

    Attributes:
        shard, finished: with `shard`, the shard of this run, and the number of finished shards.
    """

    rows: int
    dimension: int
    store: str
    bytes_per_vector: int
    model: str
    seconds: float
    sentences_per_second: float
    runtime: str
    dtype: str
    dtype_reason: str
    output: str
    shard: str | None = None
    finished: str | None = None


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Result:
    """Write the vectors of all texts, in order; a file appears only when it is complete.

    A folder is written file by file: the same command resumes an interrupted one, with the same bytes. With `shard`,
    only one shard of it is written, for `merge`.

    Raises:
        InputError: if the texts cannot be read, the model cannot be loaded or lacks the quantizer, or the output is a
            folder with other files.
        OSError: if no file can be created at the output.
        UsageError: if the output folder holds vectors of other texts, another model or other options.
        BusyError: if another process is writing the output.
    """
    params.check()
    pick_device(params.device)
    if params.output.is_dir() and not params.to_folder:
        raise InputError(f"{params.output} is a folder", "name a file, such as vectors.npy, or a folder without suffix")
    if params.output.is_file() and params.to_folder:
        raise InputError(f"{params.output} is a file", "name a folder, or a file with the suffix .npy or .parquet")
    check_place(params.output)
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    prompt = None
    if params.prompt_name is not None:
        prompt = model.prompts.override(model.prompts.of_name(params.prompt_name, model.label), model.label)
    graph = None if params.runtime == TORCH else find_graph(work, model, params.runtime)
    quantizer = None
    if params.store not in PLAIN_STORES:
        quantizer = find_quantizer(work, model, AUTO if params.store == QUANTIZER else params.store)
    with _telling_what_is_kept(params), open_texts(params, work, reporter) as texts:
        encoder = model.load()
        if prompt is not None:
            encoder.text = replace(encoder.text, prompt=prompt)
        unused = model.prompts.told_unused(model.label, "`prompt_name` chooses one")
        if unused and params.prompt_name is None:
            reporter.warn(unused)
        in_collection = Path(params.lines).is_dir() and not Path(texts.name).is_dir()  # the name is of its corpus
        first = count_first(partial(count_tokens, encoder.tokenizer, encoder.text), (text for _, text in texts.read()))
        if first and (unknown := first.told_unknown()):
            reporter.warn(unknown)
        if first and not (params.passages or in_collection) and (cut := first.told_truncation()):
            reporter.warn(f"{cut} (`passages` encodes all of it, in passages)")
        if guess := told_guess(model.source, model.label, model.pooling):
            reporter.warn(guess)
        if graph is None and (padding := told_padding(encoder, model.label)):
            reporter.warn(padding)
        encoding = _Encoding(params, model, prompt, quantizer, texts, encoder, graph, reporter)
        if shard := find_shard(params.shard):
            return encoding.shard(shard)
        opened = encoding.open(_earlier_plan(params))
        return opened.into_folder() if params.to_folder else opened.into_file()


@contextmanager
def _telling_what_is_kept(params: Params) -> Iterator[None]:
    """A `with` block whose interruption says whether files of a folder are kept; of a single file, nothing is."""
    try:
        yield
    except StoppedError as stop:
        if not params.shard:  # of shards, others may be finished
            begun = params.to_folder and (params.output / VECTORS_PATTERN.format(0)).is_file()
            stop.hint = stop.hint or (KEPT if begun else NOTHING_KEPT)
        raise


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """A `with` block in which no other process writes the file `output`.

    Raises:
        BusyError: if another process is writing it.
    """
    path = beside(output, "lock")
    with locked(path, str(output)) as lock:
        lock.check()  # the process that held it before may have removed this file, and another one may hold a new one
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _earlier_plan(params: Params) -> ComputePlan | None:
    """The plan of the run that is resumed: a new one could give other last digits."""
    path = params.output / MANIFEST
    if not params.to_folder or not path.is_file():
        return None
    said = read_json(path)
    plan = said.get("plan") if isinstance(said, dict) else None
    return ComputePlan(**plan) if isinstance(plan, dict) and set(plan) == set(ComputePlan.__annotations__) else None


@dataclass(frozen=True)
class _Encoding:
    """The texts to encode, and how they are encoded.

    Attributes:
        prompt: what precedes every text in place of the default prompt; None: the default prompt.
        found_quantizer: the quantizer of the stored vectors; None: they are stored in a plain format.
        graph: the graph that computes them; None: torch does.
    """

    params: Params
    model: NamedModel
    prompt: str | None
    found_quantizer: FoundQuantizer | None
    texts: IdentifiedTexts
    encoder: Encoder
    graph: Graph | None
    reporter: Reporter

    def open(self, plan: ComputePlan | None) -> _OpenEncoding:
        """Load the model, to compute by an earlier plan if there is one; other batches can be asked for."""
        params, own = self.params, self.found_quantizer.quantizer if self.found_quantizer else None
        engine: EncodeEngine | GraphEmbedder
        if self.graph is not None:
            engine = self.graph.load(self.prompt)
        else:
            tokens = params.batch_tokens
            engine = EncodeEngine(
                self.encoder,
                device=params.device,
                dtype=params.dtype,
                batch_tokens=tokens,
                # Asked for again, perhaps because the memory did not suffice.
                plan=replace(plan, batch_tokens=tokens) if plan and tokens else plan,
            )
        self.reporter.note(
            f"{self.model.label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})"
        )
        storage = Storage(own.format if own else params.store, engine.dimension, own)
        return _OpenEncoding(self, engine, storage, plan)

    @cached_property
    def asked(self) -> dict[str, Any]:
        """All that determines the vectors' bytes and is known before the model is loaded, and the model's name."""
        params, found = self.params, self.found_quantizer
        return {
            "input": self.texts.digest(),
            "column": list(params.column) or None,
            "id_column": params.id_column,
            "format": params.format,
            "passages": params.passages,
            "texts": params.texts,
            "skip_bad": params.skip_bad,
            "model": {"reference": self.model.reference, "digest": self.model.digest},
            "prompt": self.prompt,
            "store": found.quantizer.format if found else params.store,
            "quantizer": found.digest if found else None,
            "dtype": params.dtype,
            "file_rows": text_vectors.FILE_ROWS,
            "ids": "of the input" if self.texts.named else "row numbers",
        }

    def shard(self, shard: Shard) -> Result:
        """Write the files of one shard that are missing."""
        output, shards = self.params.output, Shards.of_folder(self.params.output)
        opened: _OpenEncoding | None = None

        def plan_files(build: Build) -> dict[str, Any]:
            nonlocal opened
            opened = self.open(None)
            return opened.plan_files(build)

        with ExitStack() as stack:
            with shards.lock(self.reporter):
                if finished := finished_folder(output, self.asked):
                    self.reporter.note(f"{COMMAND}: {output} is up to date")
                    return self.open(_earlier_plan(self.params)).result(int(finished["rows"]), 0, 0.0)
                part = stack.enter_context(
                    shards.part(self._request(shards), shard, plan_files, reporter=self.reporter)
                )
            if opened is None:  # this run did not make the plan
                opened = self.open(None if self.graph else ComputePlan(**part.plan.facts["asked"]["plan"]))
            result = opened.into_part(part)
        return replace(result, shard=str(shard), finished=self._finished(shards))

    def _request(self, shards: Shards) -> Request:
        params, asked = self.params, dict(self.asked)
        place = f"stdin:{STDIN}" if params.lines == STDIN else f"file:{Path(params.lines).resolve()}"
        inputs = {place: asked.pop("input"), self.model.reference: asked.pop("model")["digest"]}
        line = words(params, model=typed_name(params.model, self.model))
        graph = {"graph": self.graph.digest} if self.graph else {}
        given = {name: value for name, value in {**asked, **graph}.items() if value not in (None, False)}
        return Request(shards.reference, params.output.name, COMMAND, given, inputs, tuple(line))

    def _finished(self, shards: Shards) -> str:
        progress = shards.progress()
        if progress is None:
            return "merged"
        if progress.done == progress.count:
            self.reporter.note(
                f"all shards are finished; run: sentcompress merge {shell_word(str(self.params.output))}"
            )
        return f"{progress.done} of {progress.count} shards"


class _OpenEncoding:
    """An encoding whose model is loaded, so that its vectors can be written; `plan` is that of an earlier run."""

    def __init__(
        self,
        encoding: _Encoding,
        engine: EncodeEngine | GraphEmbedder,
        storage: Storage,
        earlier: ComputePlan | None,
    ) -> None:
        self._encoding, self._engine, self._storage, self._earlier = encoding, engine, storage, earlier
        self._params, self._texts, self._reporter = encoding.params, encoding.texts, encoding.reporter
        self._vectors = TextVectors(encoding.texts, engine, storage, self._params.texts)

    def into_file(self) -> Result:
        """Write one file."""
        rows = self._count()
        started = time.perf_counter()
        with _alone(self._params.output), written(self._params.output) as unfinished, self._track(rows) as task:
            if self._params.output.suffix == ".parquet":
                self._vectors.write_parquet(unfinished, self._asked(), task)
            else:
                self._vectors.write_npy(unfinished, rows, task)
        return self.result(rows, rows, time.perf_counter() - started)

    def into_folder(self) -> Result:
        """Write the files that are missing."""
        if is_sharded(self._params.output.resolve()):
            raise UsageError(
                f"{COMMAND}: {self._params.output} is being made in shards",
                f"run: sentcompress merge {shell_word(str(self._params.output))}; or name another folder",
            )
        with writing_folder(self._params.output, self._asked(), self._storage.quantizer) as folder:
            if folder.finished:
                self._reporter.note(f"{COMMAND}: {folder.path} is up to date")
                return self.result(int(folder.finished["rows"]), 0, 0.0)
            started = time.perf_counter()
            with self._track(self._count()) as task:
                counts, encoded = self._vectors.write_files(task, has=folder.has, write=folder.write)
            folder.finish(counts)
        return self.result(sum(counts), encoded, time.perf_counter() - started)

    def plan_files(self, build: Build) -> dict[str, Any]:
        """How the texts are divided into files and encoded, for all shards; also writes the quantizer, if any."""
        with self._reporter.track("counting", unit="texts") as task:
            files = []
            for rows in in_files(self._texts):
                files.append(len(rows))
                task.advance(len(rows))
        self._texts.tell(self._reporter)
        if self._storage.quantizer:
            with build.write(PLANNED_QUANTIZER) as path:
                self._storage.quantizer.save(path)
        return {"asked": self._asked(), "files": files}

    def into_part(self, part: Part) -> Result:
        """Write the files of a shard that are missing."""
        files = part.plan.facts["files"]
        numbers = part.shard.of(len(files))
        rows = sum(files[numbers.start : numbers.stop])
        if part.build.fresh:
            return self.result(rows, 0, 0.0)
        started = time.perf_counter()
        with self._track(rows) as task:
            _, encoded = self._vectors.write_files(
                task,
                has=lambda number: part.build.has(VECTORS_PATTERN.format(number)),
                write=partial(write_files, part.build.write),
                only=numbers,
            )
        part.finish({"rows": rows, "numbers": [numbers.start, numbers.stop]})
        return self.result(rows, encoded, time.perf_counter() - started)

    def result(self, rows: int, encoded: int, seconds: float) -> Result:
        """Facts about what was written.

        Args:
            encoded: rows that this run encoded; the others were there.
            seconds: how long that took.
        """
        quantizer = self._storage.quantizer
        return Result(
            rows=rows,
            dimension=quantizer.dimension if quantizer else self._engine.dimension,
            store=self._storage.store,
            bytes_per_vector=self._storage.bytes,
            model=self._encoding.model.label,
            seconds=round(seconds, 3),
            sentences_per_second=round(encoded / seconds, 1) if seconds else 0.0,
            runtime=self._params.runtime,
            dtype=self._engine.compute_dtype,
            dtype_reason=self._engine.dtype_reason,
            output=str(self._params.output),
        )

    def _asked(self) -> dict[str, Any]:
        """Everything that the bytes of the vectors depend on, and the name of the model."""
        return {**self._encoding.asked, "dimension": self._storage.dimension, "plan": self._plan()}

    def _plan(self) -> dict[str, Any]:
        """How the vectors are computed; of a run that is resumed, how it began."""
        if isinstance(self._engine, GraphEmbedder):
            return {"runtime": self._params.runtime, "graph": self._engine.graph.digest}
        return asdict(self._earlier or self._engine.plan)

    def _track(self, rows: int) -> Any:
        return self._reporter.track("encoding", total=rows)

    def _count(self) -> int:
        """The number of texts; also checks that all of them can be read."""
        rows = 0
        with self._reporter.track("counting", unit="texts") as task:
            for _ in self._texts.read():
                rows += 1
                task.advance()
        self._texts.tell(self._reporter, ids=self._params.output.suffix != ".npy")
        return rows
