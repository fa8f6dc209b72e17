"""Triplets of row numbers: a premise, a sentence that it entails, and one that contradicts it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.records import Relation


class TripletCollector:
    """Collects labelled pairs and ready triplets by row number, 17 and 24 bytes each.

    Pairs give one triplet a premise, as in SimCSE: its first entailment and its first contradiction in file order.
    A premise that lacks either gives none. Ready triplets are kept as they are.
    """

    def __init__(self) -> None:
        self._premises = array("q")
        self._hypotheses = array("q")
        self._labels = array("b")
        self._ready = array("q")

    def add(self, rows: Sequence[int], relation: Relation) -> None:
        """Take note of one record; rows below 0 are sentences that were left out."""
        if min(rows) < 0 or len(set(rows)) < len(rows):
            return
        if relation is Relation.TRIPLET:
            self._ready.extend(rows)
        elif relation in (Relation.ENTAILMENT, Relation.CONTRADICTION):
            self._premises.append(rows[0])
            self._hypotheses.append(rows[1])
            self._labels.append(int(relation))

    def finish(self) -> npt.NDArray[np.int64]:
        """All triplets, [n, 3] rows (anchor, positive, negative): of pairs by premise, then the ready ones."""
        premises = np.frombuffer(self._premises, dtype=np.int64) if self._premises else np.empty(0, np.int64)
        hypotheses = np.frombuffer(self._hypotheses, dtype=np.int64) if self._hypotheses else np.empty(0, np.int64)
        labels = np.frombuffer(self._labels, dtype=np.int8) if self._labels else np.empty(0, np.int8)
        chosen = []
        for relation in (Relation.ENTAILMENT, Relation.CONTRADICTION):
            mine = labels == int(relation)
            anchors, first = np.unique(premises[mine], return_index=True)
            chosen.append((anchors, hypotheses[mine][first]))
        (with_positive, positives), (with_negative, negatives) = chosen
        anchors, left, right = np.intersect1d(with_positive, with_negative, assume_unique=True, return_indices=True)
        paired = np.stack([anchors, positives[left], negatives[right]], axis=1)
        paired = paired[paired[:, 1] != paired[:, 2]]
        ready = np.frombuffer(self._ready, dtype=np.int64).reshape(-1, 3) if self._ready else paired[:0]
        together = np.concatenate([paired, ready])
        _, first = np.unique(together, axis=0, return_index=True)
        return together[np.sort(first)]
