"""encode: tables with ids, stored formats, folders that are resumed, and the reader."""

from __future__ import annotations

import csv
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir import write_jsonl
from search_documents import folder_with_unreadable, make_documents
from tiny_models import load_model, make_sentences, make_tiny_model

import sentcompress
from sentcompress.cli.main import _run
from sentcompress.encoding import text_vectors, vector_folder
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_folder import LOCK
from sentcompress.errors import BusyError, InputError, UsageError
from sentcompress.quantization.quantizer import FOLDER, Quantizer
from sentcompress.signals import StoppedError
from sentcompress.stages import encode as stage
from sentcompress.stages import fit_quantizer
from sentcompress.stages.encode import Params, Result
from sentcompress.store import WorkDirectory, file_digest
from sentcompress.store.artifacts import KEPT, NOTHING_KEPT
from sentcompress.store.atomic import UMASK

TEXTS = make_sentences(230, seed=4)
Rows = list[dict[str, str]]
ROWS: Rows = [{"_id": f"d{n}", "title": f"title {n}" if n % 2 else "", "text": text} for n, text in enumerate(TEXTS)]


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_vectors, "FILE_ROWS", 50)


def jsonl(path: Path, rows: Rows = ROWS) -> str:
    return str(write_jsonl(path, rows))


def encode(work: WorkDirectory, model: Path, lines: str, output: Path, **others: object) -> Result:
    options = {"dtype": "float32", "device": "cpu", **others}
    return stage.run(Params(lines=lines, output=output, model=str(model), **options), work)  # type: ignore[arg-type]


def plain(model: Path, texts: list[str]) -> np.ndarray:
    return EncodeEngine(load_model(model), dtype="float32", device="cpu").encode(texts)


JOINED = [f"{row['title']} {row['text']}".strip() for row in ROWS]


def as_csv(path: Path) -> str:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ["_id", "title", "text"])
        writer.writeheader()
        writer.writerows(ROWS)
    return str(path)


def as_parquet(path: Path) -> str:
    pq.write_table(pa.table({name: [row[name] for row in ROWS] for name in ("_id", "title", "text")}), path)
    return str(path)


@pytest.mark.parametrize(("name", "write"), [("a.jsonl", jsonl), ("a.csv", as_csv), ("a.parquet", as_parquet)])
def test_a_table_keeps_its_ids_and_joins_titles(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, small_files: None, name: str, write: Callable[[Path], str]
) -> None:
    result = encode(work, tiny_model, write(tmp_path / name), tmp_path / "vectors")
    assert (result.rows, result.dimension, result.store, result.bytes_per_vector) == (230, 32, "float32", 128)
    stored = sentcompress.read_vectors(tmp_path / "vectors")
    assert stored.ids == [row["_id"] for row in ROWS]
    assert (len(stored), stored.dimension, len(stored.manifest["files"])) == (230, 32, 5)
    np.testing.assert_allclose(stored.to_array(), plain(tiny_model, JOINED), atol=1e-6)
    assert stored.manifest["ids"] == "of the input"
    assert repr(stored) == f"StoredVectors(path={tmp_path / 'vectors'!r})"


def test_other_columns_and_row_numbers(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    rows = [{"sentence": text, "other": f"{text} red"} for text in TEXTS[:5]]
    encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", rows), tmp_path / "one")
    encode(work, tiny_model, str(tmp_path / "a.jsonl"), tmp_path / "two", column=("other",))
    encode(work, tiny_model, str(tmp_path / "a.jsonl"), tmp_path / "both", column=("other", "sentence"))
    one, two, both = (sentcompress.read_vectors(tmp_path / name) for name in ("one", "two", "both"))
    assert one.ids == ["0", "1", "2", "3", "4"]
    np.testing.assert_allclose(one.to_array(), plain(tiny_model, TEXTS[:5]), atol=1e-6)
    np.testing.assert_allclose(two.to_array(), plain(tiny_model, [row["other"] for row in rows]), atol=1e-6)
    joined = [f"{row['other']} {row['sentence']}" for row in rows]
    np.testing.assert_allclose(both.to_array(), plain(tiny_model, joined), atol=1e-6)


def test_titles_and_ids_are_found_as_compress_finds_them(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    rows = [{"doc_id": "x", "headline": "", "subject": "red title", "body": TEXTS[0]}]
    encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out")
    stored = sentcompress.read_vectors(tmp_path / "out")
    assert stored.ids == ["x"]
    np.testing.assert_allclose(stored.to_array(), plain(tiny_model, [f"red title {TEXTS[0]}"]), atol=1e-6)


def test_the_corpus_of_a_collection(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "beir").mkdir()
    jsonl(tmp_path / "beir" / "corpus.jsonl", ROWS[:9])
    encode(work, tiny_model, str(tmp_path / "beir"), tmp_path / "out.parquet", store="float16")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("id").to_pylist() == [row["_id"] for row in ROWS[:9]]
    assert table.schema.field("vector").type == pa.list_(pa.float16(), 32)
    values = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(9, 32)
    np.testing.assert_allclose(values, plain(tiny_model, JOINED[:9]), atol=1e-3)
    assert json.loads(table.schema.metadata[b"sentcompress"])["store"] == "float16"


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"a": "x"}], {}, "cannot tell which column holds the text"),
        ([{"text": "x"}], {"column": ("body",)}, "no column 'body'"),
        ([{"_id": "1", "text": "x"}, {"_id": "", "text": "y"}], {}, "line 2: no '_id'"),
        ([{"_id": "1", "text": 3}], {}, "'text' is a number, not text"),
        ([{"_id": ["1"], "text": "x"}], {}, "'_id' is a list"),
        ([{"_id": "1", "text": "\ud800"}], {}, "lone surrogate"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_and_nothing_is_written(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, rows: Rows, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out.npy", **options)
    assert not (tmp_path / "out.npy").exists()


@pytest.fixture
def quantized(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the tiny model with a quantizer of a format in its folder."""

    def make(name: str, size: int) -> Path:
        if not work.names("documents"):
            make_documents(work, TEXTS, [" ".join(text.split()[:4]) for text in TEXTS[:20]])
        made = fit_quantizer.run(
            fit_quantizer.Params(
                model=str(tiny_model), compare=str(tiny_model), vector_bytes=size, store=name, name=name, device="cpu"
            ),
            work,
        )
        model = tmp_path / f"with-{name}"
        shutil.copytree(tiny_model, model)
        shutil.copytree(made.path / FOLDER, model / FOLDER)
        return model

    return make


@pytest.mark.parametrize(("name", "size"), [("int8", 20), ("int4", 10), ("binary", 4), ("pq", 8)])
def test_codes_are_those_of_the_models_quantizer(
    work: WorkDirectory, tmp_path: Path, quantized: Callable[..., Path], small_files: None, name: str, size: int
) -> None:
    model = quantized(name, size)
    result = encode(work, model, jsonl(tmp_path / "a.jsonl"), tmp_path / "vectors", store=name)
    quantizer = Quantizer.load(model / FOLDER)
    expected, vectors = quantizer.encode(plain(model, JOINED)), plain(model, JOINED)
    assert (result.store, result.bytes_per_vector, result.dimension) == (name, size, quantizer.dimension)
    stored = sentcompress.read_vectors(tmp_path / "vectors")
    codes = np.concatenate([np.load(path) for path in sorted((tmp_path / "vectors").glob("*.npy"))])
    assert (codes.shape, codes.dtype) == ((230, size), np.uint8)
    # The last axis of vectors that went through a LayerNorm has no variance: its bit is that of a rounding error.
    assert (codes == expected).mean() > 0.85
    np.testing.assert_allclose(quantizer.decode(codes), quantizer.decode(expected), atol=0.05)
    np.testing.assert_array_equal(stored.to_array(), quantizer.decode(codes))
    np.testing.assert_array_equal(stored.query(vectors), quantizer.turn(vectors))
    nearest = (stored.query(vectors) @ stored.to_array().T).argmax(axis=1)
    assert (nearest == np.arange(230)).mean() > (0.4 if name == "binary" else 0.9)
    encode(work, model, str(tmp_path / "a.jsonl"), tmp_path / "a.npy", store="quantizer")
    assert np.load(tmp_path / "a.npy").shape == (230, size)
    encode(work, model, str(tmp_path / "a.jsonl"), tmp_path / "a.parquet", store=name)
    column = pq.read_table(tmp_path / "a.parquet").column("vector")
    assert column.type == pa.binary(size)
    assert (np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(230, size) == codes).mean() > 0.85


@pytest.mark.parametrize("passages", [False, True])
def test_texts_are_kept_beside_their_vectors(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, small_files: None, passages: bool
) -> None:
    """Nothing else has the text of a passage, which a search shows."""
    lines, out = jsonl(tmp_path / "a.jsonl"), tmp_path / "out"
    encode(work, tiny_model, lines, out, passages=passages, texts=True)
    stored = sentcompress.read_vectors(out)
    ids, texts, vectors = zip(*stored.rows(), strict=True)
    assert list(ids) == stored.ids == [f"{row['_id']}#0" if passages else row["_id"] for row in ROWS]
    assert list(texts) == JOINED
    np.testing.assert_array_equal(np.stack(vectors), stored.to_array())
    encode(work, tiny_model, lines, tmp_path / "out.parquet", passages=passages, texts=True)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["id", "text", "vector"]
    assert (table.column("id").to_pylist(), table.column("text").to_pylist()) == (list(ids), JOINED)
    with pytest.raises(UsageError, match=r"different: texts"):
        encode(work, tiny_model, lines, out, passages=passages)
    before = content(out)
    (out / "texts-00001.json").unlink()
    with pytest.raises(InputError, match=r"texts-00001.json is missing"):
        list(stored.rows())
    encode(work, tiny_model, lines, out, passages=passages, texts=True)
    assert content(out) == before


def test_texts_that_were_not_kept(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    lines = jsonl(tmp_path / "a.jsonl", ROWS[:3])
    encode(work, tiny_model, lines, tmp_path / "out")
    with pytest.raises(InputError, match="no texts") as raised:
        list(sentcompress.read_vectors(tmp_path / "out").rows())
    assert raised.value.hint == "encode the texts again with `texts`"
    with pytest.raises(UsageError, match=r"name a \.parquet file or a folder"):
        encode(work, tiny_model, lines, tmp_path / "a.npy", texts=True)


@pytest.mark.parametrize(("stopped", "kept"), [(0, False), (2, True)])
def test_an_interruption_says_if_a_file_is_kept(
    work: WorkDirectory,
    tmp_path: Path,
    tiny_model: Path,
    small_files: None,
    monkeypatch: pytest.MonkeyPatch,
    stopped: int,
    kept: bool,
) -> None:
    write = vector_folder.write_files

    def stop(opened: Any, number: int, *others: Any) -> None:
        if number == stopped:
            raise StoppedError(signal.SIGINT)
        write(opened, number, *others)

    monkeypatch.setattr(vector_folder, "write_files", stop)
    with pytest.raises(StoppedError) as raised:
        encode(work, tiny_model, jsonl(tmp_path / "a.jsonl"), tmp_path / "out")
    assert raised.value.hint == (KEPT if kept else NOTHING_KEPT)


def test_an_interrupted_file_says_that_nothing_is_kept(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise StoppedError(signal.SIGINT)

    monkeypatch.setattr(text_vectors.TextVectors, "write_npy", stop)
    with pytest.raises(StoppedError) as raised:
        encode(work, tiny_model, jsonl(tmp_path / "a.jsonl"), tmp_path / "a.npy")
    assert raised.value.hint == NOTHING_KEPT


def test_a_quantizer_of_the_work_directory_is_used_for_its_own_model(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, quantized: Callable[..., Path]
) -> None:
    quantized("int8", 20)
    result = encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "a.npy", store="int8")
    assert result.bytes_per_vector == 20
    other = make_tiny_model(tmp_path / "other", seed=8)
    with pytest.raises(InputError, match="other has no quantizer for int8") as raised:
        encode(work, other, str(tmp_path / "a.jsonl"), tmp_path / "b.npy", store="int8")
    fit = f"sentcompress fit-quantizer --vector-bytes 128 --model {other} --store int8 --work {work.path}"
    assert raised.value.hint == f"run: {fit}"
    empty = WorkDirectory(tmp_path / "empty")
    with pytest.raises(InputError, match="other has no quantizer for int8") as raised:
        encode(empty, other, str(tmp_path / "a.jsonl"), tmp_path / "b.npy", store="int8")
    fit = fit.replace(str(work.path), str(empty.path))
    assert raised.value.hint == f"run: sentcompress split-documents DOCUMENTS --work {empty.path} && {fit}"
    with pytest.raises(InputError, match=r"no quantizer for int4 \(there is one for int8\)") as raised:
        encode(work, tiny_model, str(tmp_path / "a.jsonl"), tmp_path / "b.npy", store="int4")
    assert "--store int4 --work" in str(raised.value.hint)
    assert str(raised.value.hint).startswith("take that one with `store` quantizer, or run: ")


def test_a_damaged_quantizer_is_refused(work: WorkDirectory, tmp_path: Path, quantized: Callable[..., Path]) -> None:
    model = quantized("int8", 20)
    path = model / FOLDER / "quantizer.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="is damaged"):
        encode(work, model, jsonl(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "v", store="int8")
    assert not (tmp_path / "v").exists()


def test_others_can_read_a_folder_of_codes(work: WorkDirectory, tmp_path: Path, quantized: Callable[..., Path]) -> None:
    """safetensors writes files that only their owner can read."""
    model = quantized("int8", 20)
    encode(work, model, jsonl(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "v", store="int8")
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "v").iterdir()}
    assert modes == dict.fromkeys(modes, oct(0o666 & ~UMASK))
    assert "quantizer.safetensors" in modes


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK}


class KilledError(BaseException):
    """What a signal would do."""


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("store", ["float16", "int4"])
def test_a_killed_run_goes_on_at_the_first_missing_file_with_the_same_bytes(
    work: WorkDirectory,
    tmp_path: Path,
    quantized: Callable[..., Path],
    small_files: None,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    store: str,
) -> None:
    model, lines = quantized("int4", 10), jsonl(tmp_path / "a.jsonl")
    encode(work, model, lines, tmp_path / "whole", store=store)
    streamed, original = 0, EncodeEngine.stream

    def stream(self: EncodeEngine, *given: object) -> Iterator[np.ndarray]:
        nonlocal streamed
        streamed += 1
        if streamed > after:
            raise KilledError
        return original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(EncodeEngine, "stream", stream)
    with pytest.raises(KilledError):
        encode(work, model, lines, tmp_path / "parts", store=store)
    with pytest.raises(InputError, match="is not complete"):
        sentcompress.read_vectors(tmp_path / "parts")
    assert len(list((tmp_path / "parts").glob("*.npy"))) == after
    streamed = -1000
    result = encode(work, model, lines, tmp_path / "parts", store=store)
    assert streamed == -1000 + 5 - after
    assert result.rows == 230
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    again = encode(work, model, lines, tmp_path / "parts", store=store)
    assert streamed == -1000 + 5 - after
    assert (again.rows, again.sentences_per_second) == (230, 0.0)


def test_smaller_batches_can_be_asked_for_when_a_run_is_resumed(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, small_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the message says if the memory did not suffice."""
    lines, used, original = jsonl(tmp_path / "a.jsonl"), list[int](), EncodeEngine.stream

    def stream(self: EncodeEngine, *given: object) -> Iterator[np.ndarray]:
        used.append(self.plan.batch_tokens)
        if len(used) == 3:
            raise MemoryError
        return original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(EncodeEngine, "stream", stream)
    with pytest.raises(MemoryError):
        encode(work, tiny_model, lines, tmp_path / "parts")
    encode(work, tiny_model, lines, tmp_path / "parts", batch_tokens=64)
    first = used[0]
    assert used == [first, first, first, 64, 64, 64]
    assert encode(work, tiny_model, lines, tmp_path / "parts").rows == 230
    assert len(used) == 6, "the folder is up to date"
    stored = sentcompress.read_vectors(tmp_path / "parts")
    np.testing.assert_allclose(stored.to_array(), plain(tiny_model, JOINED), atol=1e-6)


def test_nothing_is_replaced_after_the_lock_was_lost(
    work: WorkDirectory,
    tmp_path: Path,
    tiny_model: Path,
    small_files: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines, streamed, original = jsonl(tmp_path / "a.jsonl"), 0, EncodeEngine.stream
    encode(work, tiny_model, lines, tmp_path / "whole", store="float16")

    def stream(self: EncodeEngine, *given: object) -> Iterator[np.ndarray]:
        nonlocal streamed
        streamed += 1
        if streamed == 3:
            (tmp_path / "parts" / LOCK).write_text("")
        return original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(EncodeEngine, "stream", stream)
    with pytest.raises(BusyError, match=r"has lost its lock on .*parts: .* was removed or overwritten"):
        encode(work, tiny_model, lines, tmp_path / "parts", store="float16")
    assert len(list((tmp_path / "parts").glob("*.npy"))) == 2
    assert not list((tmp_path / "parts").glob("*tmp*"))
    encode(work, tiny_model, lines, tmp_path / "parts", store="float16")
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


def test_changed_inputs_models_and_options_are_refused(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, small_files: None
) -> None:
    lines, out = jsonl(tmp_path / "a.jsonl"), tmp_path / "vectors"
    encode(work, tiny_model, lines, out)
    before = content(out)
    with pytest.raises(UsageError, match=r"different: store"):
        encode(work, tiny_model, lines, out, store="float16")
    with pytest.raises(UsageError, match=r"different: model"):
        encode(work, make_tiny_model(tmp_path / "other", seed=8), lines, out)
    jsonl(tmp_path / "a.jsonl", ROWS[1:])
    with pytest.raises(UsageError, match=r"different: input"):
        encode(work, tiny_model, lines, out)
    assert content(out) == before


def test_a_damaged_folder_is_not_read(work: WorkDirectory, tmp_path: Path, tiny_model: Path, small_files: None) -> None:
    out = tmp_path / "vectors"
    encode(work, tiny_model, jsonl(tmp_path / "a.jsonl"), out)
    file = out / "vectors-00002.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(InputError, match=r"vectors-00002.npy is missing or was changed"):
        sentcompress.read_vectors(out).to_array()
    file.write_bytes(whole)
    (out / "ids-00001.json").unlink()
    with pytest.raises(InputError, match=r"ids-00001.json is missing"):
        assert sentcompress.read_vectors(out).ids
    before = content(out)
    file.unlink()
    made = encode(work, tiny_model, jsonl(tmp_path / "a.jsonl"), out)
    assert content(out).keys() - before.keys() == {"ids-00001.json"}
    assert {name: part for name, part in content(out).items() if name in before} == before
    assert len(sentcompress.read_vectors(out).to_array()) == made.rows == len(ROWS)
    (tmp_path / "file.npy").write_bytes(b"")
    with pytest.raises(InputError, match="is not a folder of vectors") as raised:
        sentcompress.read_vectors(tmp_path / "file.npy")
    assert "numpy.load" in str(raised.value.hint)
    with pytest.raises(InputError, match="is not a folder of vectors"):
        sentcompress.read_vectors(tmp_path)


@pytest.mark.parametrize("name", ["files", "model", "quantizer", "rows", "dimension", "store", "version"])
@pytest.mark.parametrize("value", [None, [1], "x", {"rows": 1}])
def test_a_manifest_with_anything_in_it_is_an_error_and_no_traceback(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, name: str, value: object
) -> None:
    out = tmp_path / "vectors"
    encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", ROWS[:3]), out)
    manifest = json.loads((out / "manifest.json").read_text()) | {name: value}
    (out / "manifest.json").write_text(json.dumps(manifest))
    if name == "quantizer" and value is None:
        assert len(sentcompress.read_vectors(out).to_array()) == 3
        return
    with pytest.raises(InputError):
        sentcompress.read_vectors(out).to_array()


@pytest.mark.parametrize("change", [{"complete": None}, {"complete": "yes"}, {"rows": None}, {"files": [1]}])
@pytest.mark.parametrize("shard", [None, "1/2"])
def test_an_edited_manifest_is_no_traceback_when_the_folder_is_written_again(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, change: dict[str, object], shard: str | None
) -> None:
    """None removes the key."""
    out, rows = tmp_path / "vectors", jsonl(tmp_path / "a.jsonl", ROWS[:3])
    encode(work, tiny_model, rows, out)
    manifest = json.loads((out / "manifest.json").read_text()) | change
    left = {key: value for key, value in manifest.items() if value is not None or key not in change}
    (out / "manifest.json").write_text(json.dumps(left))
    with pytest.raises(InputError, match=r"manifest\.json is damaged") as raised:
        encode(work, tiny_model, rows, out, shard=shard)
    assert raised.value.hint == "choose another `output`, or remove the folder"


def test_arrays_that_were_put_in_with_their_digests(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    out = tmp_path / "vectors"
    encode(work, tiny_model, jsonl(tmp_path / "a.jsonl", ROWS[:3]), out)
    for array in (np.array([{}, {}, {}], dtype=object), np.zeros(3, np.float32), np.zeros((3, 32), np.float64)):
        np.save(out / "vectors-00000.npy", array, allow_pickle=True)
        manifest = json.loads((out / "manifest.json").read_text())
        manifest["files"][0]["vectors"] = file_digest(out / "vectors-00000.npy")
        (out / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=r"vectors-00000.npy is missing or was changed"):
            sentcompress.read_vectors(out).to_array()


def test_the_command_line(tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["encode", jsonl(tmp_path / "a.jsonl"), "--model", str(tiny_model), "-o", f"{tmp_path}/vectors/", "--json"]
    assert _run([*line, "--work", str(tmp_path / "work")]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 230
    assert sentcompress.read_vectors(f"{tmp_path}/vectors/").ids[-1] == "d229"


def test_files_that_cannot_be_read_are_left_out_of_vectors_with_ids(
    tmp_path: Path, work: WorkDirectory, tiny_model: Path
) -> None:
    folder = folder_with_unreadable(tmp_path / "docs", TEXTS[0])
    with pytest.raises(InputError, match="not UTF-8") as told:
        encode(work, tiny_model, str(folder), tmp_path / "vectors")
    assert "`skip_bad`" in str(told.value.hint)
    assert encode(work, tiny_model, str(folder), tmp_path / "vectors", skip_bad=True).rows == 1
    assert sentcompress.read_vectors(tmp_path / "vectors").ids == ["a.txt"]
    with pytest.raises(UsageError, match="`id_column` names the column of ids"):
        encode(work, tiny_model, jsonl(tmp_path / "a.jsonl"), tmp_path / "v.npy", id_column="title")
    with pytest.raises(UsageError, match="skip_bad"):
        encode(work, tiny_model, str(folder), tmp_path / "vectors.npy", skip_bad=True)
    for texts in (folder, folder / "b.txt"):  # vectors without ids: nothing can be left out
        with pytest.raises(InputError, match="not UTF-8") as told:
            encode(work, tiny_model, str(texts), tmp_path / "vectors.npy")
        assert told.value.hint == "convert it, for example: iconv -f windows-1252 -t utf-8 OLD > NEW"
