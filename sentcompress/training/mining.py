"""Mining of hard negatives: every query is searched for in the corpus, and negatives are chosen for its pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sentcompress.evaluation.index import Found
from sentcompress.evaluation.vector_rows import VectorRows, Vectors
from sentcompress.progress import Task
from sentcompress.training.hard_negatives import Rows, Rules, Scores, choose, draw

# Queries that are searched for at a time; what is held of each are a vector and its candidates.
QUERIES = 8192
# Random texts that are looked at for each one that is missing.
DRAWS = 16


@dataclass
class Tally:
    """What was found, summed over pairs.

    Attributes:
        pairs: those that got their negatives.
        positive_score, negative_score: sums over the positives, and over all negatives.
        found: pairs whose positive was among the candidates.
        considered, dropped: candidates looked at, and those that scored too near to the positive.
        padded_pairs, padded: pairs that got random texts of the corpus, and how many of those.
        too_few: pairs that were left out, since not enough texts could be their negatives.
    """

    pairs: int = 0
    positive_score: float = 0.0
    negative_score: float = 0.0
    found: int = 0
    considered: int = 0
    dropped: int = 0
    padded_pairs: int = 0
    padded: int = 0
    too_few: int = 0


@dataclass
class Miner:
    """Finds the negatives of (query, positive) pairs.

    Args:
        encode: vectors of queries, [n] texts -> [n, D].
        corpus: vectors of the corpus.
        search: the k best rows of the corpus for [n, D] queries.
        rules: how to choose.
        seed: every pair draws from a generator of its own, so nothing depends on how many are searched at a time.
    """

    encode: Callable[[Sequence[str]], Vectors]
    corpus: VectorRows
    search: Callable[[Vectors, int], Found]
    rules: Rules
    seed: int = 0
    tally: Tally = field(default_factory=Tally)

    def mine(self, queries: Sequence[str], pairs: Rows, own: Rows, task: Task) -> tuple[Rows, Rows]:
        """The negatives of all pairs.

        Args:
            queries: Q texts.
            pairs: [P, 2] number of the query and row of the positive; all answers to a query are in these pairs.
            own: [Q] the row with the query's own text, or -1.
            task: counts queries.

        Returns:
            [n, 2] the pairs that got negatives, by query; and [n, count] rows of those.
        """
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        kept: list[int] = []
        negatives: list[Rows] = []
        for start in range(0, len(queries), QUERIES):
            stop = min(start + QUERIES, len(queries))
            first, last = np.searchsorted(pairs[:, 0], (start, stop))
            for place, rows in enumerate(self._chunk(queries[start:stop], start, pairs, own, first, last), first):
                if rows is None:
                    self.tally.too_few += 1
                    continue
                kept.append(place)
                negatives.append(rows)
            task.advance(stop - start)
        return pairs[kept], np.array(negatives, dtype=np.int64).reshape(-1, self.rules.count)

    def _chunk(
        self, queries: Sequence[str], start: int, pairs: Rows, own: Rows, first: int, last: int
    ) -> list[Rows | None]:
        mine = pairs[first:last]
        vectors = self.encode(queries)
        answers = np.bincount(mine[:, 0] - start, minlength=len(queries))
        ends = np.cumsum(answers)
        wanted = self.rules.skip + self.rules.depth + int(answers.max()) + 1
        found = self.search(vectors, min(wanted, len(self.corpus)))
        corpus = self.corpus.open()
        chosen: list[Rows | None] = []
        for place, (query, positive) in enumerate(mine.tolist(), first):
            local = query - start
            judged = mine[ends[local] - answers[local] : ends[local], 1]
            score = float(vectors[local] @ corpus[positive])
            known = np.append(judged, own[query])
            hits = (found.documents[local], found.scores[local])
            rows, scores = self._of_pair(vectors[local], hits, known, score, np.random.default_rng([self.seed, place]))
            if len(rows) < self.rules.count:
                chosen.append(None)
                continue
            chosen.append(rows)
            self.tally.pairs += 1
            self.tally.found += int(positive in hits[0])
            self.tally.positive_score += score
            self.tally.negative_score += float(scores.sum())
        return chosen

    def _of_pair(
        self, query: Vectors, hits: tuple[Rows, Scores], known: Rows, positive: float, generator: np.random.Generator
    ) -> tuple[Rows, Scores]:
        """Rows and scores of the negatives, padded with random texts where the search found too few."""
        chosen = choose(*hits, known, positive, self.rules, generator)
        self.tally.considered += chosen.considered
        self.tally.dropped += chosen.dropped
        missing = self.rules.count - len(chosen.rows)
        if not missing:
            return chosen.rows, chosen.scores
        forbidden = np.concatenate([known[known >= 0], chosen.rows, chosen.suspected])
        drawn = draw(DRAWS * missing, len(self.corpus), forbidden, generator)
        scores = self.corpus.open()[drawn] @ query
        fitting = np.flatnonzero(scores <= self.rules.limit(positive))[:missing]
        if len(fitting) == missing:
            self.tally.padded_pairs += 1
            self.tally.padded += missing
        rows = np.concatenate([chosen.rows, drawn[fitting]])
        return rows, np.concatenate([chosen.scores, scores[fitting]])
