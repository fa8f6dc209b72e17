"""Gather the text that the papers' methods are compared on.

    python benchmarks/method_corpus.py short DATA work/short.txt

- `short`: 300,000 sentences of NLI pairs, captions, encyclopedia, news and spoken prompts.
- `mixed`: 279,000 texts of every length: paragraphs of 2 to 12 neighbouring lines beside sentences, and runs of a few
  words that stand for queries.

Nothing is taken from a retrieval collection, and sentences of the STS test sets are left out again, whatever the
sources promise. Some sources are for research alone: students of this text are measured, not published.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from corpus_texts import paragraphs, queries, read_captions, read_lines, read_nli, sts_sentences, tweets

# How many sentences of each source; captions and NLI come first since they are nearest to STS, the rest is breadth.
SHORT_SHARES = {"nli": 120_000, "captions": 70_000, "wikipedia": 60_000, "news": 30_000, "prompts": 20_000}
# How many texts of each source.
MIXED_SHARES = {
    "paragraphs": 36_000,
    "news paragraphs": 8_000,
    "nli": 80_000,
    "sentences": 60_000,
    "captions": 20_000,
    "prompts": 15_000,
    "tweets": 20_000,
    "queries": 40_000,
}


def gather_short(folder: Path, seed: int) -> list[str]:
    """Short sentences, each source cut to a share."""
    sources = {
        "nli": read_nli(folder),
        "captions": read_captions(folder),
        "wikipedia": read_lines(folder / "corpus" / "wikipedia_en_sample.txt.gz"),
        "news": read_lines(folder / "corpus" / "reuters21578.txt.gz"),
        "prompts": read_lines(folder / "corpus" / "common_voice_en.txt.gz"),
    }
    return shuffled_shares(sources, SHORT_SHARES, sts_sentences(folder), random.Random(seed), longer_than=8)


def gather_mixed(folder: Path, seed: int) -> list[str]:
    """Texts of every length."""
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
    return shuffled_shares(sources, MIXED_SHARES, sts_sentences(folder), generator, longer_than=5)


def shuffled_shares(
    sources: Mapping[str, Iterable[str]],
    shares: Mapping[str, int],
    refused: Container[str],
    generator: random.Random,
    longer_than: int,
) -> list[str]:
    """A sample of each source, at most its share and no text twice, shuffled together."""
    chosen: dict[str, None] = {}
    for name, texts in sources.items():
        distinct = list(dict.fromkeys(" ".join(text.split()) for text in texts))
        fit = [
            text for text in distinct if len(text) > longer_than and text.lower() not in refused and text not in chosen
        ]
        share = generator.sample(fit, min(shares[name], len(fit)))
        print(f"{name}: {len(share):,} of {len(fit):,}, {sum(map(len, share)) / max(1, len(share)):.0f} characters")
        chosen |= dict.fromkeys(share)
    mixed = list(chosen)
    generator.shuffle(mixed)
    return mixed


MIXES = {"short": gather_short, "mixed": gather_mixed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mix", choices=MIXES)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = MIXES[options.mix](options.data, options.seed)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(texts) + "\n", encoding="utf-8")
    print(f"{len(texts):,} texts in {options.output}")


if __name__ == "__main__":
    main()
