"""Stored vectors as one Parquet file: a column `id` and a column `vector`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.encoding.storage import Storage
from sentcompress.errors import InputError

METADATA = b"sentcompress"


@contextmanager
def writing_parquet(
    path: Path, storage: Storage, described: str
) -> Iterator[Callable[[Sequence[str], npt.NDArray[np.float32]], None]]:
    """Write a file piece by piece: yields a function that appends n ids and their vectors [n, D].

    A vector is a list of fixed size of float32 or float16 values, or binary of fixed size: the codes of a quantizer.

    Args:
        described: JSON for the file's metadata, under the key `sentcompress`.

    Raises:
        InputError: if a vector is not finite as stored.
    """
    if storage.quantizer:
        kind: Any = pa.binary(storage.bytes)
    else:
        kind = pa.list_(pa.float32() if storage.store == "float32" else pa.float16(), storage.dimension)
    schema = pa.schema([("id", pa.string()), ("vector", kind)], metadata={METADATA: described.encode()})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as file:

        def append(ids: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
            stored = np.ascontiguousarray(storage.encode(vectors), dtype=storage.dtype)
            if not np.isfinite(stored).all():
                raise InputError("a vector contains NaN or infinity as stored", "try `dtype` and `store` float32")
            if storage.quantizer:
                column = pa.FixedSizeBinaryArray.from_buffers(kind, len(stored), [None, pa.py_buffer(stored)])
            else:
                column = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), storage.dimension)
            file.write_table(pa.table([pa.array(ids, pa.string()), column], schema=schema))

        yield append
