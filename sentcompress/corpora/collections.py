"""Retrieval tasks: a corpus that is streamed, queries, and the documents judged relevant to each query."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.corpora.byte_streams import without_compression
from sentcompress.corpora.delimited import listed
from sentcompress.errors import InputError, did_you_mean

# Texts per list of a corpus.
CHUNK = 1000
# Names of the same split. MS MARCO's dev.small is last: full dev has another name where there are both (DEV_FULL).
DEV_SMALL, DEV_FULL = "dev.small", "dev.full"
DEV = ("dev", "validation", "valid", "val", DEV_SMALL)
# The split that is taken if none is named, in order of preference.
PREFERRED = ("test", *DEV)


class DocumentIds:
    """The ids of a corpus in the order of its documents, as one block of bytes.

    Millions of Python strings would fill the memory.

    Args:
        ids: the first ids.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("Q")
        self._hashes = array("q")
        for one in ids:
            self.append(one)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> bytes:
        """The id in UTF-8, whose order as bytes is that of trec_eval's `strcmp`."""
        return bytes(self._bytes[self._ends[row - 1] if row else 0 : self._ends[row]])

    def append(self, one: str) -> None:
        """Add the id of the next document."""
        self._bytes += one.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))
        self._hashes.append(hash(one))

    def repeated(self) -> str | None:
        """An id that occurs twice, or None."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
        # Different ids can share a hash, so the ids themselves are compared.
        for place in same.tolist():
            first, second = self[int(order[place])], self[int(order[place + 1])]
            if first == second:
                return first.decode("utf-8", "surrogatepass")
        return None


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their files.

    Attributes:
        ids: used to break ties.
        texts: reads all texts from the beginning, CHUNK at a time.
    """

    ids: DocumentIds
    texts: Callable[[], Iterator[list[str]]]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class CorpusChoice:
    """Which texts of a file of question pairs are the corpus.

    Attributes:
        taken: the name of the choice.
        pairs: the pairs whose texts are the corpus, in words.
        sizes: the number of documents of each possible choice, by name.
        published: the number of documents that the published scores were measured on.
        met: whether the corpus has that number.
    """

    taken: str
    pairs: str
    sizes: Mapping[str, int]
    published: int
    met: bool

    @property
    def statement(self) -> str:
        """The choice in words, with its number of documents and the published one."""
        published = f"{'' if self.met else 'not '}the {self.published:,} of HPD's table"
        return f"{self.pairs}, {self.sizes[self.taken]:,} documents ({published})"

    def as_dict(self) -> dict[str, Any]:
        """The choice as facts."""
        return {"taken": self.taken, "sizes": dict(self.sizes), "hpd_documents": self.published, "hpd_met": self.met}


@dataclass(frozen=True)
class Collection:
    """A retrieval task.

    Attributes:
        corpus: the documents that are searched.
        queries: distinct texts, or distinct texts of each language.
        grades: for each query, row in the corpus -> grade of the documents judged above zero; empty if there are
            none. A judged document that is missing from the corpus has a row beyond its end: it counts as relevant
            and is never found, as in trec_eval.
        warnings: what was dropped, with counts.
        choice: how the corpus was chosen, for question pairs.
        languages: for each query; empty if the data set names none.
        among_documents: ids of queries that are documents too, with the same id and text.
    """

    corpus: Corpus
    queries: tuple[str, ...]
    grades: tuple[Mapping[int, int], ...]
    warnings: tuple[str, ...] = ()
    choice: CorpusChoice | None = None
    languages: tuple[str, ...] = ()
    among_documents: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """The number of queries with a relevant document."""
        return sum(1 for relevant in self.grades if relevant)


@dataclass(frozen=True)
class DataSet:
    """A retrieval task that was found but not read yet.

    Attributes:
        protocol: pairs, collection or entities.
        name: the name of the file or folder.
        split: the split that is evaluated; None for data without splits.
        files: all that is read.
        read: reads it. Raises InputError for files that cannot be read, and if no query has a relevant document.
    """

    protocol: str
    name: str
    split: str | None
    files: tuple[Path, ...]
    read: Callable[[], Collection]


def in_memory(texts: Iterable[str]) -> Corpus:
    """A corpus of distinct texts held in memory; each text is its own id."""
    held = tuple(texts)
    return Corpus(
        DocumentIds(held), lambda: (list(held[start : start + CHUNK]) for start in range(0, len(held), CHUNK))
    )


def stem(path: Path) -> str:
    """A file's name without its extension, and without `.gz` or `.zst`."""
    return without_compression(path).stem


def pick_split(where: str, there: Sequence[str], requested: str | None) -> str:
    """The requested split; otherwise test, else dev, else the only one.

    All names in DEV mean the same split, but dev.small is never replaced by a larger one.

    Raises:
        InputError: if the requested split does not exist, or none was requested and the choice is not clear.
    """
    if requested is not None:
        for name in (requested, *DEV) if requested in DEV and requested != DEV_SMALL else (requested,):
            if name in there:
                return name
        raise InputError(f"{where} has no split {requested!r}", did_you_mean(requested, there))
    preferred = next((name for name in PREFERRED if name in there), None)
    if preferred is None and len(there) != 1:
        raise InputError(
            f"{where} has several splits, and none is called test or dev: {listed(there)}",
            ("choose one with `split`", "name one of them test"),
        )
    return preferred or there[0]
