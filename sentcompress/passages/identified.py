"""Passages with ids of their own: those of their documents, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from sentcompress.corpora.document import Document, Section
from sentcompress.corpora.identified_texts import Cut, IdentifiedText
from sentcompress.passages.cutting import cut


def passages_of(documents: Iterable[Document], words: int) -> Iterator[IdentifiedText]:
    """The passages of documents, cut and numbered as `split-documents` does; the first begins with the title.

    Args:
        words: the most words of a passage.

    Returns:
        An iterator of (DOCUMENT#NUMBER, text).
    """
    for document in documents:
        title = document.title
        passages = [passage.text for passage in cut(document.sections, words)]
        if not passages:
            passages, title = [passage.text for passage in cut((Section("", title),), words)], ""
        for number, text in enumerate(passages):
            before = "" if number or text.startswith(title) else title
            yield f"{document.id}#{number}", f"{before} {text}".strip()


def cutting(words: int) -> Cut:
    """Cuts documents into passages of at most `words` words."""
    return partial(passages_of, words=words)
