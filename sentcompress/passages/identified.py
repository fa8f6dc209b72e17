"""Passages with ids of their own, those of their documents and a number, from a file or a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sentcompress.commands.split_documents import PASSAGE_WORDS
from sentcompress.corpora.byte_streams import ByteSource
from sentcompress.corpora.document import Document, Section
from sentcompress.corpora.document_files import FolderFiles
from sentcompress.corpora.identified_texts import (
    IdentifiedText,
    IdentifiedTexts,
    texts_of_documents,
    texts_of_folder,
)
from sentcompress.corpora.readers import ReadOptions
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


def passages_of_file(
    source: ByteSource,
    column: str | None = None,
    format_name: str | None = None,
    skip_bad: bool | None = None,
    id_column: str | None = None,
) -> IdentifiedTexts:
    """The passages of the documents of a file.

    Args:
        column, id_column: of a table, those with the text and the ids.
        skip_bad: whether lines that cannot be read are skipped.
    """
    options = ReadOptions(format_name, (column,) if column else (), joined=True, id_column=id_column)
    return texts_of_documents(source, options, passages_of, skip_bad)


def passages_of_folder(
    folder: Path,
    found: FolderFiles,
    column: str | None = None,
    skip_bad: bool | None = None,
    id_column: str | None = None,
) -> IdentifiedTexts:
    """The passages of the documents of a folder; the texts of a collection.

    Args:
        found: from `find_document_files`.
        column, id_column: of tables, those with the text and the ids.
        skip_bad: whether lines and files that cannot be read are skipped.
    """
    return texts_of_folder(folder, found, column, passages_of, skip_bad, id_column)
