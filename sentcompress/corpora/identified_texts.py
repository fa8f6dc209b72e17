"""Texts with their ids from a file of any format or a folder of documents, in order, read as often as needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import ByteSource, as_source
from sentcompress.corpora.collection_folders import rows_of
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.document import Document
from sentcompress.corpora.document_files import IDS, FolderFiles, digest_of_folder, read_documents, read_folder
from sentcompress.corpora.readers import ReadOptions, find_format, read_table
from sentcompress.corpora.records import BODIES, TITLES, BadRecordError, as_text, fault_of
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.text_files import HALF_A_CHARACTER, BadRecords, batches, is_encodable, open_lines
from sentcompress.errors import InputError
from sentcompress.progress import Reporter
from sentcompress.quantities import counted

# Ids compared at a time.
CHUNK = 1000
# Columns that hold the text of a row, in order of preference.
TEXTS = (BODIES[0], "sentence", *BODIES[1:])
IdentifiedText = tuple[str, str]


class DistinctIds:
    """Reads texts from the beginning, and adds the row number to an id that an earlier text has.

    Args:
        read: starts reading.
        repeated: whether ids can repeat; row numbers cannot, and take no memory.

    Attributes:
        renamed: ids that were changed, once all texts were read.
    """

    def __init__(self, read: Callable[[], Iterator[IdentifiedText]], *, repeated: bool = True) -> None:
        self._read, self._repeated = read, repeated
        self.renamed = 0

    def __call__(self) -> Iterator[IdentifiedText]:
        return self._distinct() if self._repeated else self._read()

    def _distinct(self) -> Iterator[IdentifiedText]:
        index, row, renamed = SentenceIndex(), 0, 0
        for texts in batches(self._read(), CHUNK, lambda one: len(one[1])):
            new = set(index.assign(sentence_hashes([one for one, _ in texts]))[1].tolist())
            for place, (one, text) in enumerate(texts):
                own, unused = one, place in new
                renamed += not unused
                while not unused:
                    own = f"{own}~{row}"
                    unused = len(index.assign(sentence_hashes([own]))[1]) > 0
                yield own, text
                row += 1
        self.renamed = renamed


@dataclass(frozen=True)
class IdentifiedTexts:
    """Texts of one file or folder, in order.

    Attributes:
        name: of the file or folder.
        read: starts reading it: yields (id, text). No two ids are equal.
        named: whether the texts have ids; otherwise they are the row numbers from 0.
        digest: computes the SHA-256 of the content as it is now.
    """

    name: str
    read: DistinctIds
    named: bool
    digest: Callable[[], str]

    def tell(self, reporter: Reporter) -> None:
        """Warn if texts shared their id with an earlier one; after all of them were read."""
        if self.read.renamed:
            reporter.warn(
                f"{self.name}: {counted(self.read.renamed, 'text')} with the id of an earlier one; a number is added "
                "to tell them apart"
            )


def identified_texts(source: ByteSource, column: str | None = None, format_name: str | None = None) -> IdentifiedTexts:
    """The texts of a file: every line of plain text, also empty ones, or every row of a table.

    The id of a row is in one of the columns IDS. Its text is the named column; otherwise its title (TITLES), a space
    and its text (TEXTS), stripped, as eval-retrieval joins them.

    Raises:
        InputError: if the file cannot be read, has no such column, or no column is known to hold text.
    """
    found = find_format(source, format_name)
    if found == "text":
        if column is not None:
            raise InputError(f"{source.name} is plain text and has no columns", ("leave out `column`", "give `format`"))
        return _of_file(source, lambda: ((str(number - 1), line) for number, line in open_lines(source)), named=False)
    first = next(iter(read_table(source, found)))[1]
    text_of = _text_reader(source.name, list(first), column)
    id_column = next((name for name in IDS if name in first), None)

    def read() -> Iterator[IdentifiedText]:
        for place, (number, row) in enumerate(read_table(source, found)):
            try:
                one = str(place) if id_column is None else as_text(row.get(id_column), repr(id_column)).strip()
                text = text_of(row)
            except BadRecordError as error:
                raise InputError(f"{source.name}, line {number}: {error}", "fix the line") from None
            if not one:
                raise InputError(f"{source.name}, line {number}: no {id_column!r}", "give every row an id")
            if not is_encodable(one + text):
                raise InputError(f"{source.name}, line {number}: {HALF_A_CHARACTER}", "fix the line")
            yield one, text

    return _of_file(source, read, named=id_column is not None)


def whole_documents(documents: Iterable[Document]) -> Iterator[IdentifiedText]:
    """Each document as one text; empty ones are left out."""
    return ((document.id, document.text) for document in documents if document.text)


Cut = Callable[[Iterable[Document]], Iterator[IdentifiedText]]


def refuse_passages(folder: Path, found: FolderFiles) -> None:
    """Raise InputError if the passages of a folder cannot be asked for, since it is a collection."""
    if found.collection:
        raise InputError(f"{folder} is a collection, whose documents are not cut", "leave out `passages`")


def texts_of_folder(
    folder: Path, found: FolderFiles, column: str | None = None, cut: Cut = whole_documents
) -> IdentifiedTexts:
    """The texts of the files of a folder, or of the corpus of a collection in BEIR's or MS MARCO's layout.

    A file of text is one document; its id is its path in the folder.

    Args:
        found: from `find_document_files`.
        column: of tables, the one with the text; not of a collection.
        cut: makes texts of documents. A collection's documents are not cut: judgements name them.
    """
    if found.collection:
        if column is not None:
            raise InputError(f"{folder} is a collection, which has a column for the text", "leave out `column`")
        (corpus,) = found.files
        return _of_file(as_source(corpus), lambda: rows_of(corpus), named=True)
    options = ReadOptions(columns=(column,) if column else ())

    def read() -> Iterator[IdentifiedText]:
        return _not_empty(cut(read_folder(found, folder, options, BadRecords())), str(folder))

    return IdentifiedTexts(str(folder), DistinctIds(read), True, lambda: digest_of_folder(folder, found))


def texts_of_documents(source: ByteSource, options: ReadOptions, cut: Cut) -> IdentifiedTexts:
    """The texts of the documents of one file, see `document_files.read_documents`."""

    def read() -> Iterator[IdentifiedText]:
        return _not_empty(cut(read_documents(source, options, BadRecords())), source.name)

    return _of_file(source, read, named=True)


def _of_file(source: ByteSource, read: Callable[[], Iterator[IdentifiedText]], *, named: bool) -> IdentifiedTexts:
    def digest() -> str:
        with source.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]

    return IdentifiedTexts(source.name, DistinctIds(read, repeated=named), named, digest)


def _not_empty(texts: Iterator[IdentifiedText], name: str) -> Iterator[IdentifiedText]:
    """The texts; at their end, InputError if there was none."""
    empty = True
    for text in texts:
        empty = False
        yield text
    if empty:
        raise InputError(f"{name} has no text: its files are empty", "give documents with text")


def _text_reader(name: str, there: list[str], column: str | None) -> Callable[[Mapping[str, object]], str]:
    if column is not None and column not in there:
        raise InputError(f"{name} has no column {column!r}", f"its columns: {listed(there)}")
    if column is not None:
        return lambda row: _value(row, column).strip()
    chosen = next((one for one in TEXTS if one in there), None)
    if chosen is None:
        raise InputError(
            f"{name}: cannot tell which column holds the text (columns: {listed(there)})",
            ("name it with `column`", "rename it to text"),
        )
    return lambda row: f"{_title(row)} {_value(row, chosen)}".strip()


def _value(row: Mapping[str, object], column: str) -> str:
    """The text of a column that every row must have; null is an empty text."""
    if column not in row:
        raise BadRecordError(f"no {column!r} (there: {listed(row)})")
    return _text(row[column], column)


def _title(row: Mapping[str, object]) -> str:
    """The first title that the row has; empty if it has none."""
    return next((title for one in TITLES if (title := _text(row.get(one), one).strip())), "")


def _text(value: object, column: str) -> str:
    if value is not None and not isinstance(value, str):
        raise BadRecordError(f"{column!r} {fault_of(value)}")
    return value or ""
