"""The dev score on a retrieval collection; and the data that the option `dev` names, of whatever kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.commands.shared import CUTOFF
from sentcompress.commands.training import StudentTrainingOptions, TrainingOptions
from sentcompress.corpora.dev_collection import RetrievalSample, dev_collection, sample_of
from sentcompress.corpora.sts import read_dev
from sentcompress.errors import UsageError
from sentcompress.evaluation.metrics import METRICS, MRR
from sentcompress.evaluation.similarity import UndefinedError, normalized
from sentcompress.models.token_batches import Tokenize
from sentcompress.progress import Reporter
from sentcompress.quantities import counted
from sentcompress.store import WorkDirectory, file_inputs
from sentcompress.training.dev import Dev, Embed, encode_tokens, sts_dev
from sentcompress.training.search_dev import DocumentsDev, documents_dev


@dataclass(frozen=True)
class RetrievalDev:
    """MRR@10 x 100 of exact search with cosines. Other documents of equal score rank before a relevant one.

    Attributes:
        queries, documents: token ids of each.
        relevant: for each query, the places of its relevant documents.
        slack: how far two scores of the same weights may differ: rounding can swap the ranks of near ties.
    """

    queries: Sequence[Sequence[int]]
    documents: Sequence[Sequence[int]]
    relevant: Sequence[Sequence[int]]
    pad: int
    protocol: str
    slack: float = 0.5
    measure: str = METRICS[MRR].label

    def score(self, vectors: Embed, device: torch.device) -> float:
        try:
            queries, documents = (
                normalized(encode_tokens(tokens, self.pad, vectors, device))[0]
                for tokens in (self.queries, self.documents)
            )
        except UndefinedError:
            return math.nan
        ranks = [
            _rank(documents @ query, list(relevant)) for query, relevant in zip(queries, self.relevant, strict=True)
        ]
        return 100 * float(np.mean([1 / rank if rank <= CUTOFF else 0.0 for rank in ranks]))


def _rank(scores: npt.NDArray[np.float32], relevant: list[int]) -> float:
    """The rank of the best relevant document, from 1; infinite if there is none."""
    if not relevant:
        return math.inf
    own = scores[relevant]
    return 1 + int((scores >= own.max()).sum()) - int((own >= own.max()).sum())


def retrieval_dev(sample: RetrievalSample, tokenize: Tokenize, pad: int) -> RetrievalDev:
    """The dev score on a sample of a collection, which is tokenised once."""
    others = len(sample.documents) - sample.judged
    return RetrievalDev(
        tokenize(sample.queries),
        tokenize(sample.documents),
        sample.relevant,
        pad,
        f"MRR@10 x 100 on {len(sample.queries):,} queries of {sample.name}, among {len(sample.documents):,} of "
        f"{sample.corpus:,} documents: all {sample.judged:,} relevant ones and {others:,} others",
    )


def dev_digests(path: Path) -> dict[str, str]:
    """The files of graded pairs or of a collection, with their digests, as inputs of a request.

    Raises:
        InputError: if it is a folder, but not a collection with a dev split.
    """
    return file_inputs(dev_collection(path).files if path.is_dir() else (path,))


@dataclass(frozen=True)
class GivenDev:
    """The data that the option `dev` names.

    Attributes:
        inputs: digests by reference, for a request.
    """

    path: Path
    inputs: Mapping[str, str]
    documents: DocumentsDev | None
    device: str

    def open(self, reporter: Reporter) -> Callable[[Tokenize, int], Dev]:
        """Read graded pairs or documents. A collection, which can be large, is read when the result is called.

        What is dropped is reported.

        Returns:
            A function from a tokenizer and its padding token to the dev score.

        Raises:
            InputError: if it cannot be used.
        """
        if self.documents is not None:
            return self.documents.open(self.device, reporter)
        if self.path.is_dir():
            data = dev_collection(self.path)

            def read(tokenize: Tokenize, pad: int) -> Dev:
                sample = sample_of(data)
                for warning in sample.warnings:
                    reporter.warn(warning)
                return retrieval_dev(sample, tokenize, pad)

            return read
        pairs = read_dev(self.path)
        for dropped, why in ((pairs.dropped, "without a score"), (pairs.empty, "with an empty sentence")):
            if dropped:
                reporter.warn(f"{self.path}: dropped {counted(dropped, 'pair')} {why}")
        return lambda tokenize, pad: sts_dev(pairs.first, pairs.second, pairs.scores, tokenize, pad)


def find_dev(params: TrainingOptions, work: WorkDirectory, teacher: str | None) -> GivenDev | None:
    """The data that the option `dev` names; None if it is not given.

    Args:
        teacher: see `search_dev.documents_dev`.

    Raises:
        MissingArtifactError, InputError: if it cannot be used.
        UsageError: for `keep_index` or `dev_passages` without documents.
    """
    documents = documents_dev(params.dev, params, work, teacher) if params.dev is not None else None
    if documents is None and isinstance(params, StudentTrainingOptions):
        if params.keep_index:
            raise UsageError("`keep_index` needs `dev` documents/NAME: the teacher encodes its passages")
        if params.dev_passages is not None:
            raise UsageError("`dev_passages` needs `dev` documents/NAME, whose passages are searched")
    if params.dev is None:
        return None
    inputs = documents.inputs if documents else dev_digests(params.dev)
    return GivenDev(params.dev, inputs, documents, params.device)
