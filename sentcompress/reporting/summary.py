"""The few figures by which models are told apart at a glance, one set of them a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentcompress.reporting.evidence import Evaluation, Evidence
from sentcompress.reporting.sections.retrieval import data_name, main_score

TEST = "test"


@dataclass
class Summary:
    """What is known of one model; None, or no entry, where it was not measured.

    Attributes:
        compared: whether it is one that the report is about, rather than what those are held against.
        sts: Spearman x 100 by set, of the test split.
        retrieval: by data set, exact search where it was made: metric, score x 100, share kept of the other's.
        transfer: accuracy x 100 by task.
        neighbours: share of the nearest neighbours that it shares with the model beside it, in percent.
        sentences_per_second, times_faster: speed, and how many times that of the model beside it, in the same runtime.
    """

    reference: str
    compared: bool
    parameters: int | None = None
    dimension: int | None = None
    weight_bytes: int | None = None
    sts: dict[str, float] = field(default_factory=dict)
    retrieval: dict[str, tuple[str, float, float | None]] = field(default_factory=dict)
    transfer: dict[str, float] = field(default_factory=dict)
    neighbours: float | None = None
    sentences_per_second: float | None = None
    times_faster: float | None = None


def summaries(evidence: Evidence) -> dict[str, Summary]:
    """A summary for each model; of several evaluations of a kind, the newest has the say."""
    found = {reference: Summary(reference, evidence.compared(reference)) for reference in evidence.names}
    for evaluation in evidence.evaluations:
        for role, model in evaluation.roles():
            summary = found[str(model["reference"])]
            summary.parameters = model.get("parameters") or summary.parameters
            summary.dimension = model.get("dimension") or summary.dimension
            reader = {
                "sts": _sts,
                "retrieval": _retrieval,
                "transfer": _transfer,
                "fidelity": _fidelity,
                "bench": _bench,
            }
            if evaluation.kind in reader:
                reader[evaluation.kind](summary, role, evaluation)
    for student in evidence.students:
        summary, facts = found[student.artifact.reference], student.artifact.facts
        summary.parameters = summary.parameters or facts.get("parameters")
        summary.dimension = summary.dimension or facts.get("dimension")
    return found


def common(scores: Sequence[Mapping[str, float]]) -> list[str]:
    """The sets, or tasks, that every model with any score was scored on, in the order of the first."""
    scored = [of_model for of_model in scores if of_model]
    return [name for name in scored[0] if all(name in other for other in scored)] if scored else []


def mean_over(scores: Mapping[str, float], names: Sequence[str]) -> float | None:
    """The mean over these of scores rounded to two decimals, as papers print it; None where one is missing."""
    if not names or any(name not in scores for name in names):
        return None
    return sum(round(scores[name], 2) for name in names) / len(names)


def _sts(summary: Summary, role: str, evaluation: Evaluation) -> None:
    facts = evaluation.facts
    if facts.get("protocol", {}).get("split", TEST) == TEST:
        summary.sts |= {entry["name"]: entry[role]["spearman_cosine"] for entry in facts["sets"] if entry.get(role)}


def _retrieval(summary: Summary, role: str, evaluation: Evaluation) -> None:
    facts, metric = evaluation.facts, main_score(evaluation.facts)
    if facts[role].get("documents_by"):
        return  # half of it is another model's
    entry = facts.get("exact") or next((e for e in facts["indexes"] if e["index"] == "flat"), None)
    if entry is not None:
        kept = entry.get("shares_kept", {}).get(metric, entry.get("share_kept")) if role == "model" else None
        score, name = entry[role][metric], data_name(facts)
        before = summary.retrieval.get(name)
        if kept is None and before is not None and before[:2] == (metric, score):
            kept = before[2]  # the same search, measured again without another model
        summary.retrieval[name] = (metric, score, kept)


def _transfer(summary: Summary, role: str, evaluation: Evaluation) -> None:
    summary.transfer |= {task["name"]: task[role]["accuracy"] for task in evaluation.facts["tasks"]}


def _fidelity(summary: Summary, role: str, evaluation: Evaluation) -> None:
    if role == "model":
        summary.neighbours = 100 * evaluation.facts["neighbours"]["overlap"]


def _bench(summary: Summary, role: str, evaluation: Evaluation) -> None:
    facts = evaluation.facts
    summary.weight_bytes = facts[role].get("weight_bytes", summary.weight_bytes)
    speed: float | None = facts[role].get("sentences_per_second")
    if speed is None or (facts.get("protocol", {}).get("preset") and summary.sentences_per_second):
        return
    summary.sentences_per_second = speed
    if role == "model":
        summary.times_faster = _ratio(speed, facts.get("against", {}))


def _ratio(speed: float, other: Mapping[str, Any]) -> float | None:
    return speed / other["sentences_per_second"] if other.get("sentences_per_second") else None
