"""Speed, size and memory, in every runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentcompress.reporting.evidence import Evaluation, Evidence, Source
from sentcompress.reporting.formats import number, size
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Section, Table

COLUMNS = (
    "runtime",
    "model",
    "sentences/s",
    "sentences/s, batch 1",
    "p50, ms",
    "p95, ms",
    "p99, ms",
    "on disk",
    "peak memory",
    "for the model",
)


def section(evidence: Evidence) -> Section:
    """All bench runs."""
    found = evidence.of_kind("bench")
    return Section(
        "speed",
        "Speed, size and memory",
        "The models of one table took turns in one run. Figures of different tables may be of different hours and "
        "machines.",
        tables=[_table(evidence, evaluation) for evaluation in found],
        protocols=list(dict.fromkeys(evaluation.facts["protocol"]["statement"] for evaluation in found)),
        missing=missing(evidence, "bench"),
    )


def runtimes(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of a bench run, one a runtime; runs of old had a single one."""
    if "runtimes" in facts:
        return list(facts["runtimes"])
    roles = {role: facts[role] for role in ("model", "against") if role in facts}
    return [{"runtime": facts["model"].get("dtype", "torch"), **roles}]


def _table(evidence: Evidence, evaluation: Evaluation) -> Table:
    facts = evaluation.facts
    rows = [row for entry in runtimes(facts) for row in _rows(evidence, facts, entry)]
    columns = list(COLUMNS)
    if facts["protocol"].get("preset"):
        columns.append("seconds of a pass")
    else:
        rows = [row[:-1] for row in rows]
    preset = f", {facts['protocol']['preset']}" if facts["protocol"].get("preset") else ""
    title = f"{evidence.names[facts['model']['reference']]}{preset}"
    return Table(title, columns, rows, [Source.of(evaluation.artifact)], heads=2)


def _rows(evidence: Evidence, facts: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[list[str]]:
    for role in ("against", "model"):
        if role not in entry:
            continue
        figures = entry[role]
        yield [
            str(entry["runtime"]),
            evidence.names[facts[role]["reference"]],
            *(number(figures.get(key), 1) for key in ("sentences_per_second", "sentences_per_second_batch_1")),
            *(number(figures.get(f"latency_{of}_milliseconds")) for of in ("p50", "p95", "p99")),
            size(figures.get("disk_bytes", figures.get("weight_bytes"))),
            size(figures.get("peak_memory_bytes")),
            size(figures.get("model_memory_bytes")),
            number(figures.get("pass_seconds"), 1),
        ]
