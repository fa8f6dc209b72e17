"""Passages with ids of their own: those of their documents, and a number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sentcompress.commands.split_documents import PASSAGE_WORDS
from sentcompress.corpora.document import Document, Section
from sentcompress.corpora.identified_texts import IdentifiedText
from sentcompress.passages.cutting import cut


def passages_of(documents: Iterable[Document]) -> Iterator[IdentifiedText]:
    """The passages of documents, cut as by `split-documents` by default; the first of each begins with the title.

    Returns:
        An iterator of (DOCUMENT#NUMBER, text).
    """
    for document in documents:
        title = document.title
        passages = [passage.text for passage in cut(document.sections, PASSAGE_WORDS)]
        if not passages:
            passages, title = [passage.text for passage in cut((Section("", title),), PASSAGE_WORDS)], ""
        for number, text in enumerate(passages):
            before = "" if number or text.startswith(title) else title
            yield f"{document.id}#{number}", f"{before} {text}".strip()
