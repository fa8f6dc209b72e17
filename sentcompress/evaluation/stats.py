"""Bootstrap percentile intervals of means, correlations and paired differences.

Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. The items (STS pairs, queries, test
examples, sentences) are resampled with replacement. Both models of a comparison use the same bootstrap samples, so
items that are hard or easy for both cancel out in the difference.

Items that depend on each other, such as queries made from one document, are drawn together, as a cluster (Davison and
Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8).

A mean depends only on how often each distinct value is drawn, and these counts are multinomial. A correlation needs
ranks within each bootstrap sample, but no sorting: the data are sorted once into groups of equal values, and a group's
mean rank follows from how often it and the groups before it were drawn. The ranks equal those of
`scipy.stats.rankdata` on the drawn values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, NO_INTERVAL, Difference, Interval, Recorder
from sentcompress.evaluation.similarity import Floats, UndefinedError

Values = npt.NDArray[np.float64]
COVERAGE = 95
# Percent of bootstrap samples below an interval. That of means is 2.5 except for its last bit, which determines the
# last digits of all published intervals.
BELOW, BELOW_MEANS = (100 - COVERAGE) / 2, 100 * (1 - COVERAGE / 100) / 2
# The quantile of the normal distribution for COVERAGE.
Z = 1.959963984540054
# Constant bootstrap samples have no correlation. If more than this fraction are, an interval would mislead.
UNDEFINED_SHARE = 0.05
# Array elements per block when resampling means.
BLOCK = 2**22
# Array elements per block when resampling correlations; chosen to fit into the CPU cache.
CHUNK = 2**17


@dataclass(frozen=True)
class Resampling:
    """Bootstrap settings: `rounds` samples (0 for no intervals), and the seed."""

    rounds: int = 1000
    seed: int = 0

    def generator(self, name: str) -> np.random.Generator:
        """The generator of one data set, independent of which other data sets are evaluated."""
        return np.random.default_rng((self.seed, zlib.crc32(name.encode("utf-8"))))

    def statement(self, items: str) -> str:
        """A statement for the protocol; `items` says what is drawn."""
        if not self.rounds:
            return "no intervals"
        return f"intervals: the middle {COVERAGE}% of {self.rounds:,} bootstrap samples of {items}"


@dataclass(frozen=True)
class Estimate:
    """A value, and its value in each bootstrap sample, [rounds]."""

    value: float
    draws: Values

    @property
    def interval(self) -> Interval | None:
        """The percentile interval; None without bootstrap samples."""
        return interval(self.draws)

    def less(self, other: Estimate) -> Estimate:
        """The paired difference."""
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
    """Record a metric on one part of a data set with intervals and the paired difference.

    Args:
        estimates: role -> estimate.
        difference: replaces the plain difference of the values.
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
    """Record the mean over data sets.

    Args:
        estimates: for each data set, role -> estimate.
    """
    mean = {
        role: Estimate(mean_of_sets([of[role].value for of in estimates]), _mean([of[role].draws for of in estimates]))
        for role in estimates[0]
    }
    rounded = round(mean[MODEL].value - mean[COMPARE].value, 2) if COMPARE in mean else None
    record(recorder, MEAN, metric, mean, count=count, difference=rounded)


def mean_of_sets(scores: Sequence[float]) -> float:
    """The mean as papers print it: scores are rounded to two decimals first, and so is the mean.

    Raises:
        UndefinedError: if there are no scores.
    """
    if not scores:
        raise UndefinedError("no set has a score")
    return round(sum(round(score, 2) for score in scores) / len(scores), 2)


def _mean(draws: Sequence[Values]) -> Values:
    return np.asarray(np.mean(draws, axis=0))


def interval(draws: Values, below: float = BELOW) -> Interval | None:
    """The middle 95% of the bootstrap values; None if there are none, NaN if too many are undefined."""
    defined = draws[np.isfinite(draws)]
    if len(draws) == 0:
        return None
    if len(defined) == 0 or len(defined) < (1 - UNDEFINED_SHARE) * len(draws):
        return NO_INTERVAL
    low, high = np.percentile(defined, [below, 100 - below])
    return Interval(float(low), float(high))


def mean_interval(
    values: npt.NDArray[np.floating], resampling: Resampling, scale: float = 1, clusters: Sequence[str] | None = None
) -> Interval | None:
    """The interval of `scale` times the mean of [N] values from 0 to 1; None if `rounds` is 0.

    If all values are 0, or all are 1, every bootstrap sample is the same; Wilson's interval (1927) for as many
    proportions as there are clusters replaces it.

    Args:
        clusters: [N] names; values of the same name are drawn together, those of an empty name one by one. None for
            values that are independent.

    Raises:
        ValueError: if there are no values, one is NaN or infinite, or there are not as many clusters.
    """
    sums, sizes = _of_clusters(np.asarray(values, dtype=np.float64), clusters)
    found = _mean_interval(sums, sizes, resampling, scale)
    value, count = values[0], len(sums)
    if found is None or value not in (0, 1) or (values != value).any():
        return found
    missed = scale * Z * Z / (count + Z * Z)
    return Interval(scale - missed, scale) if value else Interval(0.0, missed)


def _of_clusters(values: Values, clusters: Sequence[str] | None) -> tuple[Values, Values]:
    """The sum and the number of the values of each cluster, both [clusters]."""
    if clusters is None:
        return values, np.ones_like(values)
    if len(clusters) != len(values):
        raise ValueError(f"{len(values)} values and {len(clusters)} names of clusters")
    places: dict[str | int, int] = {}
    codes = [places.setdefault(name or row, len(places)) for row, name in enumerate(clusters)]
    sums, sizes = (np.bincount(codes, weights).astype(np.float64) for weights in (values, None))
    return sums, sizes


def _mean_interval(sums: Values, sizes: Values, resampling: Resampling, scale: float) -> Interval | None:
    """The interval of `scale` times the mean of values of which `sizes` occur together and have these `sums`."""
    if len(sums) == 0 or not np.isfinite(sums).all():
        raise ValueError("an interval needs at least one value, and only finite ones")
    # Scores take few distinct values (reciprocal ranks: eleven).
    distinct, counts = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_counts=True)
    generator = np.random.default_rng(resampling.seed)
    means = np.empty(resampling.rounds)
    step = max(1, BLOCK // len(distinct))
    for start in range(0, len(means), step):
        drawn = generator.multinomial(len(sums), counts / len(sums), size=min(step, len(means) - start))
        means[start : start + len(drawn)] = drawn @ distinct[:, 0] / (drawn @ distinct[:, 1])
    found = interval(means, BELOW_MEANS)
    return found and Interval(scale * found.low, scale * found.high)


def paired_mean_interval(
    ours: npt.NDArray[np.floating], theirs: npt.NDArray[np.floating], resampling: Resampling, scale: float = 1
) -> Interval | None:
    """The interval of `scale` times mean(ours - theirs): [N] scores of the same items in the same order.

    Raises:
        ValueError: as for `mean_interval`, or if the lengths differ.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} scores are not of the same items")
    differences = np.asarray(ours, dtype=np.float64) - theirs
    return _mean_interval(differences, np.ones_like(differences), resampling, scale)


@dataclass(frozen=True)
class Draws:
    """Correlations x 100 of each bootstrap sample, both [rounds]; NaN where a sample was constant."""

    spearman: Values
    pearson: Values


@dataclass(frozen=True)
class SetDraws:
    """Bootstrap correlations of one model on one STS set: on the whole set and on each subset."""

    whole: Draws
    subsets: Sequence[Draws]


def draw_set(
    name: str,
    gold: Sequence[Floats],
    predicted: Mapping[str, Sequence[Floats]],
    aggregate: str,
    resampling: Resampling,
) -> dict[str, SetDraws]:
    """Correlations in every bootstrap sample of a set, for each model.

    Args:
        name: the set; with the seed, it determines the bootstrap samples.
        gold: the gold scores of each subset, [n] each.
        predicted: role -> similarities, by subset as `gold`.
        aggregate: all, mean or wmean; see `evaluation.sts.AGGREGATES`.
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
    """How often each of n = `size` items occurs in each of r = `rounds` bootstrap samples: [n, r]."""
    drawn = generator.integers(0, size, size=(size, rounds)) * rounds + np.arange(rounds)
    return np.bincount(drawn.ravel(), minlength=size * rounds).reshape(size, rounds).astype(np.float64)


def _counts(sizes: Sequence[int], rounds: int, generator: np.random.Generator) -> Iterator[list[Values]]:
    """Counts for each subset, [n, r] each, in blocks of rounds; a single block of [n, 0] without rounds."""
    step = max(1, CHUNK // sum(sizes))
    for start in range(0, max(rounds, 1), step):
        yield [draw_counts(size, min(step, rounds - start), generator) for size in sizes]


class _Sample:
    """Pairs to resample: gold scores and each model's similarities."""

    def __init__(self, gold: Floats, predicted: Mapping[str, Floats]) -> None:
        self._gold = _Column(gold)
        self._predicted = {role: _Column(values) for role, values in predicted.items()}

    def correlations(self, counts: Values) -> dict[str, Draws]:
        """Both correlations of each bootstrap sample; `counts` is [n, r]."""
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
        # A variance below this fraction of the whole sample's (1) is rounding error.
        x_spread, y_spread = (np.where(v > 1e-12, v, 0.0) for v in (xx - mean_x**2, yy - mean_y**2))
        return _ratio(xy - mean_x * mean_y, x_spread, y_spread)


class _Column:
    """One variable: its standardised values, and the groups needed to rank bootstrap samples."""

    def __init__(self, values: Floats) -> None:
        wide = values.astype(np.float64)
        spread = wide.std()
        self.values = (wide - wide.mean()) / (spread if spread > 0 else 1.0)
        _, self._codes, sizes = np.unique(wide, return_inverse=True, return_counts=True)
        self._order = np.argsort(wide, kind="stable")
        self._ends = np.cumsum(sizes) - 1

    def ranks(self, counts: Values) -> Values:
        """Centred mean ranks of all items within each bootstrap sample: [n, r] counts -> [n, r]."""
        ends = np.cumsum(counts[self._order], axis=0)[self._ends]
        own = np.diff(ends, axis=0, prepend=0.0)
        middle = ends - (own - 1) / 2 - (len(counts) + 1) / 2
        return np.asarray(middle[self._codes])


def _dot(x: Values, y: Values) -> Values:
    """Column-wise inner products: two [n, r] -> [r]."""
    return np.asarray(np.einsum("nr,nr->r", x, y))


def _ratio(products: Values, x_spread: Values, y_spread: Values) -> Values:
    spread = np.sqrt(x_spread * y_spread)
    return np.divide(products, spread, out=np.full_like(products, np.nan), where=spread > 0)
