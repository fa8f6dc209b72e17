from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import cost_of_reading

from sentcompress.corpora import byte_streams, parquet_pages, parquet_rows
from sentcompress.corpora.parquet_pages import Chunk, Page, read_chunk
from sentcompress.corpora.readers import read_records, read_table
from sentcompress.corpora.records import Relation
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError


def write(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def dictionary_of(values: list[str], indices: Any) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values))


@pytest.mark.parametrize("store_schema", [True, False])
def test_a_dictionary_of_large_values_takes_little_memory(tmp_path: Path, store_schema: bool) -> None:
    column = dictionary_of(["x" * 4_000_000], np.zeros(10_000, np.int32))
    path = write(tmp_path, {"text": column}, compression="zstd", store_schema=store_schema)
    cost = cost_of_reading(path)
    assert path.stat().st_size < 2000
    assert cost.message == f"{path} decompresses to more than 64 MiB and 200 times its size"
    assert cost.memory < 400  # measured: 99 and 212
    assert cost.seconds < 5


def test_a_large_page_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path, {"text": ["x" * 200_000_000]}, compression="zstd", use_dictionary=False, write_statistics=False
    )
    cost = cost_of_reading(path)
    assert f"above the limit of {parquet_pages.LARGEST_PAGE}" in cost.message
    assert cost.memory < 10  # measured: 2


def test_large_pages_of_many_columns_are_refused(tmp_path: Path) -> None:
    columns = {f"c{number}": ["x" * 100_000_000] for number in range(5)}
    path = write(tmp_path, {"text": ["a"], **columns}, compression="zstd", use_dictionary=False, write_statistics=False)
    cost = cost_of_reading(path)
    assert f"above the limit of {parquet_rows.LARGEST_ROW}" in cost.message
    assert cost.memory < 10  # measured: 2


def test_a_value_beyond_the_longest_line_can_be_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["short", "x" * 20_000_000, "last"]}, compression="zstd")
    cost = cost_of_reading(path)
    assert cost.message == f"{path}, line 2: 'text' is longer than 16777216 bytes"
    cost = cost_of_reading(path, skip=True)
    assert (cost.texts, cost.bad) == (2, 1)
    assert cost.memory < 180  # measured: 87


def test_millions_of_rows_in_a_tiny_file_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": dictionary_of(["a"], np.zeros(16_000_000, np.int32))})
    assert path.stat().st_size < 100_000
    cost = cost_of_reading(path)
    assert cost.message == f"{path} decompresses to more than 1000000 rows, and more rows than it has bytes"
    assert cost.memory < 20  # measured: 9


def test_a_text_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    data = pa.array([b"good", b"\xff\xfe", b"fine"]).view(pa.string())
    path = write(tmp_path, {"text": data})
    with pytest.raises(InputError, match="line 2: 'text' is not UTF-8"):
        list(read_records(path))
    bad = BadRecords(skip=True)
    assert [record.texts for record in read_records(path, bad=bad)] == [("good",), ("fine",)]
    assert bad.count == 1
    # Arrow itself refuses the whole column where the file calls it a dictionary.
    path = write(tmp_path, {"text": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), data)})
    with pytest.raises(InputError, match="Invalid UTF8"):
        list(read_records(path, bad=bad))


def test_repeated_columns_and_files_without_text(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="columns of the same name: text"):
        list(read_table(tmp_path / "a.parquet"))
    path = write(tmp_path, {"vector": [[1.0]], "score": [0.5]})
    with pytest.raises(InputError, match="has no column of text") as caught:
        list(read_table(path))
    assert caught.value.hint == "its columns: vector, score"
    path = write(tmp_path, {"text": pa.array([], pa.string())})
    with pytest.raises(InputError, match="has no rows"):
        list(read_table(path))


def test_labels_can_be_booleans(tmp_path: Path) -> None:
    columns = {"question1": ["a", "b", "c"], "question2": ["d", "e", "f"], "is_duplicate": [True, False, None]}
    found = [record.relation for record in read_records(write(tmp_path, columns))]
    assert found == [Relation.PARAPHRASE, Relation.NOT_PARAPHRASE, Relation.NO_GOLD]


def test_labels_can_be_floating_point_numbers(tmp_path: Path) -> None:
    """pandas makes them of integers if some are missing."""
    columns = {"premise": ["a", "b", "c", "d"], "hypothesis": ["e", "f", "g", "h"], "weight": [0.5] * 4}
    for kind in (pa.float32(), pa.float64()):
        labels = pa.array([0.0, 2.0, float("nan"), -1.0], kind)
        found = list(read_records(write(tmp_path, {**columns, "label": labels})))
        assert [record.relation for record in found] == [
            Relation.ENTAILMENT,
            Relation.CONTRADICTION,
            Relation.NO_GOLD,
            Relation.NO_GOLD,
        ]
    path = write(tmp_path, {**columns, "label": [0.0, 0.5, None, 1.0]})
    with pytest.raises(InputError, match=r"line 2: unknown label '0\.5'"):
        list(read_records(path))


def test_rows_of_several_groups_and_odd_columns(tmp_path: Path) -> None:
    rows = 25_000
    columns = {
        "text": [f"sentence {number}" for number in range(rows)],
        "text.x": [{"y": number} for number in range(rows)],
        "domain": dictionary_of(["a", "b"], np.arange(rows) % 2),
        "label": pa.array([None, 1] * (rows // 2), pa.int8()),
    }
    path = write(tmp_path, columns, row_group_size=7000)
    found = list(read_table(path))
    assert len(found) == rows
    assert found[24_999][0] == rows
    assert {key: found[-1][1][key] for key in ("text", "domain", "label")} == {
        "text": "sentence 24999",
        "domain": "b",
        "label": 1,
    }


@pytest.mark.parametrize("compression", ["none", "zstd", "gzip", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_headers_of_pages_have_their_sizes(tmp_path: Path, compression: str, version: str) -> None:
    texts = [f"sentence {number} " + "word " * (number % 50) for number in range(20_000)]
    path = write(tmp_path, {"text": texts}, compression=compression, data_page_version=version, data_page_size=2**15)
    metadata = pq.read_metadata(path).row_group(0).column(0)
    with path.open("rb") as file:
        chunk = read_chunk(file, metadata)
    assert sum(page.values for page in chunk.pages) == len(texts)
    assert len(chunk.pages) > 10
    headers = metadata.total_uncompressed_size - sum(page.size for page in chunk.pages) - chunk.dictionary
    assert 0 < headers < 600 * (len(chunk.pages) + 1)


def test_the_largest_window_counts_every_page_that_it_touches() -> None:
    pages = tuple(Page(False, values, size) for values, size in [(10, 100), (10, 900), (0, 50), (10, 200), (10, 5)])
    assert Chunk(0, pages).largest_window(1) >= 900
    assert Chunk(0, pages).largest_window(2) >= 900 + 50 + 200
    assert Chunk(0, pages).largest_window(12) >= 100 + 900 + 50 + 200
    assert Chunk(7, pages).largest_window(1000) == 1255 + 7000


def test_a_compressed_file_is_unpacked_only_if_there_is_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"text": ["a", "b"]})
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [row for _, row in read_table(packed)] == [{"text": "a"}, {"text": "b"}]
    monkeypatch.setattr(byte_streams, "SHARE_OF_FREE_SPACE", 1e-12)
    with pytest.raises(InputError, match="does not fit into"):
        list(read_table(packed))
