"""The output of a command that made one shard."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact
from sentcompress.store.shards import Shards

SHOWN = ("rows", "queries", "compute_dtype", "sentences_per_second")


def show(artifact: Artifact, call: Call) -> str | None:
    """Show the shard, and how many are finished; the next command if all are."""
    facts, of = artifact.facts, str(artifact.facts["of"])
    progress = Shards.of_part(artifact).progress()
    done = {"finished": f"{progress.done} of {progress.count} shards"} if progress else {}
    shown = {name: facts[name] for name in SHOWN if name in facts}
    render.print_facts({"shard": facts["shard"], **shown, **done}, of)
    if progress is None or progress.done < progress.count:
        return None
    return f"sentcompress merge {shell_word(of)} --work {shell_word(call.work)}"
