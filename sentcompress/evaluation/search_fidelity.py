"""Search fidelity: how much of one model's search results another model reproduces, measured without labels.

For each query, the gold model's k nearest documents are the relevant ones, graded by the gold model itself. Another
model is scored by nDCG@k (Järvelin and Kekäläinen, 2002) of its own exact ranking of all documents by cosine. A score
of 1 means that both models return the same documents in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.commands.shared import CUTOFF
from sentcompress.evaluation.similarity import normalized

GRADING = "linear"
# Cosines of a block of queries with all documents: at most 64 MB, or one query at a time.
BLOCK = 2**24
# Smaller differences are rounding errors of float32, which would rank duplicates of a document at random.
DECIMALS = 6
Vectors = npt.NDArray[np.floating]
Values = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Relevant:
    """The relevant documents of one query, by descending cosine.

    Attributes:
        documents: [R] at least k of them, more if some have the k-th cosine in common.
        ranks: [R] the number of documents with a larger cosine, so that equal documents have equal ranks.
        cosines: [R] with the query, by the gold model.
        next_cosine: the largest cosine of the documents that are not relevant; the smallest one here if all are.
    """

    documents: Rows
    ranks: Rows
    cosines: Values
    next_cosine: float


def _linear(of: Relevant, k: int) -> Values:
    return (k - of.ranks).astype(np.float64)


def _exponential(of: Relevant, k: int) -> Values:
    return np.asarray(2.0 ** (k - of.ranks) - 1)


def _reciprocal(of: Relevant, k: int) -> Values:
    return np.asarray(1 / (of.ranks + 1))


def _cosine(of: Relevant, k: int) -> Values:
    return np.maximum(of.cosines, 0)


def _margin(of: Relevant, k: int) -> Values:
    return np.maximum(of.cosines - of.next_cosine, 0)


def _equal(of: Relevant, k: int) -> Values:
    return np.ones(len(of.ranks))


# linear: k, k - 1, ..., 1 by rank; exponential: 2^linear - 1; reciprocal: 1, 1/2, 1/3, ...; cosine: the gold model's
# cosine; margin: that cosine less the one of the best document that is not relevant; equal: 1.
GRADINGS: Mapping[str, Callable[[Relevant, int], Values]] = {
    "linear": _linear,
    "exponential": _exponential,
    "reciprocal": _reciprocal,
    "cosine": _cosine,
    "margin": _margin,
    "equal": _equal,
}


@dataclass(frozen=True)
class GoldRanking:
    """The gold model's results, to be computed once and compared with any number of models.

    Attributes:
        relevant: of each of the Q queries.
        documents: N.
        k: cut-off of the ranking.
    """

    relevant: Sequence[Relevant]
    documents: int
    k: int

    @classmethod
    def of(cls, queries: Vectors, documents: Vectors, k: int = CUTOFF) -> GoldRanking:
        """The results of the gold model's own search.

        Args:
            queries: [Q, E] vectors of any length.
            documents: [N, E].
            k: cut-off, at most N is used.

        Raises:
            ValueError: if k is below 1, or there are no documents.
            UndefinedError: if a vector contains NaN or infinity.
        """
        if k < 1 or len(documents) == 0:
            raise ValueError("a ranking needs at least one document and a cut-off of at least 1")
        k = min(k, len(documents))
        return cls([_relevant(row, k) for row in _cosines(queries, documents)], len(documents), k)

    def ranks(self, queries: Vectors, documents: Vectors) -> Rows:
        """The ranks that the gold model gives to the first k results of another model's exact search.

        Queries and documents may come from two models that share a space: a student's queries and its teacher's
        documents. Documents with equal cosines are ranked in the worst order.

        Args:
            queries: [Q, D] vectors of any length, of the same queries as the gold model's.
            documents: [N, D] of the same documents.

        Returns:
            [Q, k] ranks from 0, in the order of the results; k for a document that is not relevant.

        Raises:
            ValueError: if the number of queries or documents differs from the gold model's.
            UndefinedError: if a vector contains NaN or infinity.
        """
        if (len(queries), len(documents)) != (len(self.relevant), self.documents):
            raise ValueError(
                f"{len(queries)} queries and {len(documents)} documents, where the gold model has "
                f"{len(self.relevant)} and {self.documents}"
            )
        rows = zip(_cosines(queries, documents), self.relevant, strict=True)
        return np.array([_ranks_of_results(row, of, self.k) for row, of in rows], dtype=np.int64).reshape(-1, self.k)

    def gains(self, ranks: Rows, grading: str = GRADING) -> Values:
        """nDCG@k of results, [Q] values from 0 to 1.

        A query whose relevant documents all have grade 0 has nothing to lose, and scores 1.

        Args:
            ranks: [Q, k] from `ranks`.
            grading: one of `GRADINGS`.
        """
        grade = GRADINGS[grading]
        rows = zip(ranks, self.relevant, strict=True)
        return np.array([_gain(row, grade(of, self.k), self.k) for row, of in rows], dtype=np.float64)


def search_fidelity(
    query_vectors: Vectors,
    document_vectors: Vectors,
    gold_queries: Vectors,
    gold_documents: Vectors,
    k: int = CUTOFF,
    grading: str = GRADING,
) -> Values:
    """nDCG@k of a model's search where the gold model's top k documents are relevant: [Q] values from 0 to 1.

    Args:
        query_vectors, document_vectors: [Q, D] and [N, D], of a model, or of two that share a space.
        gold_queries, gold_documents: [Q, E] and [N, E], of the gold model.
        k: cut-off.
        grading: one of `GRADINGS`.

    Raises:
        ValueError: if the numbers of queries or documents differ, or there are no documents.
        UndefinedError: if a vector contains NaN or infinity.
    """
    gold = GoldRanking.of(gold_queries, gold_documents, k)
    return gold.gains(gold.ranks(query_vectors, document_vectors), grading)


def _cosines(queries: Vectors, documents: Vectors) -> Iterator[npt.NDArray[np.float32]]:
    """The cosines of each query with all documents: Q times [N]."""
    unit_queries, unit_documents = normalized(queries)[0], normalized(documents)[0]
    step = max(1, BLOCK // len(documents))
    for start in range(0, len(queries), step):
        yield from np.round(unit_queries[start : start + step] @ unit_documents.T, DECIMALS)


def _best(cosines: npt.NDArray[np.float32], k: int) -> Rows:
    """The k documents with the largest cosines, in no order, and all that tie with the last."""
    return np.flatnonzero(cosines >= np.partition(cosines, len(cosines) - k)[len(cosines) - k])


def _relevant(cosines: npt.NDArray[np.float32], k: int) -> Relevant:
    documents = _best(cosines, k)
    documents = documents[np.argsort(-cosines[documents], kind="stable")]
    own = cosines[documents].astype(np.float64)
    others = np.delete(cosines, documents)
    ranks = np.searchsorted(-own, -own, side="left")
    return Relevant(documents, ranks, own, float(others.max() if len(others) else own[-1]))


def _ranks_of_results(cosines: npt.NDArray[np.float32], relevant: Relevant, k: int) -> Rows:
    """[k] ranks of the results of one query, by descending cosine; of equal ones, the worst rank first."""
    found = _best(cosines, k)
    sorter = np.argsort(relevant.documents)
    places = sorter[np.searchsorted(relevant.documents, found, sorter=sorter).clip(max=len(sorter) - 1)]
    ranks = np.where(relevant.documents[places] == found, relevant.ranks[places], k)
    return np.asarray(ranks[np.lexsort((-ranks, -cosines[found]))][:k])


def _gain(ranks: Rows, grades: Values, k: int) -> float:
    """nDCG@k of one query; the grade of rank r stands at r, since equal documents have the rank of the first."""
    ideal = _discounted(np.sort(grades)[::-1][:k])
    return _discounted(np.where(ranks < k, grades[ranks.clip(max=k - 1)], 0.0)) / ideal if ideal > 0 else 1.0


def _discounted(gains: Values) -> float:
    return float((gains / np.log2(np.arange(len(gains)) + 2)).sum())
