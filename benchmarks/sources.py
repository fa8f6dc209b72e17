"""How much of their teacher's search do students keep on each family of sources, without any judged set?

    python benchmarks/general_corpus.py DATA corpus
    python benchmarks/sources.py corpus/held-out --work work --model student-a --model student-b

For decisions in training: nothing here is reported as a result, so nothing that is reported decides. Each file of the
folder is cut by `split-documents` once, at most PASSAGES passages and QUERIES made queries are searched by
`eval-search`, and the teacher's vectors are kept in the work directory, so that another student costs its own vectors
only. A student that was trained without a family (`augment --share FILE=0`) shows in the row of that family how far it
falls on a source it never saw. Writes OUT.json and OUT.md (by default in the work directory): search fidelity to the
teacher for each family, then the mean and the worst of all.

With --titles, the titles of held-out documents are queries too, and only the document of a title is right: nDCG@10 in
percent of the teacher's, among the held-out documents of all families, for each family with enough titles.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from running import sentcompress

from sentcompress.evaluation.metrics import NDCG, SEARCH_FIDELITY
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MODEL, read_scores, select

PASSAGES, QUERIES = 600, 200
# Of each file, so many documents are asked about; the others are searched beside them.
HELD_OUT = 0.4
ENDING = ".jsonl.gz"
# Titles of a family, at least, to be searched with.
TITLES = 100

Found = dict[str, dict[str, dict[str, Any]]]


def families(folder: Path) -> list[str]:
    """The families that the folder has a file of."""
    return sorted(path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}"))


def split(file: Path, family: str, work: Path) -> str:
    """The name of the held-out collection of a family; made once."""
    name = f"source-{family}"
    options = f"--held-out {HELD_OUT} --corpus-passages {PASSAGES} --queries-per-passage 0 --name {name}"
    sentcompress(f"split-documents {shlex.quote(str(file))} {options}", work)
    return name


def searched(documents: str, model: str, compare: str, work: Path, name: str = "") -> dict[str, Any]:
    """Search fidelity of a model, with its interval; `name`: of the result, where models share the folder's name."""
    models = f"--model {shlex.quote(model)} --compare {shlex.quote(compare)}"
    size = f"--part all --max-queries {QUERIES} --max-passages {PASSAGES}"
    named = f" --name {shlex.quote(name)}" if name else ""
    result = sentcompress(f"eval-search --documents {documents} {models} {size}{named}", work)
    score = select(read_scores(result["facts"]), SEARCH_FIDELITY, part="", role=MODEL)[0]
    return {"fidelity": score.value, "interval": score.interval, "queries": score.count}


def title_collection(folder: Path, out: Path) -> list[str]:
    """Write a collection whose queries are the titles of held-out documents; returns its splits, which are families.

    The documents are those of all families, without their titles.
    """
    documents, queries, splits = [], [], {}
    for family in families(folder):
        with gzip.open(folder / f"{family}{ENDING}", "rt", encoding="utf-8") as lines:
            held = [json.loads(line) for line in lines]
        documents += [{"_id": one["_id"], "text": one["text"]} for one in held]
        titled = [{"_id": one["_id"], "text": one["title"]} for one in held if one["title"]]
        if len(titled) >= TITLES:
            queries += titled
            splits[family] = [f"{one['_id']}\t{one['_id']}\t1\n" for one in titled]
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", documents), ("queries", queries)):
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        (out / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for family, judgements in splits.items():
        (out / "qrels" / f"{family}.tsv").write_text("".join(judgements), encoding="utf-8")
    return list(splits)


def found_by_title(collection: Path, family: str, model: str, compare: str, work: Path) -> dict[str, Any]:
    """nDCG@10 with the titles of a family, and the percentage of the teacher's."""
    models = f"--model {shlex.quote(model)} --compare {shlex.quote(compare)}"
    result = sentcompress(
        f"eval-retrieval --collection {shlex.quote(str(collection))} --split {family} {models} --index flat --rounds 1 "
        f"--name titles-{family}-{Path(model).name}",
        work,
    )
    score = select(read_scores(result["facts"]), NDCG, part=EXACT, role=MODEL)[0].as_dict()
    return {"titles": {name: score.get(name) for name in ("value", "kept", "interval", "count")}}


def pages(found: Found) -> str:
    """The tables: of search fidelity, and of titles where they were measured."""
    fidelity = {family: {m: one for m, one in of.items() if "fidelity" in one} for family, of in found.items()}
    titles = {
        family: {m: {"fidelity": one["titles"]["kept"]} for m, one in of.items() if "titles" in one}
        for family, of in found.items()
    }
    told = {
        "Search fidelity": fidelity,
        "Documents found by their titles, nDCG@10 in percent of the teacher's": titles,
    }
    return "\n".join(
        f"{what}:\n\n{markdown({family: of for family, of in values.items() if of})}" for what, values in told.items()
    )


def markdown(found: Found) -> str:
    """A row for each family, and the mean and the worst of the families that all models have."""
    models = list(dict.fromkeys(model for of in found.values() for model in of))
    values = {model: {family: of[model]["fidelity"] for family, of in found.items() if model in of} for model in models}
    rows = [[family, *(_shown(values[model].get(family)) for model in models)] for family in found]
    shared = [family for family in found if all(family in values[model] for model in models)]
    worst = {model: min(shared, key=values[model].__getitem__) for model in models if shared}
    if shared:
        means = [sum(values[model][family] for family in shared) / len(shared) for model in models]
        rows.append([f"**mean of {len(shared)}**", *map(_shown, means)])
        rows.append(["**worst**", *(f"{_shown(values[one][worst[one]])} ({worst[one]})" for one in models)])
    return (
        "\n".join(f"| {' | '.join(row)} |" for row in [_head(models), ["---", *["---:"] * len(models)], *rows]) + "\n"
    )


def _head(models: Sequence[str]) -> list[str]:
    """A folder is shown by its own name."""
    return ["family", *(Path(model).name for model in models)]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def merged(before: Found, family: str, scores: Mapping[str, dict[str, Any]]) -> None:
    """Put a family's scores beside what was measured before."""
    for model, score in scores.items():
        before.setdefault(family, {}).setdefault(model, {}).update(score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help=f"held-out documents, FAMILY{ENDING}")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True, help="can be repeated")
    parser.add_argument("--compare", default="embedded", help="the teacher")
    parser.add_argument("--only", help="families, separated by commas; default: all")
    parser.add_argument("--titles", action="store_true", help="search with titles too")
    parser.add_argument("--out", type=Path, help="path of the two files without an ending")
    options = parser.parse_args()
    out = options.out or options.work / "sources"
    file = out.with_suffix(".json")
    found: Found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    collection = options.work / "titles"
    titled = title_collection(options.folder, collection) if options.titles else []
    for family in options.only.split(",") if options.only else families(options.folder):
        documents = split(options.folder / f"{family}{ENDING}", family, options.work)
        for model in options.model:
            merged(found, family, {model: searched(documents, model, options.compare, options.work)})
            if family in titled:
                by_title = found_by_title(collection, family, model, options.compare, options.work)
                merged(found, family, {model: by_title})
        out.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(pages(found), encoding="utf-8")
    print(pages(found))


if __name__ == "__main__":
    main()
