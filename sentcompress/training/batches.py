"""The rows of each batch, a function of seed and epoch, and the tensors of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.models.devices import to_device
from sentcompress.models.token_batches import TokenRows
from sentcompress.store.shard import Shard

Rows = npt.NDArray[np.int64]
WHOLE = Shard(1, 1)
# Batches in a window that is sorted by length: enough for little padding, few enough that batches remain random.
WINDOW_BATCHES = 50


@dataclass(frozen=True)
class BatchPlan:
    """The batches of training, computed on demand.

    Attributes:
        rows: [N] the rows to train on.
        lengths: [N] tokens of each row.
        token_budget: maximum tokens of a batch, padding included; a longer row is a batch by itself.
        by_length: whether rows of similar length come together; otherwise any rows do.
    """

    rows: Rows
    lengths: npt.NDArray[np.int32]
    batch_size: int
    token_budget: int
    seed: int
    by_length: bool = True

    def epoch(self, number: int) -> list[Rows]:
        """The batches of one epoch: every row once, in random order."""
        random = np.random.default_rng((self.seed, number))
        order = random.permutation(len(self.rows))
        if not self.by_length:
            cuts = random_cuts(self.lengths[order], self.batch_size, self.token_budget)
            return [self.rows[order[start:end]] for start, end in cuts]
        size, batches = self.batch_size * WINDOW_BATCHES, list[Rows]()
        # Window by window: of all rows at once there are only their order and the batches.
        for first in range(0, len(order), size):
            window = order[first : first + size]
            window = window[np.argsort(self.lengths[window], kind="stable")]
            batches += [self.rows[window[start:end]] for start, end in self._cuts(self.lengths[window])]
        return [batches[i] for i in random.permutation(len(batches))]

    def sample(self, count: int) -> Rows:
        """At most `count` rows, evenly from the shortest to the longest."""
        order = np.argsort(self.lengths, kind="stable")
        places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64)
        return self.rows[order[places]]

    def steps(self, number: int) -> int:
        """The number of batches of an epoch."""
        if len(self.rows) and int(self.lengths.max()) * self.batch_size > self.token_budget:
            return len(self.epoch(number))
        return -(-len(self.rows) // self.batch_size)

    def _cuts(self, lengths: npt.NDArray[np.int32]) -> Iterator[tuple[int, int]]:
        """Start and end of each batch in a sorted window; the last row of a batch is the longest."""
        start = 0
        while start < len(lengths):
            end = min(start + self.batch_size, len(lengths))
            while end - start > 1 and (end - start) * int(lengths[end - 1]) > self.token_budget:
                end = max(start + 1, min(end - 1, start + self.token_budget // int(lengths[end - 1])))
            yield start, end
            start = end


def random_cuts(lengths: npt.NDArray[np.int32], batch_size: int, token_budget: int) -> Iterator[tuple[int, int]]:
    """Start and end of each batch of rows in an order without regard to their lengths."""
    start = 0
    while start < len(lengths):
        longest = np.maximum.accumulate(lengths[start : start + batch_size].astype(np.int64))
        tokens = longest * np.arange(1, len(longest) + 1)
        end = start + max(1, int(np.searchsorted(tokens, token_budget, side="right")))
        yield start, end
        start = end


@dataclass(frozen=True)
class TokenLayout:
    """The positions of the tokens of a batch, computed on the host: reading a GPU tensor waits for all work before it.

    Attributes:
        lengths: [S] tokens of each text, on the host.
        longest: T, the width of the batch.
        real: [M] the places of the real tokens among all S T, row by row.
        by_length: [S] the texts from the shortest to the longest.
    """

    lengths: Rows
    longest: int
    real: Tensor
    by_length: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> TokenLayout:
        """The layout of an attention mask [S, T] on the CPU, with the padding on the right."""
        lengths = mask.numpy().sum(axis=1)
        real, by_length = np.flatnonzero(mask.numpy()), np.argsort(lengths, kind="stable")
        return cls(lengths, mask.shape[1], torch.from_numpy(real), torch.from_numpy(by_length))

    @property
    def padded(self) -> bool:
        """Whether any text is padded."""
        return bool((self.lengths < self.longest).any())

    def to(self, device: torch.device) -> TokenLayout:
        return TokenLayout(self.lengths, self.longest, to_device(self.real, device), to_device(self.by_length, device))


@dataclass(frozen=True)
class Counts:
    """The number of rows, and of tokens without padding, in a rank's share of a batch."""

    rows: int
    tokens: int


@dataclass(frozen=True)
class Batch:
    """The tensors of one step.

    Attributes:
        input_ids: [S, T] the texts: S = B sentences, or B anchors, B positives and B N hard negatives.
        attention_mask: [S, T].
        layout: where the tokens are.
        fields: tensors by row, [B, ...] each: `teacher` [B, D_t] and others that the method needs.
        rows: B.
        kept: a batch of sentences for the distillation term of option `keep`, with triplets.
        stand_in: whether the rows only show what views look like, because the rank that has the batch has no rows.
        by_rank: the share of every rank; empty if one process has the whole batch.
    """

    input_ids: Tensor
    attention_mask: Tensor
    layout: TokenLayout
    fields: Mapping[str, Tensor]
    rows: int
    kept: Batch | None = None
    stand_in: bool = False
    by_rank: tuple[Counts, ...] = ()

    @classmethod
    def of(
        cls,
        ids: Tensor,
        mask: Tensor,
        fields: Mapping[str, Tensor],
        rows: int,
        kept: Batch | None = None,
        *,
        stand_in: bool = False,
        by_rank: tuple[Counts, ...] = (),
    ) -> Batch:
        """A batch on the CPU, from its texts [S, T] and the rest of its attributes."""
        return cls(ids, mask, TokenLayout.of(mask), fields, rows, kept, stand_in, by_rank)

    def __len__(self) -> int:
        return self.rows

    def own(self, view: Tensor) -> Tensor:
        """The rows of a view that enter the loss: all, or none of a placeholder batch."""
        return view[:0] if self.stand_in else view

    @property
    def targets(self) -> Tensor:
        """The teacher's vectors: [B, D_t]."""
        return self.fields["teacher"]

    @property
    def tokens(self) -> int:
        """Number of tokens, padding included."""
        return self.input_ids.numel() + (self.kept.tokens if self.kept else 0)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self
        return Batch(
            to_device(self.input_ids, device),
            to_device(self.attention_mask, device),
            self.layout.to(device),
            {name: to_device(tensor, device) for name, tensor in self.fields.items()},
            self.rows,
            self.kept.to(device) if self.kept else None,
            self.stand_in,
            self.by_rank,
        )


# From row numbers [B] to their values [B, ...].
RowField = Callable[[Rows], Tensor]


def share_of(rows: Rows, share: Shard) -> tuple[Rows, bool]:
    """The rows of one rank, and whether they are only a stand-in, because there are fewer rows than ranks."""
    part = share.of(len(rows))
    return (rows[part.start : part.stop], False) if part else (rows[:1], True)


def _counts(rows: Rows, lengths: npt.NDArray[np.int32], share: Shard) -> tuple[Counts, ...]:
    """The share of every rank, from the rows of the whole batch and the tokens of each of them."""
    if share.count == 1:
        return ()
    parts = [Shard(number, share.count).of(len(rows)) for number in range(1, share.count + 1)]
    return tuple(Counts(len(part), int(lengths[part.start : part.stop].sum())) for part in parts)


def collate(rows: Rows, tokens: TokenRows, fields: Mapping[str, RowField], pad: int, share: Shard = WHOLE) -> Batch:
    """The batch of some rows of a sentence table, or one rank's share of it."""
    by_rank = _counts(rows, tokens.lengths[rows], share)
    rows, stand_in = share_of(rows, share)
    ids, mask = map(torch.from_numpy, tokens.padded(rows, pad))
    found = {name: field(rows) for name, field in fields.items()}
    return Batch.of(ids, mask, found, len(rows), stand_in=stand_in, by_rank=by_rank)


def collate_triplets(
    triplets: Rows, tokens: TokenRows, pad: int, kept: Batch | None = None, share: Shard = WHOLE
) -> Batch:
    """The batch of some triplets, [B, 2 + N] rows of a sentence table, or one rank's share of it."""
    by_rank = _counts(triplets, tokens.lengths[triplets].sum(axis=1), share)
    triplets, stand_in = share_of(triplets, share)
    # Anchors, positives, then the negatives of the first anchor, of the second, ...
    rows = np.concatenate([triplets[:, 0], triplets[:, 1], triplets[:, 2:].reshape(-1)])
    ids, mask = map(torch.from_numpy, tokens.padded(rows, pad))
    return Batch.of(ids, mask, {}, len(triplets), kept, stand_in=stand_in, by_rank=by_rank)
