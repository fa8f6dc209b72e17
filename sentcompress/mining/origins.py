"""Where queries and positives come from: a file of pairs, a judged collection, or triplets of the work directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.collections import DataSet
from sentcompress.corpora.sentence_table import TRIPLETS, SentenceTable
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError, MissingArtifactError, path_hint
from sentcompress.mining.gathering import Gatherer, gather_collection, gather_pairs, gather_triplets
from sentcompress.progress import Reporter
from sentcompress.store import Artifact, WorkDirectory, file_inputs

# The split of a collection that is mined by default; a test split is only mined on request.
TRAIN = "train"


@dataclass(frozen=True)
class Origin:
    """A source of queries and positives that was found but not read yet.

    Attributes:
        name: its name in the record, and the origin of the queries.
        inputs: reference -> digest, for the request.
        gather: reads it. Raises InputError if it cannot be read.
        warning: shown before it is read.
    """

    name: str
    inputs: Mapping[str, str]
    gather: Callable[[Gatherer, BadRecords, Reporter], None]
    warning: str | None = None


def of_pairs(path: Path, columns: Sequence[str]) -> Origin:
    """A file of (query, positive) pairs.

    Raises:
        InputError: if there is no such file.
    """

    def gather(gatherer: Gatherer, bad: BadRecords, reporter: Reporter) -> None:
        gather_pairs(path, columns, gatherer, bad)

    return Origin(path.name, file_digests(path), gather)


def of_collection(folder: Path, split: str | None) -> Origin:
    """A judged collection; by default its training split, since mined negatives are for training.

    Raises:
        InputError: if the folder or the split is missing.
    """
    data = _data_set(folder, split)

    def gather(gatherer: Gatherer, bad: BadRecords, reporter: Reporter) -> None:
        collection = data.read()
        for warning in collection.warnings:
            reporter.warn(warning)
        gather_collection(collection, data.name, gatherer)

    warning = None
    if data.split and data.split.startswith("test"):
        warning = f"split {data.split}: a model trained on these negatives cannot be evaluated on this split"
    name = f"{data.name}, {data.split}" if data.split else data.name
    return Origin(name, file_digests(*data.files), gather, warning)


def of_triplets(work: WorkDirectory, name: str | None, maker: str) -> Origin:
    """Triplets of a sentence table: the named one, or the newest that was not made by the command `maker`.

    Raises:
        InputError: if the named table has no triplets.
        MissingArtifactError: if no table has triplets.
    """
    table = _table(work, name, maker)

    def gather(gatherer: Gatherer, bad: BadRecords, reporter: Reporter) -> None:
        gather_triplets(SentenceTable(table.path), table.reference, gatherer)

    return Origin(table.reference, {table.reference: table.digest}, gather)


def file_digests(*paths: Path) -> dict[str, str]:
    """Reference -> digest of files, for a request.

    Raises:
        InputError: if one is missing or is a folder.
    """
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder", "give a file")
        if not path.is_file():
            raise InputError(f"no such file: {path}", path_hint(path))
    return file_inputs(paths)


def _data_set(folder: Path, split: str | None) -> DataSet:
    try:
        return collection_data_set(folder, split or TRAIN)
    except InputError:
        found = collection_data_set(folder, split)
        if found.split is not None:  # it has splits, but none for training
            raise
        return found


def _table(work: WorkDirectory, name: str | None, maker: str) -> Artifact:
    if name is not None:
        found = work.get("sentences", name)
        if (found.path / TRIPLETS).is_file():
            return found
        raise InputError(f"{found.reference} has no triplets", "mine from `pairs`, or from labelled sentences")
    for found in work.newest("sentences"):
        if found.manifest["command"] != maker and (found.path / TRIPLETS).is_file():
            return found
    raise MissingArtifactError(
        f"no sentences with triplets in {work.path}",
        "give `pairs` or `collection`, or run sentcompress augment with labelled pairs",
    )
