"""Gather training text as people write it to each other, and as newspapers head it.

    python benchmarks/forum_corpus.py ../shared/data work-broad/forum [--parts 2]

What wide_corpus.py and broad_corpus.py gather is captions, news, encyclopedia, dictionary and questions; a student of
those knows least about answers: advice, opinions, what somebody did. There is hardly any such text in the corpora, and
a teacher answers any text, so most of it is made:

- advice and experience, in wordings of our own, about things and doings of WordNet and of the lines of the corpora;
- opinions: one line, or two, within what people say around such a line, and captions told by whom they show;
- headlines: lines without their articles and auxiliaries, cut short;
- and what wide_corpus.py left of tweets, spoken prompts and NLI.

They are shuffled and written as so many parts of the same size.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import broad_corpus
import mixed_corpus
import real_corpus
import wide_corpus

# How many texts of each source.
SHARES = {"tweets": 20_000, "prompts": 25_000, "nli": 25_000, "advice": 60_000, "opinions": 40_000, "headlines": 30_000}
# {0}, {1} and {2} are things, {verb} and {other} doings, {adj} and {more} qualities, {n} and {unit} an amount.
ADVICE = (
    """
You should {verb} the {0} before you {other} it.|You don't need a {0} to {verb} your {1}.|Try to {verb} the {0} first.
I would {verb} the {0} and leave the {1} alone.|I never had trouble with {0}, but {1} can be {adj}.
It depends on the {0} and on how {adj} your {1} is.|The easiest way to {verb} a {0} is with {1}.
I have owned a {0} for {n} {unit} and it is still {adj}.|Nothing is wrong with {0} if you keep the {1} {adj}.
If your {0} is {adj}, {verb} it with a {1}.|My {0} does that whenever I {verb} it.|A {0} won't {verb} your {1}.
Most people {verb} their {0} far too often.|A {0} is more {adj} than a {1}, and it will {verb} sooner.
Both {0} and {1} are {adj}; I like {2} more.|To me that sounds like {0}.|No, {0} does not {verb} {1}.
Yes, one can {verb} {0} in a {1}.|Do not {verb} it, get a {0} instead.|Have you thought of {0}?
Where I live, {0} is known as {1}.|Sadly there is no {0} for {1}.|That happens when {0} and {1} {verb}.
The word {0} stands for {1}; {2} is something {adj}.|I fully agree about the {0}.|{0} has little to do with {1}.
Strictly speaking, {0} is a sort of {1}.|By law you have to {verb} within {n} {unit}.
Any {0} sells {1} for under {n} dollars.|We {verb} our {0} for {n} {unit}, then we {other} it.
I doubt that {0} would {verb} you.|There are many ways to {verb} {0}, and most are {adj}.|Is it {adj} to {verb} a {0}?
Your {0} needs more {1}.|Never let a {0} {verb} near your {1}.|The {0} that I use has a {adj} {1} and no {2}.
You might be able to {verb} it if you ask for a {0}.|Everybody has a right to {verb} {0}.|What matters is {0}, not {1}.
I went to {0} last year and could {verb} everywhere.|Some {0}s are {adj}, others {verb} within {n} {unit}.
It took me {n} {unit} to {verb} the {0}.|You will get used to {0} after some {unit}.|Get a {adj} {0} with a {1}.
A friend of mine had to {verb} his {0} because of {1}.|She told me that her {0} is {adj} now.|They don't {verb} {0} now.
I see no {0} here, so it must be {1}.|It has been done with {0}, for example by {1}.|Use {0} if you want it {adj}.
Ask your {0} whether {1} is {adj}.|As a {0} I can say that we {verb} {1} all the time.|You won't regret the {0}.
The difference between {0} and {1} is that one of them can {verb}.|Without {0} your {1} will {verb} and {other}.
Children of that age {verb} whatever {0} they find.|I'd rather have {adj} {0} than {more} {1}.
In most places {0} is {adj} and {1} is {more}.|That is not {adj}, that is {more}.|He said {0} will {verb} {1}.
Start with the {0}, then {verb} the {1}, and finally {other} the {2}.|A {adj} {0} is worth more than a {more} one.
""".strip()
    .replace("\n", "|")
    .split("|")
)
# {0} and {1} are what somebody says.
FRAMES = (
    """
I think {0}.|I would have said that {0}.|It seems to me that {0}.|As far as I can tell, {0}.|{0}, at least where I live.
I doubt that {0}.|My guess would be that {0}.|They told me that {0}.|True enough, but {0}.|Well, {0}.|Mind you, {0}.
{0}, because {1}.|{0}, so {1}.|If {0}, then {1}.|Although {0}, {1}.|Unless {0}, {1}.|I know that {0}, but {1}.
The question is whether {0}.|You say that {0}; in my view {1}.|It may be that {0}.|Nobody claims that {0}.
I am not certain whether {0}.|{0}. Or perhaps {1}.|No. {0}.|Yes, {0}.|First, {0}. Second, {1}.|Like you I find that {0}.
It is not that {0}; rather, {1}.|{0}, which is why {1}.|Let me add that {0}.|I have read that {0}, and that {1}.
Whether or not {0}, {1}.|Sorry, but {0}.|{0}, and I would do it again.|What I meant is that {0}.|When {0}, {1}.
""".strip()
    .replace("\n", "|")
    .split("|")
)
COMMON = 20
UNITS = ("minutes", "hours", "days", "weeks", "months", "years")
# Whom a caption shows, and who could tell it.
SHOWN = re.compile(
    r"^(?:an?|the|one|two|three|some|several|many) (?:[\w-]+ ){0,2}?"
    r"(?:man|woman|boy|girl|person|child|kid|guy|lady|men|women|boys|girls|people|children|kids|players?) (?:is|are) ",
    re.IGNORECASE,
)
TELLERS = ("I am ", "I was ", "you are ", "we are ", "we were ", "he was ", "she is ", "they were ", "my son is ")
# Words that begin a sentence and are no names.
STARTS = frozenset(
    "a an the this that these those he she it we you they there his her its our your their my one two three some many "
    "most all no in on at when after before if as for to people men women children another both each every what".split()
)
LEFT_OUT = frozenset(
    "a an the is are was were be been being has have had that which who its his her their it also and".split()
)


def advice(lines: list[str], wordnet: dict[str, list[list[str]]], generator: random.Random) -> Iterator[str]:
    """One or two sentences about what the lines name, each sentence with one wording of ADVICE.

    Three in five of WordNet's words are ones that the lines use at least COMMON times.
    """
    frequency = Counter(word for line in lines for word in line.lower().split())
    common = {
        part: [[name] for entry in wordnet[part] for name in entry if frequency[name] >= COMMON] or wordnet[part]
        for part in wordnet
    }

    def word(part: str) -> str:
        return generator.choice(generator.choice((common if generator.random() < 0.6 else wordnet)[part]))

    for line in lines:
        sentences = []
        for _ in range(generator.choice((1, 1, 1, 2))):
            nouns = (common if generator.random() < 0.6 else wordnet)["noun"]
            sentence = generator.choice(ADVICE).format(
                *(broad_corpus.thing(line, nouns, generator) for _ in range(3)),
                verb=word("verb"),
                other=word("verb"),
                adj=word("adj"),
                more=word("adj"),
                n=generator.choice((2, 3, 5, 6, 10, 12, 20, 24, 30, 50, 100)),
                unit=generator.choice(UNITS),
            )
            sentences.append(sentence[0].upper() + sentence[1:])
        yield " ".join(sentences)


def opinions(lines: Iterable[str], generator: random.Random) -> Iterator[str]:
    """One line, or two, of at most 16 words within what people say around it."""
    said = list(filter(None, (as_clause(line, generator) for line in lines)))
    for clause in said:
        text = generator.choice(FRAMES).format(clause, generator.choice(said))
        yield text[0].upper() + text[1:]


def as_clause(line: str, generator: random.Random) -> str | None:
    """The line as it stands within another sentence; nothing where it is a question or long."""
    words = line.strip(" .!").split()
    if not 3 < len(words) < 17 or line.strip().endswith("?"):
        return None
    if words[0] != "I" and words[0][1:].islower() and words[0].lower() in STARTS:
        words[0] = words[0].lower()
    text = " ".join(words)
    return SHOWN.sub(generator.choice(TELLERS), text) if generator.random() < 0.7 else text


def headlines(lines: Iterable[str], generator: random.Random) -> Iterator[str]:
    """5 to 11 words from the start of a line, or from behind a comma, without what newspapers leave out."""
    for line in lines:
        clauses = re.split(r"[,;:(]\s", line.strip(" .?!"))
        start = generator.choice((0, 0, generator.randrange(len(clauses))))
        words = [word for word in " ".join(clauses[start : start + 2]).split() if word.lower() not in LEFT_OUT]
        text = " ".join(words[: generator.randint(5, 11)])
        if len(words) > 4:
            yield text[0].upper() + text[1:]


def gather(folder: Path, seed: int) -> list[str]:
    """All texts, shuffled.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = wide_corpus.installed_wordnet()
    generator = random.Random(seed)
    used = set(wide_corpus.gather(folder, seed))
    entries = {part: broad_corpus.read_entries(wordnet, part) for part in ("noun", "verb", "adj")}
    with gzip.open(folder / "nli" / "union_allsplits_noSTS.train.jsonl.gz", "rt", encoding="utf-8") as file:
        nli = [pair[side] for pair in map(json.loads, file) for side in ("premise", "hypothesis")]
    prompts = list(real_corpus.read_lines(folder / "corpus" / "common_voice_en.txt.gz"))
    printed = broad_corpus.printed(folder)
    spoken = [*prompts, *nli, *real_corpus.read_captions(folder)]
    generator.shuffle(printed)
    generator.shuffle(spoken)
    mixed = [line for pair in zip(printed, spoken, strict=False) for line in pair]
    sources = {
        "tweets": mixed_corpus.tweets(folder),
        "prompts": iter(prompts),
        "nli": iter(nli),
        "advice": advice(mixed[: 2 * SHARES["advice"]], entries, generator),
        "opinions": opinions(spoken[: 4 * SHARES["opinions"]], generator),
        "headlines": headlines(printed[: 3 * SHARES["headlines"]], generator),
    }
    texts = broad_corpus.shared_out(sources, SHARES, used, folder, generator)
    generator.shuffle(texts)
    return texts


if __name__ == "__main__":
    real_corpus.write(gather, __doc__, parts=2)
