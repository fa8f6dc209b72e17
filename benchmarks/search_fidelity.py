"""Does search fidelity, measured without labels, predict what a student loses in judged retrieval?

    python benchmarks/search_fidelity.py DATA --work work-fidelity [--documents 2000] [--only "a|b"]

Contenders are the published students, the embedded teacher's last layers untrained, the teacher with fewer tokens or
with weights rounded to few bits, and the teacher's vectors cut by PCA or stored in int8, 4 bits or 1 bit. For each of
them and for SciFact, msmarco_5k and Quora: nDCG@10 on the judged queries in percent of the teacher's, and search
fidelity to the teacher on queries made from the documents, as `split-documents` makes them. Then the rank correlation
of the two over the contenders, beside those of the mean cosine to the teacher and of STS-B test with the same share.
Vectors are kept in the work directory, so an interrupted run resumes. `--documents` limits the documents of a
collection, all relevant ones and others at random, and as many STS pairs; `--only` names contenders. Writes
benchmarks/results/search_fidelity.json and .md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from running import RESULTS, machine, write_results
from scipy.stats import spearmanr

from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.collections import Collection
from sentcompress.corpora.pairs import pairs_data_set
from sentcompress.corpora.sts import read_dev
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_cache import VectorCache
from sentcompress.evaluation.index import Found, exact_search
from sentcompress.evaluation.metrics import NDCG
from sentcompress.evaluation.ranking import in_order, scores_of_queries
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.evaluation.similarity import cosine_of_pairs, normalized, spearman
from sentcompress.evaluation.vector_rows import in_memory
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder
from sentcompress.models.shape import Shape
from sentcompress.models.sources import EMBEDDED, ModelSource, locate
from sentcompress.models.students import InitialStudent
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.queries import make_queries
from sentcompress.passages.words import words_of
from sentcompress.published import PUBLISHED

TEACHER = "teacher"
# Untrained shapes of the teacher.
SHAPES = {
    **{f"teacher:{layers}": Shape(layers=layers) for layers in (5, 4, 3, 2, 1)},
    "12,000 tokens": Shape(vocabulary=12_000),
    "8,000 tokens": Shape(vocabulary=8000),
    "4,000 tokens": Shape(vocabulary=4000),
    "teacher:3, tokens of 128": Shape(layers=3, token_dim=128, start="sentences"),
    "teacher:5, tokens of 128": Shape(layers=5, token_dim=128, start="sentences"),
    "teacher:5, 768 neurons": Shape(layers=5, feed_forward=768, start="sentences"),
}
ROUNDED = (6, 5, 4)
DIMENSIONS = (256, 192, 128, 96, 64, 32)
QUERIES = 500
DEPTH = 10
Vectors = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Set:
    """A collection with its judged queries, and queries made from its documents."""

    name: str
    documents: list[str]
    queries: list[str]
    grades: list[Mapping[int, int]]
    made: list[str]


def made_queries(documents: Sequence[str], count: int, seed: int) -> list[str]:
    """Queries as `split-documents` makes them, one of each of `count` documents; kinds in turn."""
    frequencies = DocumentFrequencies()
    for text in documents:
        frequencies.add(words_of(text))
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    made = (query for place in order for _, query in make_queries(documents[place], 1, frequencies, seed + place))
    return list(islice(dict.fromkeys(made), count))


def read_sets(data: Path, limit: int | None) -> list[Set]:
    """The three collections, each with at most `limit` documents."""
    retrieval = data / "retrieval"
    collections = {
        "SciFact": collection_data_set(retrieval / "scifact", None),
        "msmarco_5k": collection_data_set(retrieval / "msmarco_5k", None),
        "Quora": pairs_data_set(data / "quora" / "quora.tsv.gz", "auto"),
    }
    return [_sampled(name, source.read(), limit) for name, source in collections.items()]


def _sampled(name: str, collection: Collection, limit: int | None) -> Set:
    random = np.random.default_rng(0)
    size = len(collection.corpus)
    judged = [number for number, grades in enumerate(collection.grades) if grades]
    if limit is not None:
        judged = sorted(random.permutation(judged)[: limit // 4].tolist())
    relevant = {row for number in judged for row in collection.grades[number] if row < size}
    others = [row for row in random.permutation(size).tolist() if row not in relevant]
    kept = sorted([*relevant, *others[: max(0, (limit or size) - len(relevant))]])
    places = {row: place for place, row in enumerate(kept)}
    texts = [text for chunk in collection.corpus.texts() for text in chunk]
    documents = [texts[row] for row in kept]
    # A judged document that the corpus lacks is never found.
    grades: list[Mapping[int, int]] = [
        {places.get(row, len(kept) + row): grade for row, grade in collection.grades[number].items()}
        for number in judged
    ]
    return Set(
        name,
        documents,
        [collection.queries[number] for number in judged],
        grades,
        made_queries(documents, min(QUERIES, limit or QUERIES), seed=1),
    )


def encoders(sample: list[str]) -> dict[str, Callable[[], Encoder]]:
    """The contenders that are models, by name; `sample` is what shapes are fitted on."""
    source = locate(EMBEDDED)
    made: dict[str, Callable[[], Encoder]] = {TEACHER: partial(load_encoder, source)}
    for name in PUBLISHED:
        made[name] = partial(load_encoder, locate(name))
    for name, shape in SHAPES.items():
        made[name] = partial(InitialStudent(EMBEDDED, source, shape).load, [sample], sample[:2000])
    for bits in ROUNDED:
        made[f"weights in {bits} bits"] = partial(_rounded, source, bits)
    return made


def _rounded(source: ModelSource, bits: int) -> Encoder:
    """Every matrix rounded to 2^bits values between its extremes, row by row."""
    encoder = load_encoder(source)
    for weight in encoder.parameters():
        if weight.ndim == 2:
            step = weight.data.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 1)
            weight.data = torch.round(weight.data / step) * step
    return encoder


def stored(documents: Vectors) -> dict[str, Callable[[Vectors], Vectors]]:
    """Ways to store vectors, each as what is read back: [N, D] -> [N, D]. Ranges and axes are of the documents."""
    mean = documents.mean(axis=0)
    axes: Vectors = np.linalg.svd(documents - mean, full_matrices=False)[2]
    low, high = np.quantile(documents, [0.001, 0.999], axis=0)

    def cut(dimensions: int, vectors: Vectors) -> Vectors:
        return (vectors @ axes[:dimensions].T @ axes[:dimensions]).astype(np.float32)

    def levels(bits: int, vectors: Vectors) -> Vectors:
        step = (high - low) / (2**bits - 1)
        return np.asarray(np.round((np.clip(vectors, low, high) - low) / step) * step + low, dtype=np.float32)

    ways: dict[str, Callable[[Vectors], Vectors]] = {f"pca-{count}": partial(cut, count) for count in DIMENSIONS}
    for bits in (8, 4, 3, 2):
        ways[f"vectors in {bits} bits"] = partial(levels, bits)
    ways["vectors in 1 bit"] = lambda vectors: np.sign(vectors - mean).astype(np.float32)
    return ways


def measure(
    vectors: Callable[[list[str]], Vectors], teacher: Callable[[list[str]], Vectors], one: Set, gold: GoldRanking
) -> dict[str, float]:
    """nDCG@10 on judged queries, search fidelity, and the mean cosine to the teacher, all x 100."""
    documents = vectors(one.documents)
    queries = normalized(vectors(one.queries))[0]
    found = exact_search(in_memory(normalized(documents)[0]), queries, DEPTH)
    ranked = in_order(Found(*found), lambda row: f"{row:09d}".encode())
    of_teacher = teacher(one.documents)
    same = of_teacher.shape == documents.shape
    cosine = 100 * float(cosine_of_pairs(documents, of_teacher).mean()) if same else float("nan")
    return {
        "nDCG@10": 100 * float(scores_of_queries(ranked, one.grades)[NDCG].mean()),
        "fidelity": 100 * float(gold.fidelity(vectors(one.made), documents).mean()),
        "cosine": cosine,
    }


def run(data: Path, work: Path, limit: int | None, only: Sequence[str]) -> dict[str, Any]:
    """Measure all contenders on all collections."""
    sets = read_sets(data, limit)
    pairs = read_dev(data / "sts" / "stsb" / "test.tsv")
    sample = [text for one in sets for text in one.documents[:2000]]
    made = encoders(sample)

    def embedding(name: str) -> Callable[[list[str]], Vectors]:
        cache = VectorCache(work / "vectors" / re.sub(r"\W+", "-", name))
        engine: list[EncodeEngine] = []

        def compute(texts: Sequence[str]) -> Vectors:
            if not engine:
                engine.append(EncodeEngine(made[name](), device="cpu", dtype="float32"))
            return engine[0].encode(texts)

        return lambda texts: cache.encode(texts, compute)

    teacher = embedding(TEACHER)
    golds = {one.name: GoldRanking.of(teacher(one.made), teacher(one.documents)) for one in sets}
    ways = stored(np.concatenate([teacher(one.documents[:5000]) for one in sets]))
    rows = []
    names = [name for name in [*made, *ways] if not only or name in only or name == TEACHER]
    for name in names:
        base = teacher if name in ways else embedding(name)
        vectors = (lambda texts, name=name: ways[name](teacher(texts))) if name in ways else base
        first, second = (vectors(list(part[:limit])) for part in (pairs.first, pairs.second))
        row: dict[str, Any] = {
            "name": name,
            "STS-B": 100 * spearman(np.array(pairs.scores[:limit]), cosine_of_pairs(first, second)),
            "sets": {one.name: measure(vectors, teacher, one, golds[one.name]) for one in sets},
        }
        rows.append(row)
        print(name, {data: round(found["nDCG@10"], 2) for data, found in row["sets"].items()}, flush=True)
    for row in rows:
        for data_name, found in row["sets"].items():
            found["kept"] = 100 * found["nDCG@10"] / rows[0]["sets"][data_name]["nDCG@10"]
    sizes = {one.name: {"documents": len(one.documents), "judged": len(one.queries)} for one in sets}
    return {"machine": machine(), "sets": sizes, "rows": rows, "correlations": correlations(rows[1:])}


def correlations(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Measure -> set -> Spearman's correlation with the share of judged nDCG@10 that is kept, over the contenders."""
    measures = [key for key in rows[0]["sets"][next(iter(rows[0]["sets"]))] if key not in ("nDCG@10", "kept")]
    table: dict[str, dict[str, float]] = {}
    for measure_name in [*measures, "STS-B"]:
        table[measure_name] = {}
        means: list[tuple[float, float]] = []
        for name in rows[0]["sets"]:
            kept = [row["sets"][name]["kept"] for row in rows]
            values = [row["STS-B"] if measure_name == "STS-B" else row["sets"][name][measure_name] for row in rows]
            table[measure_name][name] = _correlation(values, kept)
        for row in rows:
            own = row["STS-B"] if measure_name == "STS-B" else _mean(row, measure_name)
            means.append((own, _mean(row, "kept")))
        table[measure_name]["mean of the sets"] = _correlation(*zip(*means, strict=True))
    return table


def _mean(row: Mapping[str, Any], key: str) -> float:
    return float(np.mean([found[key] for found in row["sets"].values()]))


def _correlation(values: Sequence[float], kept: Sequence[float]) -> float:
    there = np.isfinite(values)
    return float(spearmanr(np.array(values)[there], np.array(kept)[there]).statistic)


def page(found: Mapping[str, Any], command: str) -> str:
    """The results as Markdown."""
    names = list(found["sets"])
    lines = [
        "# Search fidelity and judged loss",
        "",
        f"Made by `{command}` on {found['machine']['processor']}. Search fidelity to all-MiniLM-L6-v2 is measured on "
        "queries made from the documents, without labels; the share of nDCG@10 that is kept on judged queries.",
        "",
        "## Rank correlation with the share of judged nDCG@10 kept",
        "",
        f"Spearman's correlation over {len(found['rows']) - 1} contenders. The cosine is that of documents to the "
        "teacher's vectors.",
        "",
        f"| measure | {' | '.join(names)} | mean of the sets |",
        f"|---|{'---|' * (len(names) + 1)}",
    ]
    for measure_name, values in found["correlations"].items():
        lines.append(f"| {measure_name} | {' | '.join(f'{value:.3f}' for value in values.values())} |")
    lines += ["", "## Contenders", ""]
    lines += [
        f"| contender | STS-B | {' | '.join(f'{name}: kept | fidelity | cosine' for name in names)} |",
        f"|---|---|{'---|---|---|' * len(names)}",
    ]
    for row in found["rows"]:
        cells = [f"{of['kept']:.1f}% | {of['fidelity']:.1f} | {of['cosine']:.1f}" for of in row["sets"].values()]
        lines.append(f"| {row['name']} | {row['STS-B']:.2f} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""]).replace("nan", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-fidelity"))
    parser.add_argument("--documents", type=int, help="documents of each collection; all by default")
    parser.add_argument("--only", default="", help="contenders, separated by |")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    only = [name for name in given.only.split("|") if name]
    found = run(given.data, given.work, given.documents, only)
    limited = f" --documents {given.documents}" if given.documents else ""
    text = page(found, f"benchmarks/search_fidelity.py DATA{limited}")
    write_results("search_fidelity", found, text, given.results)
    print(text)


if __name__ == "__main__":
    main()
