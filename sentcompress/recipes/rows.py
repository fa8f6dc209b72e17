"""Published rows of the papers' tables, and the score of an evaluation that each figure corresponds to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sentcompress.corpora.sts import OFFICIAL_PAIRS, STS_B
from sentcompress.corpora.transfer import TASKS
from sentcompress.errors import did_you_mean
from sentcompress.evaluation.metrics import (
    ACCURACY,
    ALIGNMENT,
    CORRELATION,
    FIRST_RELEVANT,
    METRICS,
    MRR,
    NDCG,
    PASS_SECONDS,
    RECALLS,
    SPEARMAN,
    UNIFORMITY,
    recall_at,
)
from sentcompress.evaluation.score import MEAN

STS_MEAN = "STS mean"
# After the name of a metric: the share of the compared model's score that is kept, in percent.
KEPT = " kept"
# Characters of a value that an error shows.
SHOWN = 80


@dataclass(frozen=True)
class Figure:
    """Where the measured value of a published metric is found.

    Attributes:
        evaluation: the kind of evaluation.
        metric: the metric's name in the score records.
        data: the data set's name in the score records; None for any.
        same_everywhere: whether values of different machines can be compared.
    """

    evaluation: str
    metric: str
    data: str | None = None
    same_everywhere: bool = True


FIGURES: Mapping[str, Figure] = {
    STS_MEAN: Figure("sts", SPEARMAN, MEAN),
    **{name: Figure("sts", SPEARMAN, name) for name in OFFICIAL_PAIRS},
    **{METRICS[metric].label: Figure("sts", metric, STS_B) for metric in (ALIGNMENT, UNIFORMITY)},
    **{
        METRICS[metric].label: Figure("retrieval", metric)
        for metric in (MRR, NDCG, FIRST_RELEVANT, *map(recall_at, RECALLS))
    },
    "correlation of dimensions": Figure("fidelity", CORRELATION),
    "transfer mean": Figure("transfer", ACCURACY, MEAN),
    **{name: Figure("transfer", ACCURACY, name) for name in TASKS},
    "one pass s": Figure("bench", PASS_SECONDS, same_everywhere=False),
}


@dataclass(frozen=True)
class Row:
    """A figure in a paper's table, or a figure that the paper leaves open.

    Attributes:
        table: the place in the paper, such as `HPD, Table 1`.
        model: the row's name there.
        of: the model that is scored, as an evaluation of the recipe names it.
        metric: a key of `FIGURES`, possibly with KEPT.
        score: the published value, x 100 for everything that is a share; None if the paper has none.
        note: anything else to know about it.
        data: the evaluation (by its `name`) or the data set, if several of the recipe score `of` in this metric.
        split: the split of the STS sets, if it is not their test split.
        queries, documents: the number of them in the paper, for retrieval; with others, figures are not comparable.
    """

    table: str = ""
    model: str = ""
    of: str = ""
    metric: str = ""
    score: float | None = None
    note: str = ""
    data: str = ""
    split: str = ""
    queries: int | None = None
    documents: int | None = None

    @property
    def figure(self) -> Figure:
        """Where its measured value is found."""
        return FIGURES[self.metric.removesuffix(KEPT)]

    def as_dict(self) -> dict[str, Any]:
        """The keys that the recipe gave."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {key: value for key, value in found.items() if value not in ("", None)}


NUMBERS, COUNTS = ("score",), ("queries", "documents")
KEYS = tuple(field.name for field in fields(Row))


def read_rows(tables: Any, where: str, faults: list[str]) -> tuple[Row, ...]:
    """The rows in a list of tables; errors go to `faults`, and begin with `where`.

    Args:
        tables: the value of `row` in the document.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        faults.append(f"{where}row must be a list of tables: [[row]] or [[variant.row]]")
        return ()
    rows = []
    for number, table in enumerate(tables, start=1):
        own = list(_faults_of_row(table))
        faults += [f"{where}row {number}: {fault}" for fault in own]
        rows += [] if own else [Row(**table)]
    return tuple(rows)


def _faults_of_row(table: Mapping[str, Any]) -> list[str]:
    faults = [f"no key {key!r}; {did_you_mean(key, KEYS)}" for key in table if key not in KEYS]
    for key, value in table.items():
        if key in NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                faults.append(f"{key} must be a finite number, not {_shown(value)}")
        elif key in COUNTS:
            if type(value) is not int or value < 1:
                faults.append(f"{key} must be a whole number above 0, not {_shown(value)}")
        elif key in KEYS and not isinstance(value, str):
            faults.append(f"{key} must be a string")
    faults += [f"{key} is missing" for key in ("of", "metric") if key not in table]
    metric = table.get("metric")
    if isinstance(metric, str) and metric.removesuffix(KEPT) not in FIGURES:
        faults.append(f"no metric {metric[:SHOWN]!r}; {did_you_mean(metric, FIGURES)}")
    return faults


def _shown(value: Any) -> str:
    """A value in an error; a text in quotes."""
    return repr(value[:SHOWN]) if isinstance(value, str) else str(value)[:SHOWN]
