"""Gather the text that students were trained on before `general_corpus.py`: five mixes, each wider than the last.

    python benchmarks/earlier_corpus.py wide ../shared/data work-simtde/wide.txt
    python benchmarks/earlier_corpus.py broad ../shared/data work-broad --parts 8

- `short`: 300,000 sentences of NLI pairs, captions, encyclopedia, news and spoken prompts.
- `mixed`: texts of every length: paragraphs of 2 to 12 neighbouring lines beside sentences, and runs of a few words
  that stand for queries.
- `wide`: `short`, `mixed` and the definitions of WordNet, which name most things that there are.
- `broad`: `wide`, shorter passages, sentences with other nouns, rare words as somebody types who searches for them,
  questions, and neighbouring words of the dictionary.
- `forum`: advice, opinions and headlines, most of them made, and what `wide` left of tweets, prompts and NLI.

Nothing is taken from a retrieval collection, and sentences of the STS test sets are left out again, whatever the
sources promise. With `--parts`, the output is a folder of so many files of the same size.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from corpus_texts import (
    Near,
    keywords,
    paragraphs,
    passages,
    printed,
    queries,
    read_captions,
    read_lines,
    read_nli,
    sts_sentences,
    tweets,
)
from corpus_wordings import (
    advice,
    beside,
    definitions,
    headlines,
    installed_wordnet,
    opinions,
    questions,
    read_entries,
    replaced,
)

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
# How many texts of each source are made here.
BROAD_SHARES = {
    "sentences": 40_000,
    "passages": 30_000,
    "replaced": 90_000,
    "keywords": 70_000,
    "questions": 70_000,
    "entries": 40_000,
}
# How many texts of each source.
FORUM_SHARES = {
    "tweets": 20_000,
    "prompts": 25_000,
    "nli": 25_000,
    "advice": 60_000,
    "opinions": 40_000,
    "headlines": 30_000,
}
LONGEST_DEFINITION = 100  # words


def gather_short(folder: Path, seed: int) -> list[str]:
    """Short sentences, each source cut to a share."""
    sources = {
        "nli": read_nli(folder),
        "captions": read_captions(folder),
        "wikipedia": read_lines(folder / "corpus" / "wikipedia_en_sample.txt.gz"),
        "news": read_lines(folder / "corpus" / "reuters21578.txt.gz"),
        "prompts": read_lines(folder / "corpus" / "common_voice_en.txt.gz"),
    }
    generator = random.Random(seed)
    refused, chosen = sts_sentences(folder), dict[str, None]()
    for name, texts in sources.items():
        distinct = list(dict.fromkeys(" ".join(text.split()) for text in texts))
        fit = [text for text in distinct if len(text) > 8 and text.lower() not in refused and text not in chosen]
        share = generator.sample(fit, min(SHORT_SHARES[name], len(fit)))
        print(f"{name}: {len(share):,} of {len(fit):,}")
        chosen |= dict.fromkeys(share)
    sentences = list(chosen)
    generator.shuffle(sentences)
    return sentences


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
    refused, chosen = sts_sentences(folder), dict[str, None]()
    for name, texts in sources.items():
        distinct = list(dict.fromkeys(" ".join(text.split()) for text in texts))
        fit = [text for text in distinct if len(text) > 5 and text.lower() not in refused and text not in chosen]
        share = generator.sample(fit, min(MIXED_SHARES[name], len(fit)))
        print(f"{name}: {len(share):,} of {len(fit):,}, {sum(map(len, share)) / max(1, len(share)):.0f} characters")
        chosen |= dict.fromkeys(share)
    texts = list(chosen)
    generator.shuffle(texts)
    return texts


def glosses(folder: Path, seed: int) -> list[str]:
    """The definitions of WordNet, but for those of the STS sets.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = installed_wordnet()
    refused = Near(sts_sentences(folder))
    found = dict.fromkeys(
        text
        for text, bare in definitions(wordnet, random.Random(seed))
        if 2 < len(text.split()) < LONGEST_DEFINITION and not any(map(refused, [text, bare, *bare.split("; ")]))
    )
    print(f"definitions: {len(found):,}, {sum(map(len, found)) / max(1, len(found)):.0f} characters")
    return list(found)


def gather_wide(folder: Path, seed: int) -> list[str]:
    """Both of these, and definitions."""
    sources = (gather_mixed(folder, seed), gather_short(folder, seed), glosses(folder, seed))
    texts = list(dict.fromkeys(text for source in sources for text in source))
    random.Random(seed).shuffle(texts)
    return texts


def gather_broad(folder: Path, seed: int) -> list[str]:
    """Text that is broad before it is long, shuffled.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = installed_wordnet()
    generator = random.Random(seed)
    wide = gather_wide(folder, seed)
    ordered = printed(folder)
    parts = {part: read_entries(wordnet, part) for part in ("noun", "verb", "adj")}
    entries = parts["noun"]
    ordinary = [*ordered, *read_nli(folder)]
    lines = generator.sample(ordered, len(ordered))
    sample = generator.sample(ordinary, min(3 * BROAD_SHARES["replaced"], len(ordinary)))
    sources = {
        "sentences": iter(lines),
        "passages": islice(passages(ordered, generator), 2 * BROAD_SHARES["passages"]),
        "replaced": replaced(sample, entries, generator),
        "keywords": keywords(generator.sample(lines, len(lines)), generator),
        "questions": questions(
            generator.sample(lines, min(3 * BROAD_SHARES["questions"], len(lines))), parts, generator
        ),
        "entries": beside(entries, generator),
    }
    texts = [*wide, *shared_out(sources, BROAD_SHARES, set(wide), folder, generator)]
    generator.shuffle(texts)
    return texts


def gather_forum(folder: Path, seed: int) -> list[str]:
    """Text as people write it to each other, and as newspapers head it, shuffled.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = installed_wordnet()
    generator = random.Random(seed)
    used = set(gather_wide(folder, seed))
    entries = {part: read_entries(wordnet, part) for part in ("noun", "verb", "adj")}
    with gzip.open(folder / "nli" / "union_allsplits_noSTS.train.jsonl.gz", "rt", encoding="utf-8") as file:
        nli = [pair[side] for pair in map(json.loads, file) for side in ("premise", "hypothesis")]
    prompts = list(read_lines(folder / "corpus" / "common_voice_en.txt.gz"))
    lines = printed(folder)
    spoken = [*prompts, *nli, *read_captions(folder)]
    generator.shuffle(lines)
    generator.shuffle(spoken)
    mixed = [line for pair in zip(lines, spoken, strict=False) for line in pair]
    sources = {
        "tweets": tweets(folder),
        "prompts": iter(prompts),
        "nli": iter(nli),
        "advice": advice(mixed[: 2 * FORUM_SHARES["advice"]], entries, generator),
        "opinions": opinions(spoken[: 4 * FORUM_SHARES["opinions"]], generator),
        "headlines": headlines(lines[: 3 * FORUM_SHARES["headlines"]], generator),
    }
    texts = shared_out(sources, FORUM_SHARES, used, folder, generator)
    generator.shuffle(texts)
    return texts


def shared_out(
    sources: dict[str, Iterator[str]],
    shares: dict[str, int],
    used: set[str],
    folder: Path,
    generator: random.Random,
) -> list[str]:
    """So many texts of each source at random, none twice, none that is used or near to one of an STS set."""
    refused = Near(sts_sentences(folder))
    chosen = dict[str, None]()
    for name, texts in sources.items():
        distinct = [*dict.fromkeys(" ".join(text.split()) for text in texts if len(text) > 5)]
        generator.shuffle(distinct)
        fit = (text for text in distinct if text not in used and text not in chosen and not refused(text))
        share = list(islice(fit, shares[name]))
        length = sum(map(len, share)) / max(1, len(share))
        print(f"{name}: {len(share):,} of {len(distinct):,}, {length:.0f} characters")
        chosen |= dict.fromkeys(share)
    return list(chosen)


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


MIXES = {
    "short": gather_short,
    "mixed": gather_mixed,
    "wide": gather_wide,
    "broad": gather_broad,
    "forum": gather_forum,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mix", choices=MIXES)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--parts", type=int, help="files in the folder OUTPUT, in place of one file")
    parser.add_argument("--short", type=int, metavar="WORDS", help="keep one in ten of the texts of more words")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = MIXES[options.mix](options.data, options.seed)
    texts = shortened(texts, options.short) if options.short else texts
    files = {options.output: texts}
    if options.parts:
        files = {options.output / f"part-{i + 1}.txt": texts[i :: options.parts] for i in range(options.parts)}
    for file, share in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(share) + "\n", encoding="utf-8")
    print(f"{len(texts):,} texts in {options.output}, {len(files)} files")


if __name__ == "__main__":
    main()
