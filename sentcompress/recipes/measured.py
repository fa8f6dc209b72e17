"""The published figures of a recipe beside those that its evaluations measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sentcompress.commands.options import MODEL as NAMES_MODEL
from sentcompress.commands.options import keys_of
from sentcompress.corpora.sts import OFFICIAL_PAIRS
from sentcompress.evaluation.measures import SPEARMAN
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score, select
from sentcompress.recipes.plan import EVALUATIONS, Step
from sentcompress.recipes.rows import KEPT, Row
from sentcompress.store import Artifact

# Graded pairs of STS-B dev.
DEV_PAIRS = 1500


@dataclass(frozen=True)
class Measured:
    """A published figure and the measured one.

    Attributes:
        value: None if nothing was measured.
        why: why there is no value, or why the two cannot be compared; empty if they can.
    """

    row: Row
    value: float | None = None
    why: str = ""

    @property
    def difference(self) -> float | None:
        """The measured value minus the published one; None if they cannot be compared."""
        if self.value is None or self.row.score is None or self.why:
            return None
        return self.value - self.row.score

    def as_dict(self) -> dict[str, Any]:
        found = {"measured": self.value, "difference": self.difference, "why": self.why or None}
        return {**self.row.as_dict(), **{key: value for key, value in found.items() if value is not None}}


def measured(rows: Sequence[Row], done: Sequence[tuple[Step, Artifact]]) -> list[Measured]:
    """Each row with its measured figure.

    Args:
        done: the stages that were run, and their results.
    """
    evaluations = [(step, artifact) for step, artifact in done if artifact.manifest["kind"] == EVALUATIONS]
    return [_measured(row, evaluations) for row in rows]


def _measured(row: Row, done: Sequence[tuple[Step, Artifact]]) -> Measured:
    for step, artifact in done:
        for role in _roles(step, row.of):
            evaluation = read_evaluation(artifact)
            for score in _scores(row, evaluation, step, role):
                value = score.kept if row.metric.endswith(KEPT) else score.value
                if value is not None:
                    return Measured(row, value, _other_protocol(row, evaluation, role))
    return Measured(row, None, _nothing(row, done))


def _roles(step: Step, model: str) -> Iterator[str]:
    """The roles in which an evaluation scored a model."""
    for key in keys_of(type(step.params)).values():
        if key.opt.names == NAMES_MODEL and getattr(step.params, key.field) == model:
            yield COMPARE if key.field == COMPARE else MODEL


def _scores(row: Row, evaluation: Evaluation, step: Step, role: str) -> list[Score]:
    """The scores of the row's metric; of several indexes, those of the first one that the stage names."""
    figure = row.figure
    if evaluation.name != figure.evaluation or figure.split not in (None, evaluation.facts["protocol"].get("split")):
        return []
    found = select(evaluation.scores, figure.metric, figure.data, role=role)
    if row.data and row.data != evaluation.artifact.name:
        found = [score for score in found if score.data == row.data]
    index = next(iter(getattr(step.params, "index", ())), "")
    return [score for score in found if score.part == index] or found


def _nothing(row: Row, done: Sequence[tuple[Step, Artifact]]) -> str:
    """Why a row has no measured figure."""
    names = {read_evaluation(artifact).name for step, artifact in done if [*_roles(step, row.of)]}
    if row.figure.evaluation == "sts" and row.figure.evaluation in names:
        return f"not all {len(OFFICIAL_PAIRS)} sets were scored" if row.figure.data == MEAN else "not among the sets"
    return "not measured"


def _other_protocol(row: Row, evaluation: Evaluation, role: str) -> str:
    """How the evaluation differs from the paper's; empty if it does not."""
    if not row.figure.same_everywhere:
        return "depends on the machine"
    facts = evaluation.facts
    if evaluation.name == "sts":
        return _other_sets(row, evaluation, role)
    for key, paper, had in (
        ("queries", row.queries, facts.get("judged_queries")),
        ("documents", row.documents, facts.get("documents")),
    ):
        if paper is not None and had != paper:
            return f"{had:,} {key}, in the paper {paper:,}"
    return ""


def _other_sets(row: Row, evaluation: Evaluation, role: str) -> str:
    protocol = evaluation.facts["protocol"]
    if row.figure.split:
        pairs = select(evaluation.scores, SPEARMAN, role=role)[0].count
        return "" if pairs in (None, DEV_PAIRS) else f"{pairs:,} pairs, in the papers {DEV_PAIRS:,}"
    if protocol.get("split") != "test":
        return f"split {protocol.get('split')}"
    if protocol.get("aggregate") != "all":
        return f"aggregate {protocol.get('aggregate')}"
    scores = [score for score in select(evaluation.scores, SPEARMAN, role=role) if score.data != MEAN]
    wanted = OFFICIAL_PAIRS if row.figure.data == MEAN else {row.figure.data: OFFICIAL_PAIRS.get(str(row.figure.data))}
    counts = {score.data: score.count for score in scores if row.figure.data in (MEAN, score.data)}
    if set(counts) != set(wanted):
        others = [name for name in counts if name not in wanted]
        more = f" and {len(others)} others" if others else ""
        return f"mean of {len(counts) - len(others)} of the {len(wanted)} sets{more}"
    wrong = [name for name, count in counts.items() if count not in (None, wanted[name])]
    return f"{wrong[0]} has {counts[wrong[0]]:,} pairs, in the papers {wanted[wrong[0]]:,}" if wrong else ""
