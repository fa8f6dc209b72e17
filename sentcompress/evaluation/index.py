"""FAISS indexes over normalised vectors. Inner product is asked for in so many words: FAISS's IVF defaults to L2."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# FAISS warns below this many training points for each cell of an inverted file; fewer make poor cells.
POINTS_PER_CELL = 39
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class IndexSettings:
    """HPD's inverted file: 1,024 cells, of which a search looks into 5."""

    nlist: int = 1024
    nprobe: int = 5
    seed: int = 0


@dataclass(frozen=True)
class BuiltIndex:
    """An index that can be searched.

    Attributes:
        size: bytes of the index as FAISS serialises it.
        seconds: what training and adding took.
        details: what the kind was built with (cells, probes, ...).
    """

    kind: str
    handle: Any
    size: int
    seconds: float
    details: Mapping[str, int]

    def search(self, queries: Vectors, k: int) -> npt.NDArray[np.int64]:
        """[Q, D] queries -> [Q, k] document numbers, best first, -1 where there is nothing more."""
        _, found = self.handle.search(queries, k)
        return np.asarray(found, dtype=np.int64)


def build_index(kind: str, vectors: Vectors, settings: IndexSettings = IndexSettings()) -> BuiltIndex:
    """An index of a kind of `INDEX_KINDS` over [N, D] vectors, trained on those same vectors."""
    import faiss

    start = time.perf_counter()
    handle, details = INDEX_KINDS[kind](np.ascontiguousarray(vectors, dtype=np.float32), settings)
    seconds = time.perf_counter() - start
    return BuiltIndex(kind, handle, int(faiss.serialize_index(handle).nbytes), seconds, details)


def cells_for(documents: int, wanted: int) -> int:
    """How many cells so many documents can train: at most `wanted`, at least 1, 39 documents for each."""
    return max(1, min(wanted, documents // POINTS_PER_CELL))


@contextmanager
def search_threads(count: int) -> Iterator[int]:
    """Let FAISS use `count` threads (0: all) for the time of a block; gives the number in use."""
    import faiss

    before = faiss.omp_get_max_threads()
    try:
        if count:
            faiss.omp_set_num_threads(count)
        yield faiss.omp_get_max_threads()
    finally:
        faiss.omp_set_num_threads(before)


def _flat(vectors: Vectors, settings: IndexSettings) -> tuple[Any, dict[str, int]]:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index, {}


def _ivf(vectors: Vectors, settings: IndexSettings) -> tuple[Any, dict[str, int]]:
    import faiss

    count, dimension = vectors.shape
    cells = cells_for(count, settings.nlist)
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFFlat(quantizer, dimension, cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = settings.seed
    index.cp.min_points_per_centroid = 1  # `cells_for` has seen to it; FAISS would print to standard error
    index.train(vectors)
    index.add(vectors)
    index.nprobe = min(settings.nprobe, cells)
    return index, {"nlist": cells, "nprobe": index.nprobe}


INDEX_KINDS: Mapping[str, Callable[[Vectors, IndexSettings], tuple[Any, dict[str, int]]]] = {
    "flat": _flat,
    "ivf": _ivf,
}
