"""Two-pass embeddings: each text is encoded as a whole and once more with only its content words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sentcompress.encoding.batches import windows
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Task


class ContentWords:
    """A model's tokenisation without some tokens; a text that consists only of such tokens keeps them.

    Args:
        encoder: a model without a prompt.
        left_out: ids of the tokens to remove.
    """

    def __init__(self, encoder: Encoder, left_out: Collection[int]) -> None:
        self._encoder = encoder
        self._left_out = frozenset(left_out)
        self._special = frozenset(encoder.tokenizer.all_special_ids)

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text's content words, within the model's maximum length, with special tokens."""
        whole = self._encoder.tokenize(texts)
        kept = [[token for token in ids if token not in self._left_out] for ids in whole]
        return [
            content if any(token not in self._special for token in content) else ids
            for content, ids in zip(kept, whole, strict=True)
        ]


class SecondReading:
    """Vectors v(text) + weight x v(its content words), both of length one, scaled to length one.

    Args:
        whole: the engine for whole texts; its vectors have length one.
        content: the engine for content words, with `ContentWords` as its tokenisation; its rows are vectors of length
            one, without states of layers.
        weight: above zero.
    """

    def __init__(self, whole: EncodeEngine, content: EncodeEngine, weight: float) -> None:
        self._whole = whole
        self._content = content
        self._weight = weight

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """Like `EncodeEngine.stream`; states of layers after the vector in a row of `whole` are unchanged."""
        width = self._content.dimension
        for texts in windows(chunks):
            rows = self._whole.encode(texts, task)
            rows[:, :width] += self._weight * self._content.encode(texts)
            # The sum of opposite vectors can be almost zero.
            rows[:, :width] /= np.linalg.norm(rows[:, :width], axis=1, keepdims=True).clip(min=1e-12)
            yield rows
