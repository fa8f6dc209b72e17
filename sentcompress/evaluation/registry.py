"""Registry of evaluations: titles, commands and explanations for the report, the model card and hints.

A new evaluation is registered here. Its stage writes a document with `scores`; the terminal, the model card, the
report and `status` show these without knowing anything else about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.evaluation.metrics import (
    FIRST_FOUND,
    INDEX_BYTES,
    LATENCY_P50,
    NEAREST,
    PASS_SECONDS,
    PEAK_MEMORY,
    RESULTS_SHARED,
    SEARCH_TIME,
    SIMILARITIES,
)
from sentcompress.plain_text import shell_word


@dataclass(frozen=True)
class EvaluationKind:
    """One evaluation.

    Attributes:
        title: section heading.
        command: the command that runs it for `{model}`.
        text: what its scores mean, for a reader of the report.
        what: what a table row stands for.
        short: column name in the overview table.
        averaged: whether the overview table shows the mean over data sets instead of each data set.
        beside: metrics shown along with the main metric, which is that of the first score.
        task: task name in the model card's metadata; empty if the hub has no such task.
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
        "Spearman x 100 between the cosines of sentence pairs and human similarity ratings. Differences from the "
        "compared model are paired: both scores are computed on the same bootstrap samples. If the interval of a "
        "difference includes 0, the loss is not significant.",
        what="set",
        short="STS",
        averaged=True,
        task="semantic-similarity",
    ),
    "retrieval": EvaluationKind(
        "Retrieval",
        "eval-retrieval --pairs FILE --model {model} --compare teacher",
        "Every index is compared with exact search on the same vectors, which separates the loss of the model from the "
        "loss of the index.",
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
        "sentence pairs in the same order, and whether its vectors still use all their dimensions.",
        what="sentences",
        beside=(NEAREST, SIMILARITIES),
        task="sentence-similarity",
    ),
    "search": EvaluationKind(
        "Search fidelity",
        "eval-search --model {model} --compare teacher",
        "Measured without labels: the teacher's own ten best documents of each query are graded by their rank, and the "
        "model is scored by the nDCG@10 of its exact search among the same documents. 100 means the same documents in "
        "the same order.",
        what="documents",
        short="search fidelity",
        beside=(RESULTS_SHARED, FIRST_FOUND),
        task="information-retrieval",
    ),
    "bench": EvaluationKind(
        "Speed, size and memory",
        "bench --model {model} --compare teacher",
        "The models in a table were measured alternately in one run. Tables may come from different machines.",
        what="runtime",
        beside=(LATENCY_P50, PEAK_MEMORY, PASS_SECONDS),
    ),
}


def command_for(name: str, model: str, work: Path | str | None) -> str:
    """The command that runs this evaluation for a model; `work=None` stands for the default work directory."""
    place = "" if work is None else f" --work {shell_word(work)}"
    return f"sentcompress {EVALUATIONS[name].command.format(model=shell_word(model))}{place}"
