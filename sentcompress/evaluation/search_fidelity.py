"""Search fidelity: how much of one model's search results another model reproduces, measured without labels.

For each query, the gold model's k nearest documents are the relevant ones, with grades k to 1 by rank. Another model is
scored by nDCG@k (Järvelin and Kekäläinen, 2002) of its own exact ranking of all documents by cosine. A score of 1 means
that both models return the same documents in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.commands.shared import CUTOFF
from sentcompress.evaluation.similarity import normalized

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
    """

    documents: Rows
    ranks: Rows


@dataclass(frozen=True)
class GoldRanking:
    """The gold model's results, to be computed once and compared with any number of models.

    Attributes:
        relevant: the relevant documents of each of the Q queries.
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

    def gains(self, ranks: Rows) -> Values:
        """nDCG@k of results, [Q] values from 0 to 1: the document of rank r has the grade k - r.

        Args:
            ranks: [Q, k] from `ranks`.
        """
        rows = zip(ranks, self.relevant, strict=True)
        return np.array([_gain(row, of.ranks, self.k) for row, of in rows], dtype=np.float64)

    def fidelity(self, queries: Vectors, documents: Vectors) -> Values:
        """The search fidelity of another model, [Q] values from 0 to 1: `gains` of its `ranks`."""
        return self.gains(self.ranks(queries, documents))


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
    own = cosines[documents]
    return Relevant(documents, np.searchsorted(-own, -own, side="left"))


def _ranks_of_results(cosines: npt.NDArray[np.float32], relevant: Relevant, k: int) -> Rows:
    """[k] ranks of the results of one query, by descending cosine; of equal ones, the worst rank first."""
    found = _best(cosines, k)
    sorter = np.argsort(relevant.documents)
    places = sorter[np.searchsorted(relevant.documents, found, sorter=sorter).clip(max=len(sorter) - 1)]
    ranks = np.where(relevant.documents[places] == found, relevant.ranks[places], k)
    return np.asarray(ranks[np.lexsort((-ranks, -cosines[found]))][:k])


def _gain(results: Rows, relevant: Rows, k: int) -> float:
    """nDCG@k of one query, from the ranks of its results and of its relevant documents, k - rank being the grades."""
    return _discounted(k - results) / _discounted(k - relevant[:k])


def _discounted(grades: Rows) -> float:
    return float((grades / np.log2(np.arange(len(grades)) + 2)).sum())
