"""Choosing hard negatives among what a search found: arrays in, rows out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
STRATEGIES = ("random", "top")


@dataclass(frozen=True)
class Rules:
    """How to choose.

    Attributes:
        count: hard negatives of a pair.
        skip: the best so many candidates are passed over, since they may be answers that nobody judged.
        depth: candidates after those that are looked at.
        max_score: candidates that score above this share of the positive's score are taken for answers, too; None
            for no such limit.
        strategy: `top` takes the best of what remains, `random` draws from it.
    """

    count: int = 8
    skip: int = 0
    depth: int = 100
    max_score: float | None = 0.95
    strategy: str = "random"

    def faults(self) -> list[str]:
        """What is wrong with them, in the words of the command line."""
        found = []
        if self.count < 1:
            found.append(f"--negatives must be at least 1, not {self.count}")
        if self.skip < 0:
            found.append(f"--skip must be at least 0, not {self.skip}")
        if self.depth < self.count:
            found.append(f"--depth must be at least --negatives, {self.count}, not {self.depth}")
        if self.max_score is not None and not 0 < self.max_score <= 1:
            found.append(f"--max-score must be above 0 and at most 1, or 0 for no limit, not {self.max_score}")
        if self.strategy not in STRATEGIES:
            found.append(f"--strategy {self.strategy}: choose one of {', '.join(STRATEGIES)}")
        return found

    def limit(self, positive_score: float) -> float:
        """The highest score that a negative may have.

        A share of a negative score would lie above it; the same distance below is meant.
        """
        if self.max_score is None:
            return float("inf")
        return positive_score - (1 - self.max_score) * abs(positive_score)


@dataclass(frozen=True)
class Chosen:
    """The negatives of a pair, at most as many as asked for.

    Attributes:
        rows, scores: of the negatives, best first.
        considered: candidates that were looked at.
        suspected: those of the candidates that may be answers: passed over by rank or by score.
        dropped: how many of those by score.
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
        candidates, scores: [k] what the search found, best first; rows of -1 are none.
        answers: [m] rows that can be no negatives: all texts that answer the query, and the query's own.
        positive_score: of this pair's positive.
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
    """Up to `count` distinct rows of a corpus of `corpus` rows, at random, none of them forbidden."""
    taken = np.unique(forbidden)
    if 4 * (count + len(taken)) >= corpus:
        left = np.setdiff1d(np.arange(corpus), taken)
        return np.asarray(generator.permutation(left)[:count])
    # At least three quarters of the draws can be used; so many draws fail to bring `count` less than once in 10^9.
    drawn = generator.integers(0, corpus, size=4 * count + 40)
    fresh = drawn[~np.isin(drawn, taken)]
    first = np.sort(np.unique(fresh, return_index=True)[1])
    return np.asarray(fresh[first][:count])
