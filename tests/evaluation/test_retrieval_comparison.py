"""What the model loses and what the index loses, told apart."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.evaluation.index import Found
from sentcompress.evaluation.index_plan import IndexSettings
from sentcompress.evaluation.metrics import normalized
from sentcompress.evaluation.retrieval import scores_of_queries
from sentcompress.evaluation.retrieval_comparison import Comparison, Searched, Task
from sentcompress.evaluation.retrieval_protocol import protocol
from sentcompress.evaluation.vector_rows import in_memory

DOCUMENTS, QUERIES = 1500, 80


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """A teacher whose query is its document with some noise, and a model with a quarter of its dimensions."""
    generator = np.random.default_rng(0)
    documents = normalized(generator.normal(size=(DOCUMENTS, 32)))[0]
    queries = normalized(documents[:QUERIES] + 0.2 * generator.normal(size=(QUERIES, 32)))[0]
    small = [normalized(side[:, :8])[0] for side in (documents, queries)]
    searched = {
        "model": Searched(in_memory(small[0]), small[1]),
        "compare": Searched(in_memory(documents), queries),
    }
    grades = [{query: 1} if query % 4 else {} for query in range(QUERIES)]
    return Comparison(searched, Task(grades, lambda row: f"{row:05d}".encode(), "mrr_at_10", 10, rounds=1))


def test_exact_scores_are_brute_force(comparison: Comparison) -> None:
    facts = comparison.exact()
    for role, of in comparison.searched.items():
        products = of.queries @ of.documents.open().T
        ranked = np.argsort(-products, axis=1)[:, :10]
        expected = scores_of_queries(ranked, comparison.task.grades)
        for name, values in expected.items():
            assert facts[role][name] == pytest.approx(100 * values.mean())
        low, high = facts[role]["interval"]
        assert low <= facts[role]["mrr_at_10"] <= high
    ours, theirs = facts["model"]["mrr_at_10"], facts["compare"]["mrr_at_10"]
    assert ours < theirs
    assert facts["share_kept"] == facts["shares_kept"]["mrr_at_10"] == pytest.approx(100 * ours / theirs)
    assert facts["difference"]["value"] == pytest.approx(ours - theirs)
    assert facts["difference"]["interval"][1] < 0


def test_an_index_loses_what_exact_search_has_more(comparison: Comparison) -> None:
    exact = comparison.exact()
    flat = comparison.index("flat", IndexSettings())
    assert flat["model"]["index_loss"]["mrr_at_10"] == 0
    assert flat["model"]["overlap_at_10"] == 100
    assert flat["share_kept"] == pytest.approx(exact["share_kept"])
    ivf = comparison.index("ivf", IndexSettings(nlist=30, nprobe=1))
    for role in ("model", "compare"):
        lost = exact[role]["mrr_at_10"] - ivf[role]["mrr_at_10"]
        assert ivf[role]["index_loss"]["mrr_at_10"] == pytest.approx(lost)
        assert lost > 0
        assert 0 < ivf[role]["overlap_at_10"] < 100
        assert 0 < ivf[role]["milliseconds_p50"] <= ivf[role]["milliseconds_p95"]
        assert ivf[role]["bytes_per_document"] == pytest.approx(ivf[role]["index_bytes"] / DOCUMENTS, abs=0.01)
    assert 3 < flat["times_smaller"] < 4.1
    assert ivf["model"]["settings"] == {"nlist": 30, "nprobe": 1}
    codes = comparison.index("pq", IndexSettings(candidates=20))
    segments = [codes[role]["settings"]["segments"] for role in ("model", "compare")]
    assert segments[1] > segments[0]


def test_queries_without_anything_to_find_are_timed_and_not_scored(comparison: Comparison) -> None:
    facts = protocol("pairs", None, comparison.task, threads=1)
    assert facts["timed_queries"] == facts["single_queries"] == QUERIES
    assert "1 thread," in facts["statement"]
    assert "Recall@10, x 100" in facts["statement"]
    found = Found(np.zeros((4, 1), dtype=np.float32), np.array([[9], [1], [2], [9]]))
    assert scores_of_queries(found.documents, comparison.task.grades[:4])["mrr_at_10"].tolist() == [1, 1, 0]
