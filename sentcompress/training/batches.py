"""Which rows make which batch, as a function of seed and epoch alone; and the next batch, made ready meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.training.token_cache import TokenCache

Rows = npt.NDArray[np.int64]
Item = TypeVar("Item")
# Batches are cut from so many of them sorted by length together: enough for next to no padding, few enough that
# which sentences meet in a batch stays random.
WINDOW_BATCHES = 50
AHEAD = 3


@dataclass(frozen=True)
class Plan:
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


def padded(rows: Rows, tokens: TokenCache, pad: int) -> tuple[Tensor, Tensor]:
    """Token ids and mask of some rows, [B, T] each, padded on the right to the longest of them."""
    longest = int(tokens.lengths[rows].max())
    # torch's own memory is aligned the same way in every process; sums over it round the same way too.
    ids = torch.full((len(rows), longest), pad, dtype=torch.int64)
    mask = torch.zeros((len(rows), longest), dtype=torch.int64)
    tokens.fill(rows, ids.numpy(), mask.numpy())
    return ids, mask


def collate(rows: Rows, tokens: TokenCache, fields: Mapping[str, RowField], pad: int) -> Batch:
    """The tensors of some rows of a sentence table."""
    ids, mask = padded(rows, tokens, pad)
    return Batch(ids, mask, {name: field(rows) for name, field in fields.items()}, len(rows))


def collate_triplets(triplets: Rows, tokens: TokenCache, pad: int, kept: Batch | None = None) -> Batch:
    """The tensors of some triplets, [B, 2 + N] rows of a sentence table."""
    # Anchors, positives, then all negatives of the first anchor, of the second, ...
    rows = np.concatenate([triplets[:, 0], triplets[:, 1], triplets[:, 2:].reshape(-1)])
    ids, mask = padded(rows, tokens, pad)
    return Batch(ids, mask, {}, len(triplets), kept)


@contextmanager
def ahead(make: Callable[[], Iterator[Item]]) -> Iterator[Iterator[Item]]:
    """Run an iterator in a thread that stays a few items ahead of the one who reads; its errors reach the reader."""
    ready: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(AHEAD)
    stop = threading.Event()

    def put(entry: tuple[Item | None, BaseException | None]) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                ready.put(entry, timeout=0.1)
                return

    def produce() -> None:
        error: BaseException | None = None
        try:
            for item in make():
                put((item, None))
                if stop.is_set():
                    return
        except Exception as caught:  # noqa: BLE001 - raised again on the other side
            error = caught
        put((None, error))

    def consume() -> Iterator[Item]:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    thread = threading.Thread(target=produce, name="batches", daemon=True)
    thread.start()
    try:
        yield consume()
    finally:
        stop.set()
        thread.join()
