"""The vectors of texts, computed while they are written: a `.npy` or Parquet file, or the files of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.identified_texts import IdentifiedText, IdentifiedTexts
from sentcompress.corpora.text_files import batches
from sentcompress.encoding.npy_files import writing_vectors
from sentcompress.encoding.storage import Storage
from sentcompress.encoding.vector_folder import IDS, TEXTS, Vectors
from sentcompress.errors import InputError
from sentcompress.json_documents import to_json
from sentcompress.progress import Task

# Texts passed to the engine at a time, and those of a file of a folder; fewer if they are long.
CHUNK, FILE_ROWS = 1000, 20_000
# The key of the metadata of a Parquet file.
METADATA = b"sentcompress"


class Engine(Protocol):
    """What computes vectors."""

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        """Vectors of any number of texts in bounded memory; yields consecutive rows in order."""


def in_files(texts: IdentifiedTexts) -> Iterator[list[IdentifiedText]]:
    """The texts from the beginning, divided as the files of a folder are."""
    return batches(texts.read(), FILE_ROWS, lambda row: len(row[1]))


@dataclass(frozen=True)
class TextVectors:
    """The vectors of texts, in the format in which they are stored; `keep_texts`: with the texts, where ids are."""

    texts: IdentifiedTexts
    engine: Engine
    storage: Storage
    keep_texts: bool = False

    def write_npy(self, path: Path, rows: int, task: Task) -> None:
        """Write one `.npy` file; `rows` is the number of texts."""
        with writing_vectors(path, rows, self.storage.width, self.storage.dtype) as append:
            texts = (text for _, text in self.texts.read())
            for vectors in self.engine.stream(batches(texts, CHUNK, len), task):
                append(self.storage.encode(vectors))

    def write_parquet(self, path: Path, asked: Mapping[str, Any], task: Task) -> None:
        """Write one Parquet file, with ids; `asked` is kept in its metadata."""
        described = to_json(asked, indent=None)
        with _writing_parquet(path, self.storage, described, texts=self.keep_texts) as append:
            for file in in_files(self.texts):
                columns, parts = self._encoded(file, task)
                start = 0
                for vectors in parts:
                    stop = start + len(vectors)
                    append([column[start:stop] for column in columns.values()], vectors)
                    start = stop

    def write_files(
        self,
        task: Task,
        *,
        has: Callable[[int], bool],
        write: Callable[[int, Mapping[str, Sequence[str]], Iterator[Vectors], Storage], None],
        only: range | None = None,
    ) -> tuple[list[int], int]:
        """Write the files that are missing.

        Args:
            has: whether the files of a number are there.
            write: writes the files of a number: the number, the columns of ids and texts, vectors in parts, and their
                storage.
            only: the numbers of the files; all by default.

        Returns:
            The rows of each file up to the last one, and how many rows were encoded.
        """
        counts: list[int] = []
        encoded = 0
        for number, rows in enumerate(in_files(self.texts)):
            if only is not None and number == only.stop:
                break
            counts.append(len(rows))
            if only is not None and number not in only:
                continue
            if has(number):
                task.advance(len(rows))
                continue
            write(number, *self._encoded(rows, task), self.storage)
            encoded += len(rows)
        return counts, encoded

    def _encoded(self, rows: list[IdentifiedText], task: Task) -> tuple[dict[str, list[str]], Iterator[Vectors]]:
        """The ids of a file, with the texts if they are kept, and its vectors in parts."""
        texts = [text for _, text in rows]
        columns = {IDS: [one for one, _ in rows], **({TEXTS: texts} if self.keep_texts else {})}
        # Nothing but the file's own texts goes in, so that its bytes do not depend on where a run began.
        return columns, self.engine.stream([texts], task)


@contextmanager
def _writing_parquet(
    path: Path, storage: Storage, described: str, *, texts: bool
) -> Iterator[Callable[[Sequence[Sequence[str]], Vectors], None]]:
    """Write a Parquet file of ids and vectors piece by piece.

    Yields a function that appends vectors [n, D] and their columns of text: n ids and, with `texts`, n texts.

    A vector is a list of fixed size of float32 or float16 values, or binary of fixed size: the codes of a quantizer.

    Args:
        described: JSON for the file's metadata.

    Raises:
        InputError: if a vector is not finite as stored.
    """
    if storage.quantizer:
        kind: Any = pa.binary(storage.bytes)
    else:
        kind = pa.list_(pa.float32() if storage.store == "float32" else pa.float16(), storage.dimension)
    columns = [(name, pa.string()) for name in (("id", "text") if texts else ("id",))]
    schema = pa.schema([*columns, ("vector", kind)], metadata={METADATA: described.encode()})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as file:

        def append(given: Sequence[Sequence[str]], vectors: Vectors) -> None:
            stored = np.ascontiguousarray(storage.encode(vectors), dtype=storage.dtype)
            if not np.isfinite(stored).all():
                raise InputError("a vector contains NaN or infinity as stored", "try `dtype` and `store` float32")
            if storage.quantizer:
                column = pa.FixedSizeBinaryArray.from_buffers(kind, len(stored), [None, pa.py_buffer(stored)])
            else:
                column = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), storage.dimension)
            file.write_table(pa.table([*(pa.array(values, pa.string()) for values in given), column], schema=schema))

        yield append
