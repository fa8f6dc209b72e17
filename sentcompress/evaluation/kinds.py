"""The evaluations that there are: what the report, the card and the hints say of each.

A new evaluation registers itself here. Its stage writes a document with `scores`; the terminal, the model card, the
report and `status` show those without knowing anything else of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentcompress.evaluation.measures import (
    INDEX_BYTES,
    LATENCY_P50,
    NEAREST,
    PASS_SECONDS,
    PEAK_MEMORY,
    SEARCH_TIME,
    SIMILARITIES,
)


@dataclass(frozen=True)
class EvaluationKind:
    """One evaluation.

    Attributes:
        title: heading of its section.
        command: what to type to make one for `{model}`.
        text: what its scores say, for a reader of the report.
        what: what a row of its table is.
        short: how a table of all models calls it.
        averaged: whether a table of all models shows the mean over its data sets, in place of each of them.
        beside: metrics that deserve a line beside the main one, which is that of its first score.
        task: the name of the task in the metadata of a model card; empty for what is no task of the hub.
    """

    title: str
    command: str
    text: str = ""
    what: str = "data set"
    short: str = ""
    averaged: bool = False
    beside: Sequence[str] = ()
    task: str = ""


EVALUATIONS: Mapping[str, EvaluationKind] = {
    "sts": EvaluationKind(
        "Sentence similarity (STS)",
        "eval-sts --sts FOLDER --model {model} --compare teacher",
        "Spearman x 100 between the cosines of sentence pairs and human similarity grades. Differences to the compared "
        "model are paired: both are computed on the same bootstrap samples. If the interval of a difference includes "
        "0, the loss is not significant.",
        what="set",
        short="STS",
        averaged=True,
        task="semantic-similarity",
    ),
    "retrieval": EvaluationKind(
        "Retrieval",
        "eval-retrieval --pairs FILE --model {model} --compare teacher",
        "Every index is listed beside exact search on the same vectors, which separates what the model lost from what "
        "the index lost.",
        beside=(INDEX_BYTES, SEARCH_TIME),
        task="information-retrieval",
    ),
    "transfer": EvaluationKind(
        "Transfer",
        "eval-transfer --tasks FOLDER --model {model} --compare teacher",
        "Accuracy of a logistic regression on frozen vectors, in SentEval's configuration.",
        what="task",
        short="transfer",
        averaged=True,
        task="text-classification",
    ),
    "fidelity": EvaluationKind(
        "Fidelity on your own sentences",
        "eval-fidelity --text FILE --model {model}",
        "Measured without labels: how many nearest neighbours the student shares with its teacher, whether it ranks "
        "pairs of sentences alike, and whether its vectors still use all their dimensions.",
        what="sentences",
        beside=(NEAREST, SIMILARITIES),
        task="sentence-similarity",
    ),
    "bench": EvaluationKind(
        "Speed, size and memory",
        "bench --model {model} --compare teacher",
        "The models of one table took turns in one run. Figures of different tables may come from different machines.",
        what="runtime",
        beside=(LATENCY_P50, PEAK_MEMORY, PASS_SECONDS),
    ),
}
