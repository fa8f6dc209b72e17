"""The first reading of a collection: its passages, written to a temporary file, and its document frequencies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from sentcompress.augmentations.function_words import is_function_word
from sentcompress.corpora.document import Document
from sentcompress.json_documents import to_json
from sentcompress.passages.cutting import Passage, cut_document
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.words import words_of
from sentcompress.progress import Task

# Characters of each document from which the share of function words is measured.
_LOOKED_AT = 2000
# Below this share of English function words, a text is hardly English prose. The share of fewer words means nothing.
LEAST_ENGLISH, _WORDS_TO_TELL = 0.12, 20
# The most passages of a section. Longer ones are divided, because too little of a few long chapters could be held out.
PASSAGES_PER_SECTION = 4


@dataclass
class ScanCounts:
    """What was read. `function_words` of the `words_looked_at` are English function words; numbers are not counted.

    `foreign` documents have a share of them below LEAST_ENGLISH. `unasked` and `unread` are those of `BadRecords`.
    """

    documents: int = 0
    passages: int = 0
    words: int = 0
    empty: int = 0
    function_words: int = 0
    words_looked_at: int = 0
    foreign: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unasked: dict[str, list[str]] = field(default_factory=dict)
    unread: dict[str, list[str]] = field(default_factory=dict)

    @property
    def english(self) -> float:
        """The share of English function words; 0.35 to 0.5 in English prose, below 0.05 in most other languages."""
        return self.function_words / max(1, self.words_looked_at)

    @property
    def unasked_columns(self) -> list[str]:
        """The columns of `unasked`, each once."""
        return list(dict.fromkeys(column for columns in self.unasked.values() for column in columns))


@dataclass(frozen=True)
class Unit:
    """The unit that is held out as a whole: a document, or a section of one."""

    id: str
    title: str
    headings: tuple[str, ...]
    passages: tuple[str, ...]

    @property
    def text(self) -> str:
        """Title and passages as one text."""
        return " ".join((self.title, *self.passages))


def scan(
    documents: Iterable[Document], words: int, path: Path, frequencies: DocumentFrequencies, task: Task
) -> ScanCounts:
    """Cut all documents into passages of at most `words` words and write them to `path`, a JSON object a line."""
    counts = ScanCounts()
    with path.open("w", encoding="utf-8") as file:
        for document in documents:
            task.advance()
            passages, title = cut_document(document, words)
            if not passages:
                counts.empty += 1
                continue
            _count(document, passages, counts, frequencies)
            headings = [[number, section.heading] for number, section in enumerate(document.sections)]
            row = {
                "id": document.id,
                "title": title,
                "headings": [[number, heading] for number, heading in headings if heading],
                "passages": [[passage.section, passage.text] for passage in passages],
            }
            file.write(to_json(row, indent=None) + "\n")
    return counts


def read_units(path: Path, by_section: bool) -> Iterator[Unit]:
    """The documents that `scan` wrote, in order, or their sections."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if by_section:
                yield from _sections(row)
            else:
                headings, passages = (tuple(text for _, text in row[name]) for name in ("headings", "passages"))
                yield Unit(row["id"], row["title"], headings, passages)


def _sections(row: dict[str, Any]) -> Iterator[Unit]:
    """The sections of a document: passages that begin under the same heading, at most four in a row."""
    grouped = groupby(row["passages"], key=lambda one: int(one[0]))
    placed = [(section, [str(text) for _, text in group]) for section, group in grouped]
    following = [*(section for section, _ in placed[1:]), math.inf]
    number = 0
    for (section, passages), end in zip(placed, following, strict=True):
        firsts = range(0, len(passages), PASSAGES_PER_SECTION)
        for first in firsts:
            # The last passage can hold short sections, too, whose headings are then in it.
            places = {section} if first == 0 else set()
            places |= {place for place, _ in row["headings"] if section < place < end and first == firsts[-1]}
            own = tuple(text for place, text in row["headings"] if place in places)
            title = "" if number else row["title"]
            number += 1
            part = tuple(passages[first : first + PASSAGES_PER_SECTION])
            yield Unit(f"{row['id']}#{number}", title, own, part)


def _count(
    document: Document, passages: Iterable[Passage], counts: ScanCounts, frequencies: DocumentFrequencies
) -> None:
    found = words_of(document.text)
    frequencies.add(found)
    looked_at = [word for word in words_of(document.text[:_LOOKED_AT]) if len(word) > 1 and word[0].isalpha()]
    counts.documents += 1
    counts.passages += sum(1 for _ in passages)
    counts.words += len(found)
    function_words = sum(map(is_function_word, looked_at))
    counts.words_looked_at += len(looked_at)
    counts.function_words += function_words
    counts.foreign += len(looked_at) >= _WORDS_TO_TELL and function_words < LEAST_ENGLISH * len(looked_at)
