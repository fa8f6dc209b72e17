"""A teacher that reads each text twice: as it stands, and its content words alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sentcompress.encoding.batches import windows
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Task


class ContentWords:
    """A model's tokenisation without some tokens; a text of such tokens alone keeps them.

    Args:
        encoder: a model that puts no prompt before its texts.
        left_out: ids of tokens.
    """

    def __init__(self, encoder: Encoder, left_out: Collection[int]) -> None:
        self._encoder = encoder
        self._left_out = frozenset(left_out)
        self._special = frozenset(encoder.tokenizer.all_special_ids)

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text's content words, special tokens included, of what the model reads of the text."""
        whole = self._encoder.tokenize(texts)
        kept = [[token for token in ids if token not in self._left_out] for ids in whole]
        return [
            content if any(token not in self._special for token in content) else ids
            for content, ids in zip(kept, whole, strict=True)
        ]


class SecondReading:
    """Vectors v(text) + weight x v(its content words), both of length one, scaled to length one.

    Args:
        whole: gives vectors of length one.
        content: tokenises by `ContentWords`; gives vectors of length one, and nothing else.
        weight: above zero.
    """

    def __init__(self, whole: EncodeEngine, content: EncodeEngine, weight: float) -> None:
        self._whole = whole
        self._content = content
        self._weight = weight

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """As `EncodeEngine.stream`; what follows the vector in a row of `whole` stays as it is."""
        width = self._content.dimension
        for texts in windows(chunks):
            rows = self._whole.encode(texts, task)
            rows[:, :width] += self._weight * self._content.encode(texts)
            # Two vectors that point away from each other leave next to nothing, but not nothing.
            rows[:, :width] /= np.linalg.norm(rows[:, :width], axis=1, keepdims=True).clip(min=1e-12)
            yield rows
