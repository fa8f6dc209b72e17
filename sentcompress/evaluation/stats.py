"""Bootstrap intervals: percentile intervals of means and of correlations, and of paired differences.

Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. What was sampled is drawn again with
replacement: pairs of STS, queries, test examples, sentences. Both models of a comparison see the same draws, so that
what both find hard or easy cancels out of their difference.

A mean only needs how often each distinct value is drawn, which is multinomial. A correlation has to rank every draw
anew, which needs no sorting: a draw holds only values of the sample, so the sample is sorted once into groups of equal
values, and a group's mean rank in a draw follows from how often it and the groups before it were drawn. That gives the
ranks that `scipy.stats.rankdata` gives of the drawn values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import Floats, UndefinedError
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, NO_INTERVAL, Difference, Interval, Recorder

Values = npt.NDArray[np.float64]
COVERAGE = 95
# The percent of draws below an interval. That of means is 2.5 but for its last digit, which the published intervals
# were computed with: another one would change the last digits of every one of them.
BELOW, BELOW_MEANS = (100 - COVERAGE) / 2, 100 * (1 - COVERAGE / 100) / 2
# Draws without any spread have no correlation. With more of them than this share, an interval would mislead.
UNDEFINED_SHARE = 0.05
# Numbers that are held at a time while means are drawn.
BLOCK = 2**22
# Numbers of one array of correlations that are worked on at a time; they stay in the processor's cache.
CHUNK = 2**17


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: `rounds` draws (0 for none) from a generator started with `seed`."""

    rounds: int = 1000
    seed: int = 0

    def generator(self, name: str) -> np.random.Generator:
        """Draws of one set, the same whatever other sets stand beside it."""
        return np.random.default_rng((self.seed, zlib.crc32(name.encode("utf-8"))))

    @property
    def statement(self) -> str:
        """The words of a protocol."""
        if not self.rounds:
            return "no intervals"
        return f"intervals: the middle {COVERAGE}% of {self.rounds:,} bootstrap draws"


NO_RESAMPLING = Resampling(0)


@dataclass(frozen=True)
class Estimate:
    """A value and what it is in each draw, [rounds]."""

    value: float
    draws: Values

    @property
    def interval(self) -> Interval | None:
        """The percentile interval; None without draws."""
        return interval(self.draws)

    def less(self, other: Estimate) -> Estimate:
        """The difference, paired by draw."""
        return Estimate(self.value - other.value, self.draws - other.draws)


def record(
    recorder: Recorder,
    data: str,
    metric: str,
    estimates: Mapping[str, Estimate],
    *,
    part: str = "",
    count: int | None = None,
    difference: float | None = None,
    shared: bool = True,
) -> None:
    """Record a metric of one part of a data set with its intervals, and the paired difference.

    Args:
        estimates: role -> estimate.
        difference: of the values, where it is not just that.
        part, count, shared: see `Recorder.add`.
    """
    less = None
    if COMPARE in estimates:
        paired = estimates[MODEL].less(estimates[COMPARE])
        less = Difference(paired.value if difference is None else difference, paired.interval)
    values = {role: of.value for role, of in estimates.items()}
    intervals = {role: of.interval for role, of in estimates.items()}
    recorder.add(data, metric, values, part=part, count=count, intervals=intervals, difference=less, shared=shared)


def record_mean(
    recorder: Recorder, metric: str, estimates: Sequence[Mapping[str, Estimate]], count: int | None = None
) -> None:
    """Record the mean over sets or tasks, each role -> estimate."""
    mean = {
        role: Estimate(mean_of_sets([of[role].value for of in estimates]), _mean([of[role].draws for of in estimates]))
        for role in estimates[0]
    }
    rounded = round(mean[MODEL].value - mean[COMPARE].value, 2) if COMPARE in mean else None
    record(recorder, MEAN, metric, mean, count=count, difference=rounded)


def mean_of_sets(scores: Sequence[float]) -> float:
    """The mean that papers print: of scores already rounded to two decimals, rounded itself."""
    if not scores:
        raise UndefinedError("no set has a score")
    return round(sum(round(score, 2) for score in scores) / len(scores), 2)


def _mean(draws: Sequence[Values]) -> Values:
    return np.asarray(np.mean(draws, axis=0))


def interval(draws: Values, below: float = BELOW) -> Interval | None:
    """The middle 95% of a statistic's draws; None without draws, NaN where too many of them have no value."""
    defined = draws[np.isfinite(draws)]
    if len(draws) == 0:
        return None
    if len(defined) == 0 or len(defined) < (1 - UNDEFINED_SHARE) * len(draws):
        return NO_INTERVAL
    low, high = np.percentile(defined, [below, 100 - below])
    return Interval(float(low), float(high))


def mean_interval(values: npt.NDArray[np.floating], resampling: Resampling, scale: float = 1) -> Interval | None:
    """The interval of `scale` times the mean of [N] values; None without rounds.

    Raises:
        ValueError: if there are no values, or one is NaN or infinite.
    """
    if len(values) == 0 or not np.isfinite(values).all():
        raise ValueError("an interval needs values, all of them finite")
    # Scores take few distinct values (reciprocal ranks eleven), and how often each is drawn is multinomial.
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    generator = np.random.default_rng(resampling.seed)
    means = np.empty(resampling.rounds)
    step = max(1, BLOCK // len(distinct))
    for start in range(0, len(means), step):
        drawn = generator.multinomial(len(values), counts / len(values), size=min(step, len(means) - start))
        means[start : start + len(drawn)] = drawn @ distinct / len(values)
    found = interval(means, BELOW_MEANS)
    return found and Interval(scale * found.low, scale * found.high)


def paired_mean_interval(
    ours: npt.NDArray[np.floating], theirs: npt.NDArray[np.floating], resampling: Resampling, scale: float = 1
) -> Interval | None:
    """The interval of `scale` times mean(ours - theirs), both [N] scores of the same items in the same order.

    Raises:
        ValueError: as `mean_interval`, or if the two differ in number.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} scores are not of the same items")
    return mean_interval(np.asarray(ours, dtype=np.float64) - theirs, resampling, scale)


@dataclass(frozen=True)
class Draws:
    """Correlations x 100 of each draw, both [rounds]; NaN where a draw had no spread."""

    spearman: Values
    pearson: Values


@dataclass(frozen=True)
class SetDraws:
    """Draws of one model on one set: of the whole set, and of each of its subsets."""

    whole: Draws
    subsets: Sequence[Draws]


def draw_set(
    name: str,
    gold: Sequence[Floats],
    predicted: Mapping[str, Sequence[Floats]],
    aggregate: str,
    resampling: Resampling,
) -> dict[str, SetDraws]:
    """Correlations of every draw of a set, for each model.

    Args:
        name: of the set; with the seed it decides the draws.
        gold: the gold scores of each subset, [n] each.
        predicted: model -> its similarities, by subset as `gold`.
        aggregate: all, mean or wmean, see `evaluation.sts.AGGREGATES`.
    """
    sizes = [len(scores) for scores in gold]
    parts = [_Sample(scores, {role: of[n] for role, of in predicted.items()}) for n, scores in enumerate(gold)]
    joined = _Sample(np.concatenate(gold), {role: np.concatenate(of) for role, of in predicted.items()})
    pieces: list[list[dict[str, Draws]]] = []
    for counts in _counts(sizes, resampling.rounds, resampling.generator(name)):
        subsets = [part.correlations(drawn) for part, drawn in zip(parts, counts, strict=True)]
        one_for_all = aggregate == "all" and len(parts) > 1
        pieces.append([joined.correlations(np.concatenate(counts)) if one_for_all else subsets[0], *subsets])
    weights = sizes if aggregate == "wmean" else [1] * len(sizes)
    return {role: _assemble([[piece[role] for piece in p] for p in pieces], aggregate, weights) for role in predicted}


def _assemble(pieces: Sequence[Sequence[Draws]], aggregate: str, weights: Sequence[int]) -> SetDraws:
    joined = [
        Draws(np.concatenate([d.spearman for d in column]), np.concatenate([d.pearson for d in column]))
        for column in zip(*pieces, strict=True)
    ]
    whole, subsets = joined[0], joined[1:]
    if aggregate != "all":
        whole = Draws(
            np.average([subset.spearman for subset in subsets], axis=0, weights=weights),
            np.average([subset.pearson for subset in subsets], axis=0, weights=weights),
        )
    return SetDraws(whole, subsets)


def draw_counts(size: int, rounds: int, generator: np.random.Generator) -> Values:
    """How often each of `size` items is drawn in each of `rounds` draws of that many, with replacement: [n, r]."""
    drawn = generator.integers(0, size, size=(size, rounds)) * rounds + np.arange(rounds)
    return np.bincount(drawn.ravel(), minlength=size * rounds).reshape(size, rounds).astype(np.float64)


def _counts(sizes: Sequence[int], rounds: int, generator: np.random.Generator) -> Iterator[list[Values]]:
    """Counts of each subset, [n, r] each, some rounds at a time; without any rounds once [n, 0]."""
    step = max(1, CHUNK // sum(sizes))
    for start in range(0, max(rounds, 1), step):
        yield [draw_counts(size, min(step, rounds - start), generator) for size in sizes]


class _Sample:
    """Pairs to draw from: gold scores and the similarities of each model."""

    def __init__(self, gold: Floats, predicted: Mapping[str, Floats]) -> None:
        self._gold = _Column(gold)
        self._predicted = {role: _Column(values) for role, values in predicted.items()}

    def correlations(self, counts: Values) -> dict[str, Draws]:
        """Both correlations of each draw; `counts` [n, r]."""
        ranks = self._gold.ranks(counts)
        weighted = ranks * counts
        spread = _dot(weighted, ranks)
        found = {}
        for role, column in self._predicted.items():
            own = column.ranks(counts)
            products = _dot(weighted, own)
            own_spread = _dot(own, own * counts)
            found[role] = Draws(100 * _ratio(products, spread, own_spread), 100 * self._pearson(column, counts))
        return found

    def _pearson(self, column: _Column, counts: Values) -> Values:
        x, y = self._gold.values, column.values
        moments = counts.T @ np.stack([x, y, x * x, y * y, x * y], axis=1) / len(counts)
        mean_x, mean_y, xx, yy, xy = moments.T
        # Below this share of the whole sample's variance (1) there is nothing left but rounding.
        x_spread, y_spread = (np.where(v > 1e-12, v, 0.0) for v in (xx - mean_x**2, yy - mean_y**2))
        return _ratio(xy - mean_x * mean_y, x_spread, y_spread)


class _Column:
    """One variable: its standardised values, and what ranking its draws takes."""

    def __init__(self, values: Floats) -> None:
        wide = values.astype(np.float64)
        spread = wide.std()
        self.values = (wide - wide.mean()) / (spread if spread > 0 else 1.0)
        _, self._codes, sizes = np.unique(wide, return_inverse=True, return_counts=True)
        self._order = np.argsort(wide, kind="stable")
        self._ends = np.cumsum(sizes) - 1

    def ranks(self, counts: Values) -> Values:
        """Mean ranks of all items within each draw, less the mean of all ranks: [n, r] counts -> [n, r]."""
        ends = np.cumsum(counts[self._order], axis=0)[self._ends]
        own = np.diff(ends, axis=0, prepend=0.0)
        middle = ends - (own - 1) / 2 - (len(counts) + 1) / 2
        return np.asarray(middle[self._codes])


def _dot(x: Values, y: Values) -> Values:
    """Products of the columns of two [n, r]."""
    return np.asarray(np.einsum("nr,nr->r", x, y))


def _ratio(products: Values, x_spread: Values, y_spread: Values) -> Values:
    spread = np.sqrt(x_spread * y_spread)
    return np.divide(products, spread, out=np.full_like(products, np.nan), where=spread > 0)
