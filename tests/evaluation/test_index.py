"""FAISS against brute force in NumPy."""

from __future__ import annotations

import errno
from pathlib import Path

import faiss
import numpy as np
import pytest

from sentcompress.commands.shared import IndexOptions
from sentcompress.evaluation.index import BUILDERS, BuiltIndex, build_index, exact_search, search_threads, write_index
from sentcompress.evaluation.index_plan import KINDS, plan_index
from sentcompress.evaluation.similarity import normalized
from sentcompress.evaluation.vector_rows import VectorRows, in_file, in_memory


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """2,000 vectors in 50 groups, off the origin as real models' are."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(50, 16)) + 0.5
    return normalized(centres[generator.integers(50, size=2000)] + 0.7 * generator.normal(size=(2000, 16)))[0]


def built(kind: str, documents: np.ndarray, settings: IndexOptions | None = None, depth: int = 10) -> BuiltIndex:
    return build_index(plan_index(kind, settings or IndexOptions(), *documents.shape, depth), in_memory(documents))


def brute_force(documents: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :k]


def overlap(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), exact.tolist(), strict=True)]))


def test_every_kind_that_is_planned_can_be_built() -> None:
    assert tuple(BUILDERS) == KINDS


@pytest.mark.parametrize("kind", ["ivf", "ivfpq", "pq"])
def test_any_seed_can_be_given(vectors: np.ndarray, kind: str) -> None:
    exact = brute_force(vectors, vectors[:50], 5)
    for seed in (2**31, 2**63 - 1):
        index = built(kind, vectors, IndexOptions(nlist=4, seed=seed))
        assert overlap(index.search(vectors[:50], 5).documents, exact) > 0.3


@pytest.mark.parametrize("kind", ["flat", "fp16"])
def test_flat_equals_brute_force(vectors: np.ndarray, kind: str) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = built(kind, documents)
    exact = brute_force(documents, queries, 10)
    assert overlap(index.search(queries, 10).documents, exact) > (0.999 if kind == "flat" else 0.99)
    raw = documents.size * (4 if kind == "flat" else 2)
    assert raw <= index.size <= raw + 1000


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw", "sq8", "fp16", "binary"])
def test_ranks_by_inner_product_and_not_by_distance(kind: str) -> None:
    documents = np.array([[1, 0], [10, 10]], dtype=np.float32)
    found = built(kind, documents).search(np.array([[1, 0.1]], dtype=np.float32), 2)
    assert found.documents.tolist() == [[1, 0]]
    assert found.scores[0].tolist() == pytest.approx([11, 1], rel=0.02)


@pytest.mark.parametrize("kind", ["hnsw", "sq8", "fp16", "pq"])
def test_inner_products_of_vectors_of_any_length_are_found(vectors: np.ndarray, kind: str) -> None:
    lengths = np.exp(0.3 * np.random.default_rng(1).normal(size=(2000, 1)))
    of_any_length = (vectors * lengths).astype(np.float32)
    documents, queries = of_any_length[:1900], of_any_length[1900:]
    exact = brute_force(documents, queries, 10)
    assert overlap(built(kind, documents).search(queries, 10).documents, exact) > 0.9
    # Cosines find others.
    assert overlap(brute_force(vectors[:1900], vectors[1900:], 10), exact) < 0.6


def test_ivf_that_looks_everywhere_equals_brute_force(vectors: np.ndarray) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = built("ivf", documents, IndexOptions(nlist=20, nprobe=20))
    assert index.plan.settings == {"nlist": 20, "nprobe": 20}
    assert np.array_equal(index.search(queries, 10).documents, brute_force(documents, queries, 10))
    assert index.handle.metric_type == faiss.METRIC_INNER_PRODUCT


def test_ivf_is_the_same_for_the_same_seed_and_misses_some_for_few_probes() -> None:
    # Vectors without groups: a query's neighbours are spread over cells that a few probes do not reach.
    vectors = normalized(np.random.default_rng(0).normal(size=(2000, 16)))[0]
    documents, queries = vectors[:1900], vectors[1900:]
    few = IndexOptions(nlist=40, nprobe=2, seed=3)
    found = [built("ivf", documents, few).search(queries, 10).documents for _ in range(2)]
    assert np.array_equal(*found)
    assert 0.2 < overlap(found[0], brute_force(documents, queries, 10)) < 1


def test_ivf_takes_a_tiny_corpus_and_pads_with_minus_one() -> None:
    documents = normalized(np.random.default_rng(0).normal(size=(3, 4)))[0]
    found = built("ivf", documents).search(documents[:1], 5).documents
    assert found[0, 0] == 0
    assert found[0, 3:].tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("kind", "bytes_each", "least"), [("hnsw", None, 0.95), ("sq8", 16, 0.95), ("ivfpq", 4 + 8, 0.3)]
)
def test_approximate_kinds_find_most_and_weigh_what_their_codes_weigh(
    vectors: np.ndarray, kind: str, bytes_each: int | None, least: float
) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = built(kind, documents, IndexOptions(nlist=8, nprobe=8))
    assert overlap(index.search(queries, 10).documents, brute_force(documents, queries, 10)) > least
    if bytes_each:
        # 5 bits a code are packed: 4 codes of 5 bits are 3 bytes
        codes = 3 + 8 if kind == "ivfpq" else bytes_each
        assert codes * 1900 < index.size < codes * 1900 + 8000


def test_binary_finds_candidates_by_hamming_distance_and_rescores_them(vectors: np.ndarray) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = built("binary", documents, IndexOptions(candidates=60, rescore="float32"))
    found = index.search(queries, 10)
    distances = ((queries[:, None] > 0) != (documents[None] > 0)).sum(axis=2)
    products = queries @ documents.T
    for query in range(len(queries)):
        # The sixtieth distance is shared by many documents, and any of them may be a candidate.
        edge = np.sort(distances[query])[59]
        assert (distances[query, found.documents[query]] <= edge).all()
        sure = np.flatnonzero(distances[query] < edge)
        best = sure[np.argsort(-products[query, sure])][:10]
        # Whatever is surely a candidate and better than the last that was found has been found.
        better = best[products[query, best] > found.scores[query, -1] + 1e-6]
        assert set(better.tolist()) <= set(found.documents[query].tolist())
        np.testing.assert_allclose(found.scores[query], products[query, found.documents[query]], atol=1e-6)


@pytest.mark.parametrize(("rescore", "width"), [("int8", 16), ("float16", 32), ("float32", 64)])
@pytest.mark.parametrize("kind", ["binary", "pq"])
def test_rescoring_all_is_the_search_it_rescores_with_and_its_bytes_are_counted(
    vectors: np.ndarray, kind: str, rescore: str, width: int
) -> None:
    documents, queries = vectors[:1900], vectors[1900:]
    index = built(kind, documents, IndexOptions(candidates=1900, rescore=rescore))
    other = built({"int8": "sq8", "float16": "fp16", "float32": "flat"}[rescore], documents)
    assert overlap(index.search(queries, 10).documents, other.search(queries, 10).documents) > 0.999
    codes = 2 if kind == "binary" else 3
    assert (codes + width) * 1900 <= index.size <= (codes + width) * 1900 + 4000


def test_candidates_are_as_many_as_were_asked_for(vectors: np.ndarray) -> None:
    index = built("binary", vectors, IndexOptions(candidates=30))
    index.search(vectors[:5], 7)
    assert int(7 * np.float32(index.handle.k_factor)) == 30
    assert index.search(vectors[:5], 50).documents.min() >= 0


@pytest.mark.parametrize("rows", [3, 5000])
def test_exact_search_in_pieces_equals_brute_force(tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentcompress.evaluation import vector_rows

    monkeypatch.setattr(vector_rows, "PIECE", 8 * 1024)  # 1,024 rows a piece
    documents = normalized(np.random.default_rng(0).normal(size=(rows, 8)))[0]
    np.save(tmp_path / "vectors.npy", documents)
    queries = documents[:3] + 0.01
    found = exact_search(in_file(tmp_path / "vectors.npy"), queries, 20)
    k = min(20, rows)
    assert np.array_equal(found.documents[:, :k], brute_force(documents, queries, k))
    assert (found.documents[:, k:] == -1).all()


def test_an_index_over_a_file_in_pieces_equals_one_in_memory(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentcompress.evaluation import vector_rows

    np.save(tmp_path / "vectors.npy", vectors)
    plan = plan_index("ivf", IndexOptions(nlist=20, nprobe=3), *vectors.shape)
    whole = build_index(plan, in_memory(vectors))
    monkeypatch.setattr(vector_rows, "PIECE", 1)
    pieces: list[int] = []
    rows = in_file(tmp_path / "vectors.npy")
    counted = VectorRows(rows.shape, lambda: pieces.append(1) or rows.open())
    parts = build_index(plan, counted)
    assert len(pieces) > 2
    assert np.array_equal(whole.search(vectors[:50], 10).documents, parts.search(vectors[:50], 10).documents)
    assert whole.size == parts.size


def test_bytes_are_those_of_the_file_that_faiss_writes(tmp_path: Path, vectors: np.ndarray) -> None:
    for kind in ("ivfpq", "binary", "hnsw"):
        index = built(kind, vectors)
        faiss.write_index(index.handle, str(tmp_path / kind))
        assert index.size == (tmp_path / kind).stat().st_size


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_reported_with_its_error_number(vectors: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    built = build_index(plan_index("flat", IndexOptions(), len(vectors), vectors.shape[1]), in_memory(vectors))
    with pytest.raises(OSError, match="No space left") as failed:
        write_index(built.handle, Path("/dev/full"))
    assert failed.value.errno == errno.ENOSPC
    assert capfd.readouterr().err == ""


def test_threads_are_put_back() -> None:
    before = faiss.omp_get_max_threads()
    with search_threads(1) as count:
        assert count == 1 == faiss.omp_get_max_threads()
    assert faiss.omp_get_max_threads() == before
