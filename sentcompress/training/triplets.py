"""Triplets as training data: their batches, with sentences for the option `keep`, and a dev score on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.errors import InputError
from sentcompress.evaluation.metrics import ACCURACY, METRICS
from sentcompress.models.token_batches import TokenRows
from sentcompress.quantities import counted
from sentcompress.store.shard import Shard
from sentcompress.training.batches import (
    WHOLE,
    Batch,
    BatchPlan,
    RowField,
    Rows,
    collate,
    collate_triplets,
    random_cuts,
)
from sentcompress.training.dev import HELD_OUT_SHARE, SLACK, Dev, Embed, encode_tokens
from sentcompress.training.settings import Settings

HELD_OUT = 1000
# A larger share of few triplets is held out: with two anchors, the score could only be 0, 50 or 100.
LEAST, LARGEST_SHARE = 50, 0.2
# Anchors whose nearest text may differ between two scores of the same weights: rounding decides near ties.
FLIPPED = 3


class KeptSentences:
    """Sentences with teacher vectors, one batch for every batch of triplets.

    Args:
        tokens: token ids of a whole sentence table.
        fields: `teacher` [B, D_t].
        settings: seed and size of the batches.
    """

    def __init__(self, tokens: TokenRows, fields: Mapping[str, RowField], settings: Settings) -> None:
        self._tokens, self._fields, self._settings = tokens, fields, settings
        # Neighbours in this order have similar lengths, so batches have little padding.
        self._order: Rows = np.argsort(tokens.lengths, kind="stable")

    def beside(self, triplets: Rows, pad: int, share: Shard) -> Batch:
        """The batch for these triplets, or a rank's share; the batch depends only on the seed and the triplets."""
        order, settings = self._order, self._settings
        generator = np.random.default_rng((settings.seed, int(triplets[0, 0]), int(triplets.sum())))
        if settings.by_length:
            place = int(generator.integers(len(order)))
            longest = max(1, int(self._tokens.lengths[order[place]]))
            count = max(1, min(settings.batch_size, settings.token_budget() // longest, len(order)))
            rows = order[max(0, place - count + 1) :][:count]
        else:
            rows = generator.choice(len(order), min(settings.batch_size, len(order)), replace=False)
        # Among the shortest texts, the batch also has longer ones than that at `place`.
        _, end = next(random_cuts(self._tokens.lengths[rows], len(rows), settings.token_budget()))
        return collate(rows[:end], self._tokens, self._fields, pad, share)


@dataclass(frozen=True)
class TripletData:
    """Triplets of a tokenised sentence table.

    Attributes:
        triplets: [n, 2 + N] rows of anchor, positive and N hard negatives.
    """

    triplets: npt.NDArray[np.int64]
    tokens: TokenRows
    pad: int
    kept: KeptSentences | None = None

    @property
    def hard_negatives(self) -> int:
        """N, hard negatives per anchor."""
        return int(self.triplets.shape[1]) - 2

    def plan(self, rows: Rows, settings: Settings) -> BatchPlan:
        """The batches of the triplets numbered `rows`; a triplet's length is that of its longest text times 2 + N."""
        lengths = self.tokens.lengths[self.triplets[rows]].max(axis=1) * np.int32(self.triplets.shape[1])
        budget = settings.batch_tokens or settings.token_budget(contrastive=True) * self.triplets.shape[1]
        lengths = lengths.astype(np.int32)
        return BatchPlan(rows, lengths, settings.batch_size, budget, settings.seed, settings.by_length)

    def collate(self, rows: Rows, share: Shard = WHOLE) -> Batch:
        mine = self.triplets[rows]
        beside = self.kept.beside(mine, self.pad, share) if self.kept else None
        return collate_triplets(mine, self.tokens, self.pad, beside, share)

    def split(self, seed: int) -> tuple[Rows, Rows]:
        """Split the triplets into those to train on and those held out.

        2% are held out: at most 1,000, at least 50, or a fifth if there are fewer than 250. Other triplets with a
        held-out anchor as their anchor or positive are in neither part.
        """
        total = len(self.triplets)
        least = max(2, min(LEAST, round(LARGEST_SHARE * total)))
        count = min(HELD_OUT, max(least, round(HELD_OUT_SHARE * total)), total)
        held = np.sort(np.random.default_rng((seed, len(self.triplets))).choice(len(self.triplets), count, False))
        shared = np.isin(self.triplets[:, :2], self.triplets[held, 0]).any(axis=1)
        return np.flatnonzero(~shared), held

    def rows_and_dev(self, graded: Dev | None, seed: int) -> tuple[Rows, Dev]:
        """The triplets to train on, and the dev score for checkpoint selection: `graded`, else held-out triplets.

        Raises:
            InputError: if there are too few triplets to hold some out.
        """
        if graded is not None:
            return np.arange(len(self.triplets)), graded
        rows, held = self.split(seed)
        total = len(self.triplets)
        if len(rows) == 0 or len(held) < 2:
            what = f"{counted(total, 'triplet is', 'triplets are')} too few to hold some out"
            if 2 <= len(held) < total:
                what = f"with {len(held)} of {total:,} triplets held out, none is left: all have a held-out anchor"
            raise InputError(what, ("add triplets with other anchors", "select checkpoints by graded pairs with `dev`"))
        return rows, self.dev(held)

    def dev(self, held: Rows) -> TripletDev:
        """The dev score of held-out triplets."""
        rows, places = np.unique(self.triplets[held], return_inverse=True)
        tokens = [self.tokens[row].tolist() for row in rows.tolist()]
        return TripletDev(tokens, places.reshape(len(held), -1), self.pad)


@dataclass(frozen=True)
class TripletDev:
    """Percentage of held-out anchors whose positive is nearer than every other positive and hard negative held out.

    Other positives of the same anchor are not compared: they are right answers, too.

    Attributes:
        tokens: token ids of each distinct text.
        places: [n, 2 + N] anchor, positive, hard negatives, as indices into `tokens`.
    """

    tokens: Sequence[Sequence[int]]
    places: npt.NDArray[np.int64]
    pad: int
    measure: str = METRICS[ACCURACY].label

    @property
    def slack(self) -> float:
        """How far two scores of the same weights may differ: rounding can decide some of the anchors."""
        return max(SLACK, 100 * FLIPPED / len(self.places))

    @property
    def protocol(self) -> str:
        count, others = len(self.places), len(np.unique(self.places[:, 1:]))
        return f"accuracy x 100 of finding its positive among {others} texts for {count} held-out anchors"

    def score(self, vectors: Embed, device: torch.device) -> float:
        found = torch.nn.functional.normalize(
            torch.from_numpy(encode_tokens(self.tokens, self.pad, vectors, device)), dim=1
        )
        if not found.isfinite().all():
            return math.nan
        texts = torch.from_numpy(np.unique(self.places[:, 1:]))
        anchors, positives = torch.from_numpy(np.ascontiguousarray(self.places[:, :2].T))
        similar = found[anchors] @ found[texts].T
        # An anchor that is also another anchor's positive does not count for itself.
        similar[texts.unsqueeze(0) == anchors.unsqueeze(1)] = -torch.inf
        own = (found[anchors] * found[positives]).sum(dim=1)
        # All positives of the anchor, its own included.
        rows, alike = torch.nonzero(anchors.unsqueeze(1) == anchors.unsqueeze(0), as_tuple=True)
        similar[rows, torch.searchsorted(texts, positives)[alike]] = -torch.inf
        return 100 * float((own > similar.max(dim=1).values).double().mean())
