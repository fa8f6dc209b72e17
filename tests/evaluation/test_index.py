"""FAISS against brute force in NumPy."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from sentcompress.evaluation.index import IndexSettings, build_index, cells_for, search_threads
from sentcompress.evaluation.metrics import normalized


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return normalized(np.random.default_rng(0).normal(size=(2000, 16)))[0]


def brute_force(documents: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :k]


def test_flat_equals_brute_force(vectors: np.ndarray) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = build_index("flat", documents)
    assert np.array_equal(index.search(queries, 10), brute_force(documents, queries, 10))
    raw = documents.size * 4
    assert raw <= index.size <= raw + 1000


def test_flat_ranks_by_inner_product_and_not_by_distance() -> None:
    documents = np.array([[1, 0], [10, 10]], dtype=np.float32)
    query = np.array([[1, 0]], dtype=np.float32)
    for kind in ("flat", "ivf"):
        assert build_index(kind, documents).search(query, 2).tolist() == [[1, 0]]


def test_ivf_that_looks_everywhere_equals_brute_force(vectors: np.ndarray) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = build_index("ivf", documents, IndexSettings(nlist=20, nprobe=20))
    assert index.details == {"nlist": 20, "nprobe": 20}
    assert np.array_equal(index.search(queries, 10), brute_force(documents, queries, 10))
    assert index.handle.metric_type == faiss.METRIC_INNER_PRODUCT


def test_ivf_is_the_same_for_the_same_seed_and_misses_some_for_few_probes(vectors: np.ndarray) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    few = IndexSettings(nlist=40, nprobe=2, seed=3)
    found = [build_index("ivf", documents, few).search(queries, 10) for _ in range(2)]
    assert np.array_equal(*found)
    exact = brute_force(documents, queries, 10)
    overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found[0].tolist(), exact.tolist(), strict=True)])
    assert 0.2 < overlap < 1


def test_cells_are_lowered_to_what_the_corpus_can_train() -> None:
    assert cells_for(87_265, 1024) == 1024
    assert cells_for(39 * 1024, 1024) == 1024
    assert cells_for(39 * 1024 - 1, 1024) == 1023
    assert cells_for(5, 1024) == 1


def test_ivf_takes_a_tiny_corpus_and_pads_with_minus_one() -> None:
    documents = normalized(np.random.default_rng(0).normal(size=(3, 4)))[0]
    found = build_index("ivf", documents).search(documents[:1], 5)
    assert found[0, 0] == 0
    assert found[0, 3:].tolist() == [-1, -1]


def test_threads_are_put_back() -> None:
    before = faiss.omp_get_max_threads()
    with search_threads(1) as count:
        assert count == 1 == faiss.omp_get_max_threads()
    assert faiss.omp_get_max_threads() == before
