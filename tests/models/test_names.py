"""What the name of a model means."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.models.names import PRESETS, Meaning, is_hub_name, meaning_of, no_such_model

THERE = {("students", "small"), ("exports", "small"), ("exports", "out"), ("teacher-vectors", "main")}


def meaning(name: str) -> tuple[str, str] | None:
    found = meaning_of(name, lambda kind, own: (kind, own) in THERE)
    return found and (found.kind, found.name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("small", ("artifact", "students/small")),
        ("exports/small", ("artifact", "exports/small")),
        ("out", ("artifact", "exports/out")),
        ("teacher-vectors/main", ("artifact", "teacher-vectors/main")),
        ("main", None),  # vectors are no model
        ("students/gone", None),  # no owner of the hub is called so
        ("documents/main", None),  # nor is an artifact of another kind a model of the hub
        ("teacher", ("teacher", "teacher")),
        ("student", ("student", "student")),
        ("embedded", ("source", "embedded")),
        ("tinybert", ("source", PRESETS["tinybert"])),
        ("owner/name", ("source", "owner/name")),
        ("hub:owner/name", ("source", "owner/name")),
        ("roberta-large", ("source", "roberta-large")),
        ("hub:roberta-large", ("source", "roberta-large")),
        ("hub:gpt2", ("source", "hub:gpt2")),
        ("hub:students/tiny", ("source", "hub:students/tiny")),
        ("gpt2", None),
        ("hub:a b", None),
        ("./nowhere", ("source", "./nowhere")),
        ("/nowhere/at/all", ("source", "/nowhere/at/all")),
        ("teacher:3", None),
    ],
)
def test_names(name: str, expected: tuple[str, str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert meaning(name) == expected


def test_a_folder_comes_after_artifacts_and_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("small", "tinybert", "mine"):
        (tmp_path / name).mkdir()
    assert meaning("small") == ("artifact", "students/small")
    assert meaning("tinybert") == ("source", PRESETS["tinybert"])
    assert meaning("mine") == ("source", "mine")


@pytest.mark.parametrize("word", ["teacher", "student", "embedded", "tinybert"])
def test_a_student_called_like_a_word_comes_first(word: str) -> None:
    assert meaning_of(word, lambda kind, _: kind == "students") == Meaning("artifact", f"students/{word}")


def test_well_known_names_without_an_owner() -> None:
    for name in ("bert-base-uncased", "roberta-base", "xlm-roberta-large", "distilbert-base-uncased"):
        assert is_hub_name(name)
    for name in ("small", "bert", "my-bert-base", "roberta-tiny", "students"):
        assert not is_hub_name(name)


@pytest.mark.parametrize(("slip", "meant"), [("tinybret", "tinybert"), ("minlm", "minilm"), ("teachr:3", "teacher:3")])
def test_a_slip_of_the_finger(slip: str, meant: str) -> None:
    hint = str(no_such_model(slip, Path("work"), [], layers=True).hint)
    assert hint.startswith("did you mean")
    assert meant in hint
