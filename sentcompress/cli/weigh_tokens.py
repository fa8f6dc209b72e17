"""The output of `sentcompress weigh-tokens`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.reporting.hints import measuring
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The weights in short."""
    facts = artifact.facts
    shown = {"mean weight": f"{facts['mean_weight']:.3f}", "lightest": " ".join(facts["lightest"])}
    render.print_facts(shown, artifact.reference)
    return measuring("sts", artifact.name, call.work)
