"""Vectors that `encode` stored, in place of those that a model would compute for the documents of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.collections import DocumentIds
from sentcompress.encoding.embedder import Embedder, MappedEmbedder, Vectors
from sentcompress.encoding.vector_folder import StoredVectors
from sentcompress.errors import InputError
from sentcompress.progress import Task
from sentcompress.store import MODEL_FILES


class StoredDocuments:
    """The stored vectors of a corpus, found by their ids.

    Raises:
        InputError: if a document has no stored vector.
    """

    def __init__(self, stored: StoredVectors, ids: DocumentIds) -> None:
        self._stored = stored
        self._rows = _rows_of(stored, ids)

    @property
    def dimension(self) -> int:
        return self._stored.dimension

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        """All vectors in the order of the corpus; the texts are not read."""
        if len(self._rows) == len(self._stored) and (self._rows == np.arange(len(self._rows))).all():
            parts: Iterator[Vectors] = (vectors for _, vectors in self._stored.blocks())
        else:
            parts = iter([self._stored.to_array()[self._rows]])
        for vectors in parts:
            yield vectors
            if task:
                task.advance(len(vectors))

    def described(self) -> dict[str, Any]:
        """The facts that an evaluation records about them."""
        manifest = self._stored.manifest
        return {"store": manifest["store"], "dimension": self.dimension, "label": self.label, **manifest["model"]}

    @property
    def label(self) -> str:
        """The model that encoded them, to show."""
        return str(self._stored.manifest["model"]["reference"]).removeprefix(MODEL_FILES)

    @property
    def prompt(self) -> str | None:
        """What preceded every text; None: the default prompt of the model."""
        prompt: str | None = self._stored.manifest.get("prompt")
        return prompt

    def encoded_by(self, digest: str) -> bool:
        """Whether the model of this digest encoded them."""
        return bool(self._stored.manifest["model"]["digest"] == digest)


def turned_queries(embedder: Embedder, stored: StoredVectors) -> Embedder:
    """An embedder of queries that are compared with stored vectors.

    Raises:
        InputError: if the model's vectors have another dimension than those that were stored.
    """
    wanted = int(stored.manifest["dimension"])
    if embedder.dimension != wanted:
        raise InputError(
            f"{stored.path} has vectors of a model with {wanted} dimensions, but the queries have {embedder.dimension}",
            "encode the documents with the model of the queries, or with its teacher",
        )
    return MappedEmbedder(embedder, stored.query, stored.dimension)


def _rows_of(stored: StoredVectors, ids: DocumentIds) -> npt.NDArray[np.int64]:
    """The stored row of each document."""
    rows = {one: row for row, one in enumerate(stored.ids)}
    wanted = [ids[place].decode("utf-8", "surrogatepass") for place in range(len(ids))]
    missing = [one for one in wanted if one not in rows]
    if missing:
        raise InputError(
            f"{stored.path} has no vector of {len(missing):,} of {len(wanted):,} documents, for example {missing[0]!r}",
            "encode the same collection: sentcompress encode FOLDER -o vectors/",
        )
    return np.array([rows[one] for one in wanted], dtype=np.int64)
