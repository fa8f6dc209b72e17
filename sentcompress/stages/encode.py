"""Encode texts into one `.npy` or Parquet file of vectors, or into a folder of numbered files with ids."""

from __future__ import annotations

import sys
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
from sentcompress.corpora.byte_streams import ByteSource, as_source, spooled_source
from sentcompress.corpora.document_files import find_document_files
from sentcompress.corpora.identified_texts import IdentifiedTexts, identified_texts, refuse_passages, texts_of_folder
from sentcompress.corpora.readers import ReadOptions
from sentcompress.encoding import text_vectors
from sentcompress.encoding.compute_plan import ComputePlan
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.npy_files import VECTORS_PATTERN
from sentcompress.encoding.sharded_folder import QUANTIZER as PLANNED_QUANTIZER
from sentcompress.encoding.storage import Storage
from sentcompress.encoding.text_vectors import TextVectors, in_files
from sentcompress.encoding.token_counts import count_tokens, told_truncation
from sentcompress.encoding.vector_folder import finished_folder, write_files, writing_folder
from sentcompress.errors import InputError, UsageError
from sentcompress.exporting.graph_embedder import TORCH, Graph, GraphEmbedder, find_graph
from sentcompress.json_documents import read_json
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.passages.cutting import passages_of
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
        shard, finished: with `shard`, that of this run, and how many of them are finished.
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
    graph = None if params.runtime == TORCH else find_graph(model, params.runtime)
    quantizer = None
    if params.store not in PLAIN_STORES:
        quantizer = find_quantizer(work, model, AUTO if params.store == QUANTIZER else params.store)
    with _telling_what_is_kept(params), _opened(params, work, reporter) as texts:
        encoder = model.load()
        in_collection = Path(params.lines).is_dir() and not Path(texts.name).is_dir()  # the name is of its corpus
        if not (params.passages or in_collection):
            count = partial(count_tokens, encoder.tokenizer, encoder.text)
            if cut := told_truncation(count, (text for _, text in texts.read())):
                reporter.warn(f"{cut} (`passages` encodes all of it, in passages)")
        encoding = _Encoding(params, model, quantizer, texts, encoder, graph, reporter)
        if shard := find_shard(params.shard):
            return encoding.shard(shard)
        encoding.open(_earlier_plan(params))
        if params.to_folder:
            return encoding.into_folder()
        return encoding.into_file()


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


@contextmanager
def _opened(params: Params, work: WorkDirectory, reporter: Reporter) -> Iterator[IdentifiedTexts]:
    """The texts, which can be read twice: to count them, and to encode them."""
    if params.lines == STDIN:
        if sys.stdin.isatty():
            reporter.note("reading lines from the terminal; press Ctrl-D to finish")
        with spooled_source(sys.stdin.buffer, "standard input") as source:
            yield _of_source(source, params)
    elif Path(params.lines).is_dir():
        yield _of_folder(params, work, reporter)
    else:
        yield _of_source(as_source(params.lines), params)


def _of_source(source: ByteSource, params: Params) -> IdentifiedTexts:
    return identified_texts(source, _options(params), passages_of if params.passages else None, params.skip_bad)


def _of_folder(params: Params, work: WorkDirectory, reporter: Reporter) -> IdentifiedTexts:
    folder = Path(params.lines)
    if params.format is not None:
        raise InputError(f"{folder} is a folder, and `format` is that of a file", "leave out `format`")
    found = find_document_files(folder, work.path)
    if params.passages:
        refuse_passages(folder, found)
    if unread := found.unread(folder):
        reporter.note(unread)
    return texts_of_folder(folder, found, _options(params), passages_of if params.passages else None, params.skip_bad)


def _options(params: Params) -> ReadOptions:
    return ReadOptions(params.format, params.column, id_column=params.id_column)


class _Encoding:
    """One run: texts, model and storage."""

    _engine: EncodeEngine | GraphEmbedder
    _storage: Storage
    _vectors: TextVectors

    def __init__(
        self,
        params: Params,
        model: NamedModel,
        quantizer: FoundQuantizer | None,
        texts: IdentifiedTexts,
        encoder: Encoder,
        graph: Graph | None,
        reporter: Reporter,
    ) -> None:
        self._params, self._model, self._found = params, model, quantizer
        self._texts, self._encoder, self._graph, self._reporter = texts, encoder, graph, reporter

    @cached_property
    def _digest(self) -> str:
        return self._texts.digest()

    def open(self, plan: ComputePlan | None) -> None:
        """Load the model, to compute by an earlier plan if there is one."""
        params, own = self._params, self._found.quantizer if self._found else None
        if self._graph is not None:
            self._engine = self._graph.load()
        else:
            self._engine = EncodeEngine(
                self._encoder,
                device=params.device,
                dtype=params.dtype,
                batch_tokens=params.batch_tokens,
                plan=plan,
            )
        engine = self._engine
        self._reporter.note(
            f"{self._model.label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})"
        )
        self._storage = Storage(own.format if own else params.store, engine.dimension, own)
        self._vectors = TextVectors(self._texts, engine, self._storage)

    def into_file(self) -> Result:
        """Write one file."""
        rows = self._count()
        started = time.perf_counter()
        with _alone(self._params.output), written(self._params.output) as unfinished, self._track(rows) as task:
            if self._params.output.suffix == ".parquet":
                self._vectors.write_parquet(unfinished, self._asked(), task)
            else:
                self._vectors.write_npy(unfinished, rows, task)
        return self._result(rows, rows, time.perf_counter() - started)

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
                return self._result(int(folder.finished["rows"]), 0, 0.0)
            started = time.perf_counter()
            with self._track(self._count()) as task:
                counts, encoded = self._vectors.write_files(task, has=folder.has, write=folder.write)
            folder.finish(counts)
        return self._result(sum(counts), encoded, time.perf_counter() - started)

    def shard(self, shard: Shard) -> Result:
        """Write the files of one shard that are missing."""
        shards = Shards.of_folder(self._params.output)
        with ExitStack() as stack:
            with shards.lock(self._reporter):
                if finished := finished_folder(self._params.output, self._asked_of_all()):
                    self._reporter.note(f"{COMMAND}: {self._params.output} is up to date")
                    self.open(_earlier_plan(self._params))
                    return self._result(int(finished["rows"]), 0, 0.0)
                part = stack.enter_context(
                    shards.part(self._request(shards), shard, self._plan_files, reporter=self._reporter)
                )
            if not hasattr(self, "_engine"):  # this run did not make the plan
                self.open(None if self._graph else ComputePlan(**part.plan.facts["asked"]["plan"]))
            result = self._result(*self._write_part(part))
        return replace(result, shard=str(shard), finished=self._finished(shards))

    def _finished(self, shards: Shards) -> str:
        progress = shards.progress()
        if progress is None:
            return "merged"
        if progress.done == progress.count:
            self._reporter.note(
                f"all shards are finished; run: sentcompress merge {shell_word(str(self._params.output))}"
            )
        return f"{progress.done} of {progress.count} shards"

    def _plan_files(self, build: Build) -> dict[str, Any]:
        """How the texts are divided into files and encoded."""
        self.open(None)
        with self._reporter.track("counting", unit="texts") as task:
            files = []
            for rows in in_files(self._texts):
                files.append(len(rows))
                task.advance(len(rows))
        self._texts.tell(self._reporter)
        if self._found:
            with build.write(PLANNED_QUANTIZER) as path:
                self._found.quantizer.save(path)
        return {"asked": self._asked(), "files": files}

    def _write_part(self, part: Part) -> tuple[int, int, float]:
        files = part.plan.facts["files"]
        numbers = part.shard.of(len(files))
        rows = sum(files[numbers.start : numbers.stop])
        if part.build.fresh:
            return rows, 0, 0.0
        started = time.perf_counter()
        with self._track(rows) as task:
            _, encoded = self._vectors.write_files(
                task,
                has=lambda number: part.build.has(VECTORS_PATTERN.format(number)),
                write=partial(write_files, part.build.write),
                only=numbers,
            )
        part.finish({"rows": rows, "numbers": [numbers.start, numbers.stop]})
        return rows, encoded, time.perf_counter() - started

    def _request(self, shards: Shards) -> Request:
        params, asked = self._params, self._asked_of_all()
        place = f"stdin:{STDIN}" if params.lines == STDIN else f"file:{Path(params.lines).resolve()}"
        inputs = {place: asked.pop("input"), self._model.reference: asked.pop("model")["digest"]}
        line = words(params, model=typed_name(params.model, self._model))
        graph = {"graph": self._graph.digest} if self._graph else {}
        given = {name: value for name, value in {**asked, **graph}.items() if value not in (None, False)}
        return Request(shards.reference, params.output.name, COMMAND, given, inputs, tuple(line))

    def _result(self, rows: int, encoded: int, seconds: float) -> Result:
        quantizer = self._storage.quantizer
        return Result(
            rows=rows,
            dimension=quantizer.dimension if quantizer else self._engine.dimension,
            store=self._storage.store,
            bytes_per_vector=self._storage.bytes,
            model=self._model.label,
            seconds=round(seconds, 3),
            sentences_per_second=round(encoded / seconds, 1) if seconds else 0.0,
            runtime=self._params.runtime,
            dtype=self._engine.compute_dtype,
            dtype_reason=self._engine.dtype_reason,
            output=str(self._params.output),
        )

    def _asked(self) -> dict[str, Any]:
        """Everything that the bytes of the vectors depend on, and the name of the model."""
        return {**self._asked_of_all(), "dimension": self._storage.dimension, "plan": self._plan()}

    def _asked_of_all(self) -> dict[str, Any]:
        """The same, without the facts that are known only after the model is loaded."""
        own = self._found.quantizer if self._found else None
        return {
            "input": self._digest,
            "column": list(self._params.column) or None,
            "id_column": self._params.id_column,
            "format": self._params.format,
            "passages": self._params.passages,
            "skip_bad": self._params.skip_bad,
            "model": {"reference": self._model.reference, "digest": self._model.digest},
            "store": own.format if own else self._params.store,
            "quantizer": self._found.digest if self._found else None,
            "dtype": self._params.dtype,
            "file_rows": text_vectors.FILE_ROWS,
            "ids": "of the input" if self._texts.named else "row numbers",
        }

    def _plan(self) -> dict[str, Any]:
        """How the vectors are computed."""
        if isinstance(self._engine, GraphEmbedder):
            return {"runtime": self._params.runtime, "graph": self._engine.graph.digest}
        return asdict(self._engine.plan)

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
