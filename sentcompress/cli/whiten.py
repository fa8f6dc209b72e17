"""The output of `sentcompress whiten`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.reporting.hints import measuring
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """What the dimensions explain."""
    facts = artifact.facts
    kept = f"{facts['dimension']} of {facts['model_dimension']} dimensions"
    shown = {"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}", "sample": facts["sample"]}
    render.print_facts(shown, artifact.reference)
    return measuring("sts", artifact.name, call.work)
