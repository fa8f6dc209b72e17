"""A folder of stored vectors in shards: its files are divided, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sentcompress.encoding.vector_folder import writing_folder
from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.progress import Reporter
from sentcompress.quantization.quantizer import Quantizer
from sentcompress.store import MANIFEST, Artifact

# In the plan of the shards, the folder of the quantizer, if codes are stored.
QUANTIZER = "quantizer"


def is_joined(path: Path, plan: Artifact) -> bool:
    """Whether the folder was written before, from shards that a killed process did not remove."""
    try:
        said = read_json(path / MANIFEST)
    except (InputError, OSError):
        return False
    asked = plan.facts["asked"]
    return isinstance(said, dict) and said.get("complete") is True and {**said, **asked} == said


def join_folder(path: Path, plan: Artifact, shards: Sequence[Artifact], reporter: Reporter) -> None:
    """Write the folder as one run would have written it.

    Args:
        plan: its facts hold what was asked for (`asked`) and the rows of each file (`files`).
        shards: in order.

    Raises:
        InputError, UsageError: see `writing_folder`.
    """
    rows = [int(count) for count in plan.facts["files"]]
    quantizer = Quantizer.load(plan.path / QUANTIZER) if (plan.path / QUANTIZER).is_dir() else None
    sources = {number: shard.path for shard in shards for number in range(*shard.facts["numbers"])}
    with ExitStack() as stack:
        folder = stack.enter_context(writing_folder(path, plan.facts["asked"], quantizer))
        if folder.finished:
            return
        with reporter.track("merging", total=sum(rows), unit="texts") as task:
            for number, count in enumerate(rows):
                if not folder.has(number):
                    folder.copy(number, sources[number])
                task.advance(count)
        folder.finish(rows)
