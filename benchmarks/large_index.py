"""A corpus of 8.8 million vectors (MS MARCO's number of passages) through `eval-retrieval --index ivf` and `ivfpq`.

    python benchmarks/large_index.py [--documents 8800000] [--dimension 128] [--threads 1] [--folder FOLDER]

The vectors are made up: clusters of unequal sizes, and 1,000 queries that are documents with some noise. From there on
everything is the command's own code: vectors come as a stream, are normalised and put in a file, exact search and the
index read that file piece by piece. Each kind runs in a process of its own; its peak resident memory is the kernel's
count for that process, and the limit is 8 GB. FOLDER takes documents x dimension x 4 bytes for the time of the run.
Writes benchmarks/results/large_index.json and large_index.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from running import machine, write_results

from sentcompress.commands.eval_retrieval import Params
from sentcompress.corpora.collections import Collection, Corpus, DataSet, DocumentIds
from sentcompress.encoding.embedder import Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource
from sentcompress.encoding.sides import Sides
from sentcompress.evaluation.metrics import (
    BUILD_SECONDS,
    INDEX_BYTES,
    MRR,
    OVERLAP,
    SEARCH_P50,
    SEARCH_P95,
    SEARCH_TIME,
)
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, select
from sentcompress.process_memory import peak_memory
from sentcompress.progress import SILENT, Reporter, Task
from sentcompress.stages.eval_retrieval import COMMAND, RetrievalEvaluation
from sentcompress.store import Request, WorkDirectory

LIMIT = 8e9
BLOCK = 8192
CLUSTERS = 20_000
QUERIES = 1000
DEPTH = 10


@lru_cache(maxsize=1)
def centres(dimension: int) -> Vectors:
    """[CLUSTERS, D]."""
    return np.random.default_rng(11).standard_normal((CLUSTERS, dimension), dtype=np.float32)


@dataclass(frozen=True)
class Synthetic:
    """An embedder whose texts are row numbers; a block of rows has its own seed, so that it can be made anew."""

    dimension: int

    def block(self, number: int) -> Vectors:
        """[BLOCK, D]: a centre for each row, some of them ten times as often as others, and noise."""
        generator = np.random.default_rng((7, number))
        cluster = (CLUSTERS * generator.random(BLOCK) ** 2).astype(np.int64)
        noise = generator.standard_normal((BLOCK, self.dimension), dtype=np.float32)
        return centres(self.dimension)[cluster] + np.float32(0.7) * noise

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        """Queries: their documents with noise; rows in rising order, so that one block is held at a time."""
        made: list[Vectors] = []
        for number, rows in groupby(map(int, texts), key=lambda row: row // BLOCK):
            made.append(self.block(number)[[row % BLOCK for row in rows]])
        documents = np.concatenate(made)
        noise = np.random.default_rng(13).standard_normal(documents.shape, dtype=np.float32)
        return documents + np.float32(0.5) * noise

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        """Documents, a block at a time."""
        for chunk in chunks:
            yield self.block(int(chunk[0]) // BLOCK)[: len(chunk)]

    def described(self) -> dict[str, Any]:
        return {"dimension": self.dimension, "parameters": None, "dtype": "synthetic"}

    def count_tokens(self, texts: Sequence[str]) -> None:
        return None


@dataclass(frozen=True)
class SyntheticSource(EmbedderSource):
    """Where the evaluation expects a model."""

    dimension: int = 128

    def open_bare(self, *, device: str = "auto", dtype: str = "float32", reporter: Reporter = SILENT) -> Synthetic:
        return Synthetic(self.dimension)


def synthetic_collection(documents: int) -> Collection:
    """Row numbers as texts; the queries come from a hundred blocks all over the corpus."""

    def texts() -> Iterator[list[str]]:
        for start in range(0, documents, BLOCK):
            yield [str(row) for row in range(start, min(start + BLOCK, documents))]

    generator = np.random.default_rng(5)
    starts = BLOCK * generator.choice(-(-documents // BLOCK), size=100).repeat(2 * QUERIES // 100)
    rows = np.unique(np.minimum(starts + generator.integers(BLOCK, size=len(starts)), documents - 1))
    queries = sorted(generator.permutation(rows)[:QUERIES].tolist())
    ids = DocumentIds(str(row) for row in range(documents))
    return Collection(Corpus(ids, texts), tuple(map(str, queries)), tuple({row: 1} for row in queries))


def run_one(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """One kind, in this process."""
    started = time.perf_counter()
    collection = synthetic_collection(options.documents)
    params = Params(collection=Path("synthetic"), index=(kind,), threads=options.threads, rounds=3)
    source = SyntheticSource("synthetic", "synthetic", "0" * 64, dimension=options.dimension)
    data = DataSet("collection", "synthetic", None, (), lambda: collection)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        request = Request("evaluations", f"large-{kind}", COMMAND, {"documents": options.documents})
        with WorkDirectory(folder).build(request) as build:
            evaluation = RetrievalEvaluation(params, data, collection, DEPTH, build, SILENT)
            facts = write_result(build, evaluation.facts({"model": Sides(source, source)})).facts
    scores = read_scores(facts)
    return {
        "index": kind,
        "settings": facts["indexes"][0]["settings"]["model"],
        "peak_bytes": peak_memory(),
        "seconds": round(time.perf_counter() - started, 1),
        "exact": {score.metric: score.value for score in select(scores, part=EXACT)},
        **{score.metric: score.value for score in select(scores, part=kind)},
    }


def table(document: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "# Large indexes",
        "",
        "Memory, time and loss of `eval-retrieval --index` on made-up vectors, as many as MS MARCO has passages. "
        "`python benchmarks/large_index.py`",
        "",
        f"{document['documents']:,} vectors of {document['dimension']} dimensions "
        f"({document['raw_vector_bytes'] / 1e9:.2f} GB as float32), {QUERIES:,} queries, first {DEPTH} documents, "
        f"{document['threads']} thread(s), {document['machine']['processor']}",
        "",
        "| index | settings | peak memory | index bytes | build | ms per 1,000 queries | p50 / p95 of one | "
        "MRR@10 (exact) | of the exact first 10 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in document["indexes"]:
        settings = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
        lines.append(
            f"| {row['index']} | {settings} | {row['peak_bytes'] / 1e9:.2f} GB | {row[INDEX_BYTES]:,} | "
            f"{row[BUILD_SECONDS]:,.0f} s | {row[SEARCH_TIME]:,.0f} | "
            f"{row[SEARCH_P50]:.2f} / {row[SEARCH_P95]:.2f} ms | "
            f"{row[MRR]:.2f} ({row['exact'][MRR]:.2f}) | {row[OVERLAP]:.1f}% |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=8_800_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the vectors go")
    parser.add_argument("--index", default="ivf,ivfpq")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(options.one, options)))
        return
    rows = []
    for kind in options.index.split(","):
        words = [sys.executable, __file__, *sys.argv[1:], "--one", kind]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout))
    document = {
        "documents": options.documents,
        "dimension": options.dimension,
        "raw_vector_bytes": options.documents * options.dimension * 4,
        "threads": options.threads,
        "limit_bytes": int(LIMIT),
        "machine": machine(),
        "indexes": rows,
    }
    write_results("large_index", document, table(document))
    print(table(document))
    if any(row["peak_bytes"] >= LIMIT for row in rows):
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
