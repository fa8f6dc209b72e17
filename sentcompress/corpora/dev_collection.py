"""A retrieval collection for checkpoint selection: its dev split, on a sample of the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sentcompress.corpora.collection_folders import CORPUS, LAYOUTS, collection_data_set, existing, find_splits
from sentcompress.corpora.collections import DEV, DataSet
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.sts import FORM, graded_dev_file
from sentcompress.errors import InputError
from sentcompress.plain_text import shell_word

# So few that a checkpoint is scored in seconds.
QUERIES = 1000
OTHERS = 4000
# The sample does not depend on the seed of the training, so that the scores of two runs can be compared.
SEED = 0


@dataclass(frozen=True)
class RetrievalSample:
    """Queries, and documents to find them among.

    Attributes:
        name: name of the collection, with its split.
        queries, documents: their texts.
        relevant: for each query, the places of its relevant documents; empty if the corpus lacks them.
        judged: how many of the documents are relevant to one of the queries.
        corpus: the number of documents of the collection.
        warnings: what of the collection was dropped, with counts.
    """

    name: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: tuple[tuple[int, ...], ...]
    judged: int
    corpus: int
    warnings: tuple[str, ...] = ()


def dev_collection(folder: Path) -> DataSet:
    """The dev split of a collection, or the only queries of a collection without splits.

    Raises:
        InputError: if the folder is no collection, or has splits but no dev split.
    """
    splits = find_splits(folder)
    if not splits and existing(folder, CORPUS) is None:
        raise _no_collection(folder)
    there = [name for name in splits if name is not None]
    if there and not set(there) & set(DEV):
        raise InputError(
            f"{folder} has no dev split to select checkpoints on, only {listed(there)}",
            "do not select checkpoints on a test split or on training data; hold out dev queries",
        )
    return collection_data_set(folder, "dev" if there else None)


def _no_collection(folder: Path) -> InputError:
    """The error for a folder that `dev` names and that has neither a corpus nor judgements."""
    if pairs := graded_dev_file(folder):
        return InputError(
            f"{folder} is a folder of graded pairs, not a collection", f"name a file: `dev` {shell_word(pairs)}"
        )
    return InputError(
        f"{folder} is not a collection: it has no corpus",
        (f"name a file of graded pairs, in which {FORM}", f"a collection. {LAYOUTS}"),
    )


def sample_of(data: DataSet) -> RetrievalSample:
    """At most QUERIES judged queries, the documents relevant to them, and at most OTHERS other documents.

    Raises:
        InputError: if the files cannot be read.
    """
    collection = data.read()
    size, random = len(collection.corpus), np.random.default_rng(SEED)
    judged = [number for number, grades in enumerate(collection.grades) if grades]
    chosen = sorted(random.permutation(judged)[:QUERIES].tolist())
    # Rows beyond the end are judged documents that the corpus lacks.
    wanted = {row for number in chosen for row in collection.grades[number] if row < size}
    drawn = random.choice(size, size=min(size, OTHERS + len(wanted)), replace=False).tolist()
    others = [row for row in drawn if row not in wanted][:OTHERS]
    places = {row: place for place, row in enumerate(sorted([*wanted, *others]))}
    documents: list[str] = []
    start = 0
    for texts in collection.corpus.texts():
        documents += [text for row, text in enumerate(texts, start) if row in places]
        start += len(texts)
    return RetrievalSample(
        " ".join(filter(None, (data.name, data.split))),
        tuple(collection.queries[number] for number in chosen),
        tuple(documents),
        tuple(tuple(places[row] for row in collection.grades[number] if row < size) for number in chosen),
        len(wanted),
        size,
        collection.warnings,
    )
