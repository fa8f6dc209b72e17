"""Ranking metrics against pytrec_eval, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.evaluation.index import Found
from sentcompress.evaluation.ranking import in_order, overlap, recall_cutoffs, scores_of_queries

DOCUMENTS, QUERIES, DEPTH = 3000, 60, 1000


def name_of(document: int) -> bytes:
    # Falling as strings is neither rising nor falling as numbers.
    return f"d{document * 7919 % 10_007}".encode()


def random_run(seed: int, levels: int) -> tuple[Found, list[dict[int, int]]]:
    """A run of scores with many ties (`levels` distinct ones), and judgements of which some are off the corpus."""
    generator = np.random.default_rng(seed)
    documents = np.array([generator.permutation(DOCUMENTS)[:DEPTH] for _ in range(QUERIES)])
    scores = -np.sort(-generator.integers(levels, size=(QUERIES, DEPTH)) / levels, axis=1).astype(np.float32)
    grades: list[dict[int, int]] = []
    for query in range(QUERIES):
        near = documents[query, generator.integers(0, 40, size=generator.integers(0, 4))].tolist()
        far = generator.integers(0, DOCUMENTS + 50, size=generator.integers(0, 30)).tolist()
        grades.append({int(document): int(generator.integers(1, 4)) for document in (*near, *far)})
    grades[0] = {}
    # Queries with few results, and with none.
    for query, count in ((1, 5), (2, 0), (3, 120)):
        documents[query, count:] = -1
    grades[2] = {5: 1}
    return Found(scores, documents), grades


def as_trec(found: Found, grades: list[dict[int, int]]) -> tuple[dict, dict]:
    run = {
        f"q{query}": {
            name_of(document).decode(): float(score)
            for document, score in zip(found.documents[query].tolist(), found.scores[query].tolist(), strict=True)
            if document >= 0
        }
        for query in range(len(grades))
    }
    qrels = {
        f"q{query}": {name_of(document).decode(): grade for document, grade in wanted.items()}
        for query, wanted in enumerate(grades)
        if wanted
    }
    return run, qrels


@pytest.mark.parametrize("levels", [3, 40, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_all_metrics_equal_pytrec_eval(seed: int, levels: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    found, grades = random_run(seed, levels)
    run, qrels = as_trec(found, grades)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.1,10,100,1000", "recip_rank"})
    theirs = evaluator.evaluate(run)
    ours = scores_of_queries(in_order(found, name_of), grades)
    judged = [query for query, wanted in enumerate(grades) if wanted]
    expected = [theirs[f"q{query}"] for query in judged]
    assert len(ours) == 6
    for cutoff in (1, 10, 100, 1000):
        np.testing.assert_allclose(ours[f"recall_at_{cutoff}"], [one[f"recall_{cutoff}"] for one in expected])
    np.testing.assert_allclose(ours["ndcg_at_10"], [one["ndcg_cut_10"] for one in expected], atol=1e-12)
    # trec_eval's reciprocal rank has no cut-off; cut at 10 it is 0 from the eleventh rank on.
    cut = [one["recip_rank"] if one["recip_rank"] >= 0.1 else 0 for one in expected]
    np.testing.assert_allclose(ours["mrr_at_10"], cut)
    assert 0 < ours["mrr_at_10"].mean() < 1


def test_equal_scores_are_ordered_by_falling_id() -> None:
    found = Found(np.array([[2, 1, 1, 1, 0]], dtype=np.float32), np.array([[4, 9, 10, 8, -1]]))
    # as strings 9 > 8 > 10
    assert in_order(found, lambda document: str(document).encode()).tolist() == [[4, 9, 8, 10, -1]]


def test_the_first_document_of_the_corpus_is_tied_like_any_other() -> None:
    found = Found(np.array([[0.5, 0.5, 0.1]], dtype=np.float32), np.array([[4, 0, 2]]))
    assert in_order(found, lambda document: f"{9 - document}".encode()).tolist() == [[0, 4, 2]]


def test_what_an_index_gives_out_of_order_is_sorted() -> None:
    found = Found(np.array([[1, 3, 2]], dtype=np.float32), np.array([[7, 8, 9]]))
    assert in_order(found, lambda document: b"").tolist() == [[8, 9, 7]]


def test_by_hand() -> None:
    ranked = np.array([[3, 2, 1, 0], [0, 1, 2, 3], [1, 3, -1, -1]])
    grades = [{0: 1, 2: 3}, {}, {5: 2, 3: 1}]
    scores = scores_of_queries(ranked, grades)
    assert scores["mrr_at_10"].tolist() == [1 / 2, 1 / 2]
    assert scores["recall_at_1"].tolist() == [0, 0]
    first = (3 / np.log2(3) + 1 / np.log2(5)) / (3 / np.log2(2) + 1 / np.log2(3))
    second = (1 / np.log2(3)) / (2 / np.log2(2) + 1 / np.log2(3))
    assert scores["ndcg_at_10"].tolist() == pytest.approx([first, second])
    # Four documents are all there are: Recall@10 is not defined.
    assert set(scores) == {"mrr_at_10", "ndcg_at_10", "recall_at_1"}


def test_only_the_first_ten_ranks_count() -> None:
    ranked = np.array([[*range(1, 11), 0]])
    assert scores_of_queries(ranked, [{0: 1}])["mrr_at_10"].tolist() == [0]
    scores = scores_of_queries(ranked, [{10: 1}])
    assert scores["mrr_at_10"].tolist() == pytest.approx([0.1])
    assert scores["recall_at_10"].tolist() == [1]


def test_recall_is_defined_up_to_the_depth() -> None:
    assert recall_cutoffs(1000) == (1, 10, 100, 1000)
    assert recall_cutoffs(999) == (1, 10, 100)
    assert recall_cutoffs(1) == (1,)


def test_overlap_is_the_share_of_the_exact_neighbours() -> None:
    exact = np.array([[1, 2, 3, -1], [4, 5, 6, 7]])
    assert overlap(np.array([[3, 2, 9, 8], [4, 5, 6, 7]]), exact) == pytest.approx((2 / 3 + 1) / 2)
    assert overlap(np.array([[9, 1, 2, 3], [9, 4, 5, 6]]), exact, cutoff=2) == pytest.approx((1 / 2 + 1 / 2) / 2)
