"""Reads the corpora of the data folder, and cuts their lines into training texts. No script of its own."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path

# About what 256 tokens hold; the teacher reads no further.
LONGEST = 1100
# Share of words that two sentences have in common, out of those of both, from which they are taken for the same.
NEAR = 0.6
# Words in a row that a text and a test text may not have in common.
SEQUENCE = 8


def read_lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from lines


def read_nli(folder: Path, sources: Sequence[str] = ()) -> Iterator[str]:
    """Both sentences of each pair, of all sources or of those named."""
    with gzip.open(folder / "nli" / "union_strict_noSTS.train.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            if not sources or pair["source"] in sources:
                yield pair["premise"]
                yield pair["hypothesis"]


def read_captions(folder: Path) -> Iterator[str]:
    for name in ("multi30k_captions.train.noSTS.tsv.gz", "flickr8k_captions.noSTS.tsv.gz"):
        with gzip.open(folder / "paraphrase" / name, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield from (text for column, text in row.items() if column.startswith("caption"))


def tweets(folder: Path) -> Iterator[str]:
    """Both sides of the pairs of the Twitter URL corpus."""
    path = folder / "paraphrase" / "twitter_url.train.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from (value for name, value in row.items() if name and name.startswith("sentence") and value)


def sts_sentences(folder: Path) -> set[str]:
    """Every sentence of the STS test and development files, lower-cased."""
    found: set[str] = set()
    for path in [*(folder / "sts").rglob("*.test.tsv"), *(folder / "sts" / "stsb").glob("*.tsv")]:
        if path.name == "train.tsv":
            continue
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            found |= {text.strip().lower() for text in line.split("\t")[1:]}
    return found


def paragraphs(lines: Iterable[str], generator: random.Random) -> Iterator[str]:
    """Every line once, 2 to 12 neighbours together."""
    wanted, current = generator.randint(2, 12), list[str]()
    for line in lines:
        current.append(line.strip())
        if len(current) >= wanted or sum(map(len, current)) > LONGEST:
            yield " ".join(current)
            wanted, current = generator.randint(2, 12), []


def queries(lines: Iterable[str], generator: random.Random) -> Iterator[str]:
    """2 to 9 neighbouring words of a line, half of them in lower case and without its punctuation."""
    for line in lines:
        words = line.split()
        count = generator.randint(2, 9)
        if len(words) > count + 2:
            start = generator.randrange(len(words) - count)
            text = " ".join(words[start : start + count]).strip(" ,.;:")
            yield text.lower().replace(",", "") if generator.random() < 0.5 else text


class Near:
    """Finds the known sentences that share most of their words with another, whatever order, case and punctuation.

    Args:
        known: the sentences.
        share: of the words of both together, how many they have to have in common.
        fewest: sentences of fewer different words are left out.
    """

    def __init__(self, known: Iterable[str], share: float = NEAR, fewest: int = 0) -> None:
        self._share = share
        self._known = [(number, words(text)) for number, text in enumerate(known) if len(words(text)) >= fewest]
        self._frequency = Counter(word for _, found in self._known for word in found)
        self._holding: defaultdict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)
        for number, found in self._known:
            for word in self._rarest(found):
                self._holding[word].append((number, found))

    def __call__(self, text: str) -> set[int]:
        """The places of those that are near to the text."""
        asked = words(text)
        candidates = {one for word in self._rarest(asked) for one in self._holding.get(word, ())}
        return {number for number, found in candidates if len(asked & found) >= self._share * len(asked | found)}

    def _rarest(self, found: frozenset[str]) -> list[str]:
        """So many words that two sets that are near have one of them in common."""
        by_rarity = sorted(found, key=lambda word: (self._frequency[word], word))
        return by_rarity[: len(found) - ceil(self._share * len(found)) + 1]


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def plain(text: str) -> str:
    """Without case and punctuation."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


class Known:
    """Finds texts that equal one of these, case and punctuation aside, or share SEQUENCE words in a row with one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._same: set[str] = set()
        self._sequences: set[tuple[str, ...]] = set()
        for text in map(plain, texts):
            self._same.add(text)
            self._sequences.update(_sequences(text))

    def fault(self, text: str) -> str | None:
        """Why a text, given as `plain` writes it, is not to be trained on."""
        if text in self._same:
            return "equals_test_text"
        return None if self._sequences.isdisjoint(_sequences(text)) else "shares_words_in_a_row"


def _sequences(text: str) -> Iterator[tuple[str, ...]]:
    words = text.split()
    return zip(*(words[start:] for start in range(SEQUENCE)), strict=False)
