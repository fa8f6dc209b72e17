"""Hard negatives: each query is searched for in the corpus, and negatives are chosen for its pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.index import Found
from sentcompress.evaluation.vector_rows import VectorRows, Vectors
from sentcompress.mining.gathering import Rows
from sentcompress.progress import Task

Scores = npt.NDArray[np.float32]
# Queries per search; memory holds a vector and the candidates of each.
QUERIES = 8192
# Random texts that are tried for each missing negative.
DRAWS = 16


def chunk_sizes(queries: int) -> list[int]:
    """The queries of each chunk that is searched for together."""
    return [min(QUERIES, queries - start) for start in range(0, queries, QUERIES)]


@dataclass(frozen=True)
class Rules:
    """How negatives are chosen.

    Attributes:
        count: hard negatives per pair.
        skip: skip this many of the best candidates, which may be unlabelled positives.
        depth: the number of candidates considered after those.
        max_score: drop candidates that score above this share of the positive's score, which may be unlabelled
            positives too; None for no limit.
        strategy: `top` takes the best remaining candidates, `random` draws from them.
    """

    count: int = 8
    skip: int = 0
    depth: int = 100
    max_score: float | None = 0.95
    strategy: str = "random"

    def limit(self, positive_score: float) -> float:
        """The highest score of a negative.

        It is `max_score` of the positive's score. For a positive with a negative score, that product would be higher
        than the score itself, so the limit is the same distance below it.
        """
        if self.max_score is None:
            return float("inf")
        return positive_score - (1 - self.max_score) * abs(positive_score)


@dataclass(frozen=True)
class Chosen:
    """The negatives of a pair, possibly fewer than requested.

    Attributes:
        rows, scores: rows and scores of the negatives, best first.
        considered: the number of candidates considered.
        suspected: candidates that may be unlabelled positives, skipped by rank or by score.
        dropped: how many of them were dropped by score.
    """

    rows: Rows
    scores: Scores
    considered: int
    suspected: Rows
    dropped: int


def choose(
    candidates: Rows,
    scores: Scores,
    answers: Rows,
    positive_score: float,
    rules: Rules,
    generator: np.random.Generator,
) -> Chosen:
    """The negatives of one pair.

    Args:
        candidates, scores: [k] rows and scores of the search results, best first; a row of -1 is no result.
        answers: [m] rows that cannot be negatives: all texts that answer the query, and the query's own text.
        positive_score: the score of this pair's positive.
        rules: how to choose.
        generator: draws if the strategy is `random`.
    """
    other = (candidates >= 0) & ~np.isin(candidates, answers)
    rows, found = candidates[other], scores[other]
    skipped, rows, found = rows[: rules.skip], rows[rules.skip :][: rules.depth], found[rules.skip :][: rules.depth]
    fitting = found <= rules.limit(positive_score)
    suspected = np.concatenate([skipped, rows[~fitting]])
    kept = np.flatnonzero(fitting)
    if rules.strategy == "random" and len(kept) > rules.count:
        kept = np.sort(generator.choice(kept, size=rules.count, replace=False))
    kept = kept[: rules.count]
    return Chosen(rows[kept], found[kept], len(rows), suspected, int((~fitting).sum()))


def draw(count: int, corpus: int, forbidden: Rows, generator: np.random.Generator) -> Rows:
    """Up to `count` distinct random rows of a corpus of `corpus` rows, without the forbidden ones."""
    taken = np.unique(forbidden)
    if 4 * (count + len(taken)) >= corpus:
        left = np.setdiff1d(np.arange(corpus), taken)
        return np.asarray(generator.permutation(left)[:count])
    # At least three quarters of the draws are usable; this many yield fewer than `count` less than once in 10^9.
    drawn = generator.integers(0, corpus, size=4 * count + 40)
    fresh = drawn[~np.isin(drawn, taken)]
    first = np.sort(np.unique(fresh, return_index=True)[1])
    return np.asarray(fresh[first][:count])


@dataclass
class MiningCounts:
    """What was found, summed over pairs.

    Attributes:
        pairs: pairs with all their negatives.
        positive_score, negative_score: sums over the positives, and over all negatives.
        found: pairs whose positive was among the candidates.
        considered, dropped: candidates considered, and those dropped because of their score.
        padded_pairs, padded: pairs with random texts as negatives, and the number of those texts.
        too_few: pairs that were dropped because too few texts could be their negatives.
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
        seed: each pair has its own generator, so results do not depend on QUERIES.
        counts: updated while mining.
    """

    encode: Callable[[Sequence[str]], Vectors]
    corpus: VectorRows
    search: Callable[[Vectors, int], Found]
    rules: Rules
    seed: int = 0
    counts: MiningCounts = field(default_factory=MiningCounts)

    def mine(
        self, queries: Sequence[str], pairs: Rows, own: Rows, task: Task, chunks: range | None = None
    ) -> tuple[Rows, Rows]:
        """The negatives of all pairs.

        Args:
            queries: Q texts.
            pairs: [P, 2] number of the query and row of the positive, with all answers to each query.
            own: [Q] the row with the query's own text, or -1.
            task: counts queries.
            chunks: numbers of the chunks to mine, each of QUERIES queries; None: all.

        Returns:
            [n, 2] the pairs with negatives, by query; and [n, count] rows of their negatives.
        """
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        kept: list[int] = []
        negatives: list[Rows] = []
        starts = range(0, len(queries), QUERIES)
        for start in starts if chunks is None else starts[chunks.start : chunks.stop]:
            stop = min(start + QUERIES, len(queries))
            first, last = np.searchsorted(pairs[:, 0], (start, stop))
            for place, rows in enumerate(self._chunk(queries[start:stop], start, pairs, own, first, last), first):
                if rows is None:
                    self.counts.too_few += 1
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
            self.counts.pairs += 1
            self.counts.found += int(positive in hits[0])
            self.counts.positive_score += score
            self.counts.negative_score += float(scores.sum())
        return chosen

    def _of_pair(
        self, query: Vectors, hits: tuple[Rows, Scores], known: Rows, positive: float, generator: np.random.Generator
    ) -> tuple[Rows, Scores]:
        """Rows and scores of the negatives, padded with random texts if the search found too few."""
        chosen = choose(*hits, known, positive, self.rules, generator)
        self.counts.considered += chosen.considered
        self.counts.dropped += chosen.dropped
        missing = self.rules.count - len(chosen.rows)
        if not missing:
            return chosen.rows, chosen.scores
        forbidden = np.concatenate([known[known >= 0], chosen.rows, chosen.suspected])
        drawn = draw(DRAWS * missing, len(self.corpus), forbidden, generator)
        scores = self.corpus.open()[drawn] @ query
        fitting = np.flatnonzero(scores <= self.rules.limit(positive))[:missing]
        if len(fitting) == missing:
            self.counts.padded_pairs += 1
            self.counts.padded += missing
        rows = np.concatenate([chosen.rows, drawn[fitting]])
        return rows, np.concatenate([chosen.scores, scores[fitting]])
