"""The short report of a terminal: one student, a line for each thing that was measured of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentcompress.reporting.evidence import Evaluation, Evidence
from sentcompress.reporting.sections.retrieval import METRICS, PER_THOUSAND, data_name, main_score

KEPT, SMALLER, FASTER = "kept", "smaller", "faster"


@dataclass(frozen=True)
class Line:
    """One measured thing.

    Attributes:
        better: "kept" for a score (share of the other model's, in percent), "smaller" or "faster" for a ratio.
        source: the artifact that the numbers are from.
    """

    measure: str
    student: float
    teacher: float | None
    ratio: float | None
    better: str
    source: str


def lines_of(evidence: Evidence, reference: str) -> list[Line]:
    """Everything that was measured of a model, in the order in which it was measured."""
    readers = {"sts": _sts, "retrieval": _retrieval, "transfer": _transfer, "fidelity": _fidelity, "bench": _bench}
    about = evaluations_of(evidence, reference)
    return [
        line for one in about if one.kind in readers for line in readers[one.kind](one.facts, one.artifact.reference)
    ]


def evaluations_of(evidence: Evidence, reference: str) -> list[Evaluation]:
    """The evaluations in which this is the model that was asked about."""
    return [one for one in evidence.evaluations if one.facts.get("model", {}).get("reference") == reference]


def other_of(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The model beside it."""
    return facts.get("compare") or facts.get("against")


def _sts(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    for entry in facts["sets"]:
        ours, other = entry["model"], entry.get("compare")
        theirs = other and other["spearman_cosine"]
        measure = f"{entry['name']}, Spearman x 100"
        yield Line(measure, ours["spearman_cosine"], theirs, entry["share_kept"], KEPT, source)


def _retrieval(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    metric = main_score(facts)
    data = data_name(facts) if "dataset" in facts else "retrieval"
    for entry in facts["indexes"]:
        ours, theirs, index = entry["model"], entry.get("compare", {}), entry["index"]
        kept = entry.get("shares_kept", {}).get(metric, entry.get("share_kept"))
        measure = f"{data}, {METRICS.get(metric, metric)} x 100 ({index})"
        yield Line(measure, ours[metric], theirs.get(metric), kept, KEPT, source)
        yield _ratio(f"index, bytes ({index})", ours, theirs, "index_bytes", SMALLER, source)
        yield _ratio(f"search, ms per 1,000 queries ({index})", ours, theirs, PER_THOUSAND, FASTER, source)


def _transfer(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    for task in facts["tasks"]:
        theirs = task.get("compare", {}).get("accuracy")
        measure = f"{task['name']}, accuracy x 100"
        yield Line(measure, task["model"]["accuracy"], theirs, task.get("share_kept"), KEPT, source)


def _fidelity(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    near, order = facts["neighbours"], facts["spearman_of_similarities"]
    shared = 100 * near["overlap"]
    # The other model shares all of its own neighbours with itself, by definition.
    yield Line(f"{near['k']} nearest neighbours shared, %", shared, 100.0, shared, KEPT, source)
    if order is not None:
        yield Line("order of similarities, Spearman x 100", 100 * order, 100.0, 100 * order, KEPT, source)


def _bench(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    ours, theirs = facts["model"], facts.get("against", {})
    sizes = {
        "parameters": "parameters",
        "weights, bytes": "weight_bytes",
        "vector, bytes (float32)": "vector_bytes",
        "peak memory, bytes": "peak_memory_bytes",
    }
    yield from (_ratio(name, ours, theirs, key, SMALLER, source) for name, key in sizes.items() if key in ours)
    yield _ratio("latency of one sentence, ms (p50)", ours, theirs, "latency_p50_milliseconds", FASTER, source)
    speed = "sentences_per_second"
    ratio = ours[speed] / theirs[speed] if theirs.get(speed) else None
    yield Line("encoding, sentences per second", ours[speed], theirs.get(speed), ratio, FASTER, source)
    if "pass_seconds" in ours:
        yield _ratio("a pass over STS-B, seconds", ours, theirs, "pass_seconds", FASTER, source)


def _ratio(
    measure: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], key: str, better: str, source: str
) -> Line:
    ratio = theirs[key] / ours[key] if theirs.get(key) is not None and ours[key] else None
    return Line(measure, ours[key], theirs.get(key), ratio, better, source)
