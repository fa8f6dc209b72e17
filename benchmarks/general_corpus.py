"""Gather the training text of general students: a file for each family of sources, and held-out passages of each.

    python benchmarks/general_corpus.py DATA corpus [--research]

Writes OUT/FAMILY.txt.gz, a text a line, shuffled; OUT/held-out/FAMILY.jsonl.gz, documents with `_id`, `title` and
`text` that are in no other file, for measuring (`sources.py`); and OUT/sources.json: what each family is made from, its
licences, its lines and words, what was dropped, and the SHA-256 of both files; and OUT/sources.md, a section of that
for the model cards of students (`export --notes`). The same data and the same WordNet give
the same bytes; with another zlib the compressed bytes can differ, and `sha256_of_text` still holds.

- A text stands in one family only: case and punctuation aside, none is repeated.
- A text is dropped if it equals a text of a test set, shares eight words in a row with one, or has most of its words
  in common with an STS sentence. Test sets are all that `overlap.py` counts, and STS-B's training part, which STS12 to
  STS16 share sentences with.
- Without `--research`, every source may be used for weights that are published. With it, sources for research alone,
  or without a stated licence, are added to their families.

To leave a source out, train without its file (`augment --share FILE=0`).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus_texts import Known, Near, plain, sts_sentences
from corpus_wordings import installed_wordnet
from general_sources import FAMILIES, TERM, Family, Source
from overlap import test_sets

from sentcompress.plain_text import markdown_table

HELD_OUT = 500
# Held-out passages have at least so many words, if the family has enough of those.
LEAST_WORDS = 12
LONGEST_TITLE = 14  # words
# Texts of more words are not compared with STS sentences, the longest of which has 60.
STS_WORDS = 100
SHORTEST = 6  # characters
CARD_SECTION = """## Training data

The training text was drawn from these families of sources, which `benchmarks/general_corpus.py` gathers. The table has
the number of texts and words of each whole file. The command that made the sentences, under Lineage, says how much was
drawn from each; nothing was drawn from a family with `--share FILE=0`. Made texts are templates filled with words of
Wikipedia, WordNet, Common Voice and NLI sentences. Texts that equal a text of a test set, or share eight words in a row
with one, are left out.

Some licences require attribution or the same licence for copies (CC BY, CC BY-SA, GPL, GFDL). Whether they extend to
weights is not settled. The titles include those of papers whose source states no licence.
"""
MEANINGS, WORDS_OF_MEANING = r": |; | is ", 3


@dataclass
class Gathered:
    """The families so far."""

    refused: Known
    near: Near
    texts: dict[str, list[str]] = field(default_factory=dict)
    held_out: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def add(self, name: str, family: Family, texts: Iterable[str]) -> None:
        """Clean the texts of a family, drop some, and hold some out."""
        dropped, kept = Counter[str](), list[str]()
        for text in (" ".join(text.split()) for text in texts):
            bare = plain(text)
            short = len(text) < SHORTEST or not bare
            fault = "too_short" if short else self._fault(bare, text if family.title_ends == TERM else "")
            if fault:
                dropped[fault] += 1
            else:
                kept.append(text)
        generator = random.Random(f"general {name}")
        generator.shuffle(kept)
        long = [place for place, text in enumerate(kept) if len(text.split()) >= LEAST_WORDS]
        held = set(long[:HELD_OUT] if len(long) >= 4 * HELD_OUT else range(min(HELD_OUT, len(kept) // 4)))
        titled = [_titled(kept[place], family.title_ends) for place in sorted(held)]
        self.held_out[name] = [{"_id": f"{name}-{number}", **one} for number, one in enumerate(titled)]
        self.texts[name] = [text for place, text in enumerate(kept) if place not in held]
        self.dropped[name] = dropped

    def _fault(self, bare: str, definition: str) -> str | None:
        own = mark(bare)
        if own in self.seen:
            return "repeated"
        self.seen.add(own)
        # A test text can be what a definition says, or a part of it.
        inside = (plain(part) for part in re.split(MEANINGS, definition) if len(part.split()) >= WORDS_OF_MEANING)
        for part in (bare, *inside):
            if fault := self.refused.fault(part):
                return fault
            if part.count(" ") < STS_WORDS and self.near(part):
                return "near_sts_sentence"
        return None

    def drop_held_out_titles(self) -> None:
        """Drop texts that are the title of a held-out document, such as those of the family of titles."""
        held = {mark(plain(one["title"])) for family in self.held_out.values() for one in family if one["title"]}
        for name, texts in self.texts.items():
            kept = [text for text in texts if mark(plain(text)) not in held]
            self.dropped[name]["held_out_title"] += len(texts) - len(kept)
            self.texts[name] = kept


def mark(bare: str) -> int:
    """A 64-bit hash of a text without case and punctuation."""
    return int.from_bytes(hashlib.blake2b(bare.encode(), digest_size=8).digest(), "little")


def _titled(text: str, title_ends: str) -> dict[str, str]:
    title, ends, rest = text.partition(title_ends) if title_ends else ("", "", text)
    if not ends or not 0 < len(title.split()) <= LONGEST_TITLE or len(rest.split()) < 3:
        return {"title": "", "text": text}
    return {"title": title, "text": rest}


def gather(data: Path, research: bool) -> Gathered:
    """All families with a source that may be used.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    train = (data / "sts" / "stsb" / "train.tsv").read_text(encoding="utf-8").split("\n")[1:]
    of_train = [text for line in train for text in line.split("\t")[1:3]]
    tests = [text for texts in test_sets(data).values() for text in texts]
    gathered = Gathered(Known([*tests, *of_train]), Near({*sts_sentences(data), *of_train}))
    for name, family in FAMILIES.items():
        if sources := _used(family, research):
            gathered.add(name, family, (text for source in sources for text in source.read(data, gathered)))
            print(f"{name}: {len(gathered.texts[name]):,} texts; {dict(gathered.dropped[name])}", flush=True)
    gathered.drop_held_out_titles()
    return gathered


def _used(family: Family, research: bool) -> list[Source]:
    return [source for source in family.sources if source.free or research]


def write(path: Path, lines: Iterable[str]) -> dict[str, str]:
    """Write a file whose bytes depend on its lines alone; returns its digest and that of the text in it."""
    text = "".join(f"{line}\n" for line in lines).encode()
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed.getvalue())
    return {
        "sha256": hashlib.sha256(packed.getvalue()).hexdigest(),
        "sha256_of_text": hashlib.sha256(text).hexdigest(),
    }


def write_all(gathered: Gathered, out: Path, research: bool) -> dict[str, Any]:
    """Write the files of all families; returns what sources.json says."""
    described: dict[str, Any] = {}
    for name, texts in gathered.texts.items():
        held = gathered.held_out[name]
        rows = [json.dumps(row, ensure_ascii=False) for row in held]
        described[name] = {
            "sources": {
                one.name: {"title": one.title, "licence": one.licence} for one in _used(FAMILIES[name], research)
            },
            "file": f"{name}.txt.gz",
            "lines": len(texts),
            "words": sum(len(text.split()) for text in texts),
            "dropped": {why: count for why, count in sorted(gathered.dropped[name].items()) if count},
            **write(out / f"{name}.txt.gz", texts),
            "held_out": {
                "file": f"held-out/{name}.jsonl.gz",
                "lines": len(held),
                "words": sum(len(f"{row['title']} {row['text']}".split()) for row in held),
                **write(out / "held-out" / f"{name}.jsonl.gz", rows),
            },
        }
    (out / "sources.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    (out / "sources.md").write_text(card_section(described), encoding="utf-8")
    return described


def card_section(described: Mapping[str, Any]) -> str:
    """What the text is made from, under which licences, as a section of a model card."""
    rows = [
        (
            name,
            "; ".join(f"{one['title']}: {one['licence']}" for one in of["sources"].values()),
            f"{of['lines']:,}",
            f"{of['words'] / 1e6:.2f}M",
        )
        for name, of in described.items()
    ]
    return f"{CARD_SECTION}\n{markdown_table(('family', 'sources and licences', 'texts', 'words'), rows, heads=2)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--research", action="store_true", help="add sources whose weights may not be published")
    options = parser.parse_args()
    try:
        installed_wordnet()
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    described = write_all(gather(options.data, options.research), options.out, options.research)
    for name, of in described.items():
        print(f"{name}: {of['lines']:,} lines, {of['words']:,} words, {of['held_out']['lines']} held out")
    lines, words = (sum(of[what] for of in described.values()) for what in ("lines", "words"))
    print(f"{lines:,} lines, {words:,} words, {len(described)} families in {options.out}")


if __name__ == "__main__":
    main()
