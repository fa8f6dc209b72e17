"""FAISS indexes that search by inner product. The metric is always given: FAISS's IVF defaults to L2."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.index_plan import IndexPlan
from sentcompress.evaluation.vector_rows import VectorRows, Vectors
from sentcompress.extras import require
from sentcompress.progress import Task

Made = tuple[Any, tuple[Any, ...]]
# FAISS holds a seed in 32 bits, with a sign.
SEEDS = 2**31


class Found(NamedTuple):
    """Results of Q queries, best first.

    Attributes:
        scores: [Q, k] float32.
        documents: [Q, k] rows of the corpus, padded with -1.
    """

    scores: npt.NDArray[np.float32]
    documents: npt.NDArray[np.int64]


@dataclass(frozen=True)
class BuiltIndex:
    """An index ready to search.

    Attributes:
        size: bytes of the serialised index.
        seconds: time to train it and to add the vectors.
    """

    plan: IndexPlan
    handle: Any
    size: int
    seconds: float

    def search(self, queries: Vectors, k: int) -> Found:
        """The k best documents of [Q, D] queries."""
        if "candidates" in self.plan.details:
            # FAISS multiplies k by this factor and truncates the product.
            self.handle.k_factor = (max(self.plan.details["candidates"], k) + 0.5) / k
        scores, documents = self.handle.search(queries, k)
        return Found(np.asarray(scores, dtype=np.float32), np.asarray(documents, dtype=np.int64))


def build_index(plan: IndexPlan, vectors: VectorRows, task: Task | None = None) -> BuiltIndex:
    """Train an index on a sample of the vectors, add all vectors in pieces, and measure its size."""
    start = time.perf_counter()
    handle, parts = BUILDERS[plan.kind](vectors.dimension, plan)
    if plan.training:
        handle.train(vectors.sample(plan.training, plan.seed))
    for part in parts:
        _reserve(part, vectors)
    for _, piece in vectors.pieces():
        handle.add(piece)
        if task:
            task.advance(len(piece))
    seconds = time.perf_counter() - start
    return BuiltIndex(plan, handle, serialised_bytes(handle), seconds)


def exact_search(vectors: VectorRows, queries: Vectors, k: int, task: Task | None = None) -> Found:
    """The k documents with the highest inner product, by brute force, reading the corpus in pieces."""
    faiss = require("faiss")
    best = faiss.ResultHeap(len(queries), k, keep_max=True)
    for start, piece in vectors.pieces():
        scores, documents = faiss.knn(queries, piece, k, metric=faiss.METRIC_INNER_PRODUCT)
        best.add_result(scores, np.where(documents < 0, documents, documents + start))
        if task:
            task.advance(len(piece))
    best.finalize()
    return Found(best.D, best.I)


def write_index(handle: Any, path: Path) -> None:
    """Write an index to a file.

    Raises:
        OSError: if the file cannot be written.
    """
    faiss = require("faiss")
    # FAISS's own file writer raises RuntimeError without an error number, and prints to stderr.
    with path.open("wb") as stream:
        faiss.write_index(handle, faiss.PyCallbackIOWriter(stream.write))


def read_index(path: Path) -> Any:
    """An index that `write_index` wrote. The file must be trusted, or its digest checked: FAISS does not check it."""
    return require("faiss").read_index(str(path))


def serialised_bytes(handle: Any) -> int:
    """Size of an index as FAISS serialises it, without storing the serialised bytes."""
    faiss = require("faiss")
    size = 0

    def count(block: bytes) -> None:
        nonlocal size
        size += len(block)

    faiss.write_index(handle, faiss.PyCallbackIOWriter(count))
    return size


@contextmanager
def search_threads(count: int) -> Iterator[int]:
    """Let FAISS use `count` threads (0: all) within a block; yields the number in use."""
    faiss = require("faiss")
    before = faiss.omp_get_max_threads()
    try:
        if count:
            faiss.omp_set_num_threads(count)
        yield faiss.omp_get_max_threads()
    finally:
        faiss.omp_set_num_threads(before)


def _reserve(part: Any, vectors: VectorRows) -> None:
    """Reserve memory for all vectors at once.

    Lists that grow by doubling use up to twice their size, and three times while being moved. FAISS has no reserve, but
    a list that was resized up and down keeps its capacity.
    """
    if hasattr(part, "invlists"):
        sizes = np.zeros(part.nlist, dtype=np.int64)
        for _, piece in vectors.pieces():
            sizes += np.bincount(part.quantizer.search(piece, 1)[1][:, 0], minlength=part.nlist)
        for cell, size in enumerate(sizes.tolist()):
            part.invlists.resize(cell, size)
            part.invlists.resize(cell, 0)
        return
    part.codes.resize(len(vectors) * part.code_size)
    part.codes.resize(0)


def _flat(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    index = faiss.IndexFlatIP(dimension)
    return index, (index,)


def _ivf(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    cells = plan.details["nlist"]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, cells, faiss.METRIC_INNER_PRODUCT)
    return _inverted(index, plan)


def _ivfpq(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    cells, segments, bits = (plan.details[name] for name in ("nlist", "segments", "bits"))
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(quantizer, dimension, cells, segments, bits, faiss.METRIC_INNER_PRODUCT)
    _seed(index.pq.cp, plan)
    return _inverted(index, plan)


def _inverted(index: Any, plan: IndexPlan) -> Made:
    _seed(index.cp, plan)
    index.nprobe = plan.details["nprobe"]
    return index, (index,)


def _seed(clustering: Any, plan: IndexPlan) -> None:
    clustering.seed = plan.seed % SEEDS
    clustering.min_points_per_centroid = 1  # the plan checks this; FAISS would print to standard error


def _hnsw(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    index = faiss.IndexHNSWFlat(dimension, plan.details["links"], faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = plan.details["ef_construction"]
    index.hnsw.efSearch = plan.details["ef_search"]
    return index, (faiss.downcast_index(index.storage),)


def _scalar(dimension: int, number_format: str) -> Any:
    faiss = require("faiss")
    if number_format == "float32":
        return faiss.IndexFlatIP(dimension)
    code = faiss.ScalarQuantizer.QT_8bit if number_format == "int8" else faiss.ScalarQuantizer.QT_fp16
    return faiss.IndexScalarQuantizer(dimension, code, faiss.METRIC_INNER_PRODUCT)


def _sq8(dimension: int, plan: IndexPlan) -> Made:
    index = _scalar(dimension, "int8")
    return index, (index,)


def _fp16(dimension: int, plan: IndexPlan) -> Made:
    index = _scalar(dimension, "float16")
    return index, (index,)


def _pq(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    index = faiss.IndexPQ(dimension, plan.details["segments"], plan.details["bits"], faiss.METRIC_INNER_PRODUCT)
    _seed(index.pq.cp, plan)
    return _rescored(index, dimension, plan)


def _binary(dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    index = faiss.IndexLSH(dimension, dimension, False, False)  # no rotation, no thresholds: sign bits
    # Used by rescoring only: candidates are always found by Hamming distance.
    index.metric_type = faiss.METRIC_INNER_PRODUCT
    return _rescored(index, dimension, plan)


def _rescored(codes: Any, dimension: int, plan: IndexPlan) -> Made:
    faiss = require("faiss")
    refinement = _scalar(dimension, plan.rescore)
    return faiss.IndexRefine(codes, refinement), (codes, refinement)


BUILDERS: Mapping[str, Callable[[int, IndexPlan], Made]] = {
    "flat": _flat,
    "ivf": _ivf,
    "ivfpq": _ivfpq,
    "pq": _pq,
    "hnsw": _hnsw,
    "sq8": _sq8,
    "fp16": _fp16,
    "binary": _binary,
}
