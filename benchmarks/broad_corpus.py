"""Gather training text that is broad before it is long: wide_corpus.py's, and words put where nobody wrote them.

    python benchmarks/broad_corpus.py ../shared/data work-broad [--parts 8]

A teacher answers any text, so text need not mean much to be learnt from. Beside what wide_corpus.py gathers, with
fewer of the paragraphs and more sentences of the encyclopedia, there are

- sentences whose nouns are replaced by nouns of WordNet, most of which the corpora never use;
- the rarest words of a line or of several, as somebody types who searches for it;
- the words of a dictionary entry beside those of entries near to it.

They are shuffled and written as so many parts of the same size, `part-1.txt` and on, so that one is trained on while
the teacher reads the next.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from math import log
from pathlib import Path

import real_corpus
import wide_corpus

from sentcompress.augmentations.wordnet_data import DataFolder, find_wordnet

# How many texts of each source are made here; of wide_corpus.py's, PARAGRAPHS longer ones and all others stay.
SHARES = {"sentences": 40_000, "replaced": 90_000, "keywords": 70_000, "entries": 40_000}
PARAGRAPHS = 30_000
LONG = 400  # characters, from which a text counts as a paragraph


def noun_entries(folder: DataFolder) -> list[list[str]]:
    """The words of each entry of WordNet's nouns, in the order of its file, where neighbours are of one field."""
    entries = []
    for line in folder.read("data.noun").decode(errors="replace").splitlines():
        if not line.startswith("  "):  # the licence
            fields = line.split(" | ", 1)[0].split()
            entries.append([fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))])
    return entries


def replaced(lines: Iterable[str], entries: list[list[str]], generator: random.Random) -> Iterator[str]:
    """Each line with most of its nouns replaced by nouns of a random place of the dictionary."""
    known = {word for entry in entries for word in entry if word.islower() and len(word) > 3}

    def other(place: int, found: re.Match[str]) -> str:
        word = found.group()
        single = word[:-1] if word.endswith("s") and word not in known else word
        if single not in known or generator.random() < 0.3:
            return word
        # Half of a text's new nouns are of one field, as the words of a real text are.
        near = place + generator.randint(-20, 20) if generator.random() < 0.5 else generator.randrange(len(entries))
        name = generator.choice(entries[near % len(entries)])
        return name if single == word else f"{name}s"

    for line in lines:
        text = re.sub(r"[a-z]+", partial(other, generator.randrange(len(entries))), line)
        if text != line:
            yield text


def keywords(lines: Iterable[str], generator: random.Random) -> Iterator[str]:
    """3 to 10 words of a line, rare ones first to be taken, in their order; half of the texts in lower case."""
    texts = [re.findall(r"[\w-]+", line) for line in lines]
    frequency = Counter(word.lower() for words in texts for word in words)
    whole = sum(frequency.values())
    for words in texts:
        count = generator.randint(3, 10)
        if len(words) < count + 3:
            continue
        rarity = [log(whole / frequency[word.lower()]) ** 2 for word in words]
        # Weighted sampling without replacement: Efraimidis and Spirakis 2006.
        keys = [generator.random() ** (1 / weight) for weight in rarity]
        chosen = sorted(sorted(range(len(words)), key=keys.__getitem__)[-count:])
        text = " ".join(words[i] for i in chosen)
        yield text.lower() if generator.random() < 0.5 else text


def beside(entries: list[list[str]], generator: random.Random) -> Iterator[str]:
    """A name of an entry and names of some of its neighbours."""
    for place in range(len(entries)):
        others = generator.sample(range(-8, 9), generator.randint(1, 5))
        names = [generator.choice(entries[(place + step) % len(entries)]) for step in [0, *others]]
        yield generator.choice([" ", ", ", " and "]).join(dict.fromkeys(names))


def gather(folder: Path, seed: int) -> list[str]:
    """All texts, shuffled.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = find_wordnet()
    if wordnet is None:
        raise FileNotFoundError("WordNet is needed: on Debian, apt-get install wordnet-base")
    generator = random.Random(seed)
    refused = wide_corpus.near(real_corpus.held_out(folder))
    wide = wide_corpus.gather(folder, seed)
    paragraphs = [text for text in wide if len(text) >= LONG][:PARAGRAPHS]
    chosen = dict.fromkeys([*paragraphs, *(text for text in wide if len(text) < LONG)])
    lines = [
        line.strip()
        for name in ("wikipedia_en_sample", "reuters21578")
        for line in real_corpus.read_lines(folder / "corpus" / f"{name}.txt.gz")
    ]
    entries = noun_entries(wordnet)
    ordinary = [*lines, *real_corpus.read_nli(folder)]
    generator.shuffle(lines)
    sample = generator.sample(ordinary, min(3 * SHARES["replaced"], len(ordinary)))
    sources = {
        "sentences": iter(lines),
        "replaced": replaced(sample, entries, generator),
        "keywords": keywords(generator.sample(lines, len(lines)), generator),
        "entries": beside(entries, generator),
    }
    for name, texts in sources.items():
        distinct = [*dict.fromkeys(" ".join(text.split()) for text in texts if len(text) > 5)]
        generator.shuffle(distinct)
        fit = (text for text in distinct if text not in chosen and not refused(text))
        share = list(islice(fit, SHARES[name]))
        length = sum(map(len, share)) / max(1, len(share))
        print(f"{name}: {len(share):,} of {len(distinct):,}, {length:.0f} characters")
        chosen |= dict.fromkeys(share)
    texts = list(chosen)
    generator.shuffle(texts)
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = gather(options.data, options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    for part in range(options.parts):
        file = options.output / f"part-{part + 1}.txt"
        file.write_text("\n".join(texts[part :: options.parts]) + "\n", encoding="utf-8")
    print(f"{len(texts):,} texts in {options.parts} parts in {options.output}")


if __name__ == "__main__":
    main()
