"""Gather training text with a wide vocabulary: mixed_corpus.py, real_corpus.py, and the definitions of WordNet.

    python benchmarks/wide_corpus.py ../shared/data work-simtde/wide.txt

A student that is trained on ordinary text alone misreads queries with words that it has hardly met. The definitions
name most things that there are, diseases and plants and law among them, in a line each; their examples are sentences.
STS13 holds definitions of WordNet too (OnWN, FNWN): whatever is near to a sentence of an STS test or development set
is left out.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path

import mixed_corpus
import real_corpus

from sentcompress.augmentations.wordnet import DataFolder, find_wordnet

PARTS = ("noun", "verb", "adj", "adv")
# Share of words that two sentences have in common, out of those of both, from which they are taken for the same.
NEAR = 0.6
LONGEST = 100  # words


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


def definitions(folder: DataFolder, generator: random.Random) -> Iterator[tuple[str, str]]:
    """What is trained on, and the bare definition or example in it.

    A definition stands alone, or behind one of its words or all of them, as in a dictionary or a sentence.
    """
    for part in PARTS:
        for line in folder.read(f"data.{part}").decode(errors="replace").splitlines():
            if line.startswith("  "):  # the licence
                continue
            entry, gloss = line.split(" | ", 1)
            fields = entry.split()
            count = int(fields[3], 16)
            names = [re.sub(r"\(\w+\)$", "", fields[4 + 2 * i]).replace("_", " ") for i in range(count)]
            pieces = [piece.strip() for piece in gloss.strip().split("; ")]
            meaning = "; ".join(piece for piece in pieces if not piece.startswith('"'))
            name, form = generator.choice(names), generator.random()
            if form < 0.34:
                yield f"{name}: {meaning}", meaning
            elif form < 0.5:
                yield f"{name} is {meaning}", meaning
            elif form < 0.67:
                yield meaning, meaning
            else:
                yield f"{', '.join(names)}: {meaning}", meaning
            yield from ((example, example) for example in (p.strip('" ') for p in pieces if p.startswith('"')))


def installed_wordnet() -> DataFolder:
    """WordNet's files.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = find_wordnet()
    if wordnet is None:
        raise FileNotFoundError("WordNet is needed: on Debian, apt-get install wordnet-base")
    return wordnet


def glosses(folder: Path, seed: int) -> list[str]:
    """The definitions of WordNet, but for those of the STS sets.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = installed_wordnet()
    refused = Near(real_corpus.held_out(folder))
    found = dict.fromkeys(
        text
        for text, bare in definitions(wordnet, random.Random(seed))
        if 2 < len(text.split()) < LONGEST and not any(map(refused, [text, bare, *bare.split("; ")]))
    )
    print(f"definitions: {len(found):,}, {sum(map(len, found)) / max(1, len(found)):.0f} characters")
    return list(found)


def gather(folder: Path, seed: int) -> list[str]:
    sources = (mixed_corpus.gather(folder, seed), real_corpus.gather(folder, seed), glosses(folder, seed))
    texts = list(dict.fromkeys(text for source in sources for text in source))
    random.Random(seed).shuffle(texts)
    return texts


if __name__ == "__main__":
    real_corpus.write(gather, __doc__)
