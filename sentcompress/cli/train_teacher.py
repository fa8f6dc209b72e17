"""The output of `sentcompress train-teacher`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact

SHOWN = (
    *("started_from", "objective", "pooling", "triplets", "parameters", "dimension", "dev_before_training", "dev"),
    *("dev_protocol", "best_step", "steps", "stopped", "diagnosis", "compute_dtype", "sentences_per_second"),
)


def show(artifact: Artifact, call: Call) -> str:
    """What was trained, and how it went."""
    render.print_facts({key: artifact.facts[key] for key in SHOWN}, artifact.reference)
    return f"sentcompress teacher-embed --teacher {shell_word(artifact.name)} --work {shell_word(call.work)}"
