"""Gather 300,000 distinct training sentences from real corpora, none of them from an evaluation set.

    python benchmarks/real_corpus.py ../shared/data work-real/sentences.txt

NLI pairs, captions, news, encyclopedia and spoken prompts, each source cut to a share, mixed with a seed. Sentences
that occur in the STS test sets are left out again, whatever the sources promise.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

# How many sentences of each source; captions and NLI come first since they are nearest to STS, the rest is breadth.
SHARES = {"nli": 120_000, "captions": 70_000, "wikipedia": 60_000, "news": 30_000, "prompts": 20_000}


def read_nli(folder: Path) -> Iterator[str]:
    with gzip.open(folder / "nli" / "union_strict_noSTS.train.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            yield pair["premise"]
            yield pair["hypothesis"]


def read_captions(folder: Path) -> Iterator[str]:
    for name in ("multi30k_captions.train.noSTS.tsv.gz", "flickr8k_captions.noSTS.tsv.gz"):
        with gzip.open(folder / "paraphrase" / name, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield from (text for column, text in row.items() if column.startswith("caption"))


def read_lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from lines


def held_out(folder: Path) -> set[str]:
    """Every sentence of the STS test and development files, lower-cased."""
    found: set[str] = set()
    for path in [*(folder / "sts").rglob("*.test.tsv"), *(folder / "sts" / "stsb").glob("*.tsv")]:
        if path.name == "train.tsv":
            continue
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            found |= {text.strip().lower() for text in line.split("\t")[1:]}
    return found


def gather(folder: Path, seed: int) -> list[str]:
    sources = {
        "nli": read_nli(folder),
        "captions": read_captions(folder),
        "wikipedia": read_lines(folder / "corpus" / "wikipedia_en_sample.txt.gz"),
        "news": read_lines(folder / "corpus" / "reuters21578.txt.gz"),
        "prompts": read_lines(folder / "corpus" / "common_voice_en.txt.gz"),
    }
    generator = random.Random(seed)
    refused, chosen = held_out(folder), dict[str, None]()
    for name, texts in sources.items():
        distinct = list(dict.fromkeys(" ".join(text.split()) for text in texts))
        fit = [text for text in distinct if len(text) > 8 and text.lower() not in refused and text not in chosen]
        share = generator.sample(fit, min(SHARES[name], len(fit)))
        print(f"{name}: {len(share):,} of {len(fit):,}")
        chosen |= dict.fromkeys(share)
    sentences = list(chosen)
    generator.shuffle(sentences)
    return sentences


def as_simcse(path: Path) -> str:
    """A file of triplets in the columns that `augment` reads."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t")[:3] for line in lines][1:]
    quoted = ('","'.join(text.replace('"', '""') for text in row) for row in rows)
    return "sent0,sent1,hard_neg\n" + "".join(f'"{row}"\n' for row in quoted)


def shortened(texts: list[str], words: int) -> list[str]:
    """Without nine in ten of the texts of more words."""
    longer = (text for text in texts if len(text.split()) > words)
    kept = set(islice(longer, 0, None, 10))
    return [text for text in texts if len(text.split()) <= words or text in kept]


def write(gather: Callable[[Path, int], list[str]], about: str | None, parts: int | None = None) -> None:
    """The command line of a script that gathers text: its data folder, its output (a file, or a folder of parts)."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--parts", type=int, default=parts, help="files in the folder OUTPUT, in place of one file")
    parser.add_argument("--short", type=int, metavar="WORDS", help="keep one in ten of the texts of more words")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = gather(options.data, options.seed)
    texts = shortened(texts, options.short) if options.short else texts
    files = {options.output: texts}
    if options.parts:
        files = {options.output / f"part-{i + 1}.txt": texts[i :: options.parts] for i in range(options.parts)}
    for file, share in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(share) + "\n", encoding="utf-8")
    print(f"{len(texts):,} texts in {options.output}, {len(files)} files")


if __name__ == "__main__":
    write(gather, __doc__)
