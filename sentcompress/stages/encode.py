"""Encode texts into one `.npy` or Parquet file of vectors, or into a folder of shards with ids."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sentcompress.commands.encode import Params
from sentcompress.commands.split_documents import PASSAGE_WORDS
from sentcompress.corpora.byte_streams import STDIN, as_source, spooled_source
from sentcompress.corpora.document_files import find_document_files
from sentcompress.corpora.identified_texts import (
    IdentifiedText,
    IdentifiedTexts,
    identified_texts,
    texts_of_folder,
    whole_documents,
)
from sentcompress.corpora.text_files import batches
from sentcompress.documents import read_json, to_json
from sentcompress.encoding.compute_plan import ComputePlan
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.parquet_vectors import writing_parquet
from sentcompress.encoding.storage import PLAIN, Storage
from sentcompress.encoding.vector_folder import VectorFolder, writing_folder
from sentcompress.encoding.vector_shards import writing_vectors
from sentcompress.errors import InputError
from sentcompress.exporting.graph_embedder import TORCH, GraphEmbedder, find_graph
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.passages.identified import cutting
from sentcompress.progress import LOGGED, Reporter, Task
from sentcompress.quantization.lookup import AUTO, FoundQuantizer, find_quantizer
from sentcompress.store import MANIFEST, WorkDirectory
from sentcompress.store.atomic import written

COMMAND = Params.command
# Texts passed to the engine at a time, and those of a shard; fewer if they are long.
CHUNK, SHARD = 1000, 20_000
# Documents whose length is compared with the model's limit, and how much of each.
LOOKED_AT, CHARACTERS_PER_TOKEN = 1000, 40
# Stands for a quantizer of any format.
QUANTIZER = "quantizer"


@dataclass(frozen=True)
class Result:
    """Facts about what was written; `seconds` excludes loading the model."""

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


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Result:
    """Write the vectors of all texts, in order; a file appears only when it is complete.

    A folder is written shard by shard: the same command resumes an interrupted one, with the same bytes.

    Raises:
        InputError: if the texts cannot be read, the model cannot be loaded or lacks the quantizer, or the output is a
            folder with other files.
        UsageError: if the output folder holds vectors of other texts, another model or other options.
    """
    params.check()
    pick_device(params.device)
    if params.output.is_dir() and not params.to_folder:
        raise InputError(f"{params.output} is a folder", "name a file, such as vectors.npy, or a folder without suffix")
    if params.output.is_file() and params.to_folder:
        raise InputError(f"{params.output} is a file", "name a folder, or a file with the suffix .npy or .parquet")
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    graph = None if params.runtime == TORCH else find_graph(model, params.runtime)
    quantizer = None
    if params.store not in PLAIN:
        quantizer = find_quantizer(work, model, AUTO if params.store == QUANTIZER else params.store)
    with _opened(params, reporter) as texts:
        encoder = model.load()
        if Path(texts.name).is_dir() and not params.passages:  # a collection's corpus is a file
            _tell_truncation(texts, encoder, reporter)
        engine = _engine(params, encoder) if graph is None else graph.load()
        reporter.note(f"{model.label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})")
        encoding = _Encoding(params, model, quantizer, texts, engine, reporter)
        if params.to_folder:
            rows, encoded, seconds = encoding.into_folder()
        else:
            rows, seconds = encoding.into_file()
            encoded = rows
    return Result(
        rows=rows,
        dimension=encoding.storage.quantizer.dimension if encoding.storage.quantizer else engine.dimension,
        store=encoding.storage.store,
        bytes_per_vector=encoding.storage.bytes,
        model=model.label,
        seconds=round(seconds, 3),
        sentences_per_second=round(encoded / seconds, 1) if seconds else 0.0,
        runtime=params.runtime,
        dtype=engine.compute_dtype,
        dtype_reason=engine.dtype_reason,
        output=str(params.output),
    )


def _engine(params: Params, encoder: Encoder) -> EncodeEngine:
    return EncodeEngine(
        encoder,
        device=params.device,
        dtype=params.dtype,
        batch_tokens=params.batch_tokens,
        plan=_earlier_plan(params),
    )


def _earlier_plan(params: Params) -> ComputePlan | None:
    """The plan of the run that is resumed: a new one could give other last digits."""
    path = params.output / MANIFEST
    if not params.to_folder or not path.is_file():
        return None
    said = read_json(path)
    plan = said.get("plan") if isinstance(said, dict) else None
    return ComputePlan(**plan) if isinstance(plan, dict) and set(plan) == set(ComputePlan.__annotations__) else None


@contextmanager
def _opened(params: Params, reporter: Reporter) -> Iterator[IdentifiedTexts]:
    """The texts, which can be read twice: to count them, and to encode them."""
    if params.lines == STDIN:
        if sys.stdin.isatty():
            reporter.note("reading lines from the terminal; press Ctrl-D to finish")
        with spooled_source(sys.stdin.buffer, "standard input") as source:
            yield identified_texts(source, params.column, params.format)
    elif Path(params.lines).is_dir():
        yield _of_folder(params, reporter)
    else:
        yield identified_texts(as_source(params.lines), params.column, params.format)


def _of_folder(params: Params, reporter: Reporter) -> IdentifiedTexts:
    folder = Path(params.lines)
    found = find_document_files(folder)
    if found.collection and params.passages:
        raise InputError(f"{folder} is a collection, whose documents are not cut", "leave out `passages`")
    if found.others:
        reporter.note(f"{folder}: files of other formats are not read ({found.skipped})")
    return texts_of_folder(folder, found, params.column, cutting(PASSAGE_WORDS) if params.passages else whole_documents)


def _tell_truncation(texts: IdentifiedTexts, encoder: Encoder, reporter: Reporter) -> None:
    """Warn if documents are longer than what the model reads of a text; only the first ones are looked at."""
    limit = encoder.text.max_length
    looked_at = [text[: CHARACTERS_PER_TOKEN * limit] for _, text in islice(texts.read(), LOOKED_AT)]
    longer = sum(len(ids) > limit for ids in encoder.tokenize(looked_at, limit + 1)) if looked_at else 0
    if longer:
        reporter.warn(
            f"{longer:,} of the first {len(looked_at):,} documents are longer than the {limit} tokens that the model "
            "reads; the rest of them is not in their vectors (`passages` encodes all of it, in passages)"
        )


class _Encoding:
    """One run: texts, model and storage."""

    def __init__(
        self,
        params: Params,
        model: NamedModel,
        quantizer: FoundQuantizer | None,
        texts: IdentifiedTexts,
        engine: EncodeEngine | GraphEmbedder,
        reporter: Reporter,
    ) -> None:
        self._params, self._model, self._found = params, model, quantizer
        self._texts, self._engine, self._reporter = texts, engine, reporter
        own = quantizer.quantizer if quantizer else None
        self.storage = Storage(own.format if own else params.store, engine.dimension, own)

    def into_file(self) -> tuple[int, float]:
        """Write one file; returns the rows and the seconds."""
        rows = self._count()
        started = time.perf_counter()
        with written(self._params.output) as unfinished, self._track(rows) as task:
            write = self._parquet if self._params.output.suffix == ".parquet" else self._npy
            write(unfinished, rows, task)
        return rows, time.perf_counter() - started

    def into_folder(self) -> tuple[int, int, float]:
        """Write the shards that are missing; returns all rows, those that were encoded, and the seconds."""
        asked = self._asked()
        with writing_folder(self._params.output, asked, self.storage.quantizer) as folder:
            if folder.finished:
                self._reporter.note(f"{COMMAND}: {folder.path} is up to date")
                return int(folder.finished["rows"]), 0, 0.0
            started, encoded, counts = time.perf_counter(), 0, []
            with self._track(self._count()) as task:
                for shard, rows in enumerate(batches(self._texts.read(), SHARD, _characters)):
                    counts.append(len(rows))
                    if folder.has(shard):
                        task.advance(len(rows))
                        continue
                    self._write_shard(folder, shard, rows, task)
                    encoded += len(rows)
            folder.finish(counts)
        return sum(counts), encoded, time.perf_counter() - started

    def _write_shard(self, folder: VectorFolder, shard: int, rows: list[IdentifiedText], task: Task) -> None:
        # Nothing but the shard's own texts goes in, so that its bytes do not depend on where a run began.
        parts = self._engine.stream([[text for _, text in rows]], task)
        folder.write(shard, [one for one, _ in rows], parts, self.storage)

    def _npy(self, path: Path, rows: int, task: Task) -> None:
        with writing_vectors(path, rows, self.storage.width, self.storage.dtype) as append:
            texts = (text for _, text in self._texts.read())
            for vectors in self._engine.stream(batches(texts, CHUNK, len), task):
                append(self.storage.encode(vectors))

    def _parquet(self, path: Path, rows: int, task: Task) -> None:
        with writing_parquet(path, self.storage, to_json(self._asked(), indent=None)) as append:
            for shard in batches(self._texts.read(), SHARD, _characters):
                ids = [one for one, _ in shard]
                for vectors in self._engine.stream([[text for _, text in shard]], task):
                    append(ids[: len(vectors)], vectors)
                    ids = ids[len(vectors) :]

    def _asked(self) -> dict[str, Any]:
        """Everything that the bytes of the vectors depend on, and the name of the model."""
        return {
            "input": self._texts.digest(),
            "column": self._params.column,
            "format": self._params.format,
            "passages": self._params.passages,
            "model": {"reference": self._model.reference, "digest": self._model.digest},
            "store": self.storage.store,
            "dimension": self.storage.dimension,
            "quantizer": self._found.digest if self._found else None,
            "dtype": self._params.dtype,
            "plan": self._plan(),
            "shard_rows": SHARD,
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
        return rows


def _characters(row: IdentifiedText) -> int:
    return len(row[1])
