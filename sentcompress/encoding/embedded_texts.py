"""Checked vectors of all distinct texts of an evaluation, by text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource
from sentcompress.errors import InputError
from sentcompress.progress import Reporter
from sentcompress.quantities import counted

Value = TypeVar("Value")


@dataclass(frozen=True)
class EmbeddedTexts:
    """Vectors by text.

    Attributes:
        vectors: [N, D] of the N distinct texts, as computed by the model.
        rows: the row of each text.
        described: what an evaluation records about the model.
    """

    label: str
    vectors: Vectors
    rows: dict[str, int]
    described: dict[str, Any]

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some of the texts, [n, D]."""
        return self.vectors[[self.rows[text] for text in texts]]


def for_each_model(
    models: Mapping[str, EmbedderSource], compute: Callable[[EmbedderSource], Value]
) -> dict[str, Value]:
    """Compute a value for the model of each role; only once if both roles have the same model."""
    found = {model: compute(model) for model in dict.fromkeys(models.values())}
    return {role: found[model] for role, model in models.items()}


def embed_texts(
    source: EmbedderSource, embedder: Embedder, texts: Iterable[str], reporter: Reporter, of_zeros: str
) -> EmbeddedTexts:
    """Encode every distinct text once.

    Args:
        source: the source of `embedder`.
        of_zeros: the effect of zero vectors on the evaluation, for the warning if there are any.

    Raises:
        InputError: if a vector has NaN or infinity, or a file of vectors lacks a text.
    """
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    with reporter.track(f"encoding with {source.label}", total=len(rows)) as task:
        vectors = embedder.encode(list(rows), task)
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        text = list(rows)[int(bad.argmax())]
        raise InputError(
            f"{source.label}: {int(bad.sum())} of {len(rows)} vectors have NaN or infinite values, "
            f"first for {text[:60]!r}",
            "copy or download it again, or make it again",
        )
    zeros = int(np.count_nonzero(~vectors.any(axis=1)))
    if zeros:
        reporter.warn(f"{source.label}: zero vectors of {counted(zeros, 'text')}; {of_zeros}")
    described = {
        **source.described,
        **embedder.described(),
        "sentences": len(rows),
        "zero_vectors": zeros,
    }
    return EmbeddedTexts(source.label, vectors, rows, described)
