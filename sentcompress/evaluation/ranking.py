"""Ranking metrics per query, computed as in trec_eval.

MRR@10, Recall@k and nDCG@10 with linear gain and the logarithm of rank + 1. Documents with equal scores are ranked by
descending id, relevant documents missing from the corpus count as not found, and a query without results scores 0.
A test compares them with pytrec_eval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sentcompress.commands.shared import CUTOFF
from sentcompress.evaluation.index import Found
from sentcompress.evaluation.metrics import MRR, NDCG, RECALLS, recall_at

Grades = Sequence[Mapping[int, int]]
Floats = npt.NDArray[np.float64]


def in_order(found: Found, name_of: Callable[[int], bytes]) -> npt.NDArray[np.int64]:
    """[Q, k] documents by descending score, ties by descending id, as trec_eval sorts a run.

    Args:
        found: search results.
        name_of: document -> its id.
    """
    documents = found.documents.copy()
    scores = np.where(documents < 0, -np.inf, found.scores)
    tied = (scores[:, 1:] == scores[:, :-1]) & (documents[:, 1:] >= 0)
    unsorted = (scores[:, 1:] > scores[:, :-1]).any(axis=1)
    for query in np.flatnonzero(tied.any(axis=1) | unsorted).tolist():
        there = np.flatnonzero(documents[query] >= 0)
        row = documents[query, there].tolist()
        keys = [(score, name_of(document)) for score, document in zip(scores[query, there].tolist(), row, strict=True)]
        order = sorted(range(len(row)), key=keys.__getitem__, reverse=True)
        documents[query] = -1
        documents[query, : len(row)] = [row[place] for place in order]
    return documents


def recall_cutoffs(depth: int) -> tuple[int, ...]:
    """The cut-offs at which Recall is defined if `depth` documents are retrieved."""
    return tuple(cutoff for cutoff in RECALLS if cutoff <= depth)


def scores_of_queries(ranked: npt.NDArray[np.int64], grades: Grades) -> dict[str, Floats]:
    """All metrics for each query that has a relevant document.

    Args:
        ranked: [Q, k] documents, best first, padded with -1.
        grades: for each of the Q queries, document -> grade above zero.

    Returns:
        MRR, NDCG and `recall_at` the cut-offs up to k -> [J] values from 0 to 1, for the J queries in order.
    """
    judged = [query for query, wanted in enumerate(grades) if wanted]
    cutoffs = recall_cutoffs(ranked.shape[1])
    scores = {name: np.zeros(len(judged)) for name in (MRR, NDCG)}
    scores |= {recall_at(cutoff): np.zeros(len(judged)) for cutoff in cutoffs}
    for place, query in enumerate(judged):
        wanted = grades[query]
        ranks = np.flatnonzero(np.isin(ranked[query], list(wanted)))
        top = ranks[ranks < CUTOFF]
        if len(top):
            scores[MRR][place] = 1 / (top[0] + 1)
            gains = np.array([wanted[document] for document in ranked[query, top].tolist()])
            scores[NDCG][place] = _discounted(gains, top) / _ideal(wanted)
        for cutoff in cutoffs:
            scores[recall_at(cutoff)][place] = np.count_nonzero(ranks < cutoff) / len(wanted)
    return scores


def first_relevant(ranked: npt.NDArray[np.int64], grades: Grades) -> Floats:
    """Whether the first document is relevant, 1 or 0, for each query that has a relevant document.

    Args:
        ranked, grades: see `scores_of_queries`.
    """
    rows = zip(ranked[:, 0].tolist(), grades, strict=True)
    return np.array([float(first in wanted) for first, wanted in rows if wanted])


def overlap(found: npt.NDArray[np.int64], exact: npt.NDArray[np.int64], cutoff: int = CUTOFF) -> float:
    """Mean fraction of the exact top `cutoff` documents that are also in the index's top `cutoff`, 0 to 1."""
    shares = []
    for row, best in zip(found[:, :cutoff].tolist(), exact[:, :cutoff].tolist(), strict=True):
        wanted = set(best) - {-1}
        shares.append(len(wanted & set(row)) / len(wanted))
    return float(np.mean(shares))


def _discounted(gains: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64]) -> float:
    """Discounted cumulative gain; ranks start at 0."""
    return float((gains / np.log2(ranks + 2)).sum())


def _ideal(wanted: Mapping[int, int]) -> float:
    best = np.sort(np.array(list(wanted.values())))[::-1][:CUTOFF]
    return _discounted(best, np.arange(len(best)))
