"""Scores of several students in one table, where they were measured the same way on the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sentcompress.numeric import measured
from sentcompress.reporting.evidence import Evaluation, Evidence, Source
from sentcompress.reporting.formats import between, number, share, signed
from sentcompress.reporting.parts import Table

Entries = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
MODEL, COMPARE = "model", "compare"


def score_tables(
    evidence: Evidence, found: Sequence[Evaluation], metric: str, head: str, what: str, entries: Entries
) -> list[Table]:
    """A table for each protocol and data: for every entry the model that all are compared with, then the students.

    Args:
        evidence: for the names of models.
        found: evaluations of one kind.
        metric: key of the score in an entry's role; its interval is under `<metric>_interval`.
        head: how the score is written.
        what: what an entry is, for the head of the first column.
        entries: the rows of an evaluation's facts: `name`, a mapping for each role, `difference`, `share_kept`.
    """
    groups: dict[tuple[Any, ...], list[Evaluation]] = {}
    for evaluation in found:
        facts = evaluation.facts
        named = tuple(entry["name"] for entry in entries(facts))
        other = facts.get(COMPARE, {}).get("reference")
        groups.setdefault((facts["protocol"]["statement"], evaluation.data, named, other), []).append(evaluation)
    columns = (what, "model", head, "95% interval", "difference", "95% interval of it", "kept")
    return [
        Table(
            _title(of[0].facts),
            columns,
            _distinct(_rows(evidence, of, metric, entries)),
            [Source.of(evaluation.artifact) for evaluation in of],
            heads=2,
        )
        for of in groups.values()
    ]


def _title(facts: Mapping[str, Any]) -> str:
    split = facts["protocol"].get("split")
    return f"{split} split" if split else "All tasks"


def _rows(evidence: Evidence, group: Sequence[Evaluation], metric: str, entries: Entries) -> Iterator[list[str]]:
    listed = [(evaluation.facts, entries(evaluation.facts)) for evaluation in group]
    for number_ in range(len(listed[0][1])):
        facts, of_first = listed[0]
        if COMPARE in facts:
            yield _row(evidence, facts, of_first[number_], COMPARE, metric)
        for facts, of in listed:
            yield _row(evidence, facts, of[number_], MODEL, metric)


def _distinct(rows: Iterator[list[str]]) -> list[list[str]]:
    """Without repetitions: several evaluations of one model differ in what is shown elsewhere, such as its indexes."""
    return [list(row) for row in dict.fromkeys(tuple(row) for row in rows)]


def _row(evidence: Evidence, facts: Mapping[str, Any], entry: Mapping[str, Any], role: str, metric: str) -> list[str]:
    score = entry.get(role) or {}  # a subset or set may have none with one model
    difference = entry.get("difference") if role == MODEL else None
    asked = bool(facts["protocol"].get("bootstrap"))
    return [
        str(entry["name"]),
        evidence.names[str(facts[role]["reference"])],
        measured(number(score.get(metric))),
        _interval(score, metric, asked),
        signed(difference and difference.get(metric)),
        _interval(difference or {}, metric, asked, plus=True),
        measured(share(entry.get("share_kept"))) if role == MODEL and COMPARE in facts else "",
    ]


def _interval(of: Mapping[str, Any], metric: str, asked: bool, *, plus: bool = False) -> str:
    """The interval as text; empty if intervals were not requested."""
    found = between(of.get(f"{metric}_interval"), signed=plus)
    return measured(found) if asked and of else found


def mean_entry(name: str, facts: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """The mean over an evaluation's entries, in the form of an entry."""
    mean = facts["mean"]
    intervals = mean.get("intervals") or {}
    roles = [role for role in (MODEL, COMPARE) if role in facts]
    scores = {role: {metric: mean[role], f"{metric}_interval": intervals.get(role)} for role in roles}
    return {"name": name, **scores, "difference": mean.get("difference"), "share_kept": mean.get("share_kept")}
