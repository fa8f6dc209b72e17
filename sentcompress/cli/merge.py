"""The output of `sentcompress merge`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.results import SHOW
from sentcompress.stages.merge import MergedFolder
from sentcompress.store import Artifact


def document(outcome: Artifact | MergedFolder, call: Call) -> dict[str, Any]:
    """The result for `--json`."""
    return asdict(outcome) if isinstance(outcome, MergedFolder) else render.document_of(outcome)


def show(outcome: Artifact | MergedFolder, call: Call) -> str | None:
    """Show what was merged; for an artifact, the same output as for its command without shards."""
    if isinstance(outcome, MergedFolder):
        render.print_facts(asdict(outcome))
        return None
    render.print_facts({"shards": outcome.facts.get("shards", "none")}, outcome.reference)
    return SHOW[str(outcome.manifest["command"])](outcome, call)
