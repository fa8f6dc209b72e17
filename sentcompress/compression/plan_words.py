"""A plan of `compress` in words, one line each: what was read, how long each step takes, which models are tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.compression.budget import better_half
from sentcompress.compression.recipe import CompressionPlan
from sentcompress.compression.shapes import told_shapes
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.text_files import told_skipped
from sentcompress.quantities import told_time

# The words for what a round keeps of two or three candidates.
KEPT = {2: "better one", 3: "best one"}
FASTER = (
    "The model computes as much as the teacher; with `prefer` speed, it computes at most half as much, and loses more"
)


def told(plan: CompressionPlan) -> list[str]:
    """The plan in words, one line each."""
    return [plan.read, *_told_steps(plan)] if plan.read else _told_steps(plan)


def told_documents(facts: Mapping[str, Any]) -> str:
    """The contents of an artifact of kind `documents` in words: the first line of a plan."""
    held_out = f"{facts['held_out_documents']:,} {facts['held_out_by']}s"
    queries = f"{facts['queries']:,} queries made from them"
    if facts["logged_queries"]:
        queries = f"{facts['queries']:,} queries (made from them, and your own)"
        held_out += f" and {facts['held_out_logged_queries']:,} of your {facts['logged_queries']:,} queries"
    columns = ""
    if facts.get("columns"):
        columns = f" (each text in the columns {listed(facts['columns'])}; choose with `column`)"
    skipped = facts.get("skipped", {}).get("bad_lines", 0)
    bad = f"; {told_skipped(skipped)}" if skipped else ""
    return (
        f"Read {facts['documents']:,} documents{columns}: {facts['passages']:,} passages, {facts['titles']:,} titles "
        f"and {queries} to train on; {held_out} are held out for measuring{bad}"
    )


def _told_steps(plan: CompressionPlan) -> list[str]:
    budget = plan.budget
    judged = f"{told_time(budget.judged)} in addition to the requested time: score the judged queries"
    beyond = [judged] if budget.judged else []
    if plan.untrained:
        longer = ["This is longer than the requested time, and cannot be shortened."]
        return [
            "The teacher itself fits, with weights in int8 instead of float32: nothing is trained.",
            *(["`general_text` has no effect, because it would only be trained on."] if plan.documents.general else []),
            FASTER,
            _told_measuring(plan),
            *(longer if budget.measuring > budget.seconds else []),
            *beyond,
        ]
    lines = [f"{told_time(budget.embedding)}: encode {_texts(plan)} with the teacher"]
    count = len(plan.candidates)
    for seconds in budget.rounds:
        lines.append(
            f"{told_time(seconds * count)}: train {count} candidates, {told_time(seconds)} each, and keep the "
            f"{KEPT.get(count, 'better half')}"
        )
        count = better_half(count)
    lines += [
        f"{told_time(budget.last)}: train {'the best candidate' if budget.rounds else 'the model'}",
        _told_measuring(plan),
        *beyond,
    ]
    if budget.tight:
        lines.append(
            f"The time is short at this machine's current speed: search results are compared among only "
            f"{budget.passages:,} passages, so the search fidelity is higher than it would be among more"
        )
    if budget.rounds:
        lines.append(f"Candidates: {told_shapes(plan.candidates)}")
    else:
        lines.append(f"The model: {told_shapes(plan.candidates[:1])}")
        if others := plan.candidates[1:]:
            lines.append(f"With more time, it would be compared with {told_shapes(others)}")
    if plan.computes_all:
        lines.append(FASTER)
    if any("vocabulary" in one.options for one in (plan.candidates if budget.rounds else plan.candidates[:1])):
        lines.append("A model whose vocabulary is cut to your documents loses more on other text")
    return lines


def _told_measuring(plan: CompressionPlan) -> str:
    stored = "" if plan.keep_index else "choose how vectors are stored, "
    return (
        f"{told_time(plan.budget.measuring)}: compare search results with the teacher's, {stored}export, measure speed"
    )


def _texts(plan: CompressionPlan) -> str:
    texts = f"a sample of {plan.budget.texts:,} texts" if plan.budget.texts else "all texts"
    general = " and ".join(plan.documents.general)
    return f"{texts}, a quarter of the words from {general}," if general else texts
