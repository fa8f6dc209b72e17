"""What each number format of stored vectors keeps of a model's own search results, at the same bytes a vector.

    sentcompress encode scifact/ --model embedded -o documents.npy
    sentcompress encode scifact/queries.jsonl --model embedded -o queries.npy
    python benchmarks/vector_formats.py documents.npy queries.npy --bytes 48 128

The gold ranking is that of the float32 vectors with all dimensions. Every format is fitted on a random half of the
documents; all documents are searched. `binary, rescored` has two codes of a document: the bits of all dimensions, by
whose Hamming distance CANDIDATES documents are found, and the finer format that fits into the remaining bytes, by which
these are ranked. Writes results/vector_formats.md.
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
from sentcompress.quantization.codecs import CODECS
from sentcompress.quantization.quantizer import Quantizer

CANDIDATES = 100
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


def rescored(bits: Quantizer, fine: Quantizer, queries: np.ndarray, documents: np.ndarray, gold: GoldRanking) -> float:
    """The fidelity, from 0 to 1, of the documents nearest by Hamming distance, ranked by cosines with their fine codes.

    Args:
        bits, fine: binary codes, and those to rescore with.
        queries, documents: [Q, D] and [N, D] vectors of the model.
    """
    asked, codes = (np.unpackbits(bits.encode(values), axis=1).astype(np.float32) for values in (queries, documents))
    distances = asked.sum(axis=1)[:, None] + codes.sum(axis=1) - 2 * asked @ codes.T
    candidates = np.argsort(distances, axis=1, kind="stable")[:, :CANDIDATES]
    stored, turned = fine.decode(fine.encode(documents)), fine.turn(queries)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    ranks = np.full((len(queries), gold.k), gold.k)
    for row, (query, found) in enumerate(zip(turned, candidates, strict=True)):
        of = dict(zip(gold.relevant[row].documents, gold.relevant[row].ranks, strict=True))
        results = found[np.argsort(-(stored[found] @ query), kind="stable")][: gold.k]
        ranks[row] = [of.get(document, gold.k) for document in results]
    return float(gold.gains(ranks).mean())


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
        return 100 * gold.fidelity(turned, stored)

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
        fitted_bits = fitted(StoragePlan("binary", turn.dimension), turn, train, 0)
        for name in ("int4", "int8"):
            left = 8 * (size - fitted_bits.bytes) // CODECS[name].bits
            if left > 0:
                fine = fitted(StoragePlan(name, min(left, turn.dimension)), turn, train, 0)
                mean = 100 * rescored(fitted_bits, fine, queries, documents, gold)
                used, title = fitted_bits.bytes + fine.bytes, f"binary, rescored with {name}"
                rows.append((str(size), title, fine.dimension, used, f"{mean:.2f}", ""))
                print(*rows[-1], sep="\t", flush=True)
    centre = train.mean(axis=0)
    text = [
        f"# Stored vectors: {len(documents):,} documents, {len(queries):,} queries, {documents.shape[1]} dimensions",
        "How well each format of `fit-quantizer` keeps the search results, by bytes per vector. Fidelity: nDCG@10 x "
        "100, where the first ten results of the float32 vectors are the graded relevant documents. Fitted on half of "
        "the documents. `binary, rescored`: the bits of all dimensions find "
        f"{CANDIDATES} documents by Hamming distance, and a second code in the remaining bytes ranks them. "
        "`benchmarks/vector_formats.py`",
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
