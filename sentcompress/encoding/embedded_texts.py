"""The vectors of all texts of an evaluation, looked over: every distinct text once, by text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sentcompress.encoding.embedders import Embedder, EmbedderSource, Vectors
from sentcompress.errors import InputError
from sentcompress.progress import Reporter


@dataclass(frozen=True)
class EmbeddedTexts:
    """Vectors by text.

    Attributes:
        vectors: [N, D] of the N distinct texts, as the model gives them.
        rows: text -> row.
        described: what an evaluation records of the model.
    """

    label: str
    vectors: Vectors
    rows: dict[str, int]
    described: dict[str, Any]

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some of the texts, [n, D]."""
        return self.vectors[[self.rows[text] for text in texts]]


def embed_texts(
    source: EmbedderSource, embedder: Embedder, texts: Iterable[str], reporter: Reporter, of_zeros: str
) -> EmbeddedTexts:
    """Encode every distinct text once.

    Args:
        source: what `embedder` was opened from.
        of_zeros: what vectors of zeros mean for the evaluation, told in the warning if there are any.

    Raises:
        InputError: if a vector holds a value that is no number, or a file of vectors lacks a text.
    """
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    with reporter.track(f"encoding with {source.label}", total=len(rows)) as task:
        vectors = embedder.encode(list(rows), task)
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        text = list(rows)[int(bad.argmax())]
        raise InputError(
            f"{source.label}: {int(bad.sum())} of {len(rows)} vectors hold values that are no numbers, "
            f"the first that of {text[:60]!r}",
            "is the model or the file damaged?",
        )
    zeros = int(np.count_nonzero(~vectors.any(axis=1)))
    if zeros:
        reporter.warn(f"{source.label}: {zeros} texts have a vector of zeros; {of_zeros}")
    described = {
        **source.described,
        **embedder.described(),
        "sentences": len(rows),
        "zero_vectors": zeros,
    }
    return EmbeddedTexts(source.label, vectors, rows, described)
