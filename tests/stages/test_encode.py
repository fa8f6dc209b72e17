"""encode: lines of text to one .npy file."""

from __future__ import annotations

import gzip
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import interrupted
from listening import Listener
from sentence_transformers import SentenceTransformer
from tiny_models import load_model, make_prompted

from sentcompress.encoding import text_vectors
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.text_vectors import TextVectors
from sentcompress.encoding.vector_folder import read_vectors
from sentcompress.errors import BusyError, InputError, UsageError
from sentcompress.stages import encode as stage
from sentcompress.stages.encode import Params
from sentcompress.store import WorkDirectory


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_an_output_that_cannot_be_written_fails_before_the_model_is_loaded(
    work: WorkDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**options: object) -> None:
        assert options["dir"] == tmp_path
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("sentcompress.store.atomic.tempfile.TemporaryFile", refused)
    for name in ("a.npy", "folder"):
        params = Params(lines=write(tmp_path / "a.txt", ["a"]), output=tmp_path / name, model="no-such-model")
        with pytest.raises(PermissionError):
            stage.run(params, work)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


def test_row_i_is_line_i(work: WorkDirectory, tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    lines = [*sentences[:40], "", sentences[0], "last"]
    (tmp_path / "new").mkdir()
    result = stage.run(
        Params(
            lines=write(tmp_path / "a.txt", lines),
            output=tmp_path / "new" / "a.npy",
            model=str(tiny_model),
            dtype="float32",
        ),
        work,
    )
    vectors = np.load(tmp_path / "new" / "a.npy")
    expected = EncodeEngine(load_model(tiny_model), dtype="float32").encode(lines)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    assert (result.rows, result.dimension, result.model, result.dtype) == (43, 32, "tiny-model", "float32")
    assert result.sentences_per_second > 0
    assert os.listdir(tmp_path / "new") == ["a.npy"]


def test_named_prompts_are_told_to_be_unused(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    told, model = Listener(), str(make_prompted(tmp_path / "prompted", tiny_model))
    stage.run(Params(lines=write(tmp_path / "a.txt", ["a dog"]), output=tmp_path / "a.npy", model=model), work, told)
    assert len(told.warnings) == 1
    assert told.warnings[0].startswith("prompted has named prompts that are not used (query)")
    assert told.warnings[0].endswith("; `prompt_name` chooses one")


@pytest.mark.parametrize("default", [None, "document"])
def test_a_named_prompt_precedes_every_text(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, sentences: list[str], default: str | None
) -> None:
    prompts = {"query": "the man reads ", "document": "a quiet street ", "other": "two dogs "}
    folder = make_prompted(tmp_path / "prompted", tiny_model, prompts, default=default)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    lines, told = write(tmp_path / "a.txt", sentences[:30]), Listener()
    for name in prompts:
        params = Params(
            lines=lines, output=tmp_path / f"{name}.npy", model=str(folder), prompt_name=name, dtype="float32"
        )
        stage.run(params, work, told)
        expected = model.encode(sentences[:30], prompt_name=name)
        np.testing.assert_allclose(np.load(params.output), expected, rtol=0, atol=1e-5)
    assert told.warnings == []
    with pytest.raises(InputError, match="prompted has no prompt passage") as raised:
        stage.run(replace(params, prompt_name="passage"), work)
    assert raised.value.hint == "its prompts: query, document, other"


def test_a_folder_is_not_resumed_with_another_prompt(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_vectors, "FILE_ROWS", 10)
    prompts = {"query": "the man reads ", "other": "two dogs "}
    model = str(make_prompted(tmp_path / "prompted", tiny_model, prompts))
    lines = write(tmp_path / "a.txt", sentences[:30])
    params = Params(lines=lines, output=tmp_path / "vectors", model=model, prompt_name="query", dtype="float32")
    with interrupted(EncodeEngine, "_batches", 2):
        stage.run(params, work)
    for name in ("other", None, "document"):
        with pytest.raises(UsageError, match=r"another request \(different: prompt\)"):
            stage.run(replace(params, prompt_name=name), work)
    stage.run(params, work)
    stored = read_vectors(params.output)
    assert stored.manifest["prompt"] == "the man reads "
    assert stage.run(params, work).rows == 30  # it is up to date
    plain = replace(params, output=tmp_path / "plain", prompt_name=None)
    stage.run(plain, work)
    # A prompt that the model does not have is none.
    assert stage.run(replace(plain, prompt_name="document"), work).rows == 30
    assert np.abs(stored.to_array() - read_vectors(plain.output).to_array()).max() > 0.01


def test_compressed_text_and_half_precision(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\ufeffa dog\r\na cat")
    stage.run(
        Params(lines=str(tmp_path / "a.txt.gz"), output=tmp_path / "a.npy", model=str(tiny_model), store="float16"),
        work,
    )
    vectors = np.load(tmp_path / "a.npy")
    assert vectors.shape == (2, 32)
    assert vectors.dtype == np.float16


def test_standard_input(work: WorkDirectory, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a dog\na cat\n")))
    assert stage.run(Params(lines="-", output=tmp_path / "a.npy", model=str(tiny_model)), work).rows == 2
    assert len(np.load(tmp_path / "a.npy")) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"a dog\n\xff\xfe cat\n", "line 2"), (b"\x93NUMPY\x01\x00", "NumPy")],
)
def test_bad_text_is_refused_and_nothing_is_written(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "out.npy").write_bytes(b"older")
    with pytest.raises(InputError, match=message):
        stage.run(Params(lines=str(tmp_path / "a.txt"), output=tmp_path / "out.npy", model=str(tiny_model)), work)
    assert (tmp_path / "out.npy").read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "out.npy"]


def test_a_folder_is_no_file_and_a_file_no_folder(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    lines = write(tmp_path / "a.txt", ["a"])
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(InputError, match=r"b.npy is a folder"):
        stage.run(Params(lines=lines, output=tmp_path / "b.npy", model=str(tiny_model)), work)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        stage.run(Params(lines=lines, output=tmp_path / "file", model=str(tiny_model)), work)
    with pytest.raises(InputError, match="is a folder with other files"):
        stage.run(Params(lines=lines, output=tmp_path, model=str(tiny_model)), work)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone/a.npy", "no folder"),
        ("a.txt", "name it .*a.npy"),
        ("a.NPY", "name it .*a.npy"),
        ("a.Parquet", "name it .*a.parquet"),
        ("a.npy.gz", "name it .*a.npy$"),
        ("a.arrow", "name it .*a.parquet"),
        ("a.pkl", "name it .*a.npy"),
    ],
)
def test_the_output_is_an_npy_file_in_a_folder_that_exists(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"`output` .*{message}"):
        Params(lines="-", output=tmp_path / name).check()


def test_a_pipe_is_read_like_standard_input(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a dog\na cat\n")
    os.close(writing)
    try:
        made = stage.run(
            Params(lines=f"/dev/fd/{reading}", output=tmp_path / "v.npy", model=str(tiny_model), dtype="float32"), work
        )
    finally:
        os.close(reading)
    assert made.rows == 2


def test_a_closed_standard_input_is_a_clear_error(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        stage.run(Params(lines="-", output=tmp_path / "v.npy", model=str(tiny_model)), work)


def test_vectors_do_not_go_to_standard_output() -> None:
    with pytest.raises(UsageError, match="standard output"):
        Params(lines="a.txt", output=Path("-")).check()


def test_an_interrupted_run_leaves_the_older_file(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "out.npy").write_bytes(b"older")

    with interrupted(EncodeEngine, "_batches"):
        stage.run(
            Params(
                lines=write(tmp_path / "a.txt", ["a"]),
                output=tmp_path / "out.npy",
                model=str(tiny_model),
                dtype="float32",
            ),
            work,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "out.npy"]
    assert (tmp_path / "out.npy").read_bytes() == b"older"


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_two_runs_do_not_write_one_file(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    first, second = (
        Params(
            lines=write(tmp_path / f"{text}.txt", [text]),
            output=tmp_path / name,
            model=str(tiny_model),
            dtype="float32",
        )
        for text in ("dog", "cat")
    )
    encode = TextVectors.write_npy if name == "a.npy" else TextVectors.write_parquet

    def meanwhile(self: TextVectors, path: Path, *rest: Any) -> None:
        monkeypatch.undo()
        with pytest.raises(BusyError, match=f"{name} is being written by process {os.getpid()}"):
            stage.run(second, work)
        encode(self, path, *rest)

    monkeypatch.setattr(TextVectors, encode.__name__, meanwhile)
    stage.run(first, work)
    written = (tmp_path / name).read_bytes()
    stage.run(second, work)
    assert (tmp_path / name).read_bytes() != written
    stage.run(first, work)
    assert (tmp_path / name).read_bytes() == written
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "cat.txt", "dog.txt"]


def test_all_faults_are_told_at_once(work: WorkDirectory, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="3 errors"):
        stage.run(Params(lines="a.txt", output=tmp_path / "a.npy", store="int3", dtype="half", batch_tokens=0), work)


def test_the_format_of_a_folder_cannot_be_named(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs" / "a.txt", ["the dog"])
    place = str(tmp_path / "docs")
    asked = Params(lines=place, output=tmp_path / "out.npy", model=str(tiny_model), format="text")
    with pytest.raises(InputError, match="`format` is that of a file"):
        stage.run(asked, work)


def test_why_the_number_format_was_chosen_is_told_once(
    tmp_path: Path, tiny_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    lines, output = write(tmp_path / "a.txt", ["a dog", "a cat"]), str(tmp_path / "a.npy")
    assert _run(["encode", lines, "--model", str(tiny_model), "-o", output, "--dtype", "float32"]) == 0
    said = capfd.readouterr()
    assert "in float32 (requested)" in said.err
    assert " ".join(said.out.split()).count("dtype float32") == 1
    assert "requested" not in said.out


def test_the_command_reports_json(tmp_path: Path, tiny_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from sentcompress.cli.main import _run

    lines, output = write(tmp_path / "a.txt", ["a dog", "a cat"]), str(tmp_path / "a.npy")
    assert _run(["encode", lines, "--model", str(tiny_model), "-o", output, "--json", "-q"]) == 0
    document = json.loads(capfd.readouterr().out)
    expected = {"rows", "dimension", "model", "seconds", "sentences_per_second", "dtype", "dtype_reason", "output"}
    assert set(document) == expected | {"store", "bytes_per_vector", "runtime"}
    assert document["output"] == output
