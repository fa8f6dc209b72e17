"""What is searched, what is looked for, and what should be found: a corpus that is streamed, queries, judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.document_ids import DocumentIds
from sentcompress.corpora.pairs import PAIR_COLUMNS, Pair, read_pairs
from sentcompress.errors import InputError

# Texts that are handed on at a time.
CHUNK = 1000


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their files.

    Attributes:
        ids: what tells ties apart.
        texts: reads all texts anew, a few at a time.
    """

    ids: DocumentIds
    texts: Callable[[], Iterator[list[str]]]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Collection:
    """A retrieval task.

    Attributes:
        corpus: what is searched.
        queries: what is looked for.
        grades: for each query the documents judged above zero: row in the corpus -> grade. A judged document that is
            not in the corpus has a row behind its end: it counts among the relevant ones and is never found, as
            trec_eval has it. Empty for a query with nothing to find.
        warnings: what was left out, counted.
    """

    corpus: Corpus
    queries: tuple[str, ...]
    grades: tuple[Mapping[int, int], ...]
    warnings: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """Queries that have something to find."""
        return sum(1 for wanted in self.grades if wanted)


@dataclass(frozen=True)
class DataSet:
    """A retrieval task that was found and not yet read.

    Attributes:
        protocol: pairs, collection or entities.
        name: the file's or folder's.
        split: the part that is evaluated; None where there are no parts.
        files: all that is read.
        read: reads it. Raises InputError for what cannot be read, and where no query has anything to find.
    """

    protocol: str
    name: str
    split: str | None
    files: tuple[Path, ...]
    read: Callable[[], Collection]


def in_memory(texts: Iterable[str]) -> Corpus:
    """A corpus of distinct texts that are at hand; a text is its own id."""
    held = tuple(texts)
    return Corpus(
        DocumentIds(held), lambda: (list(held[start : start + CHUNK]) for start in range(0, len(held), CHUNK))
    )


def collection_of_pairs(pairs: Iterable[Pair], warnings: tuple[str, ...] = ()) -> Collection:
    """HPD's protocol: corpus of the distinct second texts, queries the distinct first texts.

    Relevant is every second text that any pair marks as a duplicate of the query.
    """
    documents: dict[str, int] = {}
    queries: dict[str, dict[int, int]] = {}
    for pair in pairs:
        document = documents.setdefault(pair.second, len(documents))
        wanted = queries.setdefault(pair.first, {})
        if pair.duplicate:
            wanted[document] = 1
    return Collection(in_memory(documents), tuple(queries), tuple(queries.values()), warnings)


def pairs_data_set(path: Path) -> DataSet:
    """The data set of a file of question pairs.

    Raises:
        InputError: if there is no such file.
    """
    _check_file(path, PAIR_COLUMNS)

    def read() -> Collection:
        pairs = read_pairs(path)
        warnings = (f"{path}: {pairs.empty} pairs with an empty question left out",) if pairs.empty else ()
        collection = collection_of_pairs(pairs.rows, warnings)
        if not collection.judged:
            raise InputError(f"{path} marks no pair as duplicates", "without any there is nothing to find")
        return collection

    return DataSet("pairs", path.name, None, (path,), read)


def _check_file(path: Path, columns: tuple[str, ...]) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder", f"give a file of pairs: {', '.join(columns)}")
    if not path.exists():
        raise InputError(f"no such file: {path}", "check the path")
