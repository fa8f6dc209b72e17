"""Selects the held-out documents, and the training passages that are searched with them, by hashes of the texts.

Two hashes are kept of each document and each passage, 16 bytes: its likeness, by which repeated ones are found, and its
mark, by which documents and passages are drawn.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.passages.scan import Unit
from sentcompress.passages.words import mark, mark_and_likeness

# Held out by default: DEFAULT_SHARE of the documents, but from FEWEST to MOST, and never more than LARGEST_SHARE.
DEFAULT_SHARE = 0.05
FEWEST, MOST = 50, 500
LARGEST_SHARE = 0.25
# The suffix that makes repeated ids distinct.
NUMBERED = re.compile(r"(~[0-9]+)+$")

Marks = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Choice:
    """What is held out.

    Attributes:
        first: [units] whether a unit is the first with its likeness; the others are dropped.
        held: [units] whether it is held out.
        dev: [units] whether it is held out and its queries belong to dev. These are every second held-out unit in the
            order of the hashes; the queries of the others belong to test.
        repeated_ids: [units] whether another unit has the same id, or would have it once ids are told apart by `~` and
            a number.
        held_passages: the likenesses of the passages of held-out units.
        sampled: the likenesses of the training passages that belong to the held-out collection.
        distinct_passages: the number of passages with different likenesses.
        largest: the largest share of the passages that belongs to one unit.
    """

    first: npt.NDArray[np.bool_]
    held: npt.NDArray[np.bool_]
    dev: npt.NDArray[np.bool_]
    repeated_ids: npt.NDArray[np.bool_]
    held_passages: frozenset[int]
    sampled: frozenset[int]
    distinct_passages: int
    largest: float

    @property
    def units(self) -> int:
        """The number of distinct units."""
        return int(self.first.sum())


def choose(units: Iterable[Unit], share: float | None, corpus: int, seed: int) -> Choice:
    """Choose the held-out units, and training passages that fill their collection up to `corpus` passages.

    Units with the same likeness count as one. A training passage with the likeness of a held-out one is left out.

    Args:
        share: share of the distinct units to hold out; None for the default.
    """
    ids, stems, counts = array("Q"), array("Q"), array("q")
    whole, passages = Drawing(), Drawing()
    for unit in units:
        whole.add(unit.text, seed)
        ids.append(mark(unit.id, 0))
        stems.append(mark(NUMBERED.sub("", unit.id), 0))
        for text in unit.passages:
            passages.add(text, seed)
        counts.append(len(unit.passages))
    alike, first, drawn = whole.likenesses, whole.first(), whole.drawn()
    chosen = drawn[: held_out(len(drawn), share)]
    held, dev = np.isin(alike, chosen), np.isin(alike, chosen[1::2])
    passages_of = np.frombuffer(counts, np.int64)
    held_passages, sampled = _passages(passages, passages_of, first, held, corpus)
    return Choice(
        *(
            first,
            held,
            dev,
            _repeated(_marks(ids), _marks(stems)),
            frozenset(held_passages.tolist()),
            frozenset(sampled.tolist()),
        ),
        distinct_passages=len(np.unique(passages.likenesses)),
        largest=float(passages_of[first].max(initial=0) / max(1, passages_of[first].sum())),
    )


class Drawing:
    """The hashes of texts: which of them are alike, and a random order of those that are not."""

    def __init__(self) -> None:
        self._marks, self._likenesses = array("Q"), array("Q")

    def add(self, text: str, seed: int) -> None:
        """Add a text."""
        number, alike = mark_and_likeness(text, seed)
        self._marks.append(number)
        self._likenesses.append(alike)

    @property
    def likenesses(self) -> Marks:
        """[texts] The likeness of each text."""
        return _marks(self._likenesses)

    def first(self) -> npt.NDArray[np.bool_]:
        """[texts] Whether a text is the first of those that are alike."""
        first = np.zeros(len(self._likenesses), np.bool_)
        first[np.unique(self.likenesses, return_index=True)[1]] = True
        return first

    def drawn(self, of: npt.NDArray[np.bool_] | None = None) -> Marks:
        """The distinct likenesses in random order.

        Args:
            of: [texts] which texts are to be drawn from; None for all.
        """
        places = np.arange(len(self._marks)) if of is None else np.flatnonzero(of)
        distinct, first = np.unique(self.likenesses[places], return_index=True)
        return distinct[np.argsort(_marks(self._marks)[places][first])]


def held_out(count: int, share: float | None) -> int:
    """How many of `count` units are held out: at least two, one for each part, but never all of several."""
    if share is None:
        wanted = min(MOST, max(FEWEST, round(DEFAULT_SHARE * count)), int(LARGEST_SHARE * count))
    else:
        wanted = round(share * count)
    return max(1, min(max(wanted, 2), count - 1))


def _passages(
    passages: Drawing,
    counts: npt.NDArray[np.int64],
    first: npt.NDArray[np.bool_],
    held: npt.NDArray[np.bool_],
    corpus: int,
) -> tuple[Marks, Marks]:
    """The likenesses of the held-out passages, and of the training passages that are sampled."""
    owner_held, owner_first = np.repeat(held, counts), np.repeat(first, counts)
    alike = passages.likenesses
    held_passages = np.unique(alike[owner_held & owner_first])
    others = passages.drawn(~owner_held & owner_first & ~np.isin(alike, held_passages))
    return held_passages, others[: max(0, corpus - len(held_passages))]


def _repeated(ids: Marks, stems: Marks) -> npt.NDArray[np.bool_]:
    """Whether an id is there twice, or has the stem of such an id: where `a` is there twice, one could become `a~7`."""
    _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return np.isin(stems, stems[counts[inverse] > 1])


def _marks(found: array[int]) -> Marks:
    return np.frombuffer(found, np.uint64)
