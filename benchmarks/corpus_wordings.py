"""Makes training texts that nobody wrote: definitions of WordNet, and wordings of our own around words of corpora.

A teacher answers any text, so text need not mean much to be learnt from. No script of its own.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from sentcompress.augmentations.wordnet import DataFolder, find_wordnet

PARTS = ("noun", "verb", "adj", "adv")
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


def installed_wordnet() -> DataFolder:
    """WordNet's files.

    Raises:
        FileNotFoundError: if WordNet is not installed.
    """
    wordnet = find_wordnet()
    if wordnet is None:
        raise FileNotFoundError("WordNet is needed: on Debian, apt-get install wordnet-base")
    return wordnet


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


def read_entries(folder: DataFolder, part: str) -> list[list[str]]:
    """The words of each entry of a part of WordNet, in the order of its file, where neighbours are of one field."""
    entries = []
    for line in folder.read(f"data.{part}").decode(errors="replace").splitlines():
        if not line.startswith("  "):  # the licence
            fields = line.split(" | ", 1)[0].split()
            names = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
            entries.append([re.sub(r"\(\w+\)$", "", name) for name in names])
    return entries


def beside(entries: list[list[str]], generator: random.Random) -> Iterator[str]:
    """A name of an entry and names of some of its neighbours."""
    for place in range(len(entries)):
        others = generator.sample(range(-8, 9), generator.randint(1, 5))
        names = [generator.choice(entries[(place + step) % len(entries)]) for step in [0, *others]]
        yield generator.choice([" ", ", ", " and "]).join(dict.fromkeys(names))


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


def thing(line: str, nouns: list[list[str]], generator: random.Random) -> str:
    """A noun of WordNet, or a few neighbouring words of the line, a name if it has one."""
    names: list[str] = re.findall(r"(?<![.!?] )(?<!^)(?:[A-Z][\w-]+)(?: [A-Z][\w-]+){0,3}", line)
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
                *(thing(line, nouns, generator) for _ in range(3)),
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
