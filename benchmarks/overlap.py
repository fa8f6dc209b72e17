"""How much of the test sets stands in the text that students are trained on, word for word or nearly.

    python benchmarks/method_corpus.py short DATA work/short.txt
    python benchmarks/method_corpus.py mixed DATA work/mixed.txt
    python benchmarks/general_corpus.py DATA work/general
    python benchmarks/overlap.py DATA work/short.txt work/mixed.txt work/general

A folder stands for all texts in it, plain or in gzip. For every test set: its sentences (documents, queries) that a
training text equals, but for case and punctuation; and those of five or more different words that a training text
shares 80% of its words with, whatever their order (of all words of both together). Training texts that an earlier run
counted keep their columns, if the test sets are the same. Writes benchmarks/results/overlap.{json,md}.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from corpus_texts import Near, plain
from running import read_results, write_results

# Of fewer words, sentences that share most of them are often about nothing in common.
FEWEST = 5
SHARE = 0.8
HEADER = """# Overlap between training text and test sets

For each training text (`short`, `mixed`, ...), two counts. `same`: texts of the test set that equal a training text,
apart from case and punctuation. `near`: texts of at least five different words that share 80% of their words with a
training text. The general students were trained on `general`. `python benchmarks/overlap.py` repeats the count.

"""
# Training text -> test set -> `same` and `near` -> count.
Found = dict[str, dict[str, dict[str, int]]]


def test_sets(data: Path) -> dict[str, list[str]]:
    """Name -> its texts, each once."""
    found: dict[str, list[str]] = {}
    for name in ("stsb/dev", "stsb/test", "sts13/FNWN.test", "sts13/headlines.test", "sts13/OnWN.test"):
        lines = (data / "sts" / f"{name}.tsv").read_text(encoding="utf-8").split("\n")[1:]
        found[f"STS: {name}"] = [text for line in lines for text in line.split("\t")[1:3]]
    for name in ("scifact", "msmarco_5k"):
        for part, what in (("corpus", "documents"), ("queries", "queries")):
            with (data / "retrieval" / name / f"{part}.jsonl").open(encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            found[f"{name}: {what}"] = [f"{row.get('title') or ''} {row['text']}".strip() for row in rows]
    for name in ("amazon-google", "abt-buy"):
        products: dict[str, list[str]] = {"query": [], "entity": []}
        for part in ("train", "valid", "test"):
            with (data / "er" / name / f"{part}.tsv").open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                    for column, texts in products.items():
                        texts.append(row[column])
        found |= {f"{name}: queries": products["query"], f"{name}: documents": products["entity"]}
    with gzip.open(data / "quora" / "quora.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for column, what in (("question1", "queries"), ("question2", "documents")):
        found[f"Quora: {what}"] = [pair[column] for pair in pairs]
    return {name: list(dict.fromkeys(filter(None, texts))) for name, texts in found.items()}


def read_lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from lines


def overlaps(sets: dict[str, list[str]], texts: Iterable[str]) -> dict[str, dict[str, int]]:
    """For each test set, how many of its texts stand among these: `same` and `near`."""
    known = [(name, text) for name, of_set in sets.items() for text in of_set]
    places = defaultdict(list)
    for place, (_, text) in enumerate(known):
        places[plain(text)].append(place)
    nearly = Near([text for _, text in known], SHARE, FEWEST)
    same: set[int] = set()
    near: set[int] = set()
    for text in texts:
        same.update(places.get(plain(text), ()))
        near |= nearly(text)
    counts = {what: Counter(known[place][0] for place in found) for what, found in (("same", same), ("near", near))}
    return {name: {what: counts[what][name] for what in counts} for name in sets}


def kept(before: Mapping[str, Any], sizes: Mapping[str, int]) -> Found:
    """The counts of an earlier run, if its test sets were the same."""
    return dict(before["found"]) if before["texts"] == sizes else {}


def markdown(sizes: Mapping[str, int], found: Found) -> str:
    """A row for each test set, a column for each training text."""
    head = ["test set", "texts", *(f"{name}: same, near" for name in found)]
    rows = [
        [name, f"{size:,}", *(f"{of[name]['same']}, {of[name]['near']}" for of in found.values())]
        for name, size in sizes.items()
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "texts", type=Path, nargs="+", help="what students are trained on, a text a line; or folders of such files"
    )
    options = parser.parse_args()
    sets = test_sets(options.data)
    sizes = {name: len(texts) for name, texts in sets.items()}
    before = read_results("overlap")
    found = kept(before, sizes) if before else {}
    for path in options.texts:
        files = sorted([*path.glob("*.txt"), *path.glob("*.txt.gz")]) if path.is_dir() else [path]
        found[path.stem] = overlaps(sets, chain.from_iterable(map(read_lines, files)))
    table = HEADER + markdown(sizes, found)
    write_results("overlap", {"texts": sizes, "found": found}, table)
    print(table)


if __name__ == "__main__":
    main()
