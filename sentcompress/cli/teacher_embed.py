"""The output of `sentcompress teacher-embed`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact

SHOWN = ("rows", "dimension", "teacher", "compute_dtype", "sentences_per_second")


def show(artifact: Artifact, call: Call) -> str:
    """What was encoded, and how fast."""
    render.print_facts({key: artifact.facts[key] for key in SHOWN})
    return f"sentcompress fit-pca --dim 128 --work {shell_word(call.work)}"
