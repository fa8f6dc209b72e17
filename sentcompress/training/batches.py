"""Which rows make which batch, as a function of seed and epoch alone, and the tensors of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.models.token_batches import padded
from sentcompress.training.token_cache import TokenCache

Rows = npt.NDArray[np.int64]
# Batches are cut from so many of them sorted by length together: enough for next to no padding, few enough that
# which sentences meet in a batch stays random.
WINDOW_BATCHES = 50


@dataclass(frozen=True)
class BatchPlan:
    """The batches of training, computed and not stored.

    Attributes:
        rows: [N] the rows that are trained on.
        lengths: [N] their tokens.
        token_budget: padding included, no batch of several rows holds more tokens.
    """

    rows: Rows
    lengths: npt.NDArray[np.int32]
    batch_size: int
    token_budget: int
    seed: int

    def epoch(self, number: int) -> list[Rows]:
        """The batches of one epoch: every row once, rows of like length together, in random order."""
        random = np.random.default_rng((self.seed, number))
        order = random.permutation(len(self.rows))
        window = np.arange(len(order)) // (self.batch_size * WINDOW_BATCHES)
        order = order[np.lexsort((self.lengths[order], window))]
        batches = [self.rows[order[start:end]] for start, end in self._cuts(self.lengths[order], window)]
        return [batches[i] for i in random.permutation(len(batches))]

    def steps(self, number: int) -> int:
        """How many batches an epoch has."""
        if len(self.rows) and int(self.lengths.max()) * self.batch_size > self.token_budget:
            return len(self.epoch(number))
        return -(-len(self.rows) // self.batch_size)

    def _cuts(self, lengths: npt.NDArray[np.int32], window: Rows) -> Iterator[tuple[int, int]]:
        """Start and end of each batch in the sorted order. Lengths rise within a window, so the last is the longest."""
        start = 0
        while start < len(lengths):
            end = min(start + self.batch_size, len(lengths), int(np.searchsorted(window, window[start], side="right")))
            while end - start > 1 and (end - start) * int(lengths[end - 1]) > self.token_budget:
                end = max(start + 1, min(end - 1, start + self.token_budget // int(lengths[end - 1])))
            yield start, end
            start = end


@dataclass(frozen=True)
class Batch:
    """The tensors of one step.

    Attributes:
        input_ids: [S, T] the texts: S = B sentences, or B anchors, B positives and B N hard negatives.
        attention_mask: [S, T].
        fields: what belongs to the rows, [B, ...] each: `teacher` [B, D_t] and whatever else the method needs.
        rows: B.
        kept: ordinary sentences that are trained on beside triplets.
    """

    input_ids: Tensor
    attention_mask: Tensor
    fields: Mapping[str, Tensor]
    rows: int
    kept: Batch | None = None

    def __len__(self) -> int:
        return self.rows

    @property
    def targets(self) -> Tensor:
        """[B, D_t] the teacher's vectors."""
        return self.fields["teacher"]

    @property
    def tokens(self) -> int:
        """Tokens that are computed, padding included."""
        return self.input_ids.numel() + (self.kept.tokens if self.kept else 0)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self
        return Batch(
            _moved(self.input_ids, device),
            _moved(self.attention_mask, device),
            {name: _moved(tensor, device) for name, tensor in self.fields.items()},
            self.rows,
            self.kept.to(device) if self.kept else None,
        )


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


# From row numbers [B] to what belongs to them, [B, ...].
RowField = Callable[[Rows], Tensor]


def collate(rows: Rows, tokens: TokenCache, fields: Mapping[str, RowField], pad: int) -> Batch:
    """The tensors of some rows of a sentence table."""
    ids, mask = map(torch.from_numpy, padded(tokens.rows(rows), pad))
    return Batch(ids, mask, {name: field(rows) for name, field in fields.items()}, len(rows))


def collate_triplets(triplets: Rows, tokens: TokenCache, pad: int, kept: Batch | None = None) -> Batch:
    """The tensors of some triplets, [B, 2 + N] rows of a sentence table."""
    # Anchors, positives, then all negatives of the first anchor, of the second, ...
    rows = np.concatenate([triplets[:, 0], triplets[:, 1], triplets[:, 2:].reshape(-1)])
    ids, mask = map(torch.from_numpy, padded(tokens.rows(rows), pad))
    return Batch(ids, mask, {}, len(triplets), kept)
