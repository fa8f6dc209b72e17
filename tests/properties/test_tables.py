"""csv, tsv, jsonl and Parquet files with named columns."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import fields, mutated, packed
from properties.test_text_readers import write

from sentcompress.corpora.readers import ReadOptions, read_records, read_table
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import SentcompressError
from sentcompress.mining.gathering import read_positives
from sentcompress.stages import augment
from sentcompress.store import WorkDirectory

ROWS = [
    ("sentence1", "sentence2", "gold_label"),
    ("A dog runs.", "An animal moves.", "entailment"),
    ("A dog runs.", "A cat sits, h\u00e9.", "contradiction"),
    ("Two men talk.", "They are friends.", "neutral"),
    ("Two men talk.", "Nobody speaks.", "-"),
]
TRIPLETS = [("sent0", "sent1", "hard_neg"), ("A dog.", "An animal.", "A stone."), ("Men talk.", "People.", "Silence.")]
PAIRS = [("anchor", "positive", "split", "domain"), ("a query", "an answer", "train", "x"), ("b", "c", "test", "y")]
tables = st.sampled_from((ROWS, TRIPLETS, PAIRS))
options = st.sampled_from(
    (ReadOptions(), ReadOptions(split="test"), ReadOptions(columns=("sentence1",)), ReadOptions(domain="gold_label"))
)


def delimited(rows: list[tuple[str, ...]], delimiter: str) -> bytes:
    quote = '"{}"' if delimiter == "," else "{}"
    return "".join(delimiter.join(quote.format(field) for field in row) + "\n" for row in rows).encode()


def as_json(rows: list[tuple[str, ...]]) -> bytes:
    return "".join(json.dumps(dict(zip(rows[0], row, strict=True))) + "\n" for row in rows[1:]).encode()


def read_all(path: Path, given_options: ReadOptions, skip: bool) -> None:
    """Every way in which such a file is read, each of which has to keep the promise."""
    kept(lambda: list(read_records(path, given_options, BadRecords(skip))), path)
    kept(lambda: [values for _, values in read_table(path, bad=BadRecords(skip)) if not values], path)
    kept(lambda: list(read_positives(path, given_options.columns[:1] * 2, BadRecords(skip))), path)


@given(tables.flatmap(lambda rows: mutated(delimited(rows, ","), b",")).flatmap(packed), options, st.booleans())
@example((b'sentence1,sentence2\n"never closed\n' + b"text\n" * 1000, ""), ReadOptions(), True)
@example((",".join(f"c{number}" for number in range(100_000)).encode() + b"\n1\n", ""), ReadOptions(), False)
def test_csv(tmp_path: Path, document: tuple[bytes, str], given_options: ReadOptions, skip: bool) -> None:
    content, suffix = document
    read_all(write(tmp_path, content, f"a.csv{suffix}"), given_options, skip)


@given(tables.flatmap(lambda rows: mutated(delimited(rows, "\t"))).flatmap(packed), options, st.booleans())
def test_tsv(tmp_path: Path, document: tuple[bytes, str], given_options: ReadOptions, skip: bool) -> None:
    content, suffix = document
    read_all(write(tmp_path, content, f"a.tsv{suffix}"), given_options, skip)


@given(tables.flatmap(lambda rows: mutated(as_json(rows), b'"')).flatmap(packed), options, st.booleans())
@example((b'{"sentence1": ' * 3000 + b"\n", ""), ReadOptions(), False)
@example(
    (b'{"sentence1": "a", "sentence2": "b", "gold_label": ' + b"[" * 900 + b"]" * 900 + b"}", ""), ReadOptions(), True
)
@example((b'{"text": "\\ud800", "domain": "\\udfff"}\n', ""), ReadOptions(), True)
def test_jsonl(tmp_path: Path, document: tuple[bytes, str], given_options: ReadOptions, skip: bool) -> None:
    content, suffix = document
    read_all(write(tmp_path, content, f"a.jsonl{suffix}"), given_options, skip)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | fields,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ("sentence1", "sentence2", "gold_label", "label", "split", "domain", "text", "anchor", "positive")
)


@given(st.lists(st.dictionaries(names, values, max_size=5), min_size=1, max_size=4), options, st.booleans())
def test_json_values_of_any_type(
    tmp_path: Path, rows: list[dict[str, Any]], given_options: ReadOptions, skip: bool
) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    read_all(write(tmp_path, content, "a.jsonl"), given_options, skip)


def parquet_bytes(columns: list[tuple[str, Any]], **written: Any) -> bytes:
    table = pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])
    sink = io.BytesIO()
    pq.write_table(table, sink, **written)
    return sink.getvalue()


@st.composite
def arrays(draw: st.DrawFn, rows: int) -> pa.Array:
    """A column of any type."""
    texts = draw(st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=8), min_size=rows, max_size=rows))
    kind = draw(
        st.sampled_from(("text", "text", "text", "large", "dictionary", "bytes", "bad", "label", "list", "null"))
    )
    numbers = [number % 3 for number in range(rows)]
    if kind == "bad":
        raw = [draw(st.binary(max_size=6)) for _ in range(rows)]
        return pa.array(raw, pa.binary()).view(pa.string())
    return {
        "text": lambda: pa.array(texts, pa.string()),
        "large": lambda: pa.array(texts, pa.large_string()),
        "dictionary": lambda: pa.array(texts, pa.string()).dictionary_encode(),
        "bytes": lambda: pa.array([text and text.encode() for text in texts], pa.binary()),
        "label": lambda: pa.array(numbers, draw(st.sampled_from((pa.int8(), pa.uint64(), pa.float32(), pa.int64())))),
        "list": lambda: pa.array([[text] for text in texts], pa.list_(pa.string())),
        "null": lambda: pa.nulls(rows),
    }[kind]()


@st.composite
def parquet_files(draw: st.DrawFn) -> bytes:
    rows = draw(st.integers(0, 5))
    columns = [(draw(names), draw(arrays(rows))) for _ in range(draw(st.integers(1, 4)))]
    content = parquet_bytes(
        columns,
        compression=draw(st.sampled_from(("none", "zstd", "snappy", "gzip"))),
        use_dictionary=draw(st.booleans()),
        data_page_version=draw(st.sampled_from(("1.0", "2.0"))),
        row_group_size=draw(st.integers(1, 5)),
        store_schema=draw(st.booleans()),
    )
    return draw(mutated(content, b"\x15"))


@given(parquet_files().flatmap(packed), options, st.booleans())
@example((parquet_bytes([("text", pa.array(["a"])), ("text", pa.array(["b"]))]), ""), ReadOptions(), False)
@example((parquet_bytes([("text", pa.array([[1.0]]))]), ""), ReadOptions(), False)
@example((b"PAR1" + b"\xff" * 8 + b"PAR1", ""), ReadOptions(), False)
def test_parquet(tmp_path: Path, document: tuple[bytes, str], given_options: ReadOptions, skip: bool) -> None:
    content, suffix = document
    read_all(write(tmp_path, content, f"a.parquet{suffix}"), given_options, skip)


@given(tables.flatmap(lambda rows: mutated(as_json(rows), b'"')), st.booleans())
def test_augment_makes_a_whole_table_or_none(tmp_path: Path, content: bytes, skip: bool) -> None:
    path = write(tmp_path, content, "a.jsonl")
    work = WorkDirectory(path.parent / "work")
    params = augment.Params(inputs=(str(path),), wordnet=0, back_translate=0, skip_bad=skip)
    found = kept(lambda: augment.run(params, work))
    if isinstance(found, SentcompressError):
        assert not [left for left in work.path.rglob("*") if left.is_file() and left.suffix != ".lock"]
    else:
        assert found.facts["originals"] >= 1
