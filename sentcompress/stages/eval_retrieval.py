"""Score a model on finding duplicate questions, and measure the index that its vectors need."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.artifacts import Artifact, Request, WorkDirectory, file_digest
from sentcompress.corpora.pairs import read_pairs
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, did_you_mean, raise_faults
from sentcompress.evaluation.index import (
    INDEX_KINDS,
    POINTS_PER_CELL,
    BuiltIndex,
    IndexSettings,
    Vectors,
    build_index,
    cells_for,
    search_threads,
)
from sentcompress.evaluation.metrics import UndefinedError, normalized
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.retrieval import CUTOFF, Collection, collection_of_pairs, mean_reciprocal_rank
from sentcompress.evaluation.sts import share_kept
from sentcompress.evaluation.timing import alternate
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.progress import SILENT, Reporter

COMMAND = "eval-retrieval"
# The batch that is timed; the time is stated for so many queries.
TIMED_QUERIES = 1000


@dataclass(frozen=True)
class Params:
    """What to search, and how. `threads` is FAISS's, 0 for all; `rounds` searches are timed, the median counts."""

    pairs: Path
    model: str | None = None
    compare: str | None = None
    index: Sequence[str] = ("flat", "ivf")
    nlist: int = 1024
    nprobe: int = 5
    threads: int = 1
    rounds: int = 5
    seed: int = 0
    device: str = "auto"
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False
    name: str | None = None
    force: bool = False

    def check(self) -> None:
        """Raise UsageError that lists every fault."""
        faults = [
            f"--index {kind}: {did_you_mean(kind, INDEX_KINDS)}" for kind in self.index if kind not in INDEX_KINDS
        ]
        if not self.index or len(set(self.index)) < len(self.index):
            faults.append(f"--index takes distinct kinds with commas between them: {','.join(INDEX_KINDS)}")
        for option, least in (("nlist", 1), ("nprobe", 1), ("rounds", 1), ("threads", 0)):
            if getattr(self, option) < least:
                faults.append(f"--{option} must be at least {least}, not {getattr(self, option)}")
        raise_faults(faults, COMMAND)


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> Artifact:
    """Search with every index kind for every model; the artifact's facts are the result.

    Raises:
        InputError: a file that cannot be read or has no duplicates, or a model whose vectors cannot be searched.
    """
    params.check()
    pairs = read_pairs(params.pairs)
    if pairs.empty:
        reporter.warn(f"{params.pairs}: {pairs.empty} pairs with an empty question left out")
    collection = collection_of_pairs([(pair.first, pair.second, pair.duplicate) for pair in pairs.rows])
    if not collection.judged:
        raise InputError(f"{params.pairs} marks no pair as duplicates", "without any there is nothing to find")
    models = _models(params, work)
    request = _request(params, models)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            reporter.note(f"{COMMAND}: times as measured on {build.fresh.manifest['finished'][:19]} UTC")
            return build.fresh
        _warn_of_cells(params, collection, reporter)
        return write_result(build, _evaluate(params, collection, models, reporter))


@dataclass(frozen=True)
class _Encoded:
    """Normalised vectors of both sides, [N, D] and [Q, D]."""

    documents: Vectors
    queries: Vectors


def _evaluate(
    params: Params, collection: Collection, models: Mapping[str, NamedModel], reporter: Reporter
) -> dict[str, Any]:
    described: dict[str, Any] = {}
    searches = {}
    done: dict[NamedModel, tuple[_Encoded, dict[str, Any]]] = {}
    for role, model in models.items():
        # A model may be compared with itself: without a teacher of its own, `teacher` is the embedded one.
        if model not in done:
            done[model] = _encode(model, collection, params, reporter)
        searches[role], described[role] = done[model]
    indexes = [_compare_index(kind, searches, collection, params, reporter) for kind in params.index]
    with search_threads(params.threads) as threads:
        protocol = _protocol(params, threads, len(_timed(collection, params.seed)))
    return {
        "evaluation": "retrieval",
        "protocol": protocol,
        "documents": len(collection.documents),
        "queries": len(collection.queries),
        "judged_queries": collection.judged,
        **described,
        "indexes": indexes,
    }


def _models(params: Params, work: WorkDirectory) -> dict[str, NamedModel]:
    find = partial(find_model, work, trust_remote_code=params.trust_remote_code)
    models = {"model": find(params.model, revision=params.revision)}
    if params.compare:
        models["compare"] = find(params.compare)
    return models


def _request(params: Params, models: Mapping[str, NamedModel]) -> Request:
    inputs = {f"file:{params.pairs.resolve()}": file_digest(params.pairs)}
    inputs |= {model.reference: model.digest for model in models.values()}
    asked = {
        "index": list(params.index),
        "nlist": params.nlist,
        "nprobe": params.nprobe,
        "threads": params.threads,
        "rounds": params.rounds,
        "seed": params.seed,
        "dtype": params.dtype,
        **{role: model.reference for role, model in models.items()},
    }
    return Request("evaluations", params.name or f"retrieval-{models['model'].slug}", COMMAND, asked, inputs)


def _warn_of_cells(params: Params, collection: Collection, reporter: Reporter) -> None:
    documents = len(collection.documents)
    cells = cells_for(documents, params.nlist)
    if "ivf" in params.index and cells < params.nlist:
        reporter.warn(
            f"nlist lowered from {params.nlist} to {cells}: FAISS wants {POINTS_PER_CELL} documents for each cell, "
            f"the corpus has {documents}"
        )


def _encode(
    model: NamedModel, collection: Collection, params: Params, reporter: Reporter
) -> tuple[_Encoded, dict[str, Any]]:
    """Vectors of the model, every distinct text encoded once, and what there is to say about the model."""
    rows = {text: row for row, text in enumerate(dict.fromkeys((*collection.documents, *collection.queries)))}
    encoder = model.load()
    engine = EncodeEngine(encoder, device=params.device, dtype=params.dtype)
    with reporter.track(f"encoding with {model.label}", total=len(rows)) as task:
        encoded = engine.encode(list(rows), task)
    try:
        vectors, zeros = normalized(encoded)
    except UndefinedError as error:
        raise InputError(f"{model.label} cannot be searched: {error}", "is it damaged?") from None
    if zeros:
        reporter.warn(f"{model.label}: {zeros} texts have a vector of zeros; nothing is near them")
    documents, queries = (
        vectors[[rows[text] for text in texts]] for texts in (collection.documents, collection.queries)
    )
    if len(documents) > 1 and not np.ptp(documents, axis=0).any():
        reporter.warn(f"{model.label} gives every document the same vector: its ranks mean nothing")
    described = {
        "label": model.label,
        "reference": model.reference,
        "digest": model.digest,
        "dimension": int(vectors.shape[1]),
        "parameters": encoder.count_parameters(),
        "dtype": engine.compute_dtype,
        "raw_vector_bytes": int(documents.shape[0] * documents.shape[1] * 4),
    }
    return _Encoded(documents, queries), described


def _compare_index(
    kind: str, searches: Mapping[str, _Encoded], collection: Collection, params: Params, reporter: Reporter
) -> dict[str, Any]:
    """One index kind for all models: built, searched for the score, then timed in turn."""
    settings = IndexSettings(params.nlist, params.nprobe, params.seed)
    depth = min(CUTOFF, len(collection.documents))
    built: dict[str, BuiltIndex] = {}
    entry: dict[str, Any] = {"index": kind}
    for role, vectors in searches.items():
        with reporter.track(f"{kind}: building and searching", total=len(vectors.queries), unit="queries") as task:
            with search_threads(params.threads):
                built[role] = build_index(kind, vectors.documents, settings)
            ranked = built[role].search(vectors.queries, depth)
            task.advance(len(vectors.queries))
        entry["settings"] = dict(built[role].details)
        entry[role] = {
            "mrr_at_10": 100 * mean_reciprocal_rank(ranked, collection.relevant),
            "index_bytes": built[role].size,
            "build_seconds": round(built[role].seconds, 3),
        }
    timed = _timed(collection, params.seed)
    calls = {role: partial(built[role].search, of.queries[timed], depth) for role, of in searches.items()}
    with search_threads(params.threads):
        times = alternate(calls, params.rounds)
    for role, seconds in times.items():
        per_thousand = 1000 * statistics.median(seconds) * TIMED_QUERIES / len(timed)
        entry[role]["milliseconds_per_1000_queries"] = round(per_thousand, 3)
    return entry | (_shares(entry["model"], entry["compare"]) if "compare" in entry else {})


def _shares(ours: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float | None]:
    time = "milliseconds_per_1000_queries"
    return {
        "share_kept": share_kept(ours["mrr_at_10"], other["mrr_at_10"]),
        "times_smaller": other["index_bytes"] / ours["index_bytes"],
        "times_faster": other[time] / ours[time] if ours[time] > 0 else None,
    }


def _timed(collection: Collection, seed: int) -> list[int]:
    """The queries of the timed batch, drawn from all of them, those with nothing to find included."""
    count = min(TIMED_QUERIES, len(collection.queries))
    drawn = np.random.default_rng(seed).choice(len(collection.queries), size=count, replace=False)
    return [int(query) for query in np.sort(drawn)]


def _protocol(params: Params, threads: int, timed: int) -> dict[str, Any]:
    return {
        "statement": "question pairs: corpus of the distinct question2, queries the distinct question1, relevant "
        "every question2 marked as a duplicate; MRR@10 x 100 over the queries that have one; FAISS, inner product "
        f"on normalised vectors, trained on the corpus, seed {params.seed}; time: {timed} queries in one batched "
        f"search, stated for {TIMED_QUERIES}, median of {params.rounds}, {threads} thread{'s' * (threads != 1)}, "
        "models in turn; bytes: the index as FAISS serialises it",
        "main_score": "mrr_at_10",
        "scale": 100,
        "threads": threads,
        "rounds": params.rounds,
        "timed_queries": timed,
        "seed": params.seed,
    }
