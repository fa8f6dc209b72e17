"""Documents of files: rows of tables, lines, paragraphs or whole files of text, and the files of a folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from sentcompress.corpora.byte_streams import ByteSource, Readable, as_source, format_extension, open_bytes
from sentcompress.corpora.collection_folders import CORPUS, existing
from sentcompress.corpora.delimited import find_columns, listed
from sentcompress.corpora.document import Document, plain_document
from sentcompress.corpora.html_pages import UTF16, check_parser, html_page
from sentcompress.corpora.markup import HTML, MARKUP, PAGES, marked_up
from sentcompress.corpora.readers import (
    FILE_EXTENSIONS,
    ReadOptions,
    find_format,
    made_of_rows,
    read_records,
    rows_of,
)
from sentcompress.corpora.records import (
    IDS,
    LOOKED_AT,
    BadRecordError,
    Layout,
    Record,
    Relation,
    find_layout,
    id_text,
    keep_unread,
)
from sentcompress.corpora.text_files import (
    LONE_SURROGATE,
    LONGEST_LINE,
    BadRecords,
    NotSkippedError,
    open_lines,
    refuse_foreign,
)
from sentcompress.errors import InputError

# What is one document in a file of plain text.
FILE, PARAGRAPH, LINE = "file", "paragraph", "line"
TEXT_UNITS = (FILE, PARAGRAPH, LINE)
_PROSE = ("txt", "text", *PAGES)
# In a folder, .json files are usually settings.
EXTENSIONS = tuple(dict.fromkeys((*_PROSE, *(one for one in FILE_EXTENSIONS if one != "json"))))
# Programs that make text, Markdown or HTML of documents in other formats.
CONVERTERS = {
    "pdftotext": (".pdf",),
    "pandoc": (".docx", ".odt", ".epub", ".rtf", ".tex", ".org", ".adoc"),
    "LibreOffice": (".doc", ".pptx", ".ppt", ".xlsx", ".xls"),
}
# Lines that decide whether a text is hard-wrapped, and the end of a line that is a whole sentence.
_HEAD_LINES = 2000
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"')\]”’»]*\s*$")


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder that are read, sorted, and the number of others by extension.

    Attributes:
        others: files of other formats by extension, and empty files.
        collection: whether the folder is a collection in BEIR's or MS MARCO's layout; then only its corpus is read.
    """

    files: tuple[Path, ...]
    others: Mapping[str, int]
    collection: bool = False

    @property
    def skipped(self) -> str:
        """The other files in words."""
        return listed(f"{count:,} {name}" for name, count in self.others.items())

    def unread(self, folder: Path) -> str:
        """A note on the other files of `folder`, and how documents among them can be converted; empty if none."""
        told = f"{self.skipped}; {advice}" if (advice := self.advice) else self.skipped
        return f"{folder}: files that are not read: {told}" if self.others else ""

    @property
    def advice(self) -> str:
        """Programs that convert those of the other files that are documents; empty if none is known to be one."""
        there = {program: [one for one in kinds if one in self.others] for program, kinds in CONVERTERS.items()}
        found = [f"{', '.join(kinds)} with {program}" for program, kinds in there.items() if kinds]
        return f"convert {' and '.join(found)} first" if found else ""


def find_document_files(folder: Path, without: Path | None = None, format_name: str | None = None) -> FolderFiles:
    """The files of documents below a folder; hidden ones are ignored.

    Args:
        without: a folder below it that is not read, such as the work directory.
        format_name: the format that all of them are read in; by default, that of each file.

    Raises:
        InputError: if there is none; the message lists what there is. If there are HTML pages and no lxml.
        PermissionError: if a folder cannot be listed.
    """
    if corpus := existing(folder, CORPUS):
        return FolderFiles((corpus,), {}, collection=True)
    files, others = [], Counter[str]()
    for path in sorted(_visible_files(folder, without and without.resolve())):
        if format_extension(path) in EXTENSIONS:
            if path.stat().st_size:
                files.append(path)
            else:
                others["empty"] += 1
        else:
            others[path.suffix.lower() or "without extension"] += 1
    found = FolderFiles(tuple(files), dict(others.most_common()))
    if not files:
        there = f"it has {found.skipped}" if others else "it is empty"
        raise InputError(
            f"{folder} holds no file of text: {there}",
            f"files read are .{', .'.join(EXTENSIONS)}, also .gz and .zst; "
            f"{found.advice or 'convert others to text first'}",
        )
    if not format_name and any(format_extension(path) in HTML for path in files):
        check_parser()  # otherwise they might be skipped as files that cannot be read
    return found


def need_columns(files: Iterable[Readable], name: str, options: ReadOptions) -> None:
    """Raise InputError if a column is named and none of the files, together called `name`, is a table."""
    named = {"`column`": options.columns, "`domain`": options.domain, "`id_column`": options.id_column}
    given = [flag for flag, value in named.items() if value]
    if given and not any(is_table(one, options.format) for one in files):
        raise InputError(
            f"no table in {name}, and only tables have columns", (f"leave out {listed(given)}", "give `format`")
        )


def is_table(readable: Readable, format_name: str | None) -> bool:
    """Whether a file has columns. One that cannot be read is taken for a table: the error comes when it is read."""
    source = as_source(readable)
    if source.extension in PAGES and not format_name:
        return False
    try:
        return find_format(source, format_name) != "text"
    except InputError:
        return True


def _visible_files(folder: Path, without: Path | None) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise error  # otherwise its files would be missing without a word

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if name[0] != "." and Path(place, name).resolve() != without]
        yield from (path for name in names if name[0] != "." and (path := Path(place, name)).is_file())


def digest_of_folder(folder: Path, found: FolderFiles, each: Callable[[], None] | None = None) -> str:
    """SHA-256 of the files and their names; `each` is called after every file."""
    whole = hashlib.sha256()
    for path in found.files:
        # Length and name, so that a file that is renamed or emptied changes the digest.
        name = os.fsencode(path.relative_to(folder))
        whole.update(f"{len(name)} {path.stat().st_size} ".encode() + name)
        with as_source(path).open() as stream:
            while block := stream.read(2**20):
                whole.update(block)
        if each:
            each()
    return whole.hexdigest()


def read_documents(
    readable: Readable, options: ReadOptions, bad: BadRecords, unit: str | None = None
) -> Iterator[Document]:
    """The documents of one file, in order.

    Args:
        unit: one of TEXT_UNITS for a file of text; by default `options.text_as`, otherwise told from the file.

    Raises:
        InputError: if the file cannot be read; faults of single rows and lines go through `bad`.
    """
    source = as_source(readable)
    is_page = source.extension in PAGES and not options.format
    format_name = "text" if is_page else find_format(source, options.format)
    if is_page and source.extension in HTML:
        documents = _html_documents(source)
    elif format_name == "text":
        documents = _text_documents(source, options.text_as or unit or usual_unit(source), bad)
    else:
        rows = rows_of(format_name, source, bad, options.named)
        documents = documents_of_rows(source.name, rows, options, bad)
    for document in documents:
        if document.encodable:
            yield document
        else:
            bad.add(f"{source.name}, document {document.id[:40]!r}: {LONE_SURROGATE}")


def read_folder(found: FolderFiles, folder: Path, options: ReadOptions, bad: BadRecords) -> Iterator[Document]:
    """The documents of the files of a folder; a file of text is one document. A file's fault goes through `bad`."""
    for path in found.files:
        if found.collection and format_extension(path) == "tsv":
            yield from _tab_separated(path, bad)
            continue
        with _skipped_if_bad(bad):
            for document in read_documents(path, options, bad, unit=FILE):
                # Ids made of the path are made of the path inside the folder instead.
                inside = document.id.removeprefix(f"{folder}{os.sep}")
                yield document if inside == document.id else replace(document, id=inside)


def folder_records(found: FolderFiles, folder: Path, options: ReadOptions, bad: BadRecords) -> Iterator[Record]:
    """The records of the files of a folder: those of tables as `read_records` gives them, documents as one text."""
    for path in found.files:
        if format_extension(path) in _PROSE or found.collection:
            single = FolderFiles((path,), {}, found.collection)
            yield from as_records(read_folder(single, folder, options, bad))
            continue
        with _skipped_if_bad(bad):
            yield from read_records(path, options, bad)


def as_records(documents: Iterable[Document]) -> Iterator[Record]:
    """Each document as one text."""
    for document in documents:
        yield Record((document.text,), Relation.UNRELATED)


def documents_of_rows(
    name: str, rows: Iterable[tuple[int, Mapping[str, object]]], options: ReadOptions, bad: BadRecords
) -> Iterator[Document]:
    """The documents of the rows of a table; the columns are chosen by the first row.

    Rows of pairs and triplets give one document for each of their sentences; `bad` keeps the columns, and counts the
    rows of other splits. It also keeps the columns of documents that hold text and are not read.

    Raises:
        InputError: if a named column is missing, no column is known to hold text, or all rows are of other splits.
    """
    layout: Layout | None = None
    looked_at = 0

    def documents(number: int, row: Mapping[str, object]) -> list[Document] | None:
        nonlocal layout, looked_at
        if layout is None:
            layout = find_layout(name, list(row), options.columns, None, joined=True)
            find_columns(name, [options.id_column] if options.id_column else [], list(row))
            if not layout.document and len(layout.columns) > 1:
                bad.unasked[name] = layout.columns
            if options.every_split:
                layout = replace(layout, split=None)
        if layout.document and not options.columns and looked_at < LOOKED_AT:
            looked_at += 1
            keep_unread(name, row, (*layout.columns, *layout.titles, options.id_column), bad)
        return _of_row(f"{name}:{number}", row, layout, options)

    yield from chain.from_iterable(made_of_rows(name, rows, documents, options.split, bad))


def usual_unit(source: ByteSource) -> str:
    """What counts as one document in a text file that is not in a folder.

    Markdown and reStructuredText are one document. A text is read by paragraphs if it is hard-wrapped: blank lines
    separate its paragraphs, and most lines inside them end in the middle of a sentence. Otherwise by lines.
    """
    if source.extension in MARKUP:
        return FILE
    blank = inside = broken = 0
    above = ""
    for number, line in open_lines(source, bad=BadRecords(skip=True)):
        if number > _HEAD_LINES:
            break
        blank += not line.strip()
        if above and line.strip():
            inside += 1
            broken += not _SENTENCE_END.search(above)
        above = line.strip()
    return PARAGRAPH if blank and inside and 2 * broken > inside else LINE


def id_of(row: Mapping[str, object], column: str) -> str:
    """The id in a column that every row must have. Raises BadRecordError if there is none."""
    if name := id_text(row.get(column), repr(column)):
        return name
    raise BadRecordError(f"no {column!r}, the column of ids")


def _known_id(row: Mapping[str, object]) -> str:
    """The id in one of the columns IDS; empty if there is none. Raises BadRecordError for a number that is no id."""
    column = next((name for name in IDS if row.get(name) is not None), "")
    given = row.get(column)
    is_id = isinstance(given, str | int | float) and not isinstance(given, bool)
    return id_text(given, repr(column)) if is_id else ""


def _of_row(number: str, row: Mapping[str, object], layout: Layout, options: ReadOptions) -> list[Document] | None:
    """The documents of a row; None if it is of another split."""
    name = id_of(row, options.id_column) if options.id_column else _known_id(row) or number
    if layout.document:  # of any split: all of them will be searched
        return [plain_document(name, layout.title(row), layout.body(row))]
    record = layout.record(row, options.split)
    if record is None:
        return None
    several = len(record.texts) > 1
    return [
        plain_document(f"{name}-{place}" if several else name, "", text) for place, text in enumerate(record.texts, 1)
    ]


def _text_documents(source: ByteSource, unit: str, bad: BadRecords) -> Iterator[Document]:
    if unit == LINE:
        for number, line in open_lines(source, bad=bad):
            if line.strip():
                yield plain_document(f"{source.name}:{number}", "", line)
        return
    lines, first, length = list[str](), 1, 0
    for number, line in open_lines(source, bad=bad):
        if unit == PARAGRAPH and not line.strip():
            if lines:
                yield plain_document(f"{source.name}:{first}", "", "\n".join(lines))
            lines, length = [], 0
            continue
        first = first if lines else number
        lines.append(line)
        length += len(line) + 1
        if length > LONGEST_LINE:
            raise InputError(
                f"{source.name}, line {number}: a document longer than {LONGEST_LINE} characters",
                "if each line or paragraph is a document, set `text_as` to line or paragraph",
            )
    if unit == FILE and source.extension in MARKUP:
        yield marked_up(source.name, "\n".join(lines), source.extension)
    elif lines:
        yield plain_document(source.name if unit == FILE else f"{source.name}:{first}", "", "\n".join(lines))


def _html_documents(source: ByteSource) -> Iterator[Document]:
    with open_bytes(source) as stream:
        content = stream.read(LONGEST_LINE + 1)
    if not content.startswith(UTF16):
        refuse_foreign(source.name, content[:512])
    if len(content) > LONGEST_LINE:
        raise InputError(f"{source.name}: an HTML page longer than {LONGEST_LINE} bytes", "divide it, or leave it out")
    yield html_page(source.name, content)


def _tab_separated(path: Path, bad: BadRecords) -> Iterator[Document]:
    """Documents of a corpus in MS MARCO's layout: an id, a tab, the text."""
    for number, line in open_lines(path, bad=bad):
        one, tab, text = line.partition("\t")
        if tab:
            yield plain_document(one.strip() or f"{path}:{number}", "", text)
        elif line.strip():
            bad.add(f"{path}, line {number}: no tab", "a line is an id, a tab and the text")


@contextmanager
def _skipped_if_bad(bad: BadRecords) -> Iterator[None]:
    """Pass a file's error to `bad`, unless it is that of a line, which was passed before."""
    try:
        yield
    except NotSkippedError:
        raise
    except InputError as error:
        bad.add(error.message, error.hint or "fix the file", "files")
