"""Retrieval by the Quora protocol of HPD: find the duplicates of a question among all second questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import reciprocal_ranks

CUTOFF = 10


@dataclass(frozen=True)
class Collection:
    """What is searched and what should be found.

    Attributes:
        documents: the distinct texts that are searched.
        queries: the distinct texts that are looked for.
        relevant: document numbers that count as found, for each query; empty for queries without any.
    """

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[frozenset[int], ...]

    @property
    def judged(self) -> int:
        """Queries that have something to find."""
        return sum(1 for wanted in self.relevant if wanted)


def collection_of_pairs(pairs: Sequence[tuple[str, str, bool]]) -> Collection:
    """(question1, question2, duplicate) -> corpus of distinct question2, queries of distinct question1.

    Relevant is every question2 that any line marks as a duplicate of the query.
    """
    documents: dict[str, int] = {}
    queries: dict[str, set[int]] = {}
    for first, second, duplicate in pairs:
        document = documents.setdefault(second, len(documents))
        wanted = queries.setdefault(first, set())
        if duplicate:
            wanted.add(document)
    return Collection(tuple(documents), tuple(queries), tuple(frozenset(wanted) for wanted in queries.values()))


def mean_reciprocal_rank(
    ranked: npt.NDArray[np.int64], relevant: Sequence[frozenset[int]], cutoff: int = CUTOFF
) -> float:
    """MRR@cutoff, 0 to 1, over the queries that have a relevant document; `ranked` is [Q, K] document numbers."""
    judged = np.array([bool(wanted) for wanted in relevant])
    return float(reciprocal_ranks(ranked, relevant, cutoff)[judged].mean())
