"""What a user could deploy: int8 students, and the int8 teacher under onnxruntime and under OpenVINO.

    python benchmarks/deployed_speed.py DATA --work work-deployed [--export NAME=FOLDER] [--threads 2]

All sides encode the same sentences in one process, in turns, with the same number of threads: the teacher with
`SentenceTransformer.encode` (float32), and int8 graphs with tokenizers and a runtime, in batches of sentences of
similar numbers of tokens (`GraphReader.run_all`). The graphs are those that `sentcompress export` writes of the teacher
and of the published students, other exported folders (`--export`, can be repeated), and, if openvino and nncf are
installed, the teacher quantised by NNCF and run by OpenVINO. Each side's STS-B test score and nDCG@10 on SciFact's dev
queries are beside its speed. Latency is that of single queries, tokenisation included. It is measured in blocks: one
side answers all queries, after a pause and a warm-up, before the next side begins, because the waiting threads of one
runtime would slow down the next one. Run it on a quiet machine. Writes benchmarks/results/deployed_speed.json and .md,
or into `--results`.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from running import RESULTS, machine, sentcompress, write_results
from sentence_transformers import SentenceTransformer

from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.sts import read_dev
from sentcompress.encoding.batches import plan_batches
from sentcompress.evaluation.index import exact_search
from sentcompress.evaluation.metrics import NDCG
from sentcompress.evaluation.ranking import in_order, scores_of_queries
from sentcompress.evaluation.similarity import cosine_of_pairs, normalized, spearman
from sentcompress.evaluation.timing import in_turn
from sentcompress.evaluation.vector_rows import in_memory
from sentcompress.exporting.graph_reader import BATCH_TOKENS, INPUTS, GraphReader
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE
from sentcompress.models.sources import resolve
from sentcompress.models.token_batches import padded

STUDENTS = ("general-9m", "general-5m", "general-2m")
TEACHER = "teacher, SentenceTransformer.encode"
BATCH, LENGTH = 32, 256
# Seconds between two blocks of single queries, and queries that are not counted.
PAUSE, WARM_UP = 0.5, 30
# Seconds of a timed pass, at least.
SHORTEST = 1.0
Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]


def sentence_transformers(name: str) -> Encode:
    """A model under `SentenceTransformer.encode`, in float32."""
    model = SentenceTransformer(str(resolve(name).path), device="cpu")
    return lambda texts: np.asarray(model.encode(list(texts), batch_size=BATCH, show_progress_bar=False), np.float32)


def graph(folder: Path, threads: int) -> Encode:
    """The int8 graph of an exported folder under onnxruntime."""
    reader = GraphReader(folder, INT8_FILE, prepare=str, max_length=LENGTH, threads=threads)
    return lambda texts: reader.run_all(reader.tokenize(texts))


def openvino(folder: Path, sample: Sequence[str], threads: int) -> Encode | None:
    """The teacher's graph quantised to int8 by NNCF and run by OpenVINO; None if they are not installed."""
    if not importlib.util.find_spec("openvino") or not importlib.util.find_spec("nncf"):
        return None
    import nncf  # type: ignore[import-not-found]
    from openvino import Core  # type: ignore[import-not-found]

    reader = GraphReader(folder, FLOAT32_FILE, prepare=str, max_length=LENGTH, threads=1)

    def inputs(tokens: Sequence[Sequence[int]]) -> dict[str, npt.NDArray[np.int64]]:
        return dict(zip(INPUTS, padded(tokens, reader.padding), strict=True))

    core = Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads})
    dataset = nncf.Dataset(list(sample), lambda text: inputs(reader.tokenize([text])))
    model = nncf.quantize(
        core.read_model(folder / FLOAT32_FILE),
        dataset,
        model_type=nncf.ModelType.TRANSFORMER,
        preset=nncf.QuantizationPreset.MIXED,
        subset_size=len(sample),
    )
    compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY"})

    def encode(texts: Sequence[str]) -> Vectors:
        tokens = reader.tokenize(texts)
        batches = plan_batches([len(ids) for ids in tokens], BATCH_TOKENS)
        parts = [np.array(compiled(inputs([tokens[row] for row in batch]))[0]) for batch in batches]
        vectors = np.concatenate(parts)
        out = np.empty_like(vectors)
        out[np.concatenate(batches)] = vectors
        return out

    return encode


def sides(asked: argparse.Namespace, sample: Sequence[str]) -> dict[str, Encode]:
    """Everything that is measured, by name."""
    found: dict[str, Encode] = {TEACHER: sentence_transformers("embedded")}
    for name, model in (("teacher", "embedded"), *((name, name) for name in STUDENTS)):
        if not (asked.work / "exports" / name / INT8_FILE).is_file():
            sentcompress(f"export --model {model} --name {name}", asked.work)
        found[f"{name}, int8, onnxruntime"] = graph(asked.work / "exports" / name, asked.threads)
    if (quantised := openvino(asked.work / "exports" / "teacher", sample, asked.threads)) is not None:
        found["teacher, int8, OpenVINO"] = quantised
    else:
        print("openvino and nncf are not installed: that side is left out", flush=True)
    for name, _, folder in (given.partition("=") for given in asked.export):
        found[f"{name}, int8, onnxruntime"] = graph(Path(folder), asked.threads)
    return found


def quality(encode: Encode, sts: Any, collection: Any, documents: list[str]) -> dict[str, float]:
    """STS-B test x 100, and nDCG@10 x 100 on SciFact's dev queries."""
    first, second = encode(sts.first), encode(sts.second)
    vectors, queries = (normalized(encode(part))[0] for part in (documents, collection.queries))
    ranked = in_order(exact_search(in_memory(vectors), queries, 10), lambda row: str(row).encode())
    return {
        "sts": 100 * spearman(np.array(sts.scores), cosine_of_pairs(first, second)),
        "ndcg": 100 * float(scores_of_queries(ranked, collection.grades)[NDCG].mean()),
    }


def throughput(found: dict[str, Encode], texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Seconds that each side takes for the texts, in each round; sides that take less than SHORTEST repeat them."""
    seconds: dict[str, list[float]] = {name: [] for name in found}
    repeats: dict[str, int] = {}
    for name, encode in found.items():
        encode(texts[:64])
        started = time.perf_counter()
        encode(texts)
        repeats[name] = max(1, math.ceil(SHORTEST / (time.perf_counter() - started)))
    for turn in range(rounds):
        for name in in_turn(found, turn):
            started = time.perf_counter()
            for _ in range(repeats[name]):
                found[name](texts)
            seconds[name].append((time.perf_counter() - started) / repeats[name])
            print(f"round {turn + 1}  {name:45} {seconds[name][-1]:7.2f} s", flush=True)
    return seconds


def latencies(found: dict[str, Encode], queries: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """The median milliseconds of single queries of each side in each round, in blocks of all queries."""
    medians: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds):
        for name in in_turn(found, turn):
            encode = found[name]
            time.sleep(PAUSE)  # the threads of the side before stop waiting
            for query in queries[:WARM_UP]:
                encode([query])
            taken = []
            for query in queries:
                started = time.perf_counter()
                encode([query])
                taken.append(1000 * (time.perf_counter() - started))
            medians[name].append(statistics.median(taken))
            print(f"round {turn + 1}  {name:45} {medians[name][-1]:7.2f} ms a query", flush=True)
    return medians


def markdown(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "# What could be deployed",
        "",
        f"{facts['texts']:,} sentences of STS-B test, {facts['rounds']} rounds in turns: the medians, and the ratio of "
        f"the shortest times. p50: {facts['queries']} SciFact queries one at a time, tokenisation included, in blocks; "
        f"the median and the smallest of the rounds. {facts['threads']} threads of {facts['machine']['processor']}. "
        f"Load average {facts['load'][0]:.1f} to {facts['load'][1]:.1f}.",
        "Command: `python benchmarks/deployed_speed.py DATA --work WORK`.",
        "",
        "| model | sentences/s | times the teacher | by shortest times | p50, ms | smallest p50 | STS-B test | "
        "nDCG@10, SciFact dev | of the teacher's |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['name']} | {row['sentences_per_second']:,.0f} | {row['times']:.1f} | {row['shortest']:.1f} | "
        f"{row['milliseconds']:.2f} | {min(row['medians']):.2f} | {row['sts']:.2f} | "
        f"{row['ndcg']:.2f} | {100 * row['ndcg'] / rows[0]['ndcg']:.1f}% |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with sts/stsb and retrieval/scifact")
    parser.add_argument("--work", type=Path, default=Path("work-deployed"))
    parser.add_argument(
        "--export", action="append", default=[], help="NAME=FOLDER: an exported folder with an int8 graph"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, help="for a trial: so many documents of SciFact, not all")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    sts = read_dev(asked.data / "sts" / "stsb" / "test.tsv")
    scifact = collection_data_set(asked.data / "retrieval" / "scifact", None).read()
    documents = [text for chunk in scifact.corpus.texts() for text in chunk][: asked.documents]
    texts = list(dict.fromkeys([*sts.first, *sts.second]))
    load = [os.getloadavg()[0]]
    found = sides(asked, texts[:300])
    queries = scifact.queries[:300]
    seconds, medians = throughput(found, texts, asked.rounds), latencies(found, queries, asked.rounds)
    load.append(os.getloadavg()[0])
    rows = [
        {
            "name": name,
            "sentences_per_second": len(texts) / statistics.median(taken),
            "times": statistics.median(a / b for a, b in zip(seconds[TEACHER], taken, strict=True)),
            "shortest": min(seconds[TEACHER]) / min(taken),
            "milliseconds": statistics.median(medians[name]),
            "seconds": taken,
            "medians": medians[name],
            **quality(found[name], sts, scifact, documents),
        }
        for name, taken in seconds.items()
    ]
    facts = {
        "texts": len(texts),
        "queries": len(queries),
        "rounds": asked.rounds,
        "threads": asked.threads,
        "load": load,
        "machine": machine(),
    }
    text = markdown(rows, facts)
    write_results("deployed_speed", {**facts, "rows": rows}, text, asked.results)
    print(text)


if __name__ == "__main__":
    main()
