"""Score records: written by every evaluation, read by everything that shows results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from sentcompress.evaluation.metrics import METRICS, PARAMETERS, VECTOR_BYTES, WEIGHT_BYTES, Metric

MODEL, COMPARE = "model", "compare"
# The data set name of the mean over all data sets of an evaluation.
MEAN = "mean"


class Interval(NamedTuple):
    """A 95% interval; both ends are NaN if it is undefined."""

    low: float
    high: float


NO_INTERVAL = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class Score:
    """One measured value of one model.

    NaN means undefined, None means not measured.

    Attributes:
        model: the reference of the model.
        role: `model`, or `compare` for the model it is compared with.
        data: the data set.
        part: a subset, index or runtime; empty for the whole data set.
        metric: a key of `METRICS`.
        value: on the scale of the metric.
        count: number of pairs, queries, examples or sentences.
        interval: 95% interval of the value.
        kept: the value in percent of the compared model's.
        difference: the value minus the compared model's.
        difference_interval: the paired 95% interval of the difference.
    """

    model: str
    role: str
    data: str
    metric: str
    value: float
    part: str = ""
    count: int | None = None
    interval: Interval | None = None
    kept: float | None = None
    difference: float | None = None
    difference_interval: Interval | None = None

    @property
    def of(self) -> Metric:
        """The metric's description."""
        return METRICS[self.metric]

    @property
    def place(self) -> tuple[str, str, str]:
        """The key by which scores are comparable: data set, part, metric."""
        return self.data, self.part, self.metric

    @property
    def title(self) -> str:
        """A title of data set, metric and part."""
        return ", ".join(filter(None, (self.data, self.of.title, self.part)))

    def as_dict(self) -> dict[str, Any]:
        """The score as JSON; fields that were not measured are omitted, and NaN becomes None."""
        found = {
            key: value for key, value in asdict(self).items() if value is not None and (key, value) != ("part", "")
        }
        return {key: _written(value) for key, value in found.items()}

    @classmethod
    def from_dict(cls, entry: Any) -> Score:
        """The inverse of `as_dict`.

        Raises:
            ValueError: if `as_dict` could not have written the entry.
        """
        if not isinstance(entry, Mapping) or not entry.keys() <= cls.__dataclass_fields__.keys():
            raise ValueError("a score is not an object with the fields of a score")
        for name in TEXTS:
            if not isinstance(entry.get(name, "" if name == "part" else None), str):
                raise ValueError(f"{name} of a score is not text")
        if entry["metric"] not in METRICS:
            raise ValueError(f"there is no metric {entry['metric']!r}")
        count = entry.get("count")
        if count is not None and type(count) is not int:
            raise ValueError("the count of a score is not a whole number")
        if "value" not in entry:
            raise ValueError("a score has no value")
        numbers = {name: _number(entry[name], name) for name in NUMBERS if name in entry}
        intervals = {name: _interval(entry[name], name) for name in INTERVALS if name in entry}
        return cls(
            model=entry["model"],
            role=entry["role"],
            data=entry["data"],
            metric=entry["metric"],
            value=numbers["value"],
            part=entry.get("part", ""),
            count=count,
            interval=intervals.get("interval"),
            kept=numbers.get("kept"),
            difference=numbers.get("difference"),
            difference_interval=intervals.get("difference_interval"),
        )


TEXTS = ("model", "role", "data", "metric", "part")
NUMBERS = ("value", "kept", "difference")
INTERVALS = ("interval", "difference_interval")
# JSON allows integers that are too large for a float.
LARGEST = 1e300


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [_written(end) for end in value] if isinstance(value, tuple) else value


def _number(value: Any, name: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise ValueError(f"{name} of a score is not a number")
    return value


def _interval(value: Any, name: str) -> Interval:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ValueError(f"{name} of a score is not a pair of numbers")
    low, high = (_number(end, name) for end in value)
    return Interval(low, high)


def share_kept(score: float, reference: float) -> float:
    """A score in percent of a reference score; NaN if the reference is zero or negative."""
    share = 100 * score / reference if reference > 0 else math.nan
    return share if math.isfinite(share) else math.nan


@dataclass(frozen=True)
class Difference:
    """The model's value minus the compared model's, and its paired interval."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Recorder:
    """Collects the scores of one evaluation.

    Attributes:
        models: role -> reference.
        scores: the scores recorded so far.
    """

    models: Mapping[str, str]
    scores: list[Score] = field(default_factory=list)

    def add(
        self,
        data: str,
        metric: str,
        values: Mapping[str, float],
        *,
        part: str = "",
        count: int | None = None,
        intervals: Mapping[str, Interval | None] | None = None,
        difference: Difference | None = None,
        shared: bool = True,
    ) -> None:
        """Record one metric on one part of a data set, for every role in `values`.

        Args:
            values: role -> value.
            intervals: role -> interval of the value.
            difference: the difference, if it has an interval or is not the plain difference of the values.
            shared: whether to record the value in percent of the compared model's.
        """
        for role, value in values.items():
            score = Score(
                model=self.models[role],
                role=role,
                data=data,
                metric=metric,
                value=value,
                part=part,
                count=count,
                interval=(intervals or {}).get(role),
            )
            if role == MODEL and COMPARE in values:
                less = difference or Difference(value - values[COMPARE])
                kept = share_kept(value, values[COMPARE]) if shared else None
                score = replace(score, kept=kept, difference=less.value, difference_interval=less.interval)
            self.scores.append(score)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The scores for the evaluation's document."""
        return [score.as_dict() for score in self.scores]


def size_scores(models: Mapping[str, str], sizes: Mapping[str, Mapping[str, int]]) -> list[Score]:
    """The sizes of models as scores.

    Args:
        models: role -> reference.
        sizes: role -> the result of `sizes_of`.
    """
    recorder = Recorder(models)
    for metric in (PARAMETERS, WEIGHT_BYTES, VECTOR_BYTES):
        values = {role: of[metric] for role, of in sizes.items() if metric in of}
        if MODEL in values:
            recorder.add("", metric, values)
    return recorder.scores


def sizes_of(model: Mapping[str, Any]) -> dict[str, int]:
    """Parameters, weight bytes and bytes per float32 vector of a model, as far as they were recorded."""
    dimension = model.get("dimension")
    found = {
        PARAMETERS: model.get(PARAMETERS),
        WEIGHT_BYTES: model.get(WEIGHT_BYTES),
        VECTOR_BYTES: 4 * dimension if isinstance(dimension, int) else None,
    }
    return {metric: value for metric, value in found.items() if isinstance(value, int)}


def read_scores(document: Mapping[str, Any]) -> list[Score]:
    """The scores of an evaluation's document in order, those of the main metric first.

    Raises:
        ValueError: if the list is missing or an entry is invalid.
    """
    entries = document.get("scores")
    if not isinstance(entries, list):
        raise ValueError("it has no list of scores")
    return [Score.from_dict(entry) for entry in entries]


def select(
    scores: Iterable[Score],
    metric: str | None = None,
    data: str | None = None,
    part: str | None = None,
    role: str | None = None,
) -> list[Score]:
    """The scores that match all given values."""
    wanted = {"metric": metric, "data": data, "part": part, "role": role}
    asked = {name: value for name, value in wanted.items() if value is not None}
    return [score for score in scores if all(getattr(score, name) == value for name, value in asked.items())]


def first_score(scores: Iterable[Score], metric: str, role: str = MODEL) -> Score | None:
    """The first score of a metric, which is that of the whole data set, or of exact search; None if there is none."""
    return next(iter(select(scores, metric, role=role)), None)


def value_of(scores: Iterable[Score], metric: str, data: str | None = None, part: str = "", role: str = MODEL) -> float:
    """The value of the first score that matches; `data=None` matches any data set.

    Raises:
        KeyError: if no score matches.
    """
    found = select(scores, metric, data, part, role)
    if not found:
        raise KeyError(f"no {metric} of {role}: {data}, {part}")
    return found[0].value
