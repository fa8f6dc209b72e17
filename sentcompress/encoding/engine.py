"""Fast encoding: batches with little padding, tokenisation in another thread, duplicates encoded once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.encoding.batches import (
    TokenizedWindow,
    WindowProgress,
    encode_distinct,
    plan_batches,
    prefetch,
    tokenized,
    windows,
)
from sentcompress.encoding.compute_plan import ComputePlan, make_plan, prepared
from sentcompress.encoding.onednn import OneDnnLinear
from sentcompress.models.devices import pick_device, to_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.threads import map_in_threads
from sentcompress.models.token_batches import TokenRows
from sentcompress.progress import Task

# Batches that are padded and copied in advance, on a GPU.
BATCHES_AHEAD = 2

_Inputs: TypeAlias = tuple[npt.NDArray[np.int64], Tensor, Tensor, Tensor]


class EncodeEngine:
    """Encodes texts with the weights that `encoder` has when the engine is created; `encoder` is not modified.

    The vectors are those of `SentenceTransformer.encode`. Their last digits depend on which sentences share a batch,
    and so on the window; the same texts in the same order always give the same bytes on the same machine.

    Args:
        encoder: the model.
        device: auto, cpu, cuda or mps.
        dtype: auto, float32, bfloat16, or float16 on a GPU.
        batch_tokens: maximum tokens of a batch; the default depends on the device.
        plan: the plan of an earlier engine, instead of `dtype` and `batch_tokens`.
        layers: numbers of layers, from 1, whose pooled states are appended to each row.
        tokenize: a function from texts to token ids, instead of the encoder's own.

    Raises:
        UsageError: for an unknown device or dtype.
        InputError: if this machine has no such device.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        device: str = "auto",
        dtype: str = "auto",
        batch_tokens: int | None = None,
        plan: ComputePlan | None = None,
        layers: Sequence[int] = (),
        tokenize: Callable[[Sequence[str]], list[list[int]]] | None = None,
    ) -> None:
        self.device = pick_device(device)
        self.plan = plan or make_plan(encoder, self.device, dtype, batch_tokens)
        self._encoder = prepared(encoder, self.device, self.plan.dtype)
        self._tokenize = tokenize or self._encoder.tokenize
        self.layers = tuple(layers)

    @property
    def compute_dtype(self) -> str:
        """The number format that the encoder's body computes in."""
        return self.plan.dtype

    @property
    def dtype_reason(self) -> str:
        return self.plan.reason

    @property
    def matmul(self) -> str:
        """The matrix product of the linear layers: "onednn", or "torch" for torch's own choice."""
        return "onednn" if any(isinstance(m, OneDnnLinear) for m in self._encoder.modules()) else "torch"

    @property
    def dimension(self) -> int:
        """The width of a row: that of the vector and of the states of `layers`."""
        return self._encoder.dimension + len(self.layers) * self._encoder.pooled_dimension

    def encode(self, texts: Sequence[str], task: Task | None = None) -> npt.NDArray[np.float32]:
        """Vectors of N texts in their order: [N, D]; `task` counts texts."""
        return encode_distinct(self.stream, self.dimension, texts, task)

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """Vectors of any number of texts in bounded memory.

        Args:
            chunks: the texts in chunks of any size; they are regrouped.
            task: counts texts.

        Yields:
            [n, D], consecutive rows in the order of the texts; n is independent of the chunks.
        """
        # In another thread, so that texts are read and tokenised while the model computes.
        padding = self._encoder.padding
        copies: deque[_Copy] = deque()
        for window in prefetch(tokenized(texts, self._tokenize, padding) for texts in windows(chunks)):
            copies.append(self._encode_window(window, task))
            if len(copies) > self._windows_ahead:
                yield copies.popleft().rows()
        yield from (copy.rows() for copy in copies)

    @property
    def _windows_ahead(self) -> int:
        """A GPU computes a window while the one before is copied and read."""
        return 1 if self.device.type == "cuda" else 0

    @torch.inference_mode()
    def _encode_window(self, window: TokenizedWindow, task: Task | None) -> _Copy:
        # Results stay on the device until the end of the window, so that a GPU never waits for a copy.
        vectors = torch.empty(len(window.tokens), self.dimension, device=self.device)
        progress = WindowProgress(window, task)
        lengths = window.tokens.lengths

        @torch.inference_mode()  # of this thread
        def compute(inputs: _Inputs) -> npt.NDArray[np.int64]:
            batch, rows, ids, mask = inputs
            padded = bool(lengths[batch[-1]] < lengths[batch[0]])
            vectors.index_copy_(0, rows, self._encoder.infer(ids, mask, padded=padded, layers=self.layers))
            return batch

        in_turn = map_in_threads if self.device.type == "cpu" else map
        for batch in in_turn(compute, self._batches(window.tokens)):
            progress.advance(batch)
        return _Copy(vectors, window.places)

    def _batches(self, tokens: TokenRows) -> Iterator[_Inputs]:
        """Row numbers, from the longest text to the shortest, then the same, token ids and mask on the device."""

        def prepare(batch: npt.NDArray[np.int64]) -> _Inputs:
            arrays = (batch, *tokens.padded(batch, self._encoder.padding))
            rows, ids, mask = (to_device(torch.from_numpy(array), self.device) for array in arrays)
            return batch, rows, ids, mask

        found = map(prepare, plan_batches(tokens.lengths, self.plan.batch_tokens))
        # On a CPU another thread would only take time from the model.
        return prefetch(found, BATCHES_AHEAD) if self.device.type == "cuda" else found


class _Copy:
    """The vectors of a window's distinct texts, on their way to the host."""

    def __init__(self, vectors: Tensor, places: npt.NDArray[np.int64]) -> None:
        self._places = places
        self._done: torch.cuda.Event | None = None
        if vectors.is_cuda:
            self._host = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
            self._host.copy_(vectors, non_blocking=True)
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record(torch.cuda.current_stream(vectors.device))
        else:
            self._host = vectors.cpu()

    def rows(self) -> npt.NDArray[np.float32]:
        """The vectors of all texts of the window, [n, D], once they are there."""
        if self._done is not None:
            self._done.synchronize()
        distinct: npt.NDArray[np.float32] = self._host.numpy()
        # Pinned memory is scarce, and the caller may keep the vectors: it gets a copy.
        return distinct[self._places] if self._done or len(distinct) < len(self._places) else distinct
