"""encode in shards: merged bytes, resumption, and what is refused."""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import zstandard
from search_documents import make_documents
from tiny_models import make_sentences

import sentcompress
from sentcompress.cli.main import _run
from sentcompress.encoding import text_vectors, vector_folder
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.quantization.quantizer import FOLDER
from sentcompress.signals import GO_ON, StoppedError
from sentcompress.stages import encode as stage
from sentcompress.stages import fit_quantizer, merge
from sentcompress.stages.encode import Params, Result
from sentcompress.store import WorkDirectory

TEXTS = make_sentences(230, seed=4)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_vectors, "FILE_ROWS", 20)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    rows = [json.dumps({"_id": f"d{number}", "text": text}) for number, text in enumerate(TEXTS)]
    path = tmp_path / "docs.jsonl.zst"
    path.write_bytes(zstandard.compress("\n".join(rows).encode()))
    return path


def encode(work: WorkDirectory, model: Path, lines: Path, output: Path, shard: str | None, **more: Any) -> Result:
    options = {"dtype": "float32", "device": "cpu", **more}
    return stage.run(Params(lines=str(lines), output=output, model=str(model), shard=shard, **options), work)


def merged(work: WorkDirectory, folder: Path) -> Any:
    return merge.run(merge.Params(what=str(folder)), work)


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def with_quantizer(work: WorkDirectory, tiny_model: Path, model: Path) -> Path:
    make_documents(work, TEXTS, [" ".join(text.split()[:4]) for text in TEXTS[:20]])
    made = fit_quantizer.run(
        fit_quantizer.Params(
            model=str(tiny_model), compare=str(tiny_model), vector_bytes=16, store="int4", device="cpu"
        ),
        work,
    )
    shutil.copytree(tiny_model, model)
    shutil.copytree(made.path / FOLDER, model / FOLDER)
    return model


@pytest.mark.parametrize(("count", "store"), [(1, "float16"), (3, "int4"), (16, "float32")])
def test_the_bytes_are_those_of_one_run(
    work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path, count: int, store: str
) -> None:
    model = with_quantizer(work, tiny_model, tmp_path / "model") if store == "int4" else tiny_model
    given: dict[str, Any] = {"store": store, "texts": store == "int4"}
    encode(work, model, lines, tmp_path / "whole", None, **given)
    numbers = list(range(1, count + 1))
    random.Random(count).shuffle(numbers)
    rows = [encode(work, model, lines, tmp_path / "out", f"{number}/{count}", **given).rows for number in numbers]
    assert sum(rows) == len(TEXTS)
    again = encode(work, model, lines, tmp_path / "out", f"{numbers[0]}/{count}", **given)
    assert again.sentences_per_second == 0  # a finished shard is not made again
    assert again.finished == f"{count} of {count} shards"
    assert not (tmp_path / "out").exists()
    found = merged(work, tmp_path / "out")
    assert (found.rows, found.shards) == (len(TEXTS), count)
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")
    assert not (tmp_path / ".out.shards").exists()
    assert sentcompress.read_vectors(tmp_path / "out").ids == [f"d{number}" for number in range(len(TEXTS))]
    late = encode(work, model, lines, tmp_path / "out", f"1/{count}", **given)
    assert (late.rows, late.shard) == (len(TEXTS), None)
    with pytest.raises(UsageError, match=r"different: .*store"):
        encode(work, model, lines, tmp_path / "out", f"1/{count}", store="float16" if store == "float32" else "float32")


@pytest.mark.parametrize("place", ["find_shard", "write_files"])
def test_a_stopped_shard_does_not_say_that_nothing_is_finished(
    work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def stop(*_: object) -> None:
        raise StoppedError(signal.SIGTERM)

    encode(work, tiny_model, lines, tmp_path / "out", "1/2")
    monkeypatch.setattr(stage, place, stop)
    with pytest.raises(StoppedError) as raised:
        encode(work, tiny_model, lines, tmp_path / "out", "2/2")
    assert (raised.value.hint or GO_ON) == GO_ON  # the command line says GO_ON where nothing is said


def test_an_interrupted_shard_and_an_interrupted_merge_go_on(
    work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode(work, tiny_model, lines, tmp_path / "whole", None)
    write, made = stage.write_files, []

    def stop(opened: Any, number: int, *others: Any) -> None:
        if number == 2 and made.count(2) == 0:
            made.append(number)
            raise KeyboardInterrupt
        made.append(number)
        write(opened, number, *others)

    monkeypatch.setattr(stage, "write_files", stop)
    with pytest.raises(KeyboardInterrupt):
        encode(work, tiny_model, lines, tmp_path / "out", "1/2")
    encode(work, tiny_model, lines, tmp_path / "out", "2/2")
    with pytest.raises(InputError, match="shard 1/2 is unfinished") as error:
        merged(work, tmp_path / "out")
    assert f"encode {lines}" in str(error.value.hint)
    encode(work, tiny_model, lines, tmp_path / "out", "1/2")
    assert sorted(made) == sorted([*range(12), 2])
    copy, copied = vector_folder.VectorFolder.copy, []

    def stop_copying(self: Any, number: int, source: Path) -> None:
        if number == 7 and copied.count(7) == 0:
            copied.append(number)
            raise KeyboardInterrupt
        copied.append(number)
        copy(self, number, source)

    monkeypatch.setattr(vector_folder.VectorFolder, "copy", stop_copying)
    with pytest.raises(KeyboardInterrupt):
        merged(work, tmp_path / "out")
    with pytest.raises(UsageError, match="is being made in shards"):
        encode(work, tiny_model, lines, tmp_path / "out", None)
    merged(work, tmp_path / "out")
    assert sorted(copied) == sorted([*range(12), 7])
    assert everything(tmp_path / "out") == everything(tmp_path / "whole")


def test_shards_that_a_killed_merge_left_are_removed(
    work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        encode(work, tiny_model, lines, tmp_path / "out", f"{number}/2")
    with monkeypatch.context() as patch:
        patch.setattr(merge.Shards, "drop", lambda self: None)
        merged(work, tmp_path / "out")
    shutil.rmtree(tmp_path / ".out.shards" / "1-of-2")
    assert merged(work, tmp_path / "out").shards == 2
    assert not (tmp_path / ".out.shards").exists()
    assert merged(work, tmp_path / "out").shards is None
    with pytest.raises(UsageError, match="neither an artifact nor the output folder of shards"):
        merged(work, tmp_path / "elsewhere")


def test_what_is_refused(work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`shard` needs a folder"):
        encode(work, tiny_model, lines, tmp_path / "out.npy", "1/2")
    encode(work, tiny_model, lines, tmp_path / "out", "1/2")
    with pytest.raises(UsageError, match="out is being made in 2 shards, so 1/3 is not one of them") as error:
        encode(work, tiny_model, lines, tmp_path / "out", "1/3")
    assert str(tmp_path / ".out.shards") in str(error.value.hint)
    with pytest.raises(UsageError, match="different options"):
        encode(work, tiny_model, lines, tmp_path / "out", "2/2", store="float16")
    lines.write_bytes(zstandard.compress(b'{"_id": "1", "text": "a dog"}\n'))
    with pytest.raises(UsageError, match=r"docs\.jsonl\.zst has changed"):
        encode(work, tiny_model, lines, tmp_path / "out", "2/2")
    with pytest.raises(InputError, match="out cannot be merged: shard 2/2 is missing"):
        merged(work, tmp_path / "out")
    with pytest.raises(MissingArtifactError):
        merged(work, Path("teacher-vectors"))


def test_the_command_line(
    work: WorkDirectory, tiny_model: Path, lines: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    words = ["encode", str(lines), "-o", str(output), "--model", str(tiny_model), "--work", str(work.path)]
    assert _run([*words, "--shard", "1/2"]) == 0
    assert "1 of 2 shards" in capfd.readouterr().out
    assert _run([*words, "--shard", "2/2"]) == 0
    assert f"sentcompress merge {output}" in capfd.readouterr().err
    assert _run(["merge", str(output), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"path": str(output), "rows": 230, "shards": 2}
