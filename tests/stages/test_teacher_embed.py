"""teacher-embed: aligned vectors, freshness, faults, and a run that is killed again and again."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import interrupted
from listening import Listener
from sharding import make_table
from tiny_models import load_model, make_prompted, make_sentences, make_tiny_model

from sentcompress.encoding import batches
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.models.catalog import find_model
from sentcompress.models.dtype_trial import Speedup
from sentcompress.models.layout import save_encoder
from sentcompress.progress import Reporter
from sentcompress.stages import teacher_embed as stage
from sentcompress.stages import whiten
from sentcompress.stages.teacher_embed import Params
from sentcompress.store import WorkDirectory
from sentcompress.store.running import Counter, Running


@pytest.fixture
def work(tmp_path: Path, sentences: list[str]) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    make_table(work, sentences)
    return work


def test_vectors_stand_beside_their_sentences(work: WorkDirectory, tiny_model: Path, sentences: list[str]) -> None:
    artifact = stage.run(Params(teacher=str(tiny_model), dtype="float32"), work)
    table = work.get("sentences")
    assert artifact.reference == "teacher-vectors/main"
    assert artifact.inputs["sentences/main"] == table.digest
    assert artifact.facts["rows"] == 300
    assert artifact.facts["dimension"] == 32
    assert artifact.facts["sentences_digest"] == table.digest
    assert artifact.facts["compute_dtype"] == "float32"
    assert artifact.facts["sentences_per_second"] > 0
    files = NpyFiles(artifact.path)
    assert [path.name for path in files.paths] == [f"vectors-{number:05d}.npy" for number in range(3)]
    expected = EncodeEngine(load_model(tiny_model), dtype="float32").encode(sentences)
    np.testing.assert_allclose(files.rows(np.arange(300)), expected, rtol=0, atol=1e-6)


def test_windows_of_longer_texts_are_more_work(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also within a file, and only as far as the teacher reads a text."""
    work = WorkDirectory(tmp_path / "work")
    make_table(work, ["a dog", "a cat", "a garden of two dogs", "two dogs and three cats " * 1000])
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 2)
    told: list[Sequence[tuple[int, float]]] = []
    monkeypatch.setattr(Counter, "set_work", lambda _, stretches: told.append(stretches))

    class Watched(Reporter):
        track = Running().track

    stage.run(Params(teacher=str(tiny_model), dtype="float32"), work, Watched())
    longest = stage.CHARACTERS_PER_TOKEN * load_model(tiny_model).text.max_length
    assert told[-1] == [(2, len("a dog") + len("a cat")), (2, len("a garden of two dogs") + longest)]
    assert longest < len("two dogs and three cats " * 1000)


def test_named_prompts_of_the_teacher_are_told_to_be_unused(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    told = Listener()
    stage.run(Params(teacher=str(make_prompted(tmp_path / "prompted", tiny_model)), dtype="float32"), work, told)
    assert len(told.warnings) == 1
    assert told.warnings[0].startswith("prompted has named prompts that are not used (query)")


def test_a_student_teaches(work: WorkDirectory, tiny_model: Path, sentences: list[str]) -> None:
    whiten.run(whiten.Params(model=str(tiny_model), dim=8, name="narrow"), work)
    artifact = stage.run(Params(teacher="narrow", dtype="float32"), work)
    assert artifact.facts["dimension"] == 8
    assert artifact.parameters["teacher"] == "students/narrow"
    expected = EncodeEngine(find_model(work, "narrow").load(), dtype="float32").encode(sentences)
    np.testing.assert_allclose(NpyFiles(artifact.path).rows(np.arange(300)), expected, rtol=0, atol=1e-6)
    assert find_model(work, "teacher") == find_model(work, "narrow")
    assert artifact.manifest["line"][:3] == ["teacher-embed", "--teacher", "narrow"]
    with pytest.raises(InputError, match="no model named 'narow'") as error:
        stage.run(Params(teacher="narow"), work)
    assert error.value.hint is not None
    assert "did you mean narrow?" in error.value.hint


def test_vectors_are_named_as_their_sentences(work: WorkDirectory, tiny_model: Path, sentences: list[str]) -> None:
    stage.run(Params(teacher=str(tiny_model)), work)
    make_table(work, sentences[:20], name="more")
    stage.run(Params(teacher=str(tiny_model)), work)
    assert work.names("teacher-vectors") == ["main", "more"]


def test_half_precision_storage(work: WorkDirectory, tiny_model: Path) -> None:
    full = stage.run(Params(teacher=str(tiny_model), dtype="float32"), work)
    half = stage.run(Params(teacher=str(tiny_model), name="half", dtype="float32", store="float16"), work)
    stored = np.load(half.path / "vectors-00000.npy")
    assert stored.dtype == np.float16
    np.testing.assert_array_equal(stored, np.load(full.path / "vectors-00000.npy").astype(np.float16))


def test_a_second_run_is_fresh_whatever_the_device_and_the_batches(work: WorkDirectory, tiny_model: Path) -> None:
    first = stage.run(Params(teacher=str(tiny_model), dtype="float32"), work)
    second = stage.run(Params(teacher=str(tiny_model), dtype="float32", device="cpu", batch_tokens=64), work)
    assert second.manifest == first.manifest
    other = stage.run(Params(teacher=str(tiny_model), dtype="bfloat16", name="other"), work)
    assert other.digest != first.digest
    assert other.facts["compute_dtype"] == "bfloat16"


def test_sentences_are_cut_where_asked(work: WorkDirectory, tiny_model: Path) -> None:
    whole = stage.run(Params(teacher=str(tiny_model), dtype="float32"), work)
    cut = stage.run(Params(teacher=str(tiny_model), name="cut", dtype="float32", max_length=5), work)
    assert whole.digest != cut.digest
    with pytest.raises(InputError, match="at most 64 tokens"):
        stage.run(Params(teacher=str(tiny_model), name="long", max_length=65), work)


def test_vectors_of_length_one_where_the_teacher_has_others(work: WorkDirectory, tmp_path: Path) -> None:
    teacher = make_tiny_model(tmp_path / "long", normalize=False)
    plain = stage.run(Params(teacher=str(teacher), name="plain", dtype="float32"), work)
    unit = stage.run(Params(teacher=str(teacher), name="unit", dtype="float32", normalize=True), work)
    assert "normalize" not in plain.parameters
    rows = np.arange(20)
    long, short = (NpyFiles(artifact.path).rows(rows) for artifact in (plain, unit))
    lengths = np.linalg.norm(long, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    np.testing.assert_allclose(short, long / lengths, atol=1e-6)
    named = find_model(work, "teacher")  # of the newest vectors
    assert named.load().normalize
    assert named.reference == "teacher-vectors/unit"
    for teacher, name in (("teacher", "again"), ("teacher-vectors/unit", "too")):
        again = stage.run(Params(teacher=teacher, name=name, dtype="float32"), work)
        assert again.parameters == unit.parameters
        np.testing.assert_array_equal(NpyFiles(again.path).rows(rows), short)


def test_vectors_without_the_teachers_own_normalisation(
    work: WorkDirectory, tiny_model: Path, sentences: list[str]
) -> None:
    whole = stage.run(Params(teacher=str(tiny_model), name="whole", dtype="float32", normalize=False), work)
    encoder = load_model(tiny_model)
    assert encoder.normalize
    encoder.normalize = False
    expected = EncodeEngine(encoder, dtype="float32").encode(sentences)
    assert np.abs(np.linalg.norm(expected, axis=1) - 1).min() > 0.1
    np.testing.assert_allclose(NpyFiles(whole.path).rows(np.arange(300)), expected, rtol=0, atol=1e-6)
    assert whole.parameters["normalize"] is False
    assert not find_model(work, "teacher").load().normalize
    again = stage.run(Params(teacher="teacher", name="again", dtype="float32"), work)
    assert (again.parameters, again.digest) == (whole.parameters, whole.digest)
    scaled = stage.run(Params(teacher="teacher", name="scaled", dtype="float32", normalize=True), work)
    np.testing.assert_allclose(np.linalg.norm(NpyFiles(scaled.path).rows(np.arange(300)), axis=1), 1, atol=1e-6)
    assert find_model(work, "teacher").load().normalize
    with pytest.raises(UsageError, match="`normalize` cannot be off"):
        stage.run(Params(teacher=str(tiny_model), normalize=False, content_words=0.5), work)


def test_a_simcse_checkpoint_keeps_its_pooler(work: WorkDirectory, tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    donor = make_tiny_model(tmp_path / "donor")
    folder = tmp_path / "sup-simcse-tiny"
    BertModel(BertConfig.from_pretrained(donor)).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((donor / name).read_bytes())
    vectors = {
        pooling: stage.run(Params(teacher=str(folder), name=pooling, pooling=pooling, dtype="float32"), work)
        for pooling in ("auto", "cls-mlp", "mean")
    }
    assert vectors["auto"].digest == vectors["cls-mlp"].digest != vectors["mean"].digest


def test_a_pooling_that_the_teacher_does_not_use_is_told(work: WorkDirectory, tiny_model: Path) -> None:
    told = Listener()
    asked = Params(teacher=str(tiny_model), pooling="cls", dtype="float32")
    stage.run(asked, work, told)
    assert told.warnings == [f"{tiny_model} keeps its own pooling, mean; `pooling` cls is ignored"]
    stage.run(replace(asked, pooling="mean", name="mean"), work, told)
    assert len(told.warnings) == 1


def test_what_is_missing_is_named(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError) as caught:
        stage.run(Params(teacher=str(tiny_model)), WorkDirectory(tmp_path / "empty"))
    assert "augment" in str(caught.value.hint)


def test_all_faults_are_told_at_once(work: WorkDirectory) -> None:
    with pytest.raises(UsageError) as caught:
        stage.run(Params(pooling="best", store="int8", dtype="half", max_length=0, batch_tokens=0), work)
    assert "5 errors" in caught.value.message


def test_a_teacher_without_weights_leaves_nothing_behind(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    hollow = tmp_path / "hollow"
    hollow.mkdir()
    (hollow / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    with pytest.raises(InputError, match="no weights"):
        stage.run(Params(teacher=str(hollow)), work)
    assert work.names("teacher-vectors") == work.unfinished("teacher-vectors") == []


def test_a_resumed_run_keeps_the_plan_it_began_with(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = iter([Speedup([10.0] * 9), Speedup([0.1] * 9)])
    monkeypatch.setattr("sentcompress.models.dtype_trial.measure", lambda *_: next(plans))
    with interrupted(EncodeEngine, "stream", call=2):
        stage.run(Params(teacher=str(tiny_model)), work)
    assert work.unfinished("teacher-vectors") == ["main"]
    artifact = stage.run(Params(teacher=str(tiny_model)), work)
    assert artifact.facts["compute_dtype"] == "bfloat16"
    asked = stage.run(Params(teacher=str(tiny_model), name="asked", dtype="bfloat16"), work)
    assert artifact.digest == asked.digest


@pytest.mark.parametrize("options", [{}, {"layers": (1,)}, {"content_words": 0.5}])
def test_an_interrupted_run_resumes_within_a_file(
    tmp_path: Path, tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """A file of 100,000 sentences can take a large teacher hours."""
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 40)
    work = WorkDirectory(tmp_path / "work")
    make_table(work, sentences[:180], 100)
    asked = Params(teacher=str(tiny_model), dtype="float32", **options)
    whole = stage.run(replace(asked, name="whole"), work)
    passes = 2 if "content_words" in options else 1
    with interrupted(EncodeEngine, "_encode_window", call=2 * passes + 1):
        stage.run(asked, work)
    encoded, encode = count(), EncodeEngine._encode_window

    def counted(*given: Any) -> Any:
        next(encoded)
        return encode(*given)

    monkeypatch.setattr(EncodeEngine, "_encode_window", counted)
    resumed = stage.run(asked, work)
    assert resumed.digest == whole.digest
    assert next(encoded) == 3 * passes, "the last window of the first file, and two of the second"
    assert sorted(path.name for path in resumed.path.iterdir()) == sorted(path.name for path in whole.path.iterdir())


def run_to_the_end(folder: str, teacher: str, most: int | None = None) -> None:
    """What the killed processes run; with `most` files, they wait to be killed, so that none makes all that is left."""
    import torch

    os.fsync = os.fstat  # type: ignore[assignment]  # as in the tests themselves, see conftest.py
    torch.set_num_threads(1)
    embed, calls = stage._Embedding._embed_span, count()

    def waiting(*given: Any) -> int:
        while next(calls) == most:
            time.sleep(1000)
        return embed(*given)

    stage._Embedding._embed_span = waiting  # type: ignore[method-assign]
    stage.run(Params(teacher=teacher, dtype="float32"), WorkDirectory(folder))


def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    teacher = str(make_tiny_model(tmp_path / "teacher", layers=4, width=64))
    texts = make_sentences(3000)
    table = make_table(WorkDirectory(tmp_path / "killed"), texts, 125)  # 24 files
    make_table(WorkDirectory(tmp_path / "whole"), texts, 125)
    # A server that has loaded the libraries and forks: each run begins at once, in a clean process.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sentcompress.stages.teacher_embed", "transformers.models.bert.modeling_bert"])
    generator = random.Random(0)
    partial = tmp_path / "killed" / "teacher-vectors" / ".main.partial"

    def files() -> int:
        return len(list(partial.glob("vectors-*.npy")))

    kills = 0
    for _ in range(12):
        given = (str(tmp_path / "killed"), teacher, 2)
        process = context.Process(target=run_to_the_end, args=given, daemon=True)
        process.start()
        begun = files()
        # Some die while they start; most in the middle of a file.
        while generator.random() > 0.1 and process.is_alive() and files() == begun:
            time.sleep(0.002)
        time.sleep(generator.random() * 0.02)
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            kills += 1
        process.join()
    for folder in ("killed", "whole"):
        process = context.Process(target=run_to_the_end, args=(str(tmp_path / folder), teacher))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert kills >= 10
    killed, whole = (WorkDirectory(tmp_path / name).get("teacher-vectors") for name in ("killed", "whole"))
    assert killed.inputs["sentences/main"] == table.digest
    assert killed.digest == whole.digest
    for path in sorted(whole.path.glob("*.npy")):
        assert path.read_bytes() == (killed.path / path.name).read_bytes()


@pytest.mark.slow
def test_the_command_killed_at_random_moments(tmp_path: Path) -> None:
    teacher = str(make_tiny_model(tmp_path / "teacher", layers=6, width=128))
    texts = make_sentences(12_000)
    for name in ("killed", "whole"):
        make_table(WorkDirectory(tmp_path / name), texts, 500)

    def start(name: str) -> subprocess.Popen[bytes]:
        words = ["teacher-embed", "--teacher", teacher, "--dtype", "float32", "-q", "--work", str(tmp_path / name)]
        return subprocess.Popen([sys.executable, "-m", "sentcompress", *words])

    before = time.monotonic()
    assert start("whole").wait() == 0
    seconds = time.monotonic() - before
    generator = random.Random(1)
    for _ in range(10):
        process = start("killed")
        time.sleep(generator.uniform(0.3, 0.9) * seconds)
        process.kill()
        process.wait()
    assert start("killed").wait() == 0
    killed, whole = (WorkDirectory(tmp_path / name).get("teacher-vectors") for name in ("killed", "whole"))
    assert killed.digest == whole.digest


def test_the_command_prints_one_json_document(
    work: WorkDirectory, tiny_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["teacher-embed", "--teacher", str(tiny_model), "--work", str(work.path), "--json"]
    assert _run(words) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["kind"] == "teacher-vectors"
    assert document["facts"]["rows"] == 300


def test_content_words_are_read_a_second_time(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    # Nearly all is "the": of what is left, no token is as much as the share from which tokens count as frequent.
    texts = ["the dog the", "the the dog", "dog", "the cat the .", *(" ".join(["the"] * n) for n in range(30, 60))]
    make_table(work, texts, file_rows=10)
    plain = stage.run(Params(teacher=str(tiny_model), dtype="float32", name="plain"), work)
    twice = stage.run(Params(teacher=str(tiny_model), dtype="float32", name="twice", content_words=0.5), work)
    engine = EncodeEngine(load_model(tiny_model), dtype="float32")
    bare = ["dog", "dog", "dog", "cat", *texts[4:]]  # texts of "the" alone are read whole
    expected = engine.encode(texts) + 0.5 * engine.encode(bare)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    rows = np.arange(len(texts))
    found = NpyFiles(twice.path).rows(rows)
    assert twice.digest != plain.digest
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert twice.facts["left_out"] == ["the"]
    assert stage.run(Params(teacher=str(tiny_model), dtype="float32", name="twice", content_words=0.5), work) == twice
    # `teacher` is not that model as its files are: the vectors stand for it.
    assert find_model(work, "teacher").reference == twice.reference


def test_a_prompt_and_a_second_reading_do_not_go_together(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    encoder = load_model(tiny_model)
    encoder.text = replace(encoder.text, prompt="the man reads ")
    save_encoder(encoder, tmp_path / "prompted")
    with pytest.raises(InputError, match="puts a prompt before a text"):
        stage.run(Params(teacher=str(tmp_path / "prompted"), content_words=0.5), work)
    with pytest.raises(UsageError, match="`content_words`"):
        stage.run(Params(teacher=str(tiny_model), content_words=-1.0), work)
