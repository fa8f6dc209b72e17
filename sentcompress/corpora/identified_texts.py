"""Texts with their ids from a file of any format or a folder of documents, in order, read as often as needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentcompress.corpora.byte_streams import ByteSource, as_source
from sentcompress.corpora.collection_folders import rows_of
from sentcompress.corpora.delimited import find_columns, listed, told_unread
from sentcompress.corpora.document import Document
from sentcompress.corpora.document_files import (
    FolderFiles,
    digest_of_folder,
    id_of,
    need_columns,
    read_documents,
    read_folder,
)
from sentcompress.corpora.markup import PAGES
from sentcompress.corpora.readers import ReadOptions, find_format, read_table
from sentcompress.corpora.records import (
    BODIES,
    IDS,
    LOOKED_AT,
    TITLES,
    BadRecordError,
    find_layout,
    keep_unread,
    text_of,
    title_of,
)
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.text_files import LONE_SURROGATE, BadRecords, batches, is_encodable, open_lines
from sentcompress.errors import InputError
from sentcompress.progress import Reporter
from sentcompress.quantities import counted

# Ids compared at a time.
CHUNK = 1000
# Columns that hold the text of a row, in order of preference.
TEXTS = (BODIES[0], "sentence", *BODIES[1:])
_AS_FOUND = ReadOptions()
IdentifiedText = tuple[str, str]
Reading = Callable[[BadRecords], Iterator[IdentifiedText]]
Cut = Callable[[Iterable[Document]], Iterator[IdentifiedText]]


class DistinctIds:
    """Reads texts from the beginning, and adds the row number to an id that an earlier text has.

    Args:
        read: starts reading; faults of single lines and files go through its argument.
        repeated: whether ids can repeat; row numbers cannot, and take no memory.
        skip_bad: whether lines and files that cannot be read are skipped.

    Attributes:
        renamed: ids that were changed, once all texts were read.
        bad: what the last reading skipped, once all texts were read.
    """

    def __init__(self, read: Reading, *, repeated: bool = True, skip_bad: bool | None = None) -> None:
        self._read, self._repeated, self._skip_bad = read, repeated, skip_bad
        self.renamed = 0
        self.bad = BadRecords(skip_bad)

    def __call__(self) -> Iterator[IdentifiedText]:
        self.bad = BadRecords(self._skip_bad)
        texts = self._read(self.bad)
        return self._distinct(texts) if self._repeated else texts

    def _distinct(self, all_texts: Iterator[IdentifiedText]) -> Iterator[IdentifiedText]:
        index, row, renamed = SentenceIndex(), 0, 0
        for texts in batches(all_texts, CHUNK, lambda one: len(one[1])):
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
        name: name of the file or folder.
        read: starts reading it: yields (id, text). No two ids are equal.
        named: whether the texts have ids; otherwise they are the row numbers from 0.
        digest: computes the SHA-256 of the content as it is now.
        table: whether they are the rows of a table.
    """

    name: str
    read: DistinctIds
    named: bool
    digest: Callable[[], str]
    table: bool = False

    def tell(self, reporter: Reporter, *, ids: bool = True) -> None:
        """Report texts that were left out, and changed ids, after all texts were read.

        Args:
            ids: whether the ids are used.
        """
        if ids and self.table and not self.named:
            reporter.note(
                f"{self.name} has no column of ids ({', '.join(IDS[:-1])} or {IDS[-1]}); the ids are row numbers from "
                "0, unless `id_column` names another column"
            )
        if self.read.bad.unread:
            reporter.note(told_unread(self.read.bad.unread))
        self.read.bad.warn(reporter)
        if self.read.bad.empty:
            reporter.note(f"left out {counted(self.read.bad.empty, 'document')} without text")
        if self.read.renamed:
            reporter.warn(
                f"{self.name}: {counted(self.read.renamed, 'text')} with the id of an earlier one; a number is added "
                "to tell them apart"
            )


def identified_texts(
    source: ByteSource,
    options: ReadOptions = _AS_FOUND,
    cut: Cut | None = None,
    skip_bad: bool | None = None,
) -> IdentifiedTexts:
    """The texts of a file: every line of plain text, also empty ones, every row of a table, or a whole file of markup.

    The id of a row is in `id_column`, or else in one of the columns IDS; without one, it is the number of the row among
    those that can be read. Its text is the named columns, joined in order; otherwise its title (TITLES), a space and
    its text (TEXTS), stripped, as eval-retrieval joins them.

    Args:
        options: how it is read.
        cut: makes texts of its documents (`document_files.read_documents`) instead.
        skip_bad: whether lines that cannot be read are skipped.

    Raises:
        InputError: if the file cannot be read, has no such column, or no column is known to hold text.
    """
    if cut or (source.extension in PAGES and not options.format):
        return _of_documents(source, options, cut or whole_documents, skip_bad)
    found = find_format(source, options.format)
    if found == "text":
        need_columns((source,), source.name, replace(options, format=found))

        def lines(bad: BadRecords) -> Iterator[IdentifiedText]:
            return ((str(number - 1), line) for number, line in open_lines(source, bad=bad))

        return _of_file(source, lines, named=False, skip_bad=skip_bad)
    first = _first_row(source, found, options, skip_bad)
    chosen = next((one for one in TEXTS if one in first), None)
    text_of = _text_reader(source.name, list(first), options.columns, chosen)
    if options.id_column is not None:
        find_columns(source.name, [options.id_column], list(first))
    ids = options.id_column or next((name for name in IDS if name in first), None)

    def read(bad: BadRecords) -> Iterator[IdentifiedText]:
        place = 0
        for number, row in read_table(source, found, bad, options.named):
            if place < LOOKED_AT and not options.columns:
                keep_unread(source.name, row, (chosen, *TITLES, ids), bad)
            try:
                one = str(place) if ids is None else id_of(row, ids)
                text = text_of(row)
            except BadRecordError as error:
                bad.add(f"{source.name}, line {number}: {error}", error.hint)
                continue
            if not is_encodable(one + text):
                bad.add(f"{source.name}, line {number}: {LONE_SURROGATE}")
            else:
                yield one, text
                place += 1

    return replace(_of_file(source, read, named=ids is not None, skip_bad=skip_bad), table=True)


def _first_row(
    source: ByteSource, format_name: str, options: ReadOptions, skip_bad: bool | None
) -> Mapping[str, object]:
    bad = BadRecords(skip_bad)
    for _, row in read_table(source, format_name, bad, options.named):
        return row
    raise InputError(f"{source.name} has no row that can be read; the first error: {bad.first}", "fix the rows")


def whole_documents(documents: Iterable[Document]) -> Iterator[IdentifiedText]:
    """Each document as one text; empty ones are left out."""
    return ((document.id, document.text) for document in documents if document.text)


def refuse_passages(folder: Path, found: FolderFiles) -> None:
    """Raise InputError if the folder is a collection, which is not cut into passages."""
    if found.collection:
        raise InputError(f"{folder} is a collection, whose documents are not cut", "leave out `passages`")


def texts_of_folder(
    folder: Path,
    found: FolderFiles,
    options: ReadOptions = _AS_FOUND,
    cut: Cut | None = None,
    skip_bad: bool | None = None,
) -> IdentifiedTexts:
    """The texts of the files of a folder, or of the corpus of a collection in BEIR's or MS MARCO's layout.

    A file of text is one document; its id is its path in the folder.

    Args:
        found: from `find_document_files`.
        options: how tables are read; a collection has its own columns.
        cut: makes texts of documents. A collection's documents are not cut: judgements name them.
        skip_bad: whether lines and files that cannot be read are skipped; not of a collection.

    Raises:
        InputError: if the folder is a collection, and options are given that it has no use for.
    """
    if found.collection:
        if options.columns:
            raise InputError(f"{folder} is a collection, which has a column for the text", "leave out `column`")
        if options.id_column is not None:
            raise InputError(f"{folder} is a collection, which has a column for the ids", "leave out `id_column`")
        if skip_bad:
            raise InputError(f"{folder} is a collection, which is read completely", "leave out `skip_bad`")
        (corpus,) = found.files
        return _of_file(as_source(corpus), lambda _: rows_of(corpus), named=True)
    need_columns(found.files, str(folder), options)
    options = replace(options, every_split=True)  # as the rows of a table that is not cut

    def read(bad: BadRecords) -> Iterator[IdentifiedText]:
        return _texts_of(read_folder(found, folder, options, bad), cut or whole_documents, bad, str(folder))

    ids = DistinctIds(read, skip_bad=skip_bad)
    return IdentifiedTexts(str(folder), ids, True, lambda: digest_of_folder(folder, found))


def _of_documents(source: ByteSource, options: ReadOptions, cut: Cut, skip_bad: bool | None) -> IdentifiedTexts:
    need_columns((source,), source.name, options)
    options = replace(options, every_split=True)  # as the rows of a table that is not cut

    def read(bad: BadRecords) -> Iterator[IdentifiedText]:
        return _texts_of(read_documents(source, options, bad), cut, bad, source.name)

    return _of_file(source, read, named=True, skip_bad=skip_bad)


def _of_file(source: ByteSource, read: Reading, *, named: bool, skip_bad: bool | None = None) -> IdentifiedTexts:
    def digest() -> str:
        with source.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]

    return IdentifiedTexts(source.name, DistinctIds(read, repeated=named, skip_bad=skip_bad), named, digest)


def _texts_of(documents: Iterable[Document], cut: Cut, bad: BadRecords, name: str) -> Iterator[IdentifiedText]:
    """The texts of documents; `bad` counts documents without any. At their end, InputError if there was no text."""
    found = False
    for document in documents:
        empty = True
        for text in cut((document,)):
            found, empty = True, False
            yield text
        bad.empty += empty
    if not found:
        raise InputError(f"{name} has no text: its files are empty", "give documents with text")


def _text_reader(
    name: str, there: list[str], columns: Sequence[str], chosen: str | None
) -> Callable[[Mapping[str, object]], str]:
    """The text of a row: its title and the `chosen` column, or the named columns, joined as in documents."""
    if columns:
        return find_layout(name, there, columns, joined=True).text
    if chosen is None:
        raise InputError(
            f"{name}: cannot tell which column holds the text (columns: {listed(there)})",
            ("name it with `column`", "rename it to text"),
        )
    return lambda row: f"{title_of(row)} {text_of(row, chosen)}".strip()
