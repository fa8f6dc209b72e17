"""Passages of whole sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from sentcompress.commands.split_documents import PASSAGE_WORDS
from sentcompress.corpora.document import Document, Section
from sentcompress.corpora.identified_texts import IdentifiedText
from sentcompress.passages.sentences import split_sentences

# A word of English prose has six characters with its blank. Scripts without blanks, and tables of numbers, are counted
# by characters, so that their passages are not longer in tokens.
CHARACTERS_PER_WORD = 10


@dataclass(frozen=True)
class Passage:
    """Consecutive sentences of a document, and the number of the section in which they begin."""

    text: str
    section: int


@dataclass(frozen=True)
class _Piece:
    """A sentence, or a part of one that is longer than a passage; with a heading before it if it begins a section."""

    text: str
    size: int
    section: int
    first: bool


def cut(sections: Sequence[Section], words: int) -> list[Passage]:
    """Cut a document into passages of at most `words` words.

    The passages have about the same length and begin with a section where that fits. A sentence is cut only if it is
    longer than a passage. A heading stands before the text of its section.
    """
    pieces = [piece for number, section in enumerate(sections) for piece in _pieces(section, number, words)]
    left = sum(piece.size for piece in pieces)
    passages: list[Passage] = []
    taken: list[_Piece] = []
    size, target = 0, _target(left, words)
    for piece in pieces:
        section = piece.first and 2 * min(size, left) >= target
        full = size + piece.size > words or size >= target or section
        if taken and full:
            passages.append(_passage(taken))
            taken, size, target = [], 0, _target(left, words)
        taken.append(piece)
        size += piece.size
        left -= piece.size
    return [*passages, _passage(taken)] if taken else passages


def cut_document(document: Document, words: int) -> tuple[list[Passage], str]:
    """The passages and the title of a document; if it has only a title, this becomes a passage without a title."""
    if passages := cut(document.sections, words):
        return passages, document.title
    return cut((Section("", document.title),), words), ""


def passages_of(documents: Iterable[Document]) -> Iterator[IdentifiedText]:
    """The passages of documents, cut as by `split-documents` by default; the first of each begins with the title.

    Returns:
        An iterator of (DOCUMENT#NUMBER, text).
    """
    for document in documents:
        passages, title = cut_document(document, PASSAGE_WORDS)
        for number, passage in enumerate(passages):
            yield f"{document.id}#{number}", with_title(title, number, passage.text)


def title_before(title: str, number: int, passage: str) -> str:
    """The title if it stands before this passage: before the first one, unless it begins with the title already."""
    return "" if number or passage.startswith(title) else title


def with_title(title: str, number: int, passage: str) -> str:
    """The passage as models read it."""
    return f"{title_before(title, number, passage)} {passage}".strip()


def measure(text: str) -> int:
    """The length of a text in words; at least one for every CHARACTERS_PER_WORD characters."""
    return max(len(text.split()), ceil(len(text) / CHARACTERS_PER_WORD))


def _target(left: int, words: int) -> int:
    """The length of each passage if what is left is cut into passages of equal length."""
    return ceil(left / max(1, ceil(left / words)))


def _passage(pieces: Sequence[_Piece]) -> Passage:
    return Passage(" ".join(piece.text for piece in pieces), pieces[0].section)


def _pieces(section: Section, number: int, words: int) -> Iterator[_Piece]:
    heading = " ".join(section.heading.split())
    sentences = split_sentences(section.text)
    if heading:
        sentences = [f"{heading} {sentences[0]}", *sentences[1:]] if sentences else [heading]
    first = True
    for sentence in sentences:
        for part in [sentence] if measure(sentence) <= words else _parts(sentence, words):
            yield _Piece(part, measure(part), number, first)
            first = False


def _parts(sentence: str, words: int) -> Iterator[str]:
    """A sentence that is too long in parts that are not."""
    longest = words * CHARACTERS_PER_WORD
    kept: list[str] = []
    length = 0
    for word in sentence.split():
        for start in range(0, len(word), longest):
            part = word[start : start + longest]
            if kept and (len(kept) >= words or length + len(part) > longest):
                yield " ".join(kept)
                kept, length = [], 0
            kept.append(part)
            length += len(part) + 1
    yield " ".join(kept)
