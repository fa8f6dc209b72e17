"""The output of `sentcompress merge`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.cli.results import SHOW
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The same as of the command without shards."""
    render.print_facts({"merged": artifact.facts.get("shards", "was made without shards")}, artifact.reference)
    return SHOW[str(artifact.manifest["command"])](artifact, call)
