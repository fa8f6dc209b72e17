"""Mining in shards: files of the gathered pairs and of the mined negatives, and their merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.sentence_table import SentenceTable, read_columns
from sentcompress.errors import InputError
from sentcompress.mining.gathering import Gathered
from sentcompress.mining.miner import MiningCounts
from sentcompress.mining.table import Mined, Write, write_mined
from sentcompress.progress import Reporter
from sentcompress.quantities import counted
from sentcompress.store import Artifact, Build
from sentcompress.store.arrays import save_array

# The folder of the corpus in the plan.
CORPUS = "corpus"
QUERIES, PAIRS, OWN, NEGATIVES = "queries.parquet", "pairs.npy", "own.npy", "negatives.npy"


def save_gathered(gathered: Gathered, write: Write) -> dict[str, Any]:
    """Write queries and pairs; returns the facts. The corpus is a table of its own."""
    with write(QUERIES) as path:
        pq.write_table(pa.table({"text": pa.array(list(gathered.queries), pa.string())}), path, compression="zstd")
    for name, rows in ((PAIRS, gathered.pairs), (OWN, gathered.own)):
        with write(name) as path:
            save_array(path, rows)
    return {"corpus": gathered.corpus, "left_out": dict(gathered.left_out), "queries": len(gathered.queries)}


def load_gathered(plan: Artifact) -> Gathered:
    """What `save_gathered` wrote."""
    queries = read_columns(plan.path / QUERIES).column(0).to_pylist()
    pairs, own = (np.load(plan.path / name, allow_pickle=False) for name in (PAIRS, OWN))
    return Gathered(queries, pairs, own, int(plan.facts["corpus"]), plan.facts["left_out"])


def save_mined(mined: Mined, write: Write) -> None:
    """Write the pairs of one shard and their negatives."""
    for name, rows in ((PAIRS, mined.pairs), (NEGATIVES, mined.negatives)):
        with write(name) as path:
            save_array(path, rows)


def too_few(count: int) -> InputError:
    """The error if no pair has enough negatives."""
    hints = ("raise `max_score`", "lower `skip` or `negatives`", "add texts with `corpus`")
    return InputError(f"no pair has {count} candidate negatives", hints)


def facts_of(
    gathered: Gathered, tally: MiningCounts, rows: int, described: Mapping[str, Any], reporter: Reporter
) -> dict[str, Any]:
    """What the manifest says; warns of dropped and padded pairs.

    Args:
        rows: number of rows of the table.
        described: model, mined_from and negatives per pair.
    """
    count = described["negatives"]
    if tally.too_few:
        reporter.warn(f"dropped {counted(tally.too_few, 'pair')} with too few candidate negatives")
    if tally.padded:
        reporter.warn(
            f"{tally.padded_pairs} of {tally.pairs} pairs have too few candidate negatives, and got "
            f"{tally.padded} random texts of the corpus"
        )
    return {
        "rows": rows,
        "triplets": tally.pairs,
        "queries": len(gathered.queries),
        "corpus": gathered.corpus,
        **described,
        "mean_positive_score": tally.positive_score / tally.pairs,
        "mean_negative_score": tally.negative_score / (tally.pairs * count),
        "positives_among_candidates": tally.found / tally.pairs,
        "candidates": tally.considered,
        "share_dropped": tally.dropped / tally.considered if tally.considered else 0.0,
        "padded_pairs": tally.padded_pairs,
        "padded_negatives": tally.padded,
        "left_out": {**gathered.left_out, **({"too_few_negatives": tally.too_few} if tally.too_few else {})},
    }


def join_mined(plan: Artifact, shards: Sequence[Artifact], build: Build, reporter: Reporter) -> dict[str, Any]:
    """Write the table as one run would have written it; returns the facts.

    Args:
        shards: in order.

    Raises:
        InputError: if no pair has enough negatives.
    """
    gathered, tally = load_gathered(plan), MiningCounts()
    parts = [[np.load(shard.path / name, allow_pickle=False) for shard in shards] for name in (PAIRS, NEGATIVES)]
    for shard in shards:
        counts = shard.facts["counts"]
        tally = MiningCounts(**{name: value + counts[name] for name, value in asdict(tally).items()})
    if not tally.pairs:
        raise too_few(plan.facts["described"]["negatives"])
    mined = Mined(np.concatenate(parts[0]), np.concatenate(parts[1]))
    corpus = SentenceTable(plan.path / CORPUS)
    rows = write_mined(mined, gathered, corpus, str(plan.facts["described"]["mined_from"]), build.write)
    return facts_of(gathered, tally, rows, plan.facts["described"], reporter)
