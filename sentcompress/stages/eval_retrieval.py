"""Evaluate a model on retrieval, and measure the cost and the loss of indexes over its vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sentcompress.commands.eval_retrieval import Params
from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.collections import Collection, DataSet
from sentcompress.corpora.entities import entities_data_set
from sentcompress.corpora.pairs import pairs_data_set
from sentcompress.encoding.embedder import Embedder
from sentcompress.encoding.embedder_sources import find_embedder, warn_of_itself
from sentcompress.encoding.npy_files import writing_vectors
from sentcompress.encoding.sides import Sides, recorded_prompts, sides_of
from sentcompress.encoding.stored_documents import StoredDocuments, turned_queries
from sentcompress.encoding.vector_folder import folder_digest, read_vectors
from sentcompress.evaluation.index import search_threads
from sentcompress.evaluation.index_plan import longest_vector, plan_index
from sentcompress.evaluation.ranking import recall_cutoffs
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.retrieval import DEPTHS, MAIN, Comparison, RetrievalTask, Searched
from sentcompress.evaluation.retrieval_protocol import protocol, with_documents
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.searchable import searchable, warn_of_zeros
from sentcompress.evaluation.tables import BESIDE
from sentcompress.evaluation.vector_rows import Vectors, in_file
from sentcompress.exporting.graph_embedder import in_runtime, with_runtime
from sentcompress.extras import check_installed
from sentcompress.models.catalog import typed_name
from sentcompress.models.prompts import DOCUMENT, QUERY, told_prompt
from sentcompress.progress import LOGGED, Reporter, Task
from sentcompress.quantities import counted
from sentcompress.store import (
    MANIFEST,
    SCAFFOLD,
    Artifact,
    Build,
    Request,
    WorkDirectory,
    file_digest,
    file_inputs,
    name_part,
)

COMMAND = Params.command


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Search with every index kind for every model; the artifact's facts are the result.

    Raises:
        InputError: if files cannot be read or have no relevant documents, vectors cannot be searched or do not match,
            or the corpus is too small to train an index.
    """
    params.check()
    check_installed("faiss")
    data = _data_set(params)
    roles = _roles(params, work)
    itself = roles[MODEL] == roles.get(COMPARE) and params.vectors is None
    warn_of_itself(roles[MODEL].label, same=itself, reporter=reporter)
    with work.build(_request(params, data, roles), force=params.force, reporter=reporter) as build:
        if build.fresh:
            reporter.note(f"{COMMAND}: times as measured on {build.fresh.manifest['finished'][:19]} UTC")
            return build.fresh
        if data.split and data.split != params.split:
            reporter.note(f"{COMMAND}: split {data.split}")
        collection = data.read()
        for warning in collection.warnings:
            reporter.warn(warning)
        _warn_of_queries_among_documents(collection, reporter)
        depth = _depth(params, data, len(collection.corpus), reporter)
        return write_result(build, RetrievalEvaluation(params, data, collection, depth, build, reporter).facts(roles))


def _data_set(params: Params) -> DataSet:
    """The data set; its files are located, but not read yet."""
    if params.pairs is not None:
        return pairs_data_set(params.pairs, params.corpus)
    if params.entities is not None:
        return entities_data_set(params.entities, params.split)
    assert params.collection is not None
    return collection_data_set(params.collection, params.split)


def _roles(params: Params, work: WorkDirectory) -> dict[str, Sides]:
    find = partial(find_embedder, work, trust_remote_code=params.trust_remote_code)
    documents, queries = (
        find(params.model, revision=params.revision) if other is None else find(other)
        for other in (params.document_model, params.query_model)
    )
    sides = sides_of(work, documents, queries)
    # Another model of an asymmetric search keeps to torch.
    if params.document_model is None:
        sides = replace(sides, documents=in_runtime(work, sides.documents, params.runtime))
    if params.query_model is None:
        sides = replace(sides, queries=in_runtime(work, sides.queries, params.runtime))
    roles = {MODEL: sides}
    if params.compare is not None:
        compare = find(params.compare)
        roles[COMPARE] = sides_of(work, compare, compare)
    return roles


def _request(params: Params, data: DataSet, roles: Mapping[str, Sides]) -> Request:
    inputs = file_inputs(data.files)
    given = params.pairs or params.collection or params.entities
    assert given is not None
    resolved: dict[str, Any] = {"protocol": data.protocol, "data": given.resolve().name, "split": data.split}
    resolved |= recorded_prompts(roles)
    for name, role in roles.items():
        inputs |= role.inputs
        resolved[name] = role.queries.reference
        if not role.symmetric:
            resolved[f"{name}_documents"] = role.documents.reference
    data_name = data.name.split(".", 1)[0] or data.name if data.protocol == "pairs" else data.name
    parts = ("retrieval", data_name, data.split)
    name = "-".join(filter(None, (name_part(part or "", 60) for part in parts)))
    typed = {}
    suffix = ""
    if params.vectors is not None:
        store = read_vectors(params.vectors).manifest["store"]
        inputs[f"file:{(params.vectors / MANIFEST).resolve()}"] = folder_digest(params.vectors)
        resolved["vectors"], suffix = store, f"-{store}"
    if params.document_model is None or params.query_model is None:
        typed["model"] = typed_name(
            params.model, roles[MODEL].queries if params.query_model is None else roles[MODEL].documents
        )
    if params.document_model is not None:
        typed["document_model"] = typed_name(params.document_model, roles[MODEL].documents)
    if params.query_model is not None:
        typed["query_model"] = typed_name(params.query_model, roles[MODEL].queries)
    if COMPARE in roles:
        typed["compare"] = typed_name(params.compare, roles[COMPARE].queries)
    return Request.of(params, params.name or f"{name}-{roles[MODEL].slug}{suffix}", inputs, resolved, **typed)


def _warn_of_queries_among_documents(collection: Collection, reporter: Reporter) -> None:
    if found := collection.among_documents:
        number = counted(len(found), "query is a document", "queries are documents")
        reporter.warn(
            f"{number} too, with the same id and text, for example {found[0]!r}; such documents stay among the "
            "results, as in trec_eval. BEIR's own code drops them, so published scores are not comparable"
        )


def _depth(params: Params, data: DataSet, documents: int, reporter: Reporter) -> int:
    asked = params.depth or DEPTHS[data.protocol]
    depth = min(asked, documents)
    undefined = sorted(set(recall_cutoffs(asked)) - set(recall_cutoffs(depth)))
    if undefined:
        without = ", ".join(f"Recall@{cutoff}" for cutoff in undefined)
        are = "is" if len(undefined) == 1 else "are"
        # A default was not asked for.
        tell = reporter.warn if params.depth else reporter.note
        tell(f"k lowered from {asked} to {depth}, the number of documents; {without} {are} not computed")
    return depth


@dataclass
class RetrievalEvaluation:
    """One build of the result.

    Attributes:
        data, collection: the data set, and its content.
        depth: documents returned by a search, at most the size of the corpus.
        build: holds the documents' vectors until it is finished.
    """

    params: Params
    data: DataSet
    collection: Collection
    depth: int
    build: Build
    reporter: Reporter = LOGGED
    told: set[str] = field(default_factory=set)

    def facts(self, roles: Mapping[str, Sides]) -> dict[str, Any]:
        """The result document for the roles `model` and, if given, `compare`."""
        described: dict[str, Any] = {}
        searched: dict[str, Searched] = {}
        for name, role in roles.items():
            # Both roles can be the same model: `teacher` defaults to the embedded one. Stored vectors are of one role.
            same = next((other for other in searched if roles[other] == role and self.params.vectors is None), None)
            if same:
                searched[name], described[name] = searched[same], described[same]
            else:
                searched[name], described[name] = self._encode(name, role)
        recorder = Recorder({name: str(of["reference"]) for name, of in described.items()})
        measured = self._measure(searched, recorder, described[MODEL])
        return {
            "evaluation": "retrieval",
            "dataset": {"protocol": self.data.protocol, "name": self.data.name, "split": self.data.split},
            "documents": len(self.collection.corpus),
            **({"corpus": self.collection.choice.as_dict()} if self.collection.choice else {}),
            "queries": len(self.collection.queries),
            "judged_queries": self.collection.judged,
            "queries_among_documents": len(self.collection.among_documents),
            **described,
            **measured,
            "scores": recorder.as_dicts(),
        }

    def _measure(
        self, searched: Mapping[str, Searched], recorder: Recorder, model: Mapping[str, Any]
    ) -> dict[str, Any]:
        params, kind = self.params, self.data.protocol
        name_of = self.collection.corpus.ids.__getitem__
        grades, seed = self.collection.grades, params.seed
        task = RetrievalTask(
            grades=grades,
            name_of=name_of,
            main=MAIN[kind],
            depth=self.depth,
            rounds=params.rounds,
            seed=seed,
            bootstrap=params.bootstrap,
        )
        data = " ".join(filter(None, (self.data.name, self.data.split)))
        comparison = Comparison(searched, task, data, recorder, self.reporter)
        with search_threads(params.threads) as threads:
            comparison.exact()
            indexes = [comparison.index(kind, params) for kind in params.index]
        corpus = {"corpus": choice.statement} if (choice := self.collection.choice) else {}
        spoken = self.collection.languages
        stated = protocol(kind, self.data.split, task, threads, params.similarity, languages=len(set(spoken)), **corpus)
        return {
            "protocol": with_runtime(with_documents(stated, model), params.runtime),
            "indexes": indexes,
            **({"languages": comparison.by_language(spoken)} if spoken else {}),
        }

    def _encode(self, name: str, role: Sides) -> tuple[Searched, dict[str, Any]]:
        """Encode documents (into a file) and queries; returns the vectors and a description of the models."""
        documents, queries = role.open(device=self.params.device, dtype=self.params.dtype, reporter=self.reporter)
        found: _Documents = documents
        prompts = role.prompts
        if self.params.vectors is not None and name == MODEL:
            found, queries = self._stored(self.params.vectors, role, queries)
            prompts = {QUERY: prompts[QUERY]} if QUERY in prompts else {}
            prompts |= {} if found.prompt is None else {DOCUMENT: found.prompt}
        self._check_plans(found.dimension)
        self._spool(name, found, role.documents.label)
        vectors = self._encode_queries(queries, role.queries.label)
        described = {
            **queries.described(),
            **role.queries.described,
            "label": role.label,
            **({"prompts": prompts} if prompts else {}),
            "raw_vector_bytes": len(self.collection.corpus) * found.dimension * 4,
        }
        if isinstance(found, StoredDocuments):
            described["documents_by"] = found.described()
            if not found.encoded_by(role.queries.digest):
                described["label"] = f"{role.label}{BESIDE}{found.label}"
        elif not role.symmetric:
            described["documents_by"] = {
                **documents.described(),
                **role.documents.described,
                "projection": role.projection.artifact.reference if role.projection else None,
            }
        return Searched(in_file(self.build.path / _file(name)), vectors), described

    def _stored(self, folder: Path, role: Sides, queries: Embedder) -> tuple[StoredDocuments, Embedder]:
        """The stored vectors of the documents, and the queries as they are compared with them."""
        stored = read_vectors(folder)
        documents = StoredDocuments(stored, self.collection.corpus.ids)
        if not documents.encoded_by(role.queries.digest):
            self.reporter.warn(f"{folder} was encoded by {documents.label}, the queries by {role.queries.label}")
        elif documents.prompt != role.documents.prompt:
            self.reporter.warn(
                f"the documents in {folder} were encoded {told_prompt(documents.prompt)}, but {role.queries.label} "
                f"encodes documents {told_prompt(role.documents.prompt)} (encode them with `prompt_name` {DOCUMENT})"
            )
        corpus = self.data.files[0]
        if stored.manifest.get("input") != file_digest(corpus):
            self.reporter.warn(
                f"{folder} was encoded from another file than {corpus}, or before it changed: documents are matched by "
                "their ids alone"
            )
        return documents, turned_queries(queries, stored)

    def _check_plans(self, dimension: int) -> None:
        """Raise if the corpus cannot train an index, before anything is encoded; tell which settings were lowered."""
        for kind in self.params.index:
            plan = plan_index(kind, self.params, len(self.collection.corpus), dimension, self.depth)
            for tell, messages in ((self.reporter.warn, plan.warnings), (self.reporter.note, plan.notes)):
                for message in messages:
                    if message not in self.told:
                        tell(message)
                    self.told.add(message)

    def _spool(self, name: str, documents: _Documents, label: str) -> None:
        """Write the document vectors, as they are searched, to a file, to be read for every index."""
        if self.build.has(_file(name)):
            return  # from an interrupted run of the same request
        corpus = self.collection.corpus
        zeros, first, same = 0, None, True
        with (
            self.reporter.track(f"encoding documents with {label}", total=len(corpus), unit="documents") as task,
            self.build.write(_file(name)) as path,
            writing_vectors(path, len(corpus), documents.dimension, "float32") as append,
        ):
            for part in documents.stream(corpus.texts(), task):
                vectors, zero = self._searchable(part, label)
                append(vectors)
                zeros += zero
                first = vectors[:1] if first is None else first
                same = same and bool((vectors == first).all())
        warn_of_zeros(self.reporter, label, zeros, "documents")
        if same and len(corpus) > 1:
            self.reporter.warn(f"{label} gives every document the same vector: its rankings are meaningless")

    def _encode_queries(self, queries: Embedder, label: str) -> Vectors:
        texts = self.collection.queries
        with self.reporter.track(f"encoding queries with {label}", total=len(texts), unit="queries") as task:
            vectors, zeros = self._searchable(queries.encode(texts, task), label)
        warn_of_zeros(self.reporter, label, zeros, "queries")
        return vectors

    def _searchable(self, vectors: Vectors, label: str) -> tuple[Vectors, int]:
        longest = longest_vector(self.params.index, self.params.rescore)
        return searchable(vectors, self.params.similarity, label, longest)


class _Documents(Protocol):
    """Vectors of documents in the order of the corpus: of a model, or stored ones."""

    @property
    def dimension(self) -> int: ...

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]: ...


def _file(role: str) -> str:
    return f"{SCAFFOLD}/vectors-{role}.npy"
