"""The dev score on a retrieval collection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.commands.shared import CUTOFF
from sentcompress.corpora.dev_collection import RetrievalSample
from sentcompress.evaluation.metrics import METRICS, MRR
from sentcompress.evaluation.similarity import UndefinedError, normalized
from sentcompress.models.token_batches import Tokenize
from sentcompress.training.dev import Embed, encode_tokens


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
