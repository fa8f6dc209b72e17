"""A sentence table in shards: the first reads the originals, each augments a part of them, and the merge appends."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sentcompress.augmentations.base import AugmenterSpec
from sentcompress.augmentations.table import (
    AugmentationPlan,
    Augmented,
    Pieces,
    append_pieces,
    facts_of,
    file_of,
    make_pieces,
)
from sentcompress.augmentations.workers import Piece
from sentcompress.corpora.originals import Limits, ReadCounts
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.progress import Reporter
from sentcompress.store import Artifact, Build
from sentcompress.store.shards import Part

# The folder of a shard's pieces.
FOLDER = "pieces"
# A file of the plan, next to the originals: in how many of them each word occurs. Only if shards make queries.
FREQUENCIES = "words.npy"


def plan_of(read: ReadCounts, limits: Limits, copies: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """The facts of the plan, whose folder holds the originals."""
    return {"read": asdict(read), "limits": asdict(limits), "copies": [list(one) for one in copies]}


def make_part(part: Part, specs: Sequence[AugmenterSpec], workers: int, reporter: Reporter) -> Artifact:
    """Augment the originals of one shard.

    Raises:
        SentcompressError: from an augmenter.
    """
    plan = _plan_in(part.plan.facts)
    sizes = plan.piece_sizes(SentenceTable(part.plan.path))
    numbers = part.shard.of(len(sizes))
    pieces = Pieces(part.plan.path, part.build, FOLDER, numbers)
    notes = make_pieces(plan, specs, pieces, workers, reporter) if specs and numbers else {}
    rows = sum(sizes[numbers.start : numbers.stop])
    return part.finish({"rows": rows, "numbers": [numbers.start, numbers.stop], "computed": notes})


def join_tables(plan: Artifact, shards: Sequence[Artifact], build: Build, reporter: Reporter) -> dict[str, Any]:
    """Write the table as one run would have written it; returns the facts.

    Args:
        plan: from `plan_of`.
        shards: in order.
    """
    sources = {number: shard.path for shard in shards for number in range(*shard.facts["numbers"])}

    def find(piece: Piece) -> Path:
        return sources[piece.number] / file_of(piece, FOLDER)

    for name in plan.manifest["files"]:
        if name != FREQUENCIES and not build.has(name):
            with build.write(name) as path:
                shutil.copyfile(plan.path / name, path)
    read, asked = ReadCounts(**plan.facts["read"]), _plan_in(plan.facts)
    augmented = Augmented(read.originals)
    if asked.copies:
        augmented = append_pieces(asked, build, find, Limits(**plan.facts["limits"]), reporter)
    notes: dict[str, str] = {}
    for shard in shards:
        notes |= shard.facts["computed"]
    seconds = sum(float(each.manifest["seconds"]) for each in (plan, *shards))
    return {
        **facts_of(read, augmented, notes),
        # of one process, without the merge
        "sentences_per_second": round(augmented.rows / max(seconds, 1e-6), 1),
    }


def _plan_in(facts: Mapping[str, Any]) -> AugmentationPlan:
    read = ReadCounts(**facts["read"])
    return AugmentationPlan(read.originals, read.files, tuple((source, copies) for source, copies in facts["copies"]))
