"""The result of mining: a sentence table with each text of the triplets once, and the triplets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.sentence_table import MINED_SCHEMA, ORIGINAL, TRIPLETS, SentenceTable, SentenceWriter
from sentcompress.mining.gathering import Gathered, Rows

Write = Callable[[str], AbstractContextManager[Path]]


@dataclass(frozen=True)
class Mined:
    """Pairs with their negatives.

    Attributes:
        pairs: [n, 2] number of the query and row of the positive in the corpus.
        negatives: [n, N] rows of the corpus.
    """

    pairs: Rows
    negatives: Rows


def write_mined(mined: Mined, gathered: Gathered, corpus: SentenceTable, origin: str, write: Write) -> int:
    """Write the table, queries first and then the other texts in the order of the corpus, and the triplets.

    Args:
        mined: the pairs and negatives that were mined from `gathered`.
        corpus: all texts that were searched; only those in a triplet are written.
        origin: the origin of the queries.
        write: opens a file of the artifact by name.

    Returns:
        The number of rows.
    """
    writer = SentenceWriter(write)
    asked = np.unique(mined.pairs[:, 0])
    row_of_query = np.full(len(gathered.queries), -1, dtype=np.int64)
    row_of_text = np.full(gathered.corpus, -1, dtype=np.int64)
    for query in asked.tolist():
        row_of_query[query] = writer.rows
        writer.add(gathered.queries[query], ORIGINAL, -1, origin)
    own = gathered.own[asked]
    row_of_text[own[own >= 0]] = row_of_query[asked[own >= 0]]
    wanted = np.unique(np.concatenate([mined.pairs[:, 1], mined.negatives.ravel()]))
    _write_texts(wanted[row_of_text[wanted] < 0], row_of_text, corpus, writer)
    writer.finish()
    columns = [
        pa.array(row_of_query[mined.pairs[:, 0]]),
        pa.array(row_of_text[mined.pairs[:, 1]]),
        pa.array(list(row_of_text[mined.negatives]), pa.list_(pa.int64())),
    ]
    with write(TRIPLETS) as path:
        pq.write_table(pa.table(columns, schema=MINED_SCHEMA), path, compression="zstd")
    return writer.rows


def _write_texts(wanted: Rows, row_of_text: Rows, corpus: SentenceTable, writer: SentenceWriter) -> None:
    start = 0
    for file, count in enumerate(corpus.file_rows):
        mine = wanted[(wanted >= start) & (wanted < start + count)]
        texts, origins = (corpus.texts(file), corpus.origins(file)) if len(mine) else ([], [])
        for row in mine.tolist():
            row_of_text[row] = writer.rows
            writer.add(texts[row - start], ORIGINAL, -1, origins[row - start])
        start += count
