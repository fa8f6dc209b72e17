"""What each number format of stored vectors keeps of a model's own search results, at the same bytes a vector.

    sentcompress encode scifact/ --model embedded -o documents.npy
    sentcompress encode scifact/queries.jsonl --model embedded -o queries.npy
    python benchmarks/vector_formats.py documents.npy queries.npy --bytes 48 128

The gold ranking is that of the float32 vectors with all dimensions. Every format is fitted on a random half of the
documents; all documents are searched. Writes results/vector_formats.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.plain_text import markdown_table
from sentcompress.quantization import fitting
from sentcompress.quantization.choice import HeldOut, StoragePlan, fitted, plans, shortened, turn_of
from sentcompress.quantization.quantizer import Quantizer

RESULT = Path(__file__).resolve().parent / "results" / "vector_formats.md"


def consecutive(plan: StoragePlan, turn: Quantizer, vectors: np.ndarray) -> Quantizer:
    """Product codes whose segments are consecutive dimensions."""
    cut = shortened(turn, plan.dimension)
    original = fitting.balanced_order
    fitting.balanced_order = lambda variances, segments: np.arange(len(variances), dtype=np.int32)
    try:
        return replace(cut, codec=fitting.fit_product(cut.turn(vectors), plan.segments, 0))
    finally:
        fitting.balanced_order = original


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--bytes", type=int, nargs="+", default=[48, 128])
    given = parser.parse_args()
    documents, queries = np.load(given.documents), np.load(given.queries)
    half = np.random.default_rng(0).permutation(len(documents))[: len(documents) // 2]
    train = documents[half]
    gold = GoldRanking.of(queries, documents)

    def score(turned: np.ndarray, stored: np.ndarray) -> np.ndarray:
        return 100 * gold.gains(gold.ranks(turned, stored))

    held_out, turn = HeldOut(queries, documents, score), turn_of(train)
    rows = []
    for size in given.bytes:
        for plan in plans(size, documents.shape[1]):
            ways: dict[str, Callable[[], Quantizer]] = {plan.format: partial(fitted, plan, turn, train, 0)}
            if plan.format == "pq":
                ways["pq, consecutive segments"] = partial(consecutive, plan, turn, train)
            for name, fit in ways.items():
                started = time.perf_counter()
                quantizer = fit()
                seconds, mean = time.perf_counter() - started, held_out.scores(quantizer).mean()
                rows.append((str(size), name, plan.dimension, quantizer.bytes, f"{mean:.2f}", f"{seconds:.1f}"))
                print(*rows[-1], sep="\t", flush=True)
    centre = train.mean(axis=0)
    text = [
        f"# Stored vectors: {len(documents):,} documents, {len(queries):,} queries, {documents.shape[1]} dimensions",
        "How well each format of `fit-quantizer` keeps the search results, by bytes per vector. Fidelity: nDCG@10 x "
        "100, where the first ten results of the float32 vectors are the graded relevant documents. Fitted on half of "
        "the documents. `benchmarks/vector_formats.py`",
        markdown_table(("bytes allowed", "format", "dimensions", "bytes used", "fidelity", "seconds to fit"), rows),
        "Fidelity with all dimensions in float32, if the mean of the documents is subtracted from documents and queries"
        f": {score(queries - centre, documents - centre).mean():.2f}.",
        markdown_table(
            ("first dimensions of the turn, float32", "fidelity"),
            [
                (d, f"{held_out.scores(shortened(turn, d)).mean():.2f}")
                for d in (32, 64, 128, 256)
                if d <= turn.dimension
            ],
        ),
    ]
    RESULT.write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
