"""The dev score on the held-out queries of the part `dev`: search fidelity to the teacher, without labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.commands.shared import DEV_PASSAGES
from sentcompress.commands.training import StudentTrainingOptions, TrainingOptions
from sentcompress.corpora.documents_artifact import DEV, find_documents
from sentcompress.corpora.search_texts import (
    DEV_QUERIES,
    DEV_WORDS,
    SearchSource,
    SearchTexts,
    documents_source,
)
from sentcompress.encoding.embedder_sources import find_embedder
from sentcompress.encoding.sides import Sides, in_roles, recorded_prompts
from sentcompress.errors import InputError
from sentcompress.evaluation.metrics import METRICS, SEARCH_FIDELITY
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.evaluation.searchable import unsearchable
from sentcompress.evaluation.similarity import UndefinedError
from sentcompress.models.token_batches import Tokenize
from sentcompress.progress import Reporter
from sentcompress.store import WorkDirectory
from sentcompress.training.dev import Dev, Embed, encode_tokens

# The sample does not depend on the seed of the training, so that the scores of two runs can be compared.
SEED = 0


@dataclass(frozen=True)
class SearchDev:
    """nDCG@10 x 100 where the teacher's first ten results are the graded relevant documents.

    Attributes:
        queries: token ids of each.
        passages: token ids of each; or the teacher's vectors, [n, dim] float32, which are then searched.
        gold: the teacher's own search.
        slack: how far two scores of the same weights may differ: rounding can swap the ranks of near ties.
    """

    queries: Sequence[Sequence[int]]
    passages: Sequence[Sequence[int]] | npt.NDArray[np.float32]
    gold: GoldRanking
    pad: int
    protocol: str
    slack: float = 0.5
    measure: str = METRICS[SEARCH_FIDELITY].label

    def score(self, vectors: Embed, device: torch.device) -> float:
        queries = encode_tokens(self.queries, self.pad, vectors, device)
        if isinstance(self.passages, np.ndarray):
            passages = self.passages
            if queries.shape[1] != passages.shape[1]:
                raise InputError(
                    f"`keep_index` needs a student with the teacher's {passages.shape[1]} dimensions, not "
                    f"{queries.shape[1]}",
                    (
                        "omit `keep_index`",
                        "train a student that has as many dimensions and no new layer",
                    ),
                )
        else:
            passages = encode_tokens(self.passages, self.pad, vectors, device)
        try:
            return 100 * float(self.gold.fidelity(queries, passages).mean())
        except UndefinedError:
            return math.nan


@dataclass(frozen=True)
class DocumentsDev:
    """What `dev` names as documents/NAME, and the teacher; nothing is read yet.

    Attributes:
        teacher: with its prompts, if it has any.
        keep_index: whether the teacher's vectors of the passages are searched, not the student's.
        passages: maximum number of passages searched.
    """

    source: SearchSource
    teacher: Sides
    keep_index: bool
    passages: int

    @property
    def inputs(self) -> dict[str, str]:
        """Digests by reference, for a request."""
        return {**self.source.inputs, **self.teacher.inputs}

    @property
    def resolved(self) -> dict[str, Any]:
        """Parameters for a request: the teacher's prompts, if it has any."""
        return recorded_prompts({"dev": self.teacher})

    def open(self, device: str, reporter: Reporter) -> Callable[[Tokenize, int], Dev]:
        """Read a sample, and search it with the teacher, whose vectors are kept in the cache.

        Raises:
            InputError: if the documents cannot be read or are too few, or the teacher cannot be loaded.
        """
        texts = self.source.read(queries=DEV_QUERIES, passages=self.passages, seed=SEED, words=DEV_WORDS)
        of_passages, of_queries = self.teacher.open(device=device, dtype="float32", reporter=reporter)
        with reporter.track(
            f"dev: encoding with {self.teacher.label}", total=len(texts.queries) + len(texts.passages)
        ) as task:
            queries = of_queries.encode(texts.queries, task)
            passages = of_passages.encode(texts.passages, task)
        try:
            gold = GoldRanking.of(queries, passages)
        except UndefinedError as error:
            raise unsearchable(self.teacher.label, error) from None
        kept = passages if self.keep_index else None
        return lambda tokenize, pad: search_dev(texts, gold, self.teacher.label, tokenize, pad, kept)


def search_dev(
    texts: SearchTexts,
    gold: GoldRanking,
    teacher: str,
    tokenize: Tokenize,
    pad: int,
    kept: npt.NDArray[np.float32] | None = None,
) -> SearchDev:
    """The dev score on texts, which are tokenised once.

    Args:
        gold: the search of the model called `teacher` on the same texts.
        kept: its vectors of the passages, [n, dim], if these are to be searched.
    """
    whose = "" if kept is None else f", by vectors of {teacher}"
    return SearchDev(
        tokenize(texts.queries),
        tokenize(texts.passages) if kept is None else kept,
        gold,
        pad,
        f"search fidelity to {teacher} (nDCG@{gold.k} x 100) on {len(texts.queries):,} queries of {texts.name}, among "
        f"{len(texts.passages):,} passages{whose}",
    )


def documents_dev(path: Path, params: TrainingOptions, work: WorkDirectory, teacher: str | None) -> DocumentsDev | None:
    """What `dev` names, if it is documents/NAME and no file or folder of that name; None otherwise.

    Args:
        teacher: the model whose search results are the reference, named as in `find_embedder`; None if the command has
            none.

    Raises:
        MissingArtifactError: if there is neither.
        InputError: if there is no teacher.
    """
    artifact = find_documents(work, str(path))
    if artifact is None:
        return None
    source = documents_source(work, artifact.name, DEV)
    if teacher is None or not isinstance(params, StudentTrainingOptions):
        raise InputError(
            f"`dev` {path} selects checkpoints by search fidelity to a teacher, and {params.command} has none",
            "give graded pairs or a collection",
        )
    found = find_embedder(work, teacher, trust_remote_code=params.trust_remote_code)
    return DocumentsDev(source, in_roles(found, found), params.keep_index, params.dev_passages or DEV_PASSAGES)
