"""The output of `sentcompress augment`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The table in numbers."""
    facts = artifact.facts
    skipped = {f"dropped: {why.replace('_', ' ')}": count for why, count in facts["skipped"].items()}
    made = {source: count for source, count in facts["by_source"].items() if source != "original"}
    by_source = {"original": facts["originals"], **made}
    render.print_facts({"sentences": facts["rows"], **by_source, "triplets": facts["triplets"], **skipped})
    return f"sentcompress teacher-embed --work {shell_word(call.work)}"
