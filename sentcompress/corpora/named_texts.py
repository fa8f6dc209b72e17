"""Texts that an option names: files and folders, or artifacts as `documents/NAME` and `sentences/NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.documents_artifact import TRAIN
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords, open_lines
from sentcompress.corpora.text_sample import find_text_files, texts_of_files
from sentcompress.json_documents import parse_json
from sentcompress.store import Artifact, WorkDirectory, file_inputs

SENTENCES = "sentences"


@dataclass(frozen=True)
class NamedTexts:
    """Texts, which are not read yet.

    Attributes:
        inputs: digests by reference, for a request.
        read: reads all texts from the beginning.
    """

    inputs: dict[str, str]
    read: Callable[[], Iterator[str]]


def find_named_texts(work: WorkDirectory, names: Sequence[str]) -> NamedTexts:
    """The texts of all names; an artifact comes before a file of that path.

    Raises:
        MissingArtifactError: if an artifact is named that is not there.
        InputError: if there is no such file or folder.
    """
    artifacts, paths = [], []
    for name in names:
        kind, _, own = name.partition("/")
        if kind in (DOCUMENTS, SENTENCES) and own and (work.find(kind, own) or not Path(name).exists()):
            artifacts.append(work.get(kind, own))
        else:
            paths.append(Path(name))
    files = find_text_files(paths)
    inputs = {artifact.reference: artifact.digest for artifact in artifacts}
    inputs |= file_inputs(files)
    return NamedTexts(inputs, lambda: chain(*map(_texts, artifacts), texts_of_files(files, BadRecords())))


def _texts(artifact: Artifact) -> Iterator[str]:
    if artifact.reference.startswith(f"{SENTENCES}/"):
        return SentenceTable(artifact.path).sentences()
    path = artifact.path / TRAIN
    return (str(parse_json(line, f"{path}, line {number}")["text"]) for number, line in open_lines(path))
