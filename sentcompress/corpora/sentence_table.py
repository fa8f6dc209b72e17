"""The sentence table: Parquet files with one row per distinct sentence. Reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.documents_artifact import ROLES, names_documents
from sentcompress.models.prompts import QUERY

ORIGINAL, MADE_QUERY = "original", "query"
SENTENCES_PATTERN = "sentences-{:05d}.parquet"
FILE_ROWS = 100_000
# A file is read into memory, so it ends early if sentences have thousands of characters.
FILE_CHARACTERS = 2**28
# Rows in memory while a file is streamed.
BATCH_ROWS = 10_000
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        # "original", or the augmentation that made the sentence: "wordnet", "back-translation", "query"
        pa.field("source", pa.string(), nullable=False),
        # the row of the original that an augmented sentence was made from; -1 for originals
        pa.field("parent", pa.int64(), nullable=False),
        # the input of the original
        pa.field("origin", pa.string(), nullable=False),
        # the genre or source that the input names; empty if it names none; of documents/NAME, the kind of the text
        pa.field("domain", pa.string(), nullable=False),
    ]
)
TRIPLETS = "triplets.parquet"
# Rows of the sentence table: a premise, a sentence that it entails, and one that contradicts it.
TRIPLET_SCHEMA = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("anchor", "positive", "negative")])
# The same with several hard negatives, the same number in every row.
MINED_SCHEMA = pa.schema(
    [
        pa.field("anchor", pa.int64(), nullable=False),
        pa.field("positive", pa.int64(), nullable=False),
        pa.field("negatives", pa.list_(pa.int64()), nullable=False),
    ]
)


class SentenceTable:
    """The sentences of an artifact of kind `sentences`. Rows are numbered 0 to `len(table) - 1` in file order.

    Attributes:
        files: the files.
        file_rows: rows of each file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = sorted(folder.glob("sentences-*.parquet"))
        self.file_rows = [pq.read_metadata(path).num_rows for path in self.files]

    def __len__(self) -> int:
        return sum(self.file_rows)

    def texts(self, file: int) -> list[str]:
        """All sentences of one file, in row order."""
        return self._column(file, "text")

    def origins(self, file: int) -> list[str]:
        """The input that each sentence of one file came from, in row order."""
        return self._column(file, "origin")

    def domain_names(self, file: int) -> list[str]:
        """The domain of each sentence of one file, in row order; empty strings for unknown ones."""
        return self._column(file, "domain")

    def roles(self, file: int) -> list[str]:
        """The role in a search of each sentence of one file, in row order: one of `prompts.ROLES`, or empty.

        It is known of texts from documents/NAME, and of queries that were made from other texts.
        """
        return [_role(*row) for row in self._origin_of_rows(file)]

    def known_roles(self) -> frozenset[str]:
        """The roles that some sentences have; none if the table does not say."""
        different = {row for file in range(len(self.files)) for row in self._origin_of_rows(file)}
        return frozenset(_role(*row) for row in different) - {""}

    def _origin_of_rows(self, file: int) -> Iterator[tuple[str, str, str]]:
        """The source, origin and domain of each sentence."""
        return zip(*(self._column(file, name) for name in ("source", "origin", "domain")), strict=True)

    def _column(self, file: int, name: str) -> list[str]:
        return read_columns(self.files[file], name).column(name).to_pylist()  # type: ignore[no-any-return]

    def stream(self, start: int = 0, rows: int | None = None) -> Iterator[list[str]]:
        """Sentences in row order, in lists: `rows` sentences from row `start`, or all sentences from there."""
        first, stop = 0, len(self) if rows is None else start + rows
        for path in self.files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=["text"]):
                    texts = batch.column(0).to_pylist()
                    if mine := texts[max(0, start - first) : max(0, stop - first)]:
                        yield mine
                    first += len(texts)
                    if first >= stop:
                        return

    def sentences(self) -> Iterator[str]:
        """All sentences in row order."""
        return chain.from_iterable(self.stream())

    def spread(self, count: int) -> list[str]:
        """At most `count` sentences, evenly spaced over the table."""
        step, chosen, first = max(1, -(-len(self) // count)), [], 0
        for texts in self.stream():
            chosen += texts[-first % step :: step]
            first += len(texts)
        return chosen

    def triplets(self) -> npt.NDArray[np.int64]:
        """[n, 2 + N] rows of anchor, positive and N hard negatives; n is 0 if the input had no labels.

        Triplets of labelled pairs have a column `negative`; mined ones have a list in `negatives`.
        """
        path = self.folder / TRIPLETS
        if not path.is_file():
            return np.zeros((0, 3), np.int64)
        table = read_columns(path)
        single = "negative" in table.column_names
        columns = [_numbers(table.column(name)) for name in ("anchor", "positive", *(["negative"] if single else []))]
        if single:
            return np.stack(columns, axis=1)
        lists = table.column("negatives")
        negatives = _numbers(pa.chunked_array([chunk.flatten() for chunk in lists.chunks], pa.int64()))
        return np.concatenate([np.stack(columns, axis=1), negatives.reshape(len(lists), -1)], axis=1)

    def domains(self) -> npt.NDArray[np.int64]:
        """[N] the number of each row's domain, counted by first occurrence; all 0 if no domains are known."""
        numbers: dict[str, int] = {}
        found = np.zeros(len(self), np.int64)
        names = (name for file in range(len(self.files)) for name in self.domain_names(file))
        for row, name in enumerate(names):
            found[row] = numbers.setdefault(name, len(numbers))
        return found

    def parents(self) -> npt.NDArray[np.int64]:
        """[N] the row that each row was made from, -1 for originals."""
        columns = [_numbers(read_columns(path, "parent").column("parent")) for path in self.files]
        return np.concatenate([np.zeros(0, np.int64), *columns])


def _role(source: str, origin: str, domain: str) -> str:
    if source == MADE_QUERY:
        return QUERY
    return ROLES.get(domain, "") if names_documents(origin) else ""


# Neither `read_table` nor `to_numpy`: both load pandas where it is installed, half a second at the start of a command.


def read_columns(path: Path, *names: str) -> pa.Table:
    """Columns of a file that this project wrote; all of them without names."""
    with pq.ParquetFile(path) as file:
        return file.read(columns=list(names) or None)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(np.from_dlpack(chunk) for chunk in column.chunks)])


class SentenceWriter:
    """Writes the table file by file, rows in the order in which they are added.

    Args:
        write: opens a file of the artifact by name (`Build.write`).
        first_row, first_file: the numbers after those of existing files.

    Attributes:
        rows, files: their number, including existing ones.
    """

    def __init__(
        self, write: Callable[[str], AbstractContextManager[Path]], first_row: int = 0, first_file: int = 0
    ) -> None:
        self.rows = first_row
        self._write = write
        self.files = first_file
        self._characters = 0
        self._columns: tuple[list[str], list[str], list[int], list[str], list[str]] = ([], [], [], [], [])

    def add(self, text: str, source: str, parent: int, origin: str, domain: str = "") -> None:
        """Append one row."""
        texts, sources, parents, origins, domains = self._columns
        texts.append(text)
        sources.append(source)
        parents.append(parent)
        origins.append(origin)
        domains.append(domain)
        self.rows += 1
        self._characters += len(text) + len(domain)
        if len(texts) == FILE_ROWS or self._characters >= FILE_CHARACTERS:
            self.finish()

    def finish(self) -> None:
        """Write the remaining rows as a last file."""
        count = len(self._columns[0])
        if count:
            numbers = range(self.rows - count, self.rows)
            table = pa.table([pa.array(numbers, pa.int64()), *map(pa.array, self._columns)], schema=SCHEMA)
            with self._write(SENTENCES_PATTERN.format(self.files)) as path:
                pq.write_table(table, path, compression="zstd")
            self.files += 1
            self._columns = ([], [], [], [], [])
            self._characters = 0
