"""Which documents are held out, and which training passages are searched beside them: decided by hashes of the texts.

The hashes take eight bytes for each document and each passage; nothing else is kept of them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.passages.scan import Unit
from sentcompress.passages.words import mark

# Held out by default: this share, at least and at most so many, and never more than a quarter of the documents.
DEFAULT_SHARE = 0.05
FEWEST, MOST = 50, 500
LARGEST_SHARE = 0.25
# What tells repeated ids apart.
NUMBERED = re.compile(r"(~[0-9]+)+$")

Marks = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Choice:
    """What is held out.

    Attributes:
        first: [units] whether a unit is the first with its words; the others are dropped.
        held: [units] whether it is held out.
        dev: [units] whether it is held out and its queries belong to the part dev, as those of every other held-out
            unit do by the order of the hashes; the queries of the others belong to the part test.
        repeated_ids: [units] whether another unit has the same id, or would have it once ids are told apart by `~` and
            a number.
        held_passages: the marks of the passages of held-out units.
        sampled: the marks of the training passages that belong to the held-out collection.
        distinct_passages: the number of passages with words of their own.
    """

    first: npt.NDArray[np.bool_]
    held: npt.NDArray[np.bool_]
    dev: npt.NDArray[np.bool_]
    repeated_ids: npt.NDArray[np.bool_]
    held_passages: frozenset[int]
    sampled: frozenset[int]
    distinct_passages: int

    @property
    def units(self) -> int:
        """The number of distinct units."""
        return int(self.first.sum())


def choose(units: Iterable[Unit], share: float | None, corpus: int, seed: int) -> Choice:
    """Choose the held-out units, and training passages that fill their collection up to `corpus` passages.

    Units with the same words are one. A training passage with the words of a held-out one is not taken.

    Args:
        share: of the distinct units; None for the default.
    """
    marks, ids, stems, passages, counts = array("Q"), array("Q"), array("Q"), array("Q"), array("q")
    for unit in units:
        marks.append(mark(unit.text, seed))
        ids.append(mark(unit.id, 0))
        stems.append(mark(NUMBERED.sub("", unit.id), 0))
        passages.extend(mark(text, seed) for text in unit.passages)
        counts.append(len(unit.passages))
    whole = _marks(marks)
    distinct, places = np.unique(whole, return_index=True)
    first = np.zeros(len(whole), np.bool_)
    first[places] = True
    chosen = distinct[: held_out(len(distinct), share)]
    held, dev = np.isin(whole, chosen), np.isin(whole, chosen[1::2])
    every = _marks(passages)
    held_passages, sampled = _passages(every, np.frombuffer(counts, np.int64), first, held, corpus)
    return Choice(
        *(
            first,
            held,
            dev,
            _repeated(_marks(ids), _marks(stems)),
            frozenset(held_passages.tolist()),
            frozenset(sampled.tolist()),
        ),
        distinct_passages=len(np.unique(every)),
    )


def held_out(count: int, share: float | None) -> int:
    """How many of `count` units are held out: at least two, one for each part, but never all of several."""
    if share is None:
        wanted = min(MOST, max(FEWEST, round(DEFAULT_SHARE * count)), int(LARGEST_SHARE * count))
    else:
        wanted = round(share * count)
    return max(1, min(max(wanted, 2), count - 1))


def _passages(
    marks: Marks,
    counts: npt.NDArray[np.int64],
    first: npt.NDArray[np.bool_],
    held: npt.NDArray[np.bool_],
    corpus: int,
) -> tuple[Marks, Marks]:
    """The marks of the held-out passages, and of the training passages that are sampled."""
    owner_held, owner_first = np.repeat(held, counts), np.repeat(first, counts)
    held_passages = np.unique(marks[owner_held & owner_first])
    others = np.setdiff1d(marks[~owner_held & owner_first], held_passages)
    # They are sorted, and the marks are random, so the first of them are a sample.
    return held_passages, others[: max(0, corpus - len(held_passages))]


def _repeated(ids: Marks, stems: Marks) -> npt.NDArray[np.bool_]:
    """Whether an id is there twice, or has the stem of such an id: where `a` is there twice, one could become `a~7`."""
    _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return np.isin(stems, stems[counts[inverse] > 1])


def _marks(found: array[int]) -> Marks:
    return np.frombuffer(found, np.uint64)
