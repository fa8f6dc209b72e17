"""The texts that a quantizer is fitted on, and the held-out ones that it is chosen by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.commands.shared import LEAST_PASSAGES
from sentcompress.corpora.documents_artifact import DEV, KIND, PASSAGE, QUERY, TITLE, TRAIN
from sentcompress.corpora.search_texts import SearchTexts, documents_source
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import open_lines
from sentcompress.corpora.text_sample import sample_texts
from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json
from sentcompress.store import WorkDirectory

# Of a sentence table, the largest shares that are held out as queries and as passages.
QUERIES, PASSAGES = 0.05, 0.45


@dataclass(frozen=True)
class FittingTexts:
    """Texts to fit on, texts held out, and the inputs of a request.

    Attributes:
        train: texts like those that will be stored.
        part: part of the held-out queries, if they are from documents; empty if they are sentences.
        others: titles and queries, for the principal axes where `train` has fewer texts than the model has dimensions.
    """

    train: tuple[str, ...]
    held_out: SearchTexts
    inputs: Mapping[str, str]
    others: tuple[str, ...] = ()
    part: str = ""


def from_documents(
    work: WorkDirectory, name: str | None, sample: int, queries: int, passages: int, seed: int
) -> FittingTexts:
    """Training texts, held-out queries of dev and the held-out collection of an artifact of kind `documents`.

    Raises:
        MissingArtifactError, InputError: see `search_texts.documents_source` and `SearchSource.read`.
    """
    artifact = work.get(KIND, name and name.removeprefix(f"{KIND}/"))
    source = documents_source(work, artifact.name, DEV)
    held_out = source.read(queries=queries, passages=passages, seed=seed)
    train = sample_texts(_training_texts(artifact.path / TRAIN, (PASSAGE,)), sample, seed).texts
    if not train:
        raise InputError(f"{artifact.reference} has no training passages", "split the documents again")
    room = sample - len(train)
    others = sample_texts(_training_texts(artifact.path / TRAIN, (TITLE, QUERY)), room, seed).texts if room else ()
    return FittingTexts(train, held_out, source.inputs, others, DEV)


def from_sentences(
    work: WorkDirectory, name: str | None, sample: int, queries: int, passages: int, seed: int
) -> FittingTexts:
    """Distinct sentences of a table: some are searched for among others, and the rest are fitted on.

    Raises:
        MissingArtifactError: if there is no table.
        InputError: if it has too few sentences.
    """
    artifact = work.get("sentences", name)
    every = map(str.strip, SentenceTable(artifact.path).sentences())
    texts = sample_texts(filter(None, every), sample + queries + passages, seed).texts
    asked, searched = (min(most, int(len(texts) * share)) for most, share in ((queries, QUERIES), (passages, PASSAGES)))
    if not asked or searched < LEAST_PASSAGES:
        least = int(max(1 / QUERIES, LEAST_PASSAGES / PASSAGES)) + 1
        raise InputError(
            f"{artifact.reference} has {len(texts)} distinct sentences, of which a part is held out",
            f"use a table of at least {least}",
        )
    unknown = ("",) * asked
    held_out = SearchTexts(artifact.name, texts[asked : asked + searched], texts[:asked], unknown, unknown, False)
    return FittingTexts(texts[asked + searched :][:sample], held_out, {artifact.reference: artifact.digest})


def _training_texts(path: Path, kinds: Sequence[str]) -> Iterator[str]:
    for number, line in open_lines(path):
        row = parse_json(line, f"{path}, line {number}")
        if isinstance(row, dict) and row.get("kind") in kinds and (text := str(row.get("text", "")).strip()):
            yield text
