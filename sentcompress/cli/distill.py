"""The output of `sentcompress distill`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.reporting.hints import measuring
from sentcompress.store import Artifact

SHOWN = (
    *("teacher", "student", "method", "parameters", "dimension", "dev_before_training", "dev", "dev_protocol"),
    *("best_step", "steps", "stopped", "diagnosis", "compute_dtype", "sentences_per_second"),
)


def show(artifact: Artifact, call: Call) -> str:
    """What was trained, and how it went."""
    render.print_facts({key: artifact.facts[key] for key in SHOWN}, artifact.reference)
    return measuring("fidelity", artifact.name, call.work)
