"""bench: what is measured adds up, and both models are measured in one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import make_tiny_model

from sentcompress.artifacts import WorkDirectory
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.stages.bench import Params, run


@pytest.fixture
def text(tmp_path: Path, sentences: list[str]) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join([*sentences, "", *sentences]) + "\n", encoding="utf-8")
    return path


def test_both_models_are_measured(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    other = make_tiny_model(tmp_path / "other", layers=4, width=64)
    params = Params(str(tiny_model), str(other), text, count=50, single=10, rounds=2, device="cpu", dtype="float32")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert facts["protocol"]["sentences"] == 50
    for role, folder, width in (("model", tiny_model, 32), ("against", other, 64)):
        measured = facts[role]
        assert measured["label"] == folder.name
        assert measured["vector_bytes"] == 4 * width
        assert measured["weight_bytes"] == (folder / "model.safetensors").stat().st_size
        assert measured["sentences_per_second"] > 0
        latency = [measured[f"latency_p{of}_milliseconds"] for of in (50, 95, 99)]
        assert 0 < latency[0] <= latency[1] <= latency[2]
    assert facts["against"]["parameters"] > facts["model"]["parameters"]


def test_without_text_and_without_sentences_the_hint_names_both(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError) as caught:
        run(Params(str(tiny_model), str(tiny_model)), WorkDirectory(tmp_path / "work"))
    assert "augment" in str(caught.value.hint)
    assert "--text" in str(caught.value.hint)


def test_bad_requests(tmp_path: Path, tiny_model: Path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text("\n \n")
    with pytest.raises(InputError, match="no line with text"):
        run(Params(str(tiny_model), None, blank), WorkDirectory(tmp_path / "work"))
    with pytest.raises(UsageError, match="2 faults"):
        run(Params(str(tiny_model), None, blank, count=0, rounds=0), WorkDirectory(tmp_path / "work"))


def test_command_prints_a_table_and_says_when_times_are_old(
    tmp_path: Path, text: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["bench", "--model", str(tiny_model), "--against", str(tiny_model), "--text", str(text), "--count", "20"]
    words += ["--single", "5", "--rounds", "1", "--dtype", "float32", "--work", str(tmp_path / "work")]
    assert _run(words) == 0
    table = capsys.readouterr().out
    assert all(word in table for word in ("latency p99, ms", "parameters", "20 distinct sentences"))
    assert _run([*words, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["evaluation"] == "bench"
    assert "times as measured on" in captured.err
