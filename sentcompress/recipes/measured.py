"""Compares the published figures of a recipe with those that its evaluations measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentcompress.commands.options import named_models
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.sts import OFFICIAL_PAIRS
from sentcompress.corpora.transfer import ALL, TASKS
from sentcompress.evaluation.metrics import FIRST_RELEVANT, SPEARMAN
from sentcompress.evaluation.results import TEST, Evaluation, read_evaluation
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score, select
from sentcompress.recipes.plan import Step
from sentcompress.recipes.rows import KEPT, Row
from sentcompress.store import Artifact
from sentcompress.store.request import EVALUATIONS

# The protocol of retrieval on entity pairs.
ENTITIES = "entities"
# The sets of which the papers print the mean, by the evaluation.
SETS = {"sts": frozenset(OFFICIAL_PAIRS), "transfer": frozenset(TASKS)}
# SentEval's folds of a transfer task.
FOLDS = 10


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
    """The first score that can be compared with the published one, else the first of all."""
    found = [
        Measured(row, value, _other_protocol(row, evaluation, role))
        for step, artifact in done
        for role in _roles(step, row.of)
        for evaluation in [read_evaluation(artifact)]
        for score in _scores(row, evaluation, step, role)
        if (value := score.kept if row.metric.endswith(KEPT) else score.value) is not None
    ]
    comparable = [one for one in found if not one.why]
    return (comparable or found or [Measured(row, None, _nothing(row, done))])[0]


def _roles(step: Step, model: str) -> Iterator[str]:
    """The roles in which an evaluation scored a model."""
    for key, name in named_models(step.params):
        if name == model:
            yield COMPARE if key.field == COMPARE else MODEL


def _scores(row: Row, evaluation: Evaluation, step: Step, role: str) -> list[Score]:
    """The scores of the row's metric; of several indexes, those of the first one that the stage names."""
    figure = row.figure
    if evaluation.name != figure.evaluation:
        return []
    found = select(evaluation.scores, figure.metric, figure.data, role=role)
    if not row.data and (mean := _mean_of_languages(evaluation, figure.metric, role)):
        return [mean]
    if row.data and row.data != evaluation.artifact.name:
        found = [score for score in found if score.data == row.data]
    index = next(iter(getattr(step.params, "index", ())), "")
    return [score for score in found if score.part == index] or found


def _mean_of_languages(evaluation: Evaluation, metric: str, role: str) -> Score | None:
    """The mean over the languages of entity pairs, which is the average of SimTDE's table 3."""
    languages = evaluation.facts.get("languages")
    if not languages or metric != FIRST_RELEVANT:
        return None
    mean = languages[-1]
    change = mean.get("relative_percent") if role == MODEL else None
    kept = None if change is None else 100 + change
    return Score(evaluation.facts[role]["reference"], role, MEAN, metric, mean[role], kept=kept)


def _nothing(row: Row, done: Sequence[tuple[Step, Artifact]]) -> str:
    """Why a row has no measured figure."""
    evaluations = [read_evaluation(artifact) for step, artifact in done if [*_roles(step, row.of)]]
    fitting = [evaluation for evaluation in evaluations if evaluation.name == row.figure.evaluation]
    if not fitting:
        return "not measured"
    if row.figure.data == MEAN:
        return f"not all {len(SETS[row.figure.evaluation])} sets were scored"
    data = {score.data for evaluation in fitting for score in evaluation.scores} - {MEAN}
    if row.figure.data is not None and data and row.figure.data not in data:
        return f"no set named {row.figure.data}, only {listed(sorted(data))}"
    return "not among the scores"


def _other_protocol(row: Row, evaluation: Evaluation, role: str) -> str:
    """How the evaluation differs from the paper's; empty if it does not."""
    if not row.figure.same_everywhere:
        return "depends on the machine"
    facts, protocol = evaluation.facts, evaluation.facts["protocol"]
    if facts.get("dataset", {}).get("protocol") == ENTITIES:
        return "the paper's entity pairs are not public"
    if evaluation.name == "sts" and evaluation.split != (row.split or TEST):
        return f"split {evaluation.split}"
    if evaluation.name == "sts" and protocol.get("aggregate") != "all":
        return f"aggregate {protocol.get('aggregate')}"
    if row.figure.data == MEAN and (others := _other_sets(row, evaluation, role)):
        return others
    if evaluation.name == "sts" and not row.split:
        return _other_pairs(row, evaluation, role)
    if evaluation.name == "transfer":
        return _other_examples(row, facts)
    for key, paper, had in (
        ("queries", row.queries, facts.get("judged_queries")),
        ("documents", row.documents, facts.get("documents")),
    ):
        if paper is not None and had != paper:
            return f"{had:,} {key}; the paper has {paper:,}"
    return ""


def _other_sets(row: Row, evaluation: Evaluation, role: str) -> str:
    """How the sets of a mean differ from those of the papers."""
    wanted = SETS[evaluation.name]
    names = {score.data for score in select(evaluation.scores, row.figure.metric, role=role)} - {MEAN}
    others = f" and {len(names - wanted)} others" if names - wanted else ""
    return "" if names == wanted else f"mean of {len(names & wanted)} of the {len(wanted)} sets{others}"


def _other_pairs(row: Row, evaluation: Evaluation, role: str) -> str:
    """Which set has another number of pairs than the published one."""
    for score in select(evaluation.scores, SPEARMAN, role=role):
        official = OFFICIAL_PAIRS.get(score.data)
        if row.figure.data in (MEAN, score.data) and official and score.count not in (None, official):
            return f"{score.data} has {score.count:,} pairs; the papers have {official:,}"
    return ""


def _other_examples(row: Row, facts: Mapping[str, Any]) -> str:
    """How the folds or the examples of transfer tasks differ from the published ones."""
    if (folds := facts["protocol"].get("folds", FOLDS)) != FOLDS:
        return f"{folds} folds"
    for task in facts.get("tasks", ()):
        name = task["name"]
        for split, count in task["examples"].items() if row.figure.data in (MEAN, name) else ():
            if count != (official := TASKS[name][split]):
                place = name if split == ALL else f"{name} {split}"
                return f"{place} has {count:,} examples; the papers have {official:,}"
    return ""
