"""Gather training text that is broad before it is long: wide_corpus.py's, and words put where nobody wrote them.

    python benchmarks/broad_corpus.py ../shared/data work-broad [--parts 8]

A teacher answers any text, so text need not mean much to be learnt from. Beside what wide_corpus.py gathers and more
sentences of the encyclopedia, there are

- passages of 2 to 5 of its lines, shorter than the paragraphs of wide_corpus.py;
- sentences whose nouns are replaced by nouns of WordNet, most of which the corpora never use;
- the rarest words of a line, as somebody types who searches for it;
- questions about them and about nouns of WordNet, worded as people ask a search engine;
- the words of a dictionary entry beside those of entries near to it.

They are shuffled and written as so many parts of the same size, `part-1.txt` and on, so that one is trained on while
the teacher reads the next.
"""

from __future__ import annotations

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
from mixed_corpus import LONGEST

from sentcompress.augmentations.wordnet import DataFolder

# How many texts of each source are made here.
SHARES = {
    "sentences": 40_000,
    "passages": 30_000,
    "replaced": 90_000,
    "keywords": 70_000,
    "questions": 70_000,
    "entries": 40_000,
}
# The wordings of questions: {0} and {1} are things, {verb} and {adj} what WordNet has of those.
QUESTIONS = (
    """
what is {0}|what is {0}|what is a {0}|what are {0}s|what does {0} mean|define {0}|definition of {0}|{0} meaning
who is {0}|who was {0}|who invented {0}|where is {0}|where is {0} located|when was {0}|when did {0} {verb}|{0} history
how does {0} {verb}|how does {0} work|how do you {verb} {0}|how to {verb} {0}|how to {verb} {0} with {1}
how long does {0} last|how long does it take to {verb} {0}|how much does {0} cost|how many {0}s in {1}
how many {0} does {1} have|how often should you {verb} {0}|what causes {0}|causes of {0}|symptoms of {0}
side effects of {0}|types of {0}|cost of {0}|what is the {0} of {1}|what is the difference between {0} and {1}
difference between {0} and {1}|is {0} {adj}|is {0} a {1}|does {0} {verb} {1}|can {0} {verb} {1}|can you {verb} {0}
why is {0} {adj}|why does {0} {verb}|why do people {verb} {0}|what is the best {0} for {1}|best {0} for {1}
best way to {verb} {0}|what kind of {0} is {adj}|which {0} is the most {adj}|what happens when {0} {verb}s
what happens if you {verb} {0}|should I {verb} {0}|what country is {0} in|where does {0} come from
which {0} has {adj} {1}|effects of {0} on {1}|{0} {1}|{adj} {0} definition|average {0} of {1}|{0} vs {1}|example of {0}
""".strip()
    .replace("\n", "|")
    .split("|")
)


def read_entries(folder: DataFolder, part: str) -> list[list[str]]:
    """The words of each entry of a part of WordNet, in the order of its file, where neighbours are of one field."""
    entries = []
    for line in folder.read(f"data.{part}").decode(errors="replace").splitlines():
        if not line.startswith("  "):  # the licence
            fields = line.split(" | ", 1)[0].split()
            names = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
            entries.append([re.sub(r"\(\w+\)$", "", name) for name in names])
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


def passages(lines: list[str], generator: random.Random) -> Iterator[str]:
    """2 to 5 neighbouring lines, from any place."""
    while True:
        start = generator.randrange(len(lines))
        yield " ".join(lines[start : start + generator.randint(2, 5)])[:LONGEST]


def thing(line: str, nouns: list[list[str]], generator: random.Random) -> str:
    """A noun of WordNet, or a few neighbouring words of the line, a name if it has one."""
    names = re.findall(r"(?<![.!?] )(?<!^)(?:[A-Z][\w-]+)(?: [A-Z][\w-]+){0,3}", line)
    form = generator.random()
    if form < 0.3 and names:
        return generator.choice(names)
    if form < 0.6:
        return generator.choice(generator.choice(nouns))
    # From a long word on, which is seldom one of grammar.
    words = re.findall(r"[\w-]+", line)
    heads = [i for i, word in enumerate(words) if len(word) > 5]
    start = generator.choice(heads or [0])
    before = max(0, start - generator.choice((0, 0, 1, 2)))
    return " ".join(words[before : start + 1])


def questions(lines: Iterable[str], wordnet: dict[str, list[list[str]]], generator: random.Random) -> Iterator[str]:
    """Questions about one or two things: a noun of WordNet, or neighbouring words of a line, a name if it has one."""
    nouns, verbs, adjectives = (wordnet[part] for part in ("noun", "verb", "adj"))

    for line in lines:
        text = generator.choice(QUESTIONS).format(
            thing(line, nouns, generator),
            thing(line, nouns, generator),
            verb=generator.choice(generator.choice(verbs)),
            adj=generator.choice(generator.choice(adjectives)),
        )
        text = text if generator.random() < 0.3 else text.lower()
        yield f"{text}?" if generator.random() < 0.3 else text


def beside(entries: list[list[str]], generator: random.Random) -> Iterator[str]:
    """A name of an entry and names of some of its neighbours."""
    for place in range(len(entries)):
        others = generator.sample(range(-8, 9), generator.randint(1, 5))
        names = [generator.choice(entries[(place + step) % len(entries)]) for step in [0, *others]]
        yield generator.choice([" ", ", ", " and "]).join(dict.fromkeys(names))


def printed(folder: Path) -> list[str]:
    """The lines of the encyclopedia and of the news, in their order."""
    return [
        line.strip()
        for name in ("wikipedia_en_sample", "reuters21578")
        for line in real_corpus.read_lines(folder / "corpus" / f"{name}.txt.gz")
    ]


def shared_out(
    sources: dict[str, Iterator[str]],
    shares: dict[str, int],
    used: set[str],
    folder: Path,
    generator: random.Random,
) -> list[str]:
    """So many texts of each source at random, none twice, none that is used or near to one of an STS set."""
    refused = wide_corpus.Near(real_corpus.held_out(folder))
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


def gather(folder: Path, seed: int) -> list[str]:
    """All texts, shuffled.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = wide_corpus.installed_wordnet()
    generator = random.Random(seed)
    wide = wide_corpus.gather(folder, seed)
    ordered = printed(folder)
    parts = {part: read_entries(wordnet, part) for part in ("noun", "verb", "adj")}
    entries = parts["noun"]
    ordinary = [*ordered, *real_corpus.read_nli(folder)]
    lines = generator.sample(ordered, len(ordered))
    sample = generator.sample(ordinary, min(3 * SHARES["replaced"], len(ordinary)))
    sources = {
        "sentences": iter(lines),
        "passages": islice(passages(ordered, generator), 2 * SHARES["passages"]),
        "replaced": replaced(sample, entries, generator),
        "keywords": keywords(generator.sample(lines, len(lines)), generator),
        "questions": questions(generator.sample(lines, min(3 * SHARES["questions"], len(lines))), parts, generator),
        "entries": beside(entries, generator),
    }
    texts = [*wide, *shared_out(sources, SHARES, set(wide), folder, generator)]
    generator.shuffle(texts)
    return texts


if __name__ == "__main__":
    real_corpus.write(gather, __doc__, parts=8)
