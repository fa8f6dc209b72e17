"""Dev scores for checkpoint selection, always computed on the vectors that will be deployed.

On graded pairs: Spearman. On held-out sentences: the cosine to the target or, if the student's own vectors have no
target, the agreement of its similarities with the teacher's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.evaluation.metrics import METRICS, SPEARMAN
from sentcompress.evaluation.similarity import UndefinedError, cosine_of_pairs, spearman
from sentcompress.models.token_batches import TokenRows, by_length
from sentcompress.training.batches import Batch, Rows

# From token ids and attention mask, [B, T] each, to vectors [B, K].
Embed = Callable[[Tensor, Tensor], Tensor]
BATCH_TOKENS = 16_384
LOWEST = -100.0
HELD_OUT_BATCH = 64
# Held-out sentences: maximum, share of all, minimum.
HELD_OUT = 2000
HELD_OUT_SHARE = 0.02
LEAST = 10
# How far two scores of the same weights may differ, possibly on two machines, unless rounding can swap ranks.
SLACK = 0.05


def score_of(dev: Dev, vectors: Embed, device: torch.device) -> float:
    """The dev score; LOWEST instead of NaN or infinity, so that scores can be compared."""
    score = dev.score(vectors, device)
    return score if math.isfinite(score) else LOWEST


class Dev(Protocol):
    """Scores a student; higher is better."""

    @property
    def measure(self) -> str:
        """The short name of the score, such as Spearman, which is shown with it."""

    @property
    def protocol(self) -> str:
        """What the score measures, in words."""

    @property
    def slack(self) -> float:
        """How far two scores of the same weights may differ."""

    def score(self, vectors: Embed, device: torch.device) -> float:
        """The score of a function from token ids and mask, [B, T] each, to vectors [B, K]; NaN if undefined."""


class _Elsewhere:
    """Stands for a dev score that another rank computes."""

    measure = protocol = "computed by rank 0"
    slack = SLACK

    def score(self, vectors: Embed, device: torch.device) -> float:
        raise NotImplementedError(self.protocol)


ELSEWHERE: Dev = _Elsewhere()


@dataclass(frozen=True)
class StsDev:
    """Spearman x 100 between the cosine of two sentences and their gold score.

    Attributes:
        tokens: token ids of each distinct sentence.
        first, second: [P] the sentences of each pair, as indices into `tokens`.
        gold: [P] gold scores.
    """

    tokens: Sequence[Sequence[int]]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    gold: npt.NDArray[np.float64]
    pad: int
    protocol: str
    slack: float = SLACK
    measure: str = METRICS[SPEARMAN].label

    def score(self, vectors: Embed, device: torch.device) -> float:
        found = encode_tokens(self.tokens, self.pad, vectors, device)
        try:
            return 100 * spearman(self.gold, cosine_of_pairs(found[self.first], found[self.second]))
        except UndefinedError:
            return math.nan  # all cosines are equal: the student has collapsed


@dataclass(frozen=True)
class HeldOutDev:
    """Mean cosine x 100 between the student's vector and its target, on held-out sentences.

    Attributes:
        batches: the sentences with their teacher vectors.
        target: from teacher vectors [B, D_t] to targets [B, K].
    """

    batches: Sequence[Batch]
    target: Callable[[Tensor], Tensor]
    protocol: str
    slack: float = SLACK
    measure: str = "cosine to target"

    def score(self, vectors: Embed, device: torch.device) -> float:
        total, count = 0.0, 0
        with torch.inference_mode():
            for batch in (batch.to(device) for batch in self.batches):
                found = vectors(batch.input_ids, batch.attention_mask).float()
                cosines = torch.cosine_similarity(found, self.target(batch.targets), dim=1)
                total += float(cosines.double().sum())
                count += len(batch)
        return 100 * total / count


@dataclass(frozen=True)
class AgreementDev:
    """Pearson's r x 100 between the student's and the teacher's cosines, over all pairs of held-out sentences.

    For a student that was trained with a head that is discarded. Its own vectors then have no target: they are in a
    different space from the teacher's, so only the similarities can be compared.

    Attributes:
        batches: the sentences with their teacher vectors.
    """

    batches: Sequence[Batch]
    protocol: str
    slack: float = SLACK
    measure: str = "Pearson of cosines"

    def score(self, vectors: Embed, device: torch.device) -> float:
        found, wanted = [], []
        with torch.inference_mode():
            for batch in (batch.to(device) for batch in self.batches):
                found.append(vectors(batch.input_ids, batch.attention_mask).double().cpu())
                wanted.append(batch.targets.double().cpu())
        similar, goal = _cosines(torch.cat(found)), _cosines(torch.cat(wanted))
        return 100 * float(torch.corrcoef(torch.stack([similar, goal]))[0, 1])


def _cosines(vectors: Tensor) -> Tensor:
    """The cosines of all pairs of different rows: [N, D] -> [N (N - 1) / 2]."""
    unit = torch.nn.functional.normalize(vectors, dim=1)
    first, second = torch.triu_indices(len(unit), len(unit), offset=1)
    return (unit @ unit.T)[first, second]


def sts_dev(
    first: Sequence[str],
    second: Sequence[str],
    gold: Sequence[float],
    tokenize: Callable[[Sequence[str]], list[list[int]]],
    pad: int,
) -> StsDev:
    """The dev score on graded pairs, which are tokenised once."""
    places = {text: place for place, text in enumerate(dict.fromkeys([*first, *second]))}
    return StsDev(
        tokenize(list(places)),
        np.array([places[text] for text in first]),
        np.array([places[text] for text in second]),
        np.array(gold, dtype=np.float64),
        pad,
        f"Spearman x 100 of cosines on {len(gold)} graded pairs",
    )


def hold_out(parents: Rows, seed: int) -> tuple[Rows, Rows]:
    """Split the rows of a sentence table into those to train on and those held out.

    2% of the original sentences are held out at random: at most 2,000, at least 10, or half if there are fewer than 20.
    Augmented variants of a held-out sentence are in neither part.

    Args:
        parents: [N] the row from which each row was augmented, -1 for originals.
    """
    originals = np.flatnonzero(parents < 0)
    count = min(HELD_OUT, max(round(HELD_OUT_SHARE * len(originals)), min(LEAST, len(originals) // 2), 1))
    held = np.sort(np.random.default_rng((seed, len(originals))).choice(originals, size=count, replace=False))
    left_out = np.zeros(len(parents), dtype=bool)
    left_out[held] = True
    left_out |= (parents >= 0) & left_out[parents]
    return np.flatnonzero(~left_out), held


def held_out_dev(
    rows: Rows, collate: Callable[[Rows], Batch], target: Callable[[Tensor], Tensor] | None
) -> HeldOutDev | AgreementDev:
    """The dev score on held-out rows, with their teacher vectors.

    Args:
        target: from teacher vectors to the target of the deployed vector; None if it has no target.
    """
    batches = [collate(rows[start : start + HELD_OUT_BATCH]) for start in range(0, len(rows), HELD_OUT_BATCH)]
    if target is not None:
        return HeldOutDev(batches, target, f"mean cosine x 100 to the target on {len(rows)} held-out sentences")
    pairs = len(rows) * (len(rows) - 1) // 2
    return AgreementDev(batches, f"Pearson x 100 of student's and teacher's cosines on {pairs:,} held-out pairs")


def encode_tokens(
    tokens: Sequence[Sequence[int]], pad: int, vectors: Embed, device: torch.device
) -> npt.NDArray[np.float32]:
    """Vectors of tokenised sentences in their order, computed in batches of similar length: [N, K]."""
    rows = TokenRows.of(tokens)
    batches = by_length(rows.lengths, BATCH_TOKENS)
    parts: list[npt.NDArray[np.float32]] = []
    with torch.inference_mode():
        for batch in batches:
            ids, mask = (torch.from_numpy(part).to(device) for part in rows.padded(batch, pad))
            parts.append(vectors(ids, mask).float().cpu().numpy())
    found = np.concatenate(parts)
    out = np.empty_like(found)
    out[np.concatenate(batches)] = found
    return out
