"""Documents and queries without judgements: what search fidelity is measured on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentcompress.commands.shared import LEAST_PASSAGES
from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.collection_folders import corpus_file, find_splits, queries_file, rows_of
from sentcompress.corpora.collections import DEV, stem
from sentcompress.corpora.documents_artifact import CORPUS, KIND, LOG, QUERIES
from sentcompress.corpora.text_files import open_lines
from sentcompress.corpora.text_sample import sample_texts
from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json
from sentcompress.quantities import counted
from sentcompress.store import WorkDirectory, file_inputs

# Words of a passage that count towards a limit; models read little more.
LONG_PASSAGE = 200


DOCUMENT = "document"
# Limit in words of the sample that checkpoints are scored on, in addition to DEV_PASSAGES.
DEV_QUERIES, DEV_WORDS = 300, 120_000


class _Made(NamedTuple):
    """How a query was made: its kind, the document that it was made from, and its part; empty if unknown."""

    kind: str
    document: str
    part: str


UNKNOWN = _Made("", "", "")


@dataclass(frozen=True)
class SearchTexts:
    """A sample of passages and queries.

    Attributes:
        name: the data set, for scores.
        passages, queries: distinct texts.
        kinds: the kind of each query: span, keywords, rare, title or log; empty if unknown.
        documents: the document that each query was made from; empty if unknown.
        unit: whether `documents` are whole documents or sections.
        complete: whether all distinct passages and queries are in the sample.
    """

    name: str
    passages: tuple[str, ...]
    queries: tuple[str, ...]
    kinds: tuple[str, ...]
    documents: tuple[str, ...]
    complete: bool
    unit: str = DOCUMENT

    @property
    def clusters(self) -> int:
        """The number of items that a bootstrap resamples, see `resampled`."""
        return len({*self.documents} - {""}) + self.documents.count("")

    @property
    def resampled(self) -> str:
        """What a bootstrap draws: documents with all their queries, and queries without a document."""
        alone = self.documents.count("")
        if not (documents := self.clusters - alone):
            return counted(alone, "query", "queries")
        kinds = {kind for kind, document in zip(self.kinds, self.documents, strict=True) if not document}
        one, more = ("query of the log", "queries of the log") if kinds == {LOG} else ("other query", "other queries")
        return counted(documents, self.unit) + (f" and {counted(alone, one, more)}" if alone else "")


@dataclass(frozen=True)
class SearchSource:
    """The files with passages and queries; nothing is read yet.

    Attributes:
        name: the data set, for scores.
        inputs: digests by reference, for a request.
        part: the part of the queries that is read, dev or test; None for all.
        unit: see `SearchTexts`.
    """

    name: str
    inputs: Mapping[str, str]
    corpus: Path
    queries: Path
    part: str | None = None
    unit: str = DOCUMENT

    def read(self, *, queries: int, passages: int, seed: int, words: int | None = None) -> SearchTexts:
        """Read distinct queries and passages, sampled with the seed; empty ones are skipped.

        If there are more passages, up to half of the sample is of the documents that the queries were made from.

        Args:
            queries, passages: the maximum number of each.
            words: maximum number of words in all passages, each of which counts as at most 200.

        Raises:
            InputError: if a line cannot be read, or there are no queries or fewer than 11 passages.
        """
        made = _made(self.queries)
        every = ((text, made.get(one, UNKNOWN)) for one, text in rows_of(self.queries) if text)
        of_text = {text: found for text, found in every if self.part in (None, found.part)}
        chosen = sample_texts(of_text, queries, seed)
        if not chosen.texts:
            which = f" of the part {self.part}" if self.part else ""
            raise InputError(f"{self.queries} has no queries{which}", "a search is measured with at least one")
        documents = tuple(of_text[text].document for text in chosen.texts)
        own = {*documents} - {""}
        near, other = (sample_texts(self._passages(own, wanted), passages, seed) for wanted in (True, False))
        distinct = list(dict.fromkeys(_in_turn(near.texts, other.texts)))
        drawn = tuple(_within(distinct[:passages], words))
        if len(drawn) < LEAST_PASSAGES:
            raise InputError(
                f"{self.corpus} has {len(drawn)} distinct passages, of which a search returns 10",
                f"give a corpus of at least {LEAST_PASSAGES}",
            )
        complete = chosen.complete and near.complete and other.complete and len(drawn) == len(distinct)
        kinds = tuple(of_text[text].kind for text in chosen.texts)
        return SearchTexts(self.name, drawn, chosen.texts, kinds, documents, complete, self.unit)

    def _passages(self, own: Set[str], wanted: bool) -> Iterator[str]:
        """The passages of some documents, or all others."""
        return (text for one, text in rows_of(self.corpus) if text and (_document_of(one) in own) == wanted)


def documents_source(work: WorkDirectory, name: str | None, part: str | None) -> SearchSource:
    """The held-out texts of an artifact of kind `documents`, by its name or reference; the newest if None.

    Args:
        part: the part of the queries, dev or test; None for all. Choices between models are made on dev.

    Raises:
        MissingArtifactError: if there is none.
    """
    artifact = work.get(KIND, name and name.removeprefix(f"{KIND}/"))
    inputs = {artifact.reference: artifact.digest}
    data = f"{artifact.name} {part}" if part else artifact.name
    unit = str(artifact.facts.get("held_out_by", DOCUMENT))
    return SearchSource(data, inputs, artifact.path / CORPUS, artifact.path / QUERIES, part, unit)


def collection_source(folder: Path, split: str | None) -> SearchSource:
    """The documents and queries of a collection in BEIR's or MS MARCO's layout; judgements are not read.

    Args:
        split: which file of queries, if each split has its own; by default dev, else the only one or the first.

    Raises:
        InputError: see `collection_files`.
    """
    corpus, queries = collection_files(folder, split)
    return SearchSource(folder.resolve().name, file_inputs((corpus, queries)), corpus, queries)


def collection_files(folder: Path, split: str | None) -> tuple[Path, Path]:
    """The files with the documents and the queries of a collection; see `collection_source`.

    Raises:
        InputError: if it is not a folder, or has no corpus or no queries; or a split is named, but its queries have no
            file of their own.
    """
    corpus = corpus_file(folder)
    # Judgements may be missing.
    splits = [name for name in find_splits(folder) if name is not None] or _splits_of_queries(folder)
    queries = queries_file(folder, split or next((name for name in (*DEV, *splits) if name in splits), None))
    if split is not None and stem(queries) == "queries":
        raise InputError(f"{queries} has the queries of all splits, which judgements alone tell apart", "omit `split`")
    return corpus, queries


def _splits_of_queries(folder: Path) -> list[str]:
    """The splits that have a file of queries of their own, `queries.<split>.tsv`."""
    names = (stem(path) for path in sorted(folder.glob("queries.*")) if format_extension(path) == "tsv")
    return [name.removeprefix("queries.") for name in names if name != "queries"]


def query_kinds(kinds: Iterable[str]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The places of the queries of each known kind, ascending int64 [n], in the order of first occurrence."""
    listed = list(kinds)
    return {kind: np.flatnonzero([one == kind for one in listed]) for kind in dict.fromkeys(listed) if kind}


def _document_of(passage: str) -> str:
    """The document of a passage, by its id: split-documents writes DOCUMENT#NUMBER."""
    return passage.rpartition("#")[0] or passage


def _in_turn(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    for pair in zip_longest(first, second):
        yield from (text for text in pair if text is not None)


def _within(passages: Sequence[str], words: int | None) -> Iterator[str]:
    """The first passages, as many as the limit of words allows, and at least `LEAST_PASSAGES`."""
    left = math.inf if words is None else words
    for number, text in enumerate(passages):
        left -= min(len(text.split()), LONG_PASSAGE)
        if left < 0 and number >= LEAST_PASSAGES:
            return
        yield text


def _made(path: Path) -> dict[str, _Made]:
    """How each query was made, by id."""
    if format_extension(path) != "jsonl":
        return {}
    rows = (parse_json(line, f"{path}, line {number}") for number, line in open_lines(path) if line.strip())
    return {
        str(row.get("_id", row.get("id"))).strip(): _Made(*(str(row.get(key) or "") for key in _Made._fields))
        for row in rows
        if isinstance(row, dict)
    }
