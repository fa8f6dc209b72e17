"""The encode engine against SentenceTransformer.encode: the same model, sentences, process and cores, in turns.

    python benchmarks/encode_speed.py [--rounds 5] [--threads 2]

Real sentences of the Wikipedia, Reuters and Common Voice files beside the checkout (or where
SENTCOMPRESS_SHARED_DATA says): 4,000 of 10 to 600 characters. Times are wall time; the processor time of the process
stands beside them, which other work on the machine changes less (exact with --threads 1: waiting threads spin).
Writes benchmarks/results/encode_speed.json and .md.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from running import machine, write_results
from sentence_transformers import SentenceTransformer

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.evaluation.timing import in_turn
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SENTCOMPRESS_SHARED_DATA", ROOT.parent / "shared" / "data"))
PEER_BATCH_SIZES = (8, 16, 32, 64, 128)
Encode = Callable[[list[str]], npt.NDArray[np.float32]]


def sample(count: int) -> list[str]:
    """Distinct sentences of 10 to 600 characters, drawn from all files of `corpus` with a fixed seed."""
    texts: dict[str, None] = {}
    for path in sorted((DATA / "corpus").glob("*.txt.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            texts.update(dict.fromkeys(line for line in map(str.strip, stream) if 10 <= len(line) <= 600))
    return random.Random(0).sample(list(texts), count)


def seconds_of(encode: Encode, texts: list[str]) -> tuple[float, float, npt.NDArray[np.float32]]:
    """Wall time, processor time, vectors."""
    started = time.perf_counter(), time.process_time()
    vectors = encode(texts)
    return time.perf_counter() - started[0], time.process_time() - started[1], vectors


def peer(model: SentenceTransformer, batch_size: int) -> Encode:
    return lambda texts: np.asarray(model.encode(texts, batch_size=batch_size, show_progress_bar=False), np.float32)


def sharing(engine: EncodeEngine) -> Encode:
    """An engine without its batch per thread."""

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        with mock.patch("sentcompress.encoding.engine.map_in_threads", map):
            return engine.encode(texts)

    return encode


def best_batch_size(model: SentenceTransformer, texts: list[str]) -> int:
    """The peer's fastest batch size on a part of the sentences: the better of two rounds each."""
    seconds = dict.fromkeys(PEER_BATCH_SIZES, float("inf"))
    for _ in range(2):
        for size in PEER_BATCH_SIZES:
            seconds[size] = min(seconds[size], seconds_of(peer(model, size), texts)[0])
    return min(seconds, key=lambda size: seconds[size])


def contestants(texts: list[str]) -> tuple[dict[str, Encode], dict[str, Any]]:
    """Everything that is timed, and what was found out on the way."""
    source = resolve("embedded")
    encoder = load_encoder(source)
    model = SentenceTransformer(str(source.path), device="cpu")
    half = SentenceTransformer(str(source.path), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    best = best_batch_size(model, texts[:400])
    exact = EncodeEngine(encoder, device="cpu", dtype="float32")
    rounded = EncodeEngine(encoder, device="cpu", dtype="bfloat16")
    started = time.perf_counter()
    auto = EncodeEngine(encoder, device="cpu", dtype="auto")
    facts = {"auto_seconds": time.perf_counter() - started, "auto_picked": auto.compute_dtype}
    found: dict[str, Encode] = {
        "SentenceTransformer, defaults": peer(model, 32),
        f"SentenceTransformer, batch size {best}": peer(model, best),
        "SentenceTransformer, bfloat16": peer(half, best),
        "sentcompress, float32": exact.encode,
        "sentcompress, bfloat16": rounded.encode,
        "sentcompress, float32, all threads share a batch": sharing(exact),
        "sentcompress, bfloat16, all threads share a batch": sharing(rounded),
    }
    return found, {**facts, "auto_reason": auto.dtype_reason, "matmul": exact.matmul, "peer_best_batch_size": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no real data sets at {DATA}")
    torch.set_num_threads(arguments.threads)
    texts = sample(arguments.count)
    found, facts = contestants(texts)
    seconds: dict[str, list[float]] = {name: [] for name in found}
    processors: dict[str, list[float]] = {name: [] for name in found}
    vectors: dict[str, npt.NDArray[np.float32]] = {}
    load = [os.getloadavg()[0]]
    for turn in range(arguments.rounds):
        for name in in_turn(found, turn):
            wall, processor, vectors[name] = seconds_of(found[name], texts)
            seconds[name].append(wall)
            processors[name].append(processor)
            print(f"round {turn + 1}  {name:50} {wall:7.2f} s, processor {processor:7.2f} s", flush=True)
        load.append(os.getloadavg()[0])
    report(texts, seconds, processors, vectors, {**facts, "threads": arguments.threads, "load_average": load})


def report(
    texts: list[str],
    seconds: dict[str, list[float]],
    processors: dict[str, list[float]],
    vectors: dict[str, npt.NDArray[np.float32]],
    facts: dict[str, Any],
) -> None:
    """Write both result files. A ratio is the median of the ratios within the rounds."""
    default, best = list(seconds)[:2]
    expected = vectors[default]
    rows = {
        name: {
            "sentences_per_second": len(texts) / statistics.median(taken),
            "times_default": statistics.median(a / b for a, b in zip(seconds[default], taken, strict=True)),
            "times_best_batch_size": statistics.median(a / b for a, b in zip(seconds[best], taken, strict=True)),
            "times_default_processor": statistics.median(processors[default]) / statistics.median(processors[name]),
            "largest_difference": float(np.abs(vectors[name] - expected).max()),
            "smallest_cosine": float((vectors[name] * expected).sum(axis=1).min()),
            "seconds": taken,
            "processor_seconds": processors[name],
        }
        for name, taken in seconds.items()
    }
    processor = machine()["processor"]
    libraries = {name: version(name) for name in ("torch", "transformers", "sentence-transformers", "numpy")}
    document = {"sentences": len(texts), "rows": rows, **facts, "machine": processor, "libraries": libraries}
    lines = [
        "# Encoding speed",
        "",
        f"{len(texts):,} real sentences of 10 to 600 characters, all-MiniLM-L6-v2, {processor}, {facts['threads']} "
        f"threads, in turns in one process, medians of {len(seconds[default])} rounds. "
        "`python benchmarks/encode_speed.py`",
        "",
        "| engine | sentences/s | speed, defaults = 1 | speed, best batch size = 1 | speed in CPU time, defaults = 1 | "
        "largest difference | smallest cosine |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {row['sentences_per_second']:,.0f} | {row['times_default']:.2f} | "
            f"{row['times_best_batch_size']:.2f} | {row['times_default_processor']:.2f} | "
            f"{row['largest_difference']:.1e} | {row['smallest_cosine']:.6f} |"
            for name, row in rows.items()
        ),
        "",
        f"`--dtype auto` took {facts['auto_seconds']:.2f} s and picked {facts['auto_picked']} "
        f"({facts['auto_reason']}). Load average at the start and after each round: "
        f"{', '.join(f'{value:.1f}' for value in facts['load_average'])}.",
    ]
    write_results("encode_speed", document, "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
