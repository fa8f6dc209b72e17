"""Gather training text of every length from real corpora: paragraphs, sentences, captions, prompts, short queries.

    python benchmarks/mixed_corpus.py ../shared/data work-simtde/mixed.txt

Neighbouring lines of the encyclopedia and of the news make paragraphs of 2 to 12 sentences; runs of a few words of a
line stand for queries and titles. Nothing is taken from a retrieval collection or an STS set, and sentences that
occur in the STS test sets are left out again, whatever the sources promise.
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from real_corpus import held_out, read_captions, read_lines, read_nli, write

# How many texts of each source.
SHARES = {
    "paragraphs": 36_000,
    "news paragraphs": 8_000,
    "nli": 80_000,
    "sentences": 60_000,
    "captions": 20_000,
    "prompts": 15_000,
    "tweets": 20_000,
    "queries": 40_000,
}
# About what 256 tokens hold; the teacher reads no further.
LONGEST = 1100


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


def tweets(folder: Path) -> Iterator[str]:
    """Both sides of the pairs of the Twitter URL corpus."""
    path = folder / "paraphrase" / "twitter_url.train.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from (value for name, value in row.items() if name and name.startswith("sentence") and value)


def gather(folder: Path, seed: int) -> list[str]:
    generator = random.Random(seed)
    encyclopedia, news = folder / "corpus" / "wikipedia_en_sample.txt.gz", folder / "corpus" / "reuters21578.txt.gz"
    sources = {
        "paragraphs": paragraphs(read_lines(encyclopedia), generator),
        "news paragraphs": paragraphs(read_lines(news), generator),
        "nli": read_nli(folder),
        "sentences": (line for path in (encyclopedia, news) for line in read_lines(path)),
        "captions": read_captions(folder),
        "prompts": read_lines(folder / "corpus" / "common_voice_en.txt.gz"),
        "tweets": tweets(folder),
        "queries": queries(read_lines(encyclopedia), generator),
    }
    refused, chosen = held_out(folder), dict[str, None]()
    for name, texts in sources.items():
        distinct = list(dict.fromkeys(" ".join(text.split()) for text in texts))
        fit = [text for text in distinct if len(text) > 5 and text.lower() not in refused and text not in chosen]
        share = generator.sample(fit, min(SHARES[name], len(fit)))
        print(f"{name}: {len(share):,} of {len(fit):,}, {sum(map(len, share)) / max(1, len(share)):.0f} characters")
        chosen |= dict.fromkeys(share)
    texts = list(chosen)
    generator.shuffle(texts)
    return texts


if __name__ == "__main__":
    write(gather, __doc__)
