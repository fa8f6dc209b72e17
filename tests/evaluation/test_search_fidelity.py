"""Search fidelity against a plain computation, with ties, blocks and degenerate vectors."""

import math

import numpy as np
import pytest

from sentcompress.evaluation import search_fidelity as module
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.evaluation.similarity import UndefinedError


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def search_fidelity(queries, documents, gold_queries, gold_documents, **options):
    return GoldRanking.of(gold_queries, gold_documents, **options).fidelity(queries, documents)


def plain(queries, documents, gold_queries, gold_documents, k):
    """The definition, one query at a time, for rankings without ties."""
    scores = []
    for query, gold in zip(unit(queries), unit(gold_queries), strict=True):
        cosines = unit(gold_documents) @ gold
        order = sorted(range(len(documents)), key=lambda document: -cosines[document])
        grades = {document: k - rank for rank, document in enumerate(order[:k])}
        own = unit(documents) @ query
        ranked = sorted(range(len(documents)), key=lambda document: -own[document])[:k]
        gain = sum(grades.get(document, 0) / math.log2(rank + 2) for rank, document in enumerate(ranked))
        ideal = sum(grades[document] / math.log2(rank + 2) for rank, document in enumerate(order[:k]))
        scores.append(gain / ideal)
    return np.array(scores)


@pytest.fixture(scope="module")
def vectors():
    """Queries and documents of a gold model [_, 24], and of a model of 8 dimensions that resembles it."""
    random = np.random.default_rng(0)
    gold_queries, gold_documents = random.normal(size=(40, 24)), random.normal(size=(300, 24))
    return gold_queries[:, :8] * 3, gold_documents[:, :8] * 0.5, gold_queries, gold_documents


@pytest.mark.parametrize("k", [1, 4, 10])
def test_equals_the_definition(vectors, k):
    found = search_fidelity(*vectors, k=k)
    assert found.shape == (40,)
    np.testing.assert_allclose(found, plain(*vectors, k), rtol=1e-4)
    assert 0 < found.mean() < 1


def test_blocks_change_nothing(vectors, monkeypatch):
    whole = search_fidelity(*vectors)
    monkeypatch.setattr(module, "BLOCK", 1)
    np.testing.assert_allclose(search_fidelity(*vectors), whole, atol=1e-6)


def test_a_model_agrees_with_itself_at_any_scale_and_with_duplicate_documents(vectors):
    _, _, queries, documents = vectors
    duplicates = np.concatenate([documents, documents[:200]])
    found = search_fidelity(queries * 7, duplicates * 0.01, queries, duplicates)
    assert found.min() > 0.99
    assert found.mean() > 0.9999


def test_documents_that_differ_by_rounding_alone_have_one_rank(vectors):
    _, _, queries, documents = vectors
    both = np.concatenate([documents, 0.37 * documents]).astype(np.float32)
    same = []
    for of in GoldRanking.of(queries.astype(np.float32), both).relevant:
        ranks = dict(zip(of.documents.tolist(), of.ranks.tolist(), strict=True))
        same += [ranks[one] == ranks[one + 300] for one in ranks if one + 300 in ranks]
    # All but those that the rounding itself divides.
    assert len(same) > 150
    assert np.mean(same) > 0.85


def test_a_students_queries_search_the_teachers_documents(vectors):
    _, _, queries, documents = vectors
    noise = np.random.default_rng(1).normal(size=queries.shape)
    little, much = (search_fidelity(queries + amount * noise, documents, queries, documents) for amount in (0.1, 1))
    assert 0.85 < little.mean() < 1
    assert 0.1 < much.mean() < little.mean() - 0.2


def test_ties_are_ranked_in_the_worst_order():
    gold_documents = np.eye(4)
    query = np.array([[0.9, 0.5, 0.3, 0.1]])
    same = np.ones((4, 2))
    # Constant vectors: the two documents that are not relevant come first.
    assert search_fidelity(np.ones((1, 2)), same, query, gold_documents, k=2)[0] == 0
    found = search_fidelity(np.ones((1, 2)), same, query, gold_documents, k=4)[0]
    reverse = sum(grade / math.log2(rank + 2) for rank, grade in enumerate((1, 2, 3, 4)))
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate((4, 3, 2, 1)))
    assert found == pytest.approx(reverse / ideal)


def test_documents_that_tie_for_the_gold_model_have_one_grade():
    documents = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    gold = GoldRanking.of(np.array([[1.0, 0.1]]), documents, k=2)
    assert gold.relevant[0].documents.tolist() == [0, 1, 2]
    assert gold.relevant[0].ranks.tolist() == [0, 0, 0]
    # Whichever of the three a model finds, it has found the best.
    model = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0], [1.0, -1.0]])
    assert gold.ranks(np.array([[1.0, 1.0]]), model).tolist() == [[0, 0]]


def test_the_cut_off_is_at_most_the_number_of_documents(vectors):
    queries, documents, gold_queries, gold_documents = vectors
    gold = GoldRanking.of(gold_queries, gold_documents[:3])
    assert gold.k == 3
    ranks = gold.ranks(queries, documents[:3])
    assert sorted(ranks[0].tolist()) == [0, 1, 2]
    assert gold.gains(ranks).min() > 0


def test_vectors_that_cannot_be_compared_are_errors(vectors):
    queries, documents, gold_queries, gold_documents = vectors
    for place in range(4):
        broken = [part.copy() for part in vectors]
        broken[place][1, 2] = np.nan
        with pytest.raises(UndefinedError, match="NaN"):
            search_fidelity(*broken)
    with pytest.raises(ValueError, match="39 queries and 300 documents"):
        search_fidelity(queries[1:], documents, gold_queries, gold_documents)
    with pytest.raises(ValueError, match="40 and 299"):
        search_fidelity(queries, documents, gold_queries, gold_documents[1:])
    with pytest.raises(ValueError, match="at least one document"):
        search_fidelity(queries, documents[:0], gold_queries, gold_documents[:0])
    with pytest.raises(ValueError, match="cut-off"):
        search_fidelity(*vectors, k=0)
