"""The output of `sentcompress mine-negatives`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact

SHOWN = ("mined_from", "model", "queries", "corpus", "triplets", "negatives", "mean_positive_score")


def show(artifact: Artifact, call: Call) -> str:
    """How many negatives were found, and how near they are."""
    facts = artifact.facts
    shown = {key: facts[key] for key in (*SHOWN, "mean_negative_score")}
    shown["positives among candidates"] = f"{facts['positives_among_candidates']:.1%}"
    shown["candidates dropped"] = f"{facts['share_dropped']:.1%}"
    render.print_facts(shown, artifact.reference)
    return f"sentcompress finetune --sentences {shell_word(artifact.name)} --work {shell_word(call.work)}"
