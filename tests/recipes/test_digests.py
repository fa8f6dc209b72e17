"""Inputs that a recipe names by digest: what is given in their place is told, and refused if that is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from sentcompress.commands import makers
from sentcompress.recipes.document import Recipe, Slot, Stage, read_recipe
from sentcompress.recipes.inputs import other_inputs, with_folders_opened
from sentcompress.recipes.plan import Asked, make_plan
from sentcompress.recipes.references import Known

TEXTS = {"law.txt": "A law.\n", "news.txt": "Some news.\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def digests() -> dict[str, str]:
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in TEXTS.items()}


def recipe(sha256: Mapping[str, str]) -> Recipe:
    stage = Stage(1, "augment", {"inputs": ["${text}"], "wordnet": 0, "back-translate": 0, "name": "text"})
    return Recipe(Path("chain.toml"), "A chain", "", (), {"text": Slot("text", sha256=sha256)}, (stage,))


def told(folder: Path, *names: str, sha256: Mapping[str, str] | None = None) -> list[str]:
    given = {"text": [str(folder / name) for name in names]}
    found = other_inputs(recipe(digests() if sha256 is None else sha256), given, {"text"})
    return [line.replace(f"{folder}/", "") for line in found]


def test_the_files_of_a_folder_are_those_that_the_recipe_names(folder: Path) -> None:
    (folder / "notes.md").write_text("Not for training.")
    opened = with_folders_opened(recipe(digests()), {"text": [str(folder)], "other": [str(folder)]})
    assert opened == {"text": [str(folder / name) for name in TEXTS], "other": [str(folder)]}
    assert with_folders_opened(recipe({}), {"text": [str(folder)]}) == {"text": [str(folder)]}


def test_the_recipes_own_files_are_nothing_to_tell(folder: Path) -> None:
    assert told(folder, *TEXTS) == []
    assert told(folder, "law.txt", sha256={"": digests()["law.txt"]}) == []
    assert told(folder, "nothing.txt", sha256={}) == []


def test_every_other_file_is_told_with_both_digests(folder: Path) -> None:
    (folder / "law.txt").write_text("Another law.\n")
    found = hashlib.sha256(b"Another law.\n").hexdigest()
    wanted = digests()["law.txt"]
    assert told(folder, *TEXTS) == [f"input 'text': law.txt has the SHA-256 {found}, but the recipe names {wanted}"]
    (folder / "own.txt").write_text("My own text.\n")
    assert told(folder, "own.txt") == [
        "input 'text': the recipe names no file own.txt",
        "input 'text': the recipe also needs law.txt, news.txt",
    ]


def test_the_order_and_the_kind_of_input_matter(folder: Path) -> None:
    assert told(folder, "news.txt", "law.txt") == [
        "input 'text': found news.txt where the recipe has law.txt",
        "input 'text': found law.txt where the recipe has news.txt",
    ]
    assert "hub:some/set is not a file" in other_inputs(recipe(digests()), {"text": ["hub:some/set"]}, {"text"})[0]


def test_other_inputs_are_errors_only_if_the_exact_ones_are_asked_for(folder: Path) -> None:
    (folder / "law.txt").write_text("Another law.\n")
    known = Known(makers(), lambda kind, name: False)
    plan, faults = make_plan(recipe(digests()), Asked([f"text={folder}"]), known)
    assert not faults
    assert len(plan.others) == 1
    assert plan.steps[0].params.inputs == tuple(str(folder / name) for name in TEXTS)
    _, faults = make_plan(recipe(digests()), Asked([f"text={folder}"], exact=True), known)
    assert faults == list(plan.others)


@pytest.mark.parametrize("given", ['"short"', "3", '{ a = "00" }', '["00"]'])
def test_digests_have_a_form(tmp_path: Path, given: str) -> None:
    path = tmp_path / "chain.toml"
    path.write_text(
        f'title = "A"\n[inputs]\ntext = {{ about = "text", sha256 = {given} }}\n'
        '[[stage]]\ncommand = "augment"\ninputs = ["${text}"]\n'
    )
    _, faults = read_recipe(path)
    assert faults == ["inputs: text: sha256 must be 64 hexadecimal digits, or a table of file names with theirs"]
    path.write_text(path.read_text().replace(given, f'"{"0a" * 32}"'))
    found, faults = read_recipe(path)
    assert not faults
    assert found.inputs["text"].sha256 == {"": "0a" * 32}
