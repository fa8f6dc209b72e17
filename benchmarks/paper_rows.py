"""The rows of the papers' tables in miniature: each recipe and variant runs from end to end, small.

    python benchmarks/paper_rows.py DATA --work work-rows [--only hpd,ibkd]
    python benchmarks/paper_rows.py --full --input nli=nli.csv --input dev=sts-dev.tsv ...

In miniature, the embedded teacher and students cut from it stand in for all models, a sample for each data set, and
some hundred steps for the epochs; apertium translates in place of nlpaug's models. The stages, their order, the methods
and their options, and the numbers that a recipe names are the recipe's, except for a token width of 384, which is
halved, and the teacher's pooling, which is its own. A learning rate that a recipe leaves to the method is that of the
stand-in's size. It shows that every row runs, and how the rows of a table compare; the published figures cannot be
reached at this scale.

`--full` runs the recipes as published: a machine with a GPU, a model hub and the papers' data is needed.

Several processes may share a work directory, each with other recipes (`--only`); started again, they go on. At its end
each writes benchmarks/results/paper_rows.json and .md with all results so far; with `--only`, these keep the results of
other recipes that an earlier run wrote.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import machine, read_results, sentcompress, write_results

from sentcompress.commands import find_command
from sentcompress.commands.options import keys_of
from sentcompress.commands.run import Params
from sentcompress.errors import SentcompressError
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import EMBEDDED, resolve
from sentcompress.models.students import keep_last_layers
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import SILENT
from sentcompress.recipes.document import Recipe, Stage, read_recipe
from sentcompress.stages import run as stage
from sentcompress.store import WorkDirectory

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "recipes"
# Layers of the embedded teacher (it has six) that stand in for a checkpoint; other models are the teacher itself.
LAYERS = {
    "tinybert": 1,
    "tinybert-huawei": 1,
    "minilm": 2,
    "tinybert6": 2,
    "bert-base": 3,
    "bert-base-uncased": 3,
    "roberta-base": 3,
    "roberta-large": 6,
    "google/bert_uncased_L-2_H-128_A-2": 2,
    "microsoft/MiniLM-L12-H384-uncased": 6,
}
DEPTH = 6
# SimTDE cuts its students from this checkpoint.
LAYERS_OF_RECIPE = {"simtde": {"bert-base-uncased": DEPTH}}
# Layers of a student in the papers, and of its stand-in.
STUDENT_LAYERS = {12: 3, 6: 2, 4: 1}
# Millions of sentences in a recipe become thousands.
SMALLER = 1000
LIMIT = 3000
# Options of a command in miniature, where it has them; `all` applies to every command.
SHORT: Mapping[str, Mapping[str, Any]] = {
    "all": {"bootstrap": 0, "rounds": 1, "device": "cpu"},
    "teacher-embed": {"dtype": "bfloat16"},
    "distill": {"batch-size": 32, "max-length": 32, "dtype": "bfloat16"},
    "finetune": {"batch-size": 16, "max-length": 32, "dtype": "bfloat16"},
    "train-teacher": {"batch-size": 32, "max-length": 32, "dtype": "bfloat16"},
}


@dataclass(frozen=True)
class Miniature:
    """The inputs and models of the miniature runs."""

    inputs: Mapping[str, Path]
    models: Mapping[str, Path]
    work: WorkDirectory
    steps: int

    def params(self, recipe: Recipe, variant: str | None) -> Params:
        """A recipe's variant with everything small."""
        chosen = recipe.of_variant(variant)
        models = {
            **self.models,
            **{name: self.models[f"{recipe.path.stem}/{name}"] for name in LAYERS_OF_RECIPE.get(recipe.path.stem, {})},
        }
        settings = [f"{one.number}.{name}={value}" for one in chosen.stages for name, value in self._short(one, models)]
        inputs = tuple(f"{name}={self.inputs[name]}" for name in recipe.inputs if name in self.inputs)
        return Params(recipe=recipe.path, variant=variant, inputs=inputs, settings=tuple(settings))

    def _short(self, one: Stage, models: Mapping[str, Path]) -> Iterator[tuple[str, Any]]:
        options = keys_of(find_command(one.command).params)
        short = {**SHORT["all"], **SHORT.get(one.command, {})}
        yield from ((name, value) for name, value in short.items() if name in options)
        if "ivf" in one.values.get("index", ()):
            yield "nlist", 32
        if "max-steps" in options:
            steps = self.steps // 2 if one.command == "finetune" else self.steps
            yield from (("max-steps", steps), ("eval-every", max(1, steps // 2)))
        if one.command == "augment":
            limit = int(one.values.get("limit", LIMIT * SMALLER))
            yield "limit", limit if limit < LIMIT else limit // SMALLER
            if "nlpaug" in str(one.values.get("translator")):
                yield "translator", "apertium"
        for name, value in one.values.items():
            if name in options and options[name].opt.names == "model":
                yield from _model(name, str(value), models)
        if one.values.get("layers"):
            # As many of the teacher's layers as the stand-in of the student has, evenly spaced.
            count = STUDENT_LAYERS[str(one.values["layers"]).count(",") + 1]
            yield "layers", ",".join(str(DEPTH * (place + 1) // count) for place in range(count))
        if one.command == "teacher-embed":
            # The embedded teacher has a pooling of its own.
            yield "pooling", "auto"
        if one.values.get("token-dim") == 384:
            # Half of the width, as 384 is half of 768.
            yield "token-dim", 192


def _model(option: str, name: str, models: Mapping[str, Path]) -> Iterator[tuple[str, Any]]:
    """What stands in for a model; nothing if it is one that the recipe makes."""
    if name in models:
        yield option, models[name]
    elif name.startswith("teacher:"):
        yield option, f"teacher:{min(DEPTH, int(name.partition(':')[2]))}"
    elif "/" in name and not name.startswith(("students/", "exports/")):
        yield option, EMBEDDED


@dataclass(frozen=True)
class Results:
    """What was measured of each recipe and variant: a file for each, so that several processes can share the work."""

    folder: Path

    def read(self) -> dict[str, dict[str, Any]]:
        """All results, by recipe and variant."""
        found = [json.loads(path.read_text("utf-8")) for path in sorted(self.folder.glob("*.json"))]
        return {one["key"]: one for one in found}

    def add(self, key: str, result: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"key": key, **result}, indent=1)
        (self.folder / f"{key.replace(' ', '--')}.json").write_text(text + "\n", encoding="utf-8")


def variants(only: Sequence[str]) -> Iterator[tuple[Recipe, str | None]]:
    """The recipes that have rows of the papers, and their variants."""
    for path in sorted(RECIPES.glob("*.toml")):
        recipe, _ = read_recipe(path)
        rows = [row for variant in recipe.variants.values() for row in variant.rows] or recipe.rows
        if any(row.table for row in rows) and (not only or path.stem in only):
            yield from ((recipe, name) for name in recipe.variants or [None])


def make_models(folder: Path) -> dict[str, Path]:
    """Checkpoints without modules, cut from the embedded teacher, for the names in LAYERS."""
    models = {}
    own = {f"{recipe}/{name}": layers for recipe, of in LAYERS_OF_RECIPE.items() for name, layers in of.items()}
    for name, layers in {**LAYERS, **own}.items():
        path = folder / f"last-{layers}-layers"
        if not (path / "config.json").is_file():
            encoder = load_encoder(resolve(EMBEDDED))
            assert isinstance(encoder, TransformerEncoder)
            keep_last_layers(encoder.transformer, layers, EMBEDDED)
            encoder.transformer.save_pretrained(path)  # type: ignore[operator]
            encoder.tokenizer.save_pretrained(path)
        models[name] = path
    return models


def make_inputs(data: Path, folder: Path) -> dict[str, Path]:
    """A sample of real data for each input that the recipes name."""
    folder.mkdir(parents=True, exist_ok=True)
    triplets = _head(data / "nli" / "triplets_allsplits_noSTS.train.tsv.gz", folder / "nli.tsv", 6000)
    quora = _head(data / "quora" / "quora.tsv.gz", folder / "quora.tsv", 1200)
    sts = folder / "sts"
    sts.mkdir(exist_ok=True)
    for name, source in (("STS13.tsv", "sts13"), ("STS-B.tsv", "stsb/test.tsv")):
        found = data / "sts" / source
        files = sorted(found.glob("*.tsv")) if found.is_dir() else [found]
        lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line[:1].isdigit()]
        lines = lines[:: -(-len(lines) // 500)]
        (sts / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    dev = folder / "stsb-dev.tsv"
    graded = (data / "sts" / "stsb" / "dev.tsv").read_text("utf-8").splitlines()
    dev.write_text("\n".join(graded[:301]) + "\n", encoding="utf-8")
    for split, count in (("train", 800), ("test", 200)):
        lines = (data / "transfer" / "TREC" / f"{split}.tsv").read_text("utf-8").splitlines()
        (folder / "tasks" / "TREC").mkdir(parents=True, exist_ok=True)
        (folder / "tasks" / "TREC" / f"{split}.tsv").write_text("\n".join(lines[:count]) + "\n", encoding="utf-8")
    texts = folder / "texts.txt"
    collection = make_collection(data / "retrieval" / "scifact", folder / "scifact")
    passages = [json.loads(line)["text"] for line in (collection / "corpus.jsonl").read_text("utf-8").splitlines()]
    texts.write_text("\n".join(passages) + "\n", encoding="utf-8")
    return {
        **dict.fromkeys(("nli", "labelled"), triplets),
        "news": _head(data / "corpus" / "reuters21578.txt.gz", folder / "news.txt", 25_000),
        # Its name tells the evaluation that it is STS-B.
        "dev": dev,
        "sts": sts,
        "quora": quora,
        "collection": collection,
        "texts": texts,
        "sentences": texts,
        "stsb": dev,
        "tasks": folder / "tasks",
        "entities": data / "er" / "abt-buy",
        "pairs": data / "er" / "abt-buy" / "train.tsv",
    }


def make_collection(source: Path, target: Path) -> Path:
    """Some judged queries of each split, their documents and some hundred others, all cut to their first sentences."""
    (target / "qrels").mkdir(parents=True, exist_ok=True)
    with (source / "qrels.tsv").open(encoding="utf-8") as file:
        judged = list(csv.DictReader(file, delimiter="\t"))
    wanted: set[str] = set()
    for split, named in (("train", "train"), ("dev", "validation")):
        rows = [row for row in judged if row["split"] == named][:150]
        wanted |= {row["corpus-id"] for row in rows}
        lines = ["query-id\tcorpus-id\tscore", *(f"{row['query-id']}\t{row['corpus-id']}\t1" for row in rows)]
        (target / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(source / "queries.jsonl", target / "queries.jsonl")
    documents = [json.loads(line) for line in (source / "corpus.jsonl").read_text("utf-8").splitlines()]
    kept = [one for place, one in enumerate(documents) if one["_id"] in wanted or place < 500]
    cut = [{"_id": one["_id"], "text": " ".join(one["text"].split())[:400]} for one in kept]
    (target / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cut), encoding="utf-8")
    return target


def _head(source: Path, target: Path, lines: int) -> Path:
    with gzip.open(source, "rt", encoding="utf-8") as file:
        target.write_text("".join(itertools.islice(file, lines)), encoding="utf-8")
    return target


def measure(one: Miniature, recipe: Recipe, variant: str | None) -> dict[str, Any]:
    """Run a variant; its rows with the measured figures, or the error."""
    started = time.perf_counter()
    try:
        outcome = stage.run(one.params(recipe, variant), one.work, SILENT)
    except SentcompressError as error:
        return {"error": f"{error.message} ({error.hint})" if error.hint else error.message}
    # Students whose best checkpoint is the one that they started from.
    unchanged = {done.artifact.name for done in outcome.done if done.artifact.facts.get("best_step") == 0}
    rows = [
        {**measured.as_dict(), **({"unchanged": True} if measured.row.of in unchanged else {})}
        for measured in outcome.measured()
    ]
    trained = sum(done.step.command in ("distill", "finetune", "train-teacher") for done in outcome.done)
    return {"rows": rows, "trained": trained, "seconds": round(time.perf_counter() - started, 1)}


def full(recipe: Recipe, variant: str | None, inputs: Sequence[str], work: Path) -> dict[str, Any]:
    """Run a variant as published."""
    chosen = f" --variant {variant}" if variant else ""
    given = "".join(f" --input {shlex.quote(text)}" for text in inputs if text.partition("=")[0] in recipe.inputs)
    return {"rows": sentcompress(f"run {recipe.path}{chosen}{given}", work)["rows"]}


def tables(found: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The rows by table and metric, each with its recipe and variant."""
    out: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, result in found.items():
        for row in (row for row in result.get("rows", ()) if "table" in row):
            out.setdefault((row["table"], row["metric"]), []).append({**row, "key": key})
    return dict(sorted(out.items()))


def as_markdown(found: Mapping[str, Mapping[str, Any]], size: str) -> str:
    """The tables of the papers with both figures and the rank of each row."""
    seconds = sum(result.get("seconds", 0) for result in found.values())
    processors = " and ".join(sorted({result["machine"]["processor"] for result in found.values()}))
    failed = {key: result["error"] for key, result in found.items() if "error" in result}
    smaller = " What differs from the recipes: [docs/papers.md](../../docs/papers.md#the-miniature)."
    parts = [
        f"# The rows of the papers, {size}",
        "",
        f"`benchmarks/paper_rows.py`: {len(found)} variants of recipes, {seconds / 60:.0f} minutes of one-threaded "
        f"processes ({processors}); {len(failed)} failed. A figure with *(the "
        "start)* is that of a student whose best checkpoint is the one that it started from."
        + smaller
        * ("miniature" in size),
        "",
    ]
    parts += [f"- `{key}` failed: {reason}" for key, reason in failed.items()]
    for (place, metric), rows in tables(found).items():
        parts += ["", f"## {place}: {metric}", ""]
        parts += ["| row | recipe | published | rank | here | rank |", "|---|---|---|---|---|---|"]
        published, here = ranks(rows, "score"), ranks(rows, "measured")
        for row in sorted(rows, key=lambda row: -(row.get("score") or 0)):
            cells = [row["model"], row["key"], _number(row.get("score")), published[id(row)]]
            measured = _number(row.get("measured")) + " (the start)" * ("unchanged" in row)
            parts.append("| " + " | ".join([*cells, measured, here[id(row)]]) + " |")
    return "\n".join(parts) + "\n"


def ranks(rows: Sequence[dict[str, Any]], key: str) -> dict[int, str]:
    """The rank of each row, 1 for the highest value."""
    values = sorted((row[key] for row in rows if row.get(key) is not None), reverse=True)
    return {id(row): str(values.index(row[key]) + 1) if row.get(key) is not None else "-" for row in rows}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main() -> None:
    csv.field_size_limit(2**24)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder with real data, for the miniature")
    parser.add_argument("--work", type=Path, default=Path("work-rows"))
    parser.add_argument("--only", default="", help="recipes, separated by commas")
    parser.add_argument("--steps", type=int, default=200, help="of each training; half of it for fine-tuning")
    parser.add_argument("--full", action="store_true", help="as published, on a GPU with a hub")
    parser.add_argument("--input", action="append", default=[], help="NAME=FILE of the recipes, with --full")
    given = parser.parse_args()
    if not given.full and given.data is None:
        parser.error("name the folder with the data, or give --full")
    name = "paper_rows_full" if given.full else "paper_rows"
    results = Results(given.work / "results")
    if not given.full:
        given.work.mkdir(parents=True, exist_ok=True)
        inputs, models = make_inputs(given.data, given.work / "inputs"), make_models(given.work / "models")
        small = Miniature(inputs, models, WorkDirectory(given.work / "work"), given.steps)
    for recipe, variant in variants([part for part in given.only.split(",") if part]):
        key = " ".join([recipe.path.stem, *([variant] if variant else [])])
        if "rows" in results.read().get(key, {}):
            continue
        result = full(recipe, variant, given.input, given.work) if given.full else measure(small, recipe, variant)
        results.add(key, {**result, "machine": machine()})
        print(key, result.get("error") or f"{result.get('seconds')} s", flush=True)
    kept = read_results(name, {"variants": {}})["variants"] if given.only else {}
    found = {**kept, **results.read()}
    document = {"steps": None if given.full else given.steps, "variants": found}
    size = "at full size" if given.full else f"in miniature, {given.steps} steps"
    write_results(name, document, as_markdown(found, size))


if __name__ == "__main__":
    main()
