"""Search a collection: build a FAISS index once as an artifact, and answer queries with one model or two."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sentcompress.commands.options import asked
from sentcompress.commands.search import Params
from sentcompress.commands.shared import STDIN, IndexOptions
from sentcompress.commands.spelling import words
from sentcompress.corpora.byte_streams import without_compression
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.documents_artifact import find_documents
from sentcompress.corpora.inputs import is_pipe
from sentcompress.corpora.markup import PAGES
from sentcompress.corpora.readers import FILE_EXTENSIONS
from sentcompress.corpora.text_files import BadRecords, batches
from sentcompress.corpora.text_store import TextStore, write_texts
from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource, find_embedder
from sentcompress.encoding.npy_files import writing_vectors
from sentcompress.encoding.sides import Sides, in_roles
from sentcompress.encoding.token_counts import count_first
from sentcompress.errors import BusyError, InputError, MissingArtifactError
from sentcompress.evaluation.index import BuiltIndex, build_index, read_index, write_index
from sentcompress.evaluation.index_plan import LONGEST_VECTOR, IndexPlan, memory_of, plan_index
from sentcompress.evaluation.metrics import INDEX_BYTES
from sentcompress.evaluation.searchable import searchable
from sentcompress.evaluation.vector_rows import in_file
from sentcompress.extras import check_installed
from sentcompress.models.catalog import typed_name
from sentcompress.models.memory import available_memory
from sentcompress.passages.querylog import read_log
from sentcompress.passages.search_collection import (
    Collection,
    CollectionOptions,
    collection_at,
    collection_of_documents,
)
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted, told_bytes
from sentcompress.store import SCAFFOLD, Artifact, Build, Request, WorkDirectory, name_part, read_request
from sentcompress.store.atomic import beside

COMMAND = Params.command
KIND = "indexes"
TEXTS, INDEX, VECTORS = "texts", "index.faiss", f"{SCAFFOLD}/vectors.npy"
# Kinds of index for a collection that is too large for another kind.
SMALLER = ("sq8", "ivfpq")
# Texts encoded at a time.
CHUNK = 1000
# Hexadecimal digits that tell collections, or models, of the same name apart.
DIGITS = 8


@dataclass(frozen=True)
class Answer:
    """The results of one query, best first.

    Attributes:
        results: of each: `rank` from 1, `id`, `score` (cosine), `text`, and, with a second model, `other_rank`: its
            rank in the results of the other model, None if it is not among them.
        compared: the results of the second model in the same form; empty without one.
    """

    query: str
    results: list[dict[str, Any]]
    compared: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """The answers to all queries, and what was searched: labels of the models, documents, reference of the index."""

    collection: str
    documents: int
    model: str
    compare: str | None
    index: str
    answers: list[Answer]


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Result:
    """Answer the queries; an index is built if there is none for this collection and model.

    Raises:
        MissingArtifactError: if no collection or no model was given and the work directory has none.
        InputError: if the collection or the queries cannot be read, or the model's vectors cannot be searched.
    """
    params.check()
    check_installed("faiss")
    queries = _queries(params, reporter)
    for query in params.query:
        if os.path.exists(query):  # unlike Path.exists, false for a text that is too long for a path
            reporter.warn(f"{query} is searched as a text; name documents with `collection`")
    collection = _collection(params, work)
    names = [params.model, *([params.compare] if params.compare is not None else [])]
    sources = [
        find_embedder(
            work, name, revision=None if place else params.revision, trust_remote_code=params.trust_remote_code
        )
        for place, name in enumerate(names)
    ]
    sides = [in_roles(source, source) for source in sources]
    if params.keep_index:
        names[0], sides[0] = names[1], in_roles(sources[1], sources[0])
    searches = [_Search(params, work, collection, sides[0], names[0], reporter)]
    if len(sides) > 1:
        again = replace(params, force=params.force and not params.keep_index)  # a shared index is built once
        searches.append(_Search(again, work, collection, sides[1], names[1], reporter))
    found = [search.results(queries) for search in searches]
    if len(found) > 1:
        for one, other in zip(*found, strict=True):
            _add_ranks(one, other)
            _add_ranks(other, one)
    compared = found[1] if len(found) > 1 else [[] for _ in queries]
    return Result(
        collection=collection.name,
        documents=searches[0].documents,
        model=sides[0].label,
        compare=sources[1].label if len(sources) > 1 else None,
        index=searches[0].artifact.reference,
        answers=[Answer(*one) for one in zip(queries, found[0], compared, strict=True)],
    )


def _queries(params: Params, reporter: Reporter) -> list[str]:
    """The queries, each once: in a log, many are repeated."""
    found = [query.strip() for query in params.query]
    if params.queries is not None:
        logged = list(read_log([params.queries], BadRecords()))
        if not logged:
            raise InputError(f"{params.queries} holds no queries", "give a file with one query per line")
        found += logged
    distinct = list(dict.fromkeys(found))
    if repeated := len(found) - len(distinct):
        reporter.note(f"{COMMAND}: left out {counted(repeated, 'repeated query', 'repeated queries')}")
    return distinct


def _collection(params: Params, work: WorkDirectory) -> Collection:
    """The named collection; by default that of the newest index, unless there are newer documents."""
    name = params.collection
    reading = CollectionOptions(params.column, params.passages, params.skip_bad, params.id_column)
    documents, index = (next(work.newest(kind), None) for kind in (DOCUMENTS, KIND))
    if name is None and index and not (documents and documents.finished > index.finished):
        name = str(index.facts["collection"])
        # What is given comes on top of how that index was read.
        given = {option: value for option, value in asdict(reading).items() if value}
        read = {**index.facts["reading"], **given}
        reading = CollectionOptions(**{**read, "column": tuple(read["column"] or ())})
    if name is None and not work.names(DOCUMENTS):
        raise MissingArtifactError(
            f"no index and no documents in {work.path}", "give a `collection`: a file or a folder"
        )
    if name == STDIN or (name and is_pipe(name)):
        what = "standard input" if name == STDIN else name
        raise InputError(f"`collection` {what} can be read only once, but is read several times", "name a file")
    named = find_documents(work, name) if name else None
    if name is None or named:
        return collection_of_documents(work, named.name if named else None, reading)
    return collection_at(Path(name), reading, work)


class _WarningsOnly(Reporter):
    """Passes on warnings only: a search does not report that its index is up to date."""

    def __init__(self, reporter: Reporter) -> None:
        self.warn = reporter.warn  # type: ignore[method-assign]


class _Search:
    """One model's search of a collection, with its index."""

    def __init__(
        self,
        params: Params,
        work: WorkDirectory,
        collection: Collection,
        sides: Sides,
        name: str | None,
        reporter: Reporter,
    ) -> None:
        self._params, self._sides, self._reporter = params, sides, reporter
        self._source, self._queries = sides.documents, sides.queries
        self.artifact = self._indexed(work, collection, typed_name(name, self._source))
        self._texts = TextStore(self.artifact.path / TEXTS)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self._texts)

    def results(self, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
        """The results of each query."""
        if not queries:
            return []
        self.artifact.require_contents()
        plan, top = self.artifact.facts["plan"], min(self._params.top, self.documents)
        built = BuiltIndex(IndexPlan(plan["kind"], plan["details"]), read_index(self.artifact.path / INDEX), 0, 0.0)
        vectors, _ = searchable(self._encoded(queries), "cosine", self._queries.label, LONGEST_VECTOR)
        scores, rows = built.search(vectors, top)
        return [
            [self._result(rank, float(score), int(row)) for rank, (score, row) in enumerate(pairs, 1) if row >= 0]
            for pairs in (list(zip(*one, strict=True)) for one in zip(scores, rows, strict=True))
        ]

    def _result(self, rank: int, score: float, row: int) -> dict[str, Any]:
        one, text = self._texts[row]
        return {"rank": rank, "id": one, "score": round(score, 6), "text": text}

    def _encoded(self, queries: Sequence[str]) -> Vectors:
        if self._sides.symmetric:
            return self._queries.prompted(self._bare).encode(queries)
        embedder, dimension = self._queries.prompted(self._open(self._queries)), self.artifact.facts["dimension"]
        if embedder.dimension != dimension:
            raise InputError(
                f"{self._source.label} has {dimension} dimensions and {self._queries.label} {embedder.dimension}: "
                "they cannot be compared",
                "`keep_index` needs a student with the dimensions of `compare`",
            )
        return embedder.encode(queries)

    @cached_property
    def _embedder(self) -> Embedder:
        """The model of the documents, with the prompt of documents."""
        return self._source.prompted(self._bare)

    @cached_property
    def _bare(self) -> Embedder:
        """The model of the documents, without a prompt."""
        return self._open(self._source)

    def _open(self, source: EmbedderSource) -> Embedder:
        return source.open_bare(device=self._params.device, dtype=self._params.dtype, reporter=self._reporter)

    def _name(self, work: WorkDirectory, collection: Collection) -> str:
        """The name of the index: COLLECTION-MODEL, with the options.

        If an index of that name is of another collection or model, a digest of the own one is appended. This also goes
        for an unfinished index, which another search may be building, or an interrupted one may resume.
        """
        own = {"collection": collection.name, "model": self._source.reference}
        reading, kind = collection.reading, self._params.index
        parts = ["passages"] if reading.passages else []
        parts += [part for column in reading.column for part in ("column", name_part(column))]
        parts += ["id", name_part(reading.id_column)] if reading.id_column else []
        stem = name_part(_without_extension(collection.name), 60) or "collection"
        marks: dict[str, list[str]] = {what: [] for what in own}
        while True:
            named = [*parts, self._source.slug, *marks["model"], *([kind] if kind != "flat" else [])]
            name = "-".join([stem, *marks["collection"], *named])
            there = work.find(KIND, name) if work.has(KIND, name) else None  # a damaged one is built again
            said = there.manifest if there else read_request(beside(work.path / KIND / name, "partial"))
            if not said:
                return name
            same = {
                "collection": collection.reference in said["inputs"],
                "model": self._source.reference == said["parameters"]["model"],
            }
            others = [what for what in own if not same[what] and not marks[what]]
            if not others:
                return name
            marks |= {what: [hashlib.sha256(own[what].encode()).hexdigest()[:DIGITS]] for what in others}

    def _indexed(self, work: WorkDirectory, collection: Collection, model: str | None) -> Artifact:
        """The index; under another name if another search takes the first one for another collection or model."""
        while True:
            name = self._name(work, collection)
            may_take = partial(self._has_name, name, work, collection)
            request, quiet = self._request(name, collection, model), _WarningsOnly(self._reporter)
            try:
                with work.build(request, force=self._params.force, may_take=may_take, reporter=quiet) as build:
                    return build.fresh or self._built(collection, build)
            except BusyError:  # it is being built, perhaps of another collection or model
                if may_take():
                    raise

    def _has_name(self, name: str, work: WorkDirectory, collection: Collection) -> bool:
        """Whether this is still the name of the index."""
        return self._name(work, collection) == name

    def _request(self, name: str, collection: Collection, model: str | None) -> Request:
        params, reading = self._params, collection.reading
        columns = list(reading.column) or None
        return Request(
            KIND,
            name,
            COMMAND,
            asked(params, **self._prompt, model=self._source.reference, **asdict(reading) | {"column": columns}),
            {collection.reference: collection.digest, **self._source.inputs},
            tuple(words(replace(params, compare=None), collection=collection.name, model=model, **asdict(reading))),
        )

    @property
    def _prompt(self) -> dict[str, str]:
        """What precedes the documents, as part of the request, where that is not the default prompt of the model."""
        return {} if self._source.prompt is None else {"prompt": self._source.prompt}

    def _built(self, collection: Collection, build: Build) -> Artifact:
        self._sides.tell_prompts(self._reporter)
        if not build.has(TEXTS):  # otherwise from an interrupted run, as are VECTORS
            self._read(collection, build)
        texts = TextStore(build.path / TEXTS)
        count = len(texts)
        plan = plan_index(self._params.index, self._params, count, self._embedder.dimension)
        plan.tell(self._reporter)
        self._check_memory(plan, count)
        if not build.has(VECTORS):
            with build.write(VECTORS) as path:
                self._spool(texts, path, " (`passages` searches all of it, in passages)" * collection.whole)
        with self._reporter.track("building the index", total=count, unit="documents") as task:
            built = build_index(plan, in_file(build.path / VECTORS), task)
        with build.write(INDEX) as path:
            write_index(built.handle, path)
        return build.finish(
            {
                "model": self._source.described,
                **self._prompt,
                "collection": collection.name,
                "reading": asdict(collection.reading),
                "documents": count,
                "dimension": self._embedder.dimension,
                "plan": {"kind": plan.kind, "details": dict(plan.details)},
                "settings": plan.settings,
                INDEX_BYTES: built.size,
            }
        )

    def _check_memory(self, plan: IndexPlan, count: int) -> None:
        """Raise InputError if the index does not fit into memory, before hours are spent on the vectors."""
        dimension, available = self._embedder.dimension, available_memory()
        needed = memory_of(plan, count, dimension)
        if available is None or needed <= available:
            return
        smaller = {
            kind: memory_of(plan_index(kind, IndexOptions(), count, dimension), count, dimension) for kind in SMALLER
        }
        fitting = [f"{kind} ({told_bytes(size)})" for kind, size in smaller.items() if size <= available]
        choose = (f"choose a smaller `index`: {' or '.join(fitting)}",) if fitting else ()
        raise InputError(
            f"the index of {count:,} documents needs {told_bytes(needed)} of memory; {told_bytes(available)} are "
            "available",
            (*choose, "use a machine or container with more memory, or end other programs"),
        )

    def _read(self, collection: Collection, build: Build) -> None:
        """Write the documents with text."""
        if collection.unread:
            self._reporter.note(collection.unread)
        empty = 0

        def with_text() -> Iterator[tuple[str, str]]:
            nonlocal empty
            for one, text in collection.texts.read():
                if text.strip():
                    yield one, text
                else:
                    empty += 1

        with build.write(TEXTS) as folder:
            write_texts(folder, with_text(), collection.name)
        if empty:
            self._reporter.note(f"left out {counted(empty, 'empty text')}")
        collection.texts.tell(self._reporter)

    def _spool(self, texts: TextStore, path: Path, advice: str) -> None:
        """Write the documents' vectors as they are searched; `advice` is for texts longer than the model reads."""
        label, embedder = self._source.label, self._embedder
        first = count_first(embedder.count_tokens, texts.texts())
        if first and (unknown := first.told_unknown()):
            self._reporter.warn(f"{label}: {unknown}")
        if first and (cut := first.told_truncation()):
            self._reporter.warn(f"{label}: {cut}{advice}")
        with (
            self._reporter.track(f"encoding documents with {label}", total=len(texts), unit="documents") as task,
            writing_vectors(path, len(texts), embedder.dimension, "float32") as append,
        ):
            for vectors in embedder.stream(batches(texts.texts(), CHUNK, len), task):
                append(searchable(vectors, "cosine", label, LONGEST_VECTOR)[0])


def _without_extension(collection: str) -> str:
    """The last part of a path or reference, without the extension of a format that is read."""
    path = without_compression(Path(collection))
    return path.stem if path.suffix.lower().removeprefix(".") in (*FILE_EXTENSIONS, *PAGES) else path.name


def _add_ranks(results: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    ranks = {other["id"]: other["rank"] for other in others}
    for result in results:
        result["other_rank"] = ranks.get(result["id"])
