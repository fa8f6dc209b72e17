"""Fast encoding: batches with little padding, tokenisation in another thread, duplicates encoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.encoding.batches import TokenizedWindow, plan_batches, prefetch, tokenized, windows
from sentcompress.encoding.compute_plan import ComputePlan, make_plan, prepared
from sentcompress.encoding.linear import OneDnnLinear
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.token_batches import padded
from sentcompress.progress import Task


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
        index: dict[str, int] = {}
        places = [index.setdefault(text, len(index)) for text in texts]
        vectors = np.empty((len(index), self.dimension), dtype=np.float32)
        done = 0
        for part in self.stream([list(index)], task):
            vectors[done : done + len(part)] = part
            done += len(part)
        if len(index) == len(texts):
            return vectors
        if task:
            task.advance(len(texts) - len(index))
        return vectors[places]

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
        for window in prefetch(tokenized(texts, self._tokenize, padding) for texts in windows(chunks)):
            yield self._encode_window(window, task)

    @torch.inference_mode()
    def _encode_window(self, window: TokenizedWindow, task: Task | None) -> npt.NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in window.tokens], dtype=np.int64)
        occurrences = np.bincount(window.places, minlength=len(lengths))
        # Results stay on the device until the end of the window, so that a GPU never waits for a copy.
        vectors = torch.empty(len(lengths), self.dimension, device=self.device)
        for batch in plan_batches(lengths, self.plan.batch_tokens):
            vectors[torch.from_numpy(batch).to(self.device)] = self._forward([window.tokens[i] for i in batch])
            if task:
                task.advance(int(occurrences[batch].sum()))
        distinct: npt.NDArray[np.float32] = vectors.cpu().numpy()
        return distinct if len(distinct) == len(window.places) else distinct[window.places]

    def _forward(self, tokens: Sequence[npt.NDArray[np.int32]]) -> Tensor:
        """Vectors [B, D], float32, of B token sequences, given from longest to shortest."""
        ids, mask = (
            torch.from_numpy(part).to(self.device, non_blocking=True) for part in padded(tokens, self._encoder.padding)
        )
        return self._encoder.infer(ids, mask, padded=len(tokens[-1]) < len(tokens[0]), layers=self.layers)
