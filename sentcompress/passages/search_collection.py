"""The texts that a search goes through: of a file, of a folder, or those that `split-documents` held out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.document_files import FolderFiles, find_document_files
from sentcompress.corpora.identified_texts import IdentifiedTexts, identified_texts, refuse_passages, texts_of_folder
from sentcompress.corpora.markup import PAGES
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.search_texts import documents_source
from sentcompress.errors import InputError
from sentcompress.passages.cutting import passages_of
from sentcompress.store import WorkDirectory

UNREAD_HINT = "leave out `column`, `id_column`, `passages` and `skip_bad`, or name another `collection`"


@dataclass(frozen=True)
class CollectionOptions:
    """How texts are read: the columns, whether rows are cut into passages, whether unreadable lines are skipped."""

    column: tuple[str, ...] = ()
    passages: bool = False
    skip_bad: bool = False
    id_column: str | None = None


@dataclass(frozen=True)
class Collection:
    """The texts of a collection, and how they are read.

    Attributes:
        name: its absolute path, or the reference of its artifact.
        reference, digest: reference and digest of its file or artifact, an input of the request of an index.
        unread: the files of a folder that are not read, in words; empty if there are none.
        whole: whether long texts are not cut into passages, but could be.
    """

    name: str
    reference: str
    digest: str
    texts: IdentifiedTexts
    reading: CollectionOptions = CollectionOptions()
    unread: str = ""
    whole: bool = False


def collection_of_documents(work: WorkDirectory, name: str | None, reading: CollectionOptions) -> Collection:
    """The passages that an artifact of kind `documents` holds out, by its name; the newest if None.

    Raises:
        InputError: if `reading` asks for anything: they are read as they are.
        MissingArtifactError: if there is none.
    """
    source = documents_source(work, name, None)
    (reference, digest), *_ = source.inputs.items()
    if reading != CollectionOptions():
        raise InputError(f"{reference} is made of passages, which are searched whole", UNREAD_HINT)
    return Collection(reference, reference, digest, identified_texts(as_source(source.corpus)))


def collection_at(path: Path, reading: CollectionOptions, work: WorkDirectory) -> Collection:
    """The texts of a file or a folder.

    Raises:
        InputError: if it cannot be read, or not as `reading` asks.
    """
    found = find_document_files(path, work.path) if path.is_dir() else None
    texts = _texts_at(path, found, reading)
    return Collection(
        str(path.resolve()),
        f"file:{Path(texts.name).resolve()}",
        texts.digest(),
        texts,
        reading,
        found.unread(path) if found else "",
        whole=not (found or _is_cut(path, reading)),
    )


def _texts_at(path: Path, found: FolderFiles | None, reading: CollectionOptions) -> IdentifiedTexts:
    """The passages of a folder's documents or of a file of markup; the texts of any other file or of a collection."""
    options = ReadOptions(columns=reading.column, id_column=reading.id_column)
    if found:
        if reading.passages:
            refuse_passages(path, found)
        return texts_of_folder(path, found, options, passages_of, reading.skip_bad)
    return identified_texts(as_source(path), options, passages_of if _is_cut(path, reading) else None, reading.skip_bad)


def _is_cut(path: Path, reading: CollectionOptions) -> bool:
    """Whether the texts of a file are cut into passages."""
    return reading.passages or as_source(path).extension in PAGES
