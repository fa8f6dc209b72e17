"""The output of `sentcompress fit-pca`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """What the dimensions explain."""
    facts = artifact.facts
    render.print_chart(facts["explained_variance_ratio"], "explained variance by dimension")
    kept = f"{facts['dimension']} of {facts['teacher_dimension']} dimensions"
    render.print_facts({"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}"})
    return f"sentcompress distill --method hpd --projection {shell_word(artifact.name)} --work {shell_word(call.work)}"
