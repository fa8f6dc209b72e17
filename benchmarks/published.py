"""The students that come with the package, beside their teacher: scores, deployed forms, speed and size, peers.

    python benchmarks/general_corpus.py DATA corpus
    python benchmarks/published.py DATA --work work-quality --text corpus [--model NAME ...] [--form NAME ...]
        [--only scores,products,speed]

For the teacher (`embedded`) and each published student: STS-B test and STS13, and nDCG@10 with exact search on Quora,
msmarco_5k and SciFact dev, in the forms that are deployed:

- `float32`: torch, all dimensions;
- `int8`: the int8 graph that `export` writes;
- `128-d`: torch, followed by a linear layer without bias and a normalisation. The rows of the layer are the first 128
  principal axes of the model's vectors, as `fit-quantizer` fits them to general text: a sample of the text that
  the students were trained on (`--text corpus`), or lines of Wikipedia. No document, query or judgement of a test set
  is used. A vector has 512 bytes;
- `int8, 128-d`: the int8 graph of that;
- `int8, 128 bytes`: the int8 graph, and document vectors in the format of 128 bytes that `fit-quantizer` chooses on the
  same text;
- `queries only`: the student (float32) encodes the queries, the teacher the documents.

`products`: for the products of one shop, nDCG@10 of finding those of another shop that are the same (amazon-google and
abt-buy, all parts of each), in float32. No text of these sets was trained on, and no student was chosen by them.

`speed`: sentences of STS-B test per second in one process, in turns, with `SentenceTransformer.encode` (torch) and with
the int8 graphs in onnxruntime. Run it on a quiet machine. What is fresh in the work directory is skipped, so an
interrupted run resumes. Models and forms that are not named keep their figures. Writes
benchmarks/results/published.json and .md, and the table of docs/published-students.md and README.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from compress_documents import quora_collection, write_collection
from deployed_speed import TEACHER, Encode, graph, sentence_transformers, throughput
from published_page import FLOAT32, PAGES, PRODUCTS, STS, page, with_table
from running import facts, machine, read_results, sentcompress, write_results

from sentcompress.corpora.entities import SPLITS, entities_data_set
from sentcompress.corpora.sts import read_dev
from sentcompress.evaluation.metrics import NDCG, SPEARMAN
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, MODEL, Score, read_scores, select
from sentcompress.exporting.onnx import INT8_FILE
from sentcompress.models.catalog import find_model
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import save_encoder
from sentcompress.models.model_files import weight_bytes
from sentcompress.models.sources import EMBEDDED, resolve
from sentcompress.published import PUBLISHED
from sentcompress.quantization.quantizer import FOLDER, Quantizer
from sentcompress.store import WorkDirectory

DIMENSIONS = 128
VECTOR_BYTES = 128
TEXT, TEXT_WORDS = "text", 400_000
WIKIPEDIA, ENDING = "wikipedia_en_sample.txt.gz", ".txt.gz"
# Not in the training text, so that there is a source that no student saw.
UNSEEN = f"law{ENDING}"
# Of exports. In a work directory, an export called like a published student would be taken for it.
FULL, SHORT, SMALL = "-full", f"-{DIMENSIONS}", f"-{VECTOR_BYTES}-bytes"
# Name in the commands' results -> name in the tables.
STS_NAMES = dict(zip(("STS-B", "STS13"), STS, strict=True))
STEPS = ("scores", "products", "speed")


@dataclass(frozen=True)
class Form:
    """A way to use a model.

    Attributes:
        model: its name, with a place for the student's.
        options: of eval-sts and eval-retrieval.
        documents: of eval-retrieval; a form that has some has no STS score.
        stored: whether document vectors are stored by the export's quantizer; such a form has no STS score either.
    """

    title: str
    slug: str
    model: str
    options: str = ""
    documents: str = ""
    stored: bool = False


INT8 = "--runtime onnx-int8"
AS_IT_IS = Form(FLOAT32, "float32", "{}")
FORMS = (
    AS_IT_IS,
    Form("int8", "int8", f"exports/{{}}{FULL}", INT8),
    Form("128-d", "short", f"exports/{{}}{SHORT}"),
    Form("int8, 128-d", "short-int8", f"exports/{{}}{SHORT}", INT8),
    Form(f"int8, {VECTOR_BYTES} bytes", "small-int8", f"exports/{{}}{SMALL}", INT8, stored=True),
    Form("queries only", "queries", "{}", documents=f"--document-model {EMBEDDED}"),
)


def command_lines(form: Form, name: str, data: Path, quora: Path, vectors: Path) -> Iterator[tuple[str, str]]:
    """(STS or the collection, the command that scores it), as a user would type it.

    The commands without a title write what the next one reads, into `vectors`.
    """
    model = f"--model {form.model.format(name)} {form.options}"
    chosen = f"{model} --compare {EMBEDDED}"
    folders = {
        "Quora": (quora, ""),
        "msmarco_5k": (data / "retrieval" / "msmarco_5k", ""),
        "SciFact dev": (data / "retrieval" / "scifact", "--split dev"),
    }
    if not form.documents and not form.stored:
        yield "sts", f"eval-sts --sts {shlex.quote(str(data / 'sts'))} {chosen} --name {name}-{form.slug}-sts"
    for collection, (folder, split) in folders.items():
        called = f"{name}-{form.slug}-{collection.split()[0].lower()}"
        documents = form.documents
        if form.stored:
            documents = f"--vectors {shlex.quote(str(vectors / called))}"
            corpus = shlex.quote(str(folder / "corpus.jsonl"))
            yield "", f"encode {corpus} {model} --store quantizer -o {shlex.quote(str(vectors / called))}"
        yield (
            collection,
            f"eval-retrieval --collection {shlex.quote(str(folder))} {split} {chosen} {documents} --index flat "
            f"--rounds 1 --name {called}",
        )


def scores_of(title: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Test set -> value, interval, percent of the teacher's score, and the interval of the difference to it."""
    found = read_scores(result)
    if title != "sts":
        return {title: _entry(select(found, NDCG, part=EXACT, role=MODEL)[0])}
    return {
        STS_NAMES[one.data]: _entry(one) for one in select(found, SPEARMAN, part="", role=MODEL) if one.data != MEAN
    }


def _entry(score: Score) -> dict[str, Any]:
    named = score.as_dict()
    return {key: named.get(key) for key in ("value", "interval", "kept", "difference_interval", "count")}


def export(name: str, work: Path) -> None:
    """The export of a model."""
    facts(f"export --model {name} --name {name}{FULL}", work)


def fit(name: str, options: str, called: str, work: Path) -> None:
    """The quantizer of a model, fitted to general text."""
    facts(
        f"fit-quantizer --model {name} --compare {EMBEDDED} --sentences {TEXT} {options} --max-queries 500 "
        f"--max-passages 5000 --bootstrap 0 --name {called}",
        work,
    )


def export_short(name: str, work: Path) -> None:
    """The export of a model with DIMENSIONS dimensions."""
    fit(name, f"--store float32 --dim {DIMENSIONS} --vector-bytes {4 * DIMENSIONS}", f"{name}{SHORT}", work)
    folder = work / "shortened" / name
    shorten(name, WorkDirectory(work).get("quantizers", f"{name}{SHORT}").path / FOLDER, folder, work)
    facts(f"export --model {shlex.quote(str(folder))} --name {name}{SHORT}", work)


def export_small(name: str, work: Path) -> None:
    """The export of a model with a quantizer of VECTOR_BYTES bytes."""
    fit(name, f"--vector-bytes {VECTOR_BYTES}", f"{name}{SMALL}", work)
    facts(f"export --model {name} --quantizer {name}{SMALL} --name {name}{SMALL}", work)


# How the exports of the forms are made, by the end of their names.
EXPORTS = {FULL: export, SHORT: export_short, SMALL: export_small}


def shorten(name: str, quantizer: Path, folder: Path, work: Path) -> None:
    """Write the model with the turn of a quantizer as its last layer: the same cosines as its turned vectors."""
    encoder, axes = find_model(WorkDirectory(work), name).load(), torch.from_numpy(Quantizer.load(quantizer).axes)
    layer = Dense(axes.shape[1], axes.shape[0], bias=False)
    with torch.no_grad():
        layer.linear.weight.copy_(axes)
    shutil.rmtree(folder, ignore_errors=True)
    save_encoder(encoder.with_dense([*encoder.dense_layers, layer], normalize=True).eval(), folder)


def measure(
    name: str, data: Path, quora: Path, work: Path, forms: Sequence[Form], before: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of a model: sizes, and the scores of each form; of other forms, those of `before`."""
    for ending, make in EXPORTS.items():
        # The size of the whole model's graph is told in any case.
        if ending == FULL or any(form.model.endswith(ending) for form in forms):
            make(name, work)
    row: dict[str, Any] = {**before, "forms": {**before.get("forms", {})}}
    for form in forms:
        if name == EMBEDDED and form.documents:
            continue
        scores: dict[str, Any] = {}
        vectors = work / "vectors"
        shutil.rmtree(vectors, ignore_errors=True)  # those of an earlier model with the same name
        vectors.mkdir(parents=True)
        for title, words in command_lines(form, name, data, quora, vectors):
            if not title:
                sentcompress(words, work)
                continue
            result = facts(words, work)
            scores |= scores_of(title, result)
            if form is AS_IT_IS:
                row["parameters"], row["dimension"] = (result[MODEL][key] for key in ("parameters", "dimension"))
        row["forms"][form.title] = scores
    row["forms"] = {form.title: row["forms"][form.title] for form in FORMS if form.title in row["forms"]}
    row["weight_bytes"] = weight_bytes(resolve(name).path)
    row["graph_bytes"] = (work / "exports" / f"{name}{FULL}" / INT8_FILE).stat().st_size
    return row


def product_collection(data: Path, name: str, folder: Path) -> Path:
    """Entity pairs of all parts as a folder of corpus, queries and judgements.

    The queries of the parts are joined: `eval-retrieval --entities` evaluates one part at a time.
    """
    pairs = data / "er" / name
    parts = [entities_data_set(pairs, part).read() for part in SPLITS if (pairs / f"{part}.tsv").exists()]
    grades = {query: grade for part in parts for query, grade in zip(part.queries, part.grades, strict=True)}
    texts = (text for chunk in parts[0].corpus.texts() for text in chunk)
    return write_collection(folder, texts, grades, grades.values())


def products(names: Sequence[str], data: Path, work: Path) -> dict[str, dict[str, Any]]:
    """Model -> set of products -> the score of finding the same product."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for title in PRODUCTS:
        folder = shlex.quote(str(product_collection(data, title, work / title)))
        for name in names:
            line = f"--collection {folder} --model {name} --compare {EMBEDDED} --index flat --rounds 1"
            found[name] |= scores_of(title, facts(f"eval-retrieval {line} --name {name}-{title}", work))
    return found


def sides(names: Sequence[str], work: Path, threads: int) -> dict[str, Encode]:
    """What is timed: the teacher under sentence-transformers, then each student so and as its int8 graph."""
    found = {TEACHER: sentence_transformers(EMBEDDED)}
    for name in names:
        if name != EMBEDDED:
            found[f"{name}, torch"] = sentence_transformers(name)
        found[f"{name}, int8"] = graph(work / "exports" / f"{name}{FULL}", threads)
    return found


def speed(names: Sequence[str], data: Path, work: Path, threads: int, rounds: int) -> dict[str, Any]:
    """Sentences per second of each side, and the median of its ratios to the teacher over the rounds."""
    for name in names:
        export(name, work)
    torch.set_num_threads(threads)
    pairs = read_dev(data / "sts" / "stsb" / "test.tsv")
    texts = list(dict.fromkeys([*pairs.first, *pairs.second]))
    load = [os.getloadavg()[0]]
    seconds = throughput(sides(names, work, threads), texts, rounds)
    load.append(os.getloadavg()[0])
    rows = {
        side: {
            "sentences_per_second": len(texts) / statistics.median(taken),
            "times": statistics.median(a / b for a, b in zip(seconds[TEACHER], taken, strict=True)),
            "seconds": taken,
        }
        for side, taken in seconds.items()
    }
    return {"texts": len(texts), "threads": threads, "rounds": rounds, "load": load, "machine": machine(), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with sts, quora, retrieval, er and corpus")
    parser.add_argument("--work", type=Path, default=Path("work-quality"))
    parser.add_argument("--model", action="append", help="can be repeated; default: the teacher and all students")
    titles = [form.title for form in FORMS]
    parser.add_argument("--form", action="append", choices=titles, help="can be repeated; default: all")
    parser.add_argument("--only", default=",".join(STEPS), help=f"some of: {', '.join(STEPS)}")
    parser.add_argument("--text", type=Path, help="folder of general text for 128-d; default: the sample of Wikipedia")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    known = (EMBEDDED, *PUBLISHED)
    if unknown := set(asked.model or ()) - set(known):
        parser.error(f"not published: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    steps = asked.only.split(",")
    if asked.model and "speed" in steps:
        parser.error("speed is measured of all models in one process: leave out --model, or add --only scores")
    texts, called = [asked.data / "corpus" / WIKIPEDIA], WIKIPEDIA
    if asked.text:
        texts, called = sorted(one for one in asked.text.glob(f"*{ENDING}") if one.name != UNSEEN), "the training text"
    document = read_results("published", {"models": {}, "text": ""})
    forms = [form for form in FORMS if not asked.form or form.title in asked.form]
    names = [name for name in known if not asked.model or name in asked.model]
    measured = document["models"]
    if "scores" in steps:
        facts(
            f"augment {shlex.join(map(str, texts))} --wordnet 0 --back-translate 0 --words {TEXT_WORDS} --name {TEXT}",
            asked.work,
        )
        quora = quora_collection(asked.data, asked.work / "quora")
        document["text"] = f"{TEXT_WORDS:,} words of {called}"
        for name in names:
            before = measured.get(name, {})
            measured[name] = measure(name, asked.data, quora, asked.work, forms, before)
            document["models"] = {one: measured[one] for one in known if one in measured}
            write(document)
    if "products" in steps:
        document["products"] = document.get("products", {}) | products(names, asked.data, asked.work)
        write(document)
    if "speed" in steps:
        document["speed"] = speed(names, asked.data, asked.work, asked.threads, asked.rounds)
        write(document)
    print(page(document))


def write(document: Mapping[str, Any]) -> None:
    """Write the results so far, and their table in the pages."""
    write_results("published", document, page(document))
    for one in PAGES:
        one.write_text(with_table(one.read_text(encoding="utf-8"), document), encoding="utf-8")


if __name__ == "__main__":
    main()
