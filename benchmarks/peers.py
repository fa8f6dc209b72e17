"""Published scores of other small models on the sets that published.py measures too: quoted, not measured here.

STS-B test and STS13 are Spearman x 100, SciFact is nDCG@10 x 100 on BEIR's test split. That split is the dev split of
SciFact's authors, whose test labels are not public: the 300 queries with 339 judgements that are `dev` here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# A folder for each model, a file for each task.
SOURCE = "https://github.com/embeddings-benchmark/results"


@dataclass(frozen=True)
class Peer:
    """A model on the hub.

    Attributes:
        parameters: as MTEB's description of the model has them.
        scores: test set -> score.
    """

    name: str
    parameters: int
    scores: Mapping[str, float]


SETS = ("STS-B test", "STS13", "SciFact dev")


def _peer(name: str, parameters: int, *scores: float) -> Peer:
    return Peer(name, parameters, dict(zip(SETS, scores, strict=True)))


PEERS: Sequence[Peer] = (
    _peer("sentence-transformers/all-MiniLM-L6-v2", 22_700_000, 82.03, 80.60, 64.51),
    _peer("Mihaiii/gte-micro-v4", 19_164_288, 83.92, 82.16, 65.45),
    _peer("sentence-transformers/static-retrieval-mrl-en-v1", 31_254_528, 74.02, 72.57, 59.35),
    _peer("minishlab/potion-base-8M", 7_560_000, 75.41, 77.28, 50.64),
    _peer("minishlab/potion-base-2M", 2_000_000, 72.81, 75.73, 36.55),
)
