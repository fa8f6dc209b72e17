"""The output of `sentcompress average`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.reporting.hints import measuring
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The models, and the share of each."""
    facts = artifact.facts
    parts = [f"{share:.0%} {model}" for share, model in zip(facts["shares"], facts["models"], strict=True)]
    shown = {"average of": ", ".join(parts), "parameters": facts["parameters"], "dimension": facts["dimension"]}
    render.print_facts(shown, artifact.reference)
    return measuring("sts", artifact.name, call.work)
