"""Reads the hand-written parts and fills their slots."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

HANDWRITTEN = Path(__file__).resolve().parent.parent / "handwritten"
SLOT = re.compile(r"(?:\b(?P<article>[Aa])n? )?\{(?P<slot>[a-z]+)(?P<other>\*?)\}")
PLURAL_STARTS = {"two", "three", "four", "several", "some"}

Item = TypeVar("Item")
Vocabulary = Mapping[str, Sequence[str]]


class Dice:
    """Random choices out of `random.Random.random()` alone.

    Python promises the same sequence of `random()` for a seed in every version, and does not promise it for
    `choice`, `sample` or `shuffle`; the committed files have to come out the same everywhere.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def below(self, stop: int) -> int:
        """A whole number from 0 to `stop - 1`."""
        return int(self._random.random() * stop)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, each equally likely."""
        return items[self.below(len(items))]

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """A copy in random order (Fisher-Yates)."""
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            other = self.below(last + 1)
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled


def read_lines(name: str) -> list[str]:
    """The lines of a hand-written file without comments and empty lines."""
    lines = (HANDWRITTEN / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def split_line(line: str, separator: str, fields: int, source: str) -> tuple[str, ...]:
    """The fields of one line; a ValueError names the line when their number is wrong."""
    parts = tuple(part.strip() for part in line.split(separator))
    if len(parts) != fields or not all(parts):
        raise ValueError(f"{source}: expected {fields} fields separated by {separator!r}: {line}")
    return parts


def read_sections(name: str) -> dict[str, list[str]]:
    """Lines grouped under the `@section` line above them."""
    sections: dict[str, list[str]] = {}
    for line in read_lines(name):
        if line.startswith("@"):
            current = sections.setdefault(line[1:], [])
        else:
            current.append(line)
    return sections


def read_vocabulary() -> dict[str, list[str]]:
    """Slot name -> its values."""
    vocabulary = {}
    for line in read_lines("vocabulary.txt"):
        slot, values = split_line(line, ": ", 2, "vocabulary.txt")
        vocabulary[slot] = values.split(", ")
    return vocabulary


def choose_values(texts: Sequence[str], vocabulary: Vocabulary, dice: Dice) -> dict[str, str]:
    """One value for each slot of the texts; `slot*` never takes the value of `slot`."""
    values: dict[str, str] = {}
    for match in SLOT.finditer(" ".join(texts)):
        slot, key = match["slot"], match["slot"] + match["other"]
        if key not in values:
            taken = {values.get(slot), values.get(slot + "*")}
            values[key] = dice.pick([value for value in vocabulary[slot] if value not in taken])
    return values


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replaces the slots, with the article that suits the value: `a {tree}` -> `an oak`."""

    def replace(match: re.Match[str]) -> str:
        value = values[match["slot"] + match["other"]]
        if not match["article"]:
            return value
        return match["article"] + ("n " if value[0].lower() in "aeiou" else " ") + value

    return SLOT.sub(replace, text)


def fill_all(texts: Sequence[str], vocabulary: Vocabulary, dice: Dice) -> tuple[str, ...]:
    """Fills several texts with the same values."""
    values = choose_values(texts, vocabulary, dice)
    return tuple(fill(text, values) for text in texts)


def is_plural(subject: str) -> bool:
    """Whether a subject takes `are`: `two cooks`, `the bride and two bridesmaids`."""
    return subject.split()[0] in PLURAL_STARTS or re.match(r"a couple of|the \w+ and ", subject) is not None


def finish(sentence: str) -> str:
    """Closes the gaps that empty parts leave and starts the sentence with a capital letter."""
    sentence = re.sub(r"\s+", " ", sentence)
    sentence = re.sub(r" (?=[.,])", "", sentence)
    sentence = re.sub(r",(?=[.,])", "", sentence).lstrip(", ")
    return sentence[0].upper() + sentence[1:]
