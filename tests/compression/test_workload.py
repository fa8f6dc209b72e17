"""What there is to embed, and the teacher's speed."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import make_tiny_model

from sentcompress.compression import workload
from sentcompress.compression.embedding_load import EmbeddingLoad
from sentcompress.compression.workload import judged_seconds, measured_workload
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.catalog import find_model
from sentcompress.progress import SILENT, Task
from sentcompress.stages import split_documents
from sentcompress.store import WorkDirectory


def test_texts_and_tokens_are_those_of_the_training_part(tmp_path: Path) -> None:
    texts = [" ".join(f"river cloud {number} engine" for _ in range(5)) + "." for number in range(120)]
    path = tmp_path / "docs.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    work = WorkDirectory(tmp_path / "work")
    artifact = split_documents.run(split_documents.Params(inputs=(str(path),)), work, SILENT)
    encoder = find_model(work, str(make_tiny_model(tmp_path / "teacher"))).load()
    load = measured_workload(artifact, encoder, SILENT, time.monotonic())
    lines = [json.loads(line) for line in (artifact.path / "train.jsonl").open(encoding="utf-8")]
    rows = [line["text"] for line in lines]
    assert load.texts == len(rows)
    assert load.words == sum(len(row.split()) for row in rows)
    passages = [line["text"] for line in lines if line["kind"] == "passage"]
    assert 0 < len(passages) < len(rows)
    assert load.passage_tokens == pytest.approx(np.mean([len(ids) for ids in encoder.tokenize(passages)]))
    assert load.tokens == pytest.approx(sum(map(len, encoder.tokenize(rows))), abs=len(rows))
    assert load.searched == len((artifact.path / "held-out/corpus.jsonl").read_text("utf-8").splitlines())
    # All of the collection that is not trained on.
    assert load.held_out == pytest.approx(load.searched - len(passages), rel=0.2)
    assert load.seconds > 0
    assert 0 < load.reading < load.spent
    assert load.exact_seconds_per_text > 0


def test_the_sample_has_all_kinds_of_texts_although_their_order_is_regular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every document a title, a passage and two queries: every fourth row would be a title."""
    texts = {"title": "river cloud", "passage": " ".join(40 * ["river"]), "query": "cloud engine river"}
    kinds = ("title", "passage", "query", "query")
    rows = [json.dumps({"text": texts[kind], "kind": kind, "document": "0"}) for kind in 200 * kinds]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = {"passages": 200, "titles": 200, "queries": 400, "corpus": 100, "documents": 210, "sections": 0}
    documents = SimpleNamespace(path=tmp_path, facts={**facts, "held_out_documents": 10})
    monkeypatch.setattr(workload, "COUNTED", 200)
    monkeypatch.setattr(workload, "_tokens_per_second", lambda *_: 1000.0)
    work = WorkDirectory(tmp_path / "work")
    encoder = find_model(work, str(make_tiny_model(tmp_path / "teacher"))).load()
    load = measured_workload(documents, encoder, SILENT, time.monotonic())  # type: ignore[arg-type]
    whole = 200 * sum(len(encoder.tokenize([texts[kind]])[0]) for kind in kinds)
    assert load.tokens == pytest.approx(whole, rel=0.2)


def test_the_exact_speed_is_that_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs.txt").write_text("\n".join(f"river cloud {number} engine." for number in range(120)))
    work = WorkDirectory(tmp_path / "work")
    artifact = split_documents.run(split_documents.Params(inputs=(str(tmp_path / "docs.txt"),)), work, SILENT)
    encoder = find_model(work, str(make_tiny_model(tmp_path / "teacher"))).load()
    monkeypatch.setattr(workload, "EncodeEngine", lambda encoder, dtype: dtype)
    monkeypatch.setattr(workload, "_tokens_per_second", lambda dtype, *_: {"auto": 30.0, "float32": 10.0}[dtype])
    load = measured_workload(artifact, encoder, SILENT, time.monotonic())
    assert (load.tokens_per_second, load.exact_tokens_per_second) == (30, 10)


def test_a_slow_teacher_encodes_only_the_first_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"river cloud {number} engine" for _ in range(5)) + "." for number in range(120)]
    (tmp_path / "docs.txt").write_text("\n".join(texts), encoding="utf-8")
    work = WorkDirectory(tmp_path / "work")
    artifact = split_documents.run(split_documents.Params(inputs=(str(tmp_path / "docs.txt"),)), work, SILENT)
    encoder = find_model(work, str(make_tiny_model(tmp_path / "teacher"))).load()
    encoded: list[int] = []
    encode = EncodeEngine.encode

    def counted(self: EncodeEngine, texts: list[str], task: Task | None = None) -> object:
        encoded.append(len(texts))
        return encode(self, texts, task)

    monkeypatch.setattr(EncodeEngine, "encode", counted)
    monkeypatch.setattr(workload, "LONGEST", 1e9)
    load = measured_workload(artifact, encoder, SILENT, time.monotonic())
    assert encoded == [16, 32, 32, 64, load.texts - 128] * 2, "all of them, in growing parts"
    encoded.clear()
    monkeypatch.setattr(workload, "LONGEST", 0.0001)
    assert measured_workload(artifact, encoder, SILENT, time.monotonic()).seconds > 0
    assert encoded == [16, 32] * 2


def test_the_time_of_a_judged_collection_grows_with_its_file(tmp_path: Path) -> None:
    load = EmbeddingLoad(100, 7000, 10_000, 2000.0, 1000.0, 10)

    def seconds(count: int, characters: int, ending: str = "", longest: int = 256) -> float:
        lines = [json.dumps({"_id": str(number), "text": characters * "x"}) + "\n" for number in range(count)]
        path = tmp_path / f"corpus.jsonl{ending}"
        path.write_bytes(gzip.compress("".join(lines).encode()) if ending else "".join(lines).encode())
        found = judged_seconds(tmp_path, load, longest)
        size = path.stat().st_size
        path.unlink()
        return found / size

    once = seconds(100, 450)
    assert once == pytest.approx(1.5 / 4.5 / 1000), "by the teacher, and half as long by a student"
    assert seconds(200, 450) == pytest.approx(once)
    assert seconds(100, 450, ".gz") == pytest.approx(3 * once), "text is a third of its size when compressed"
    assert seconds(100, 4500) == pytest.approx(once * 256 / 1000), "the teacher reads no more than 256 tokens"
