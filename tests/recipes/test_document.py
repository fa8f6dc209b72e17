"""Recipes as files: their form, and what is told of a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.errors import InputError
from sentcompress.recipes.document import Slot, read_recipe

WHOLE = """
title = "A chain"
paper = "Nobody 2020"
[row]
model = "X"
score = 80.5
[inputs]
nli = "pairs"
sts = { about = "sets", optional = true }
[[stage]]
command = "augment"
inputs = ["${nli}"]
back_translate = 0
[[stage]]
command = "distill"
set = { beta = 0.5 }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "chain.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_recipe(tmp_path: Path) -> None:
    recipe, faults = read_recipe(write(tmp_path, WHOLE))
    assert not faults
    assert (recipe.title, recipe.paper, dict(recipe.row)) == (
        "A chain",
        "Nobody 2020",
        {"model": "X", "score": 80.5},
    )
    assert recipe.inputs == {"nli": Slot("pairs"), "sts": Slot("sets", optional=True)}
    assert [(stage.number, stage.command) for stage in recipe.stages] == [(1, "augment"), (2, "distill")]
    # Underscores are read as the dashes of the command line; what is inside is left alone.
    assert recipe.stages[0].values == {"inputs": ["${nli}"], "back-translate": 0}
    assert recipe.stages[1].values == {"set": {"beta": 0.5}}


def test_all_faults_of_form_are_told_together(tmp_path: Path) -> None:
    text = """
titel = "A chain"
[row]
scor = 1
[inputs]
nli = 3
dev = { abuot = "pairs" }
[[stage]]
method = "hpd"
[[stage]]
command = "distill"
"""
    recipe, faults = read_recipe(write(tmp_path, text))
    told = "\n".join(faults)
    for words in ("'titel'; did you mean title?", "title is missing", "row: no key 'scor'; did you mean score?"):
        assert words in told
    for words in ("nli must be a text or a table", "dev: no key 'abuot'; did you mean about?", "stage 1: no command"):
        assert words in told
    assert len(faults) == 6
    assert [stage.number for stage in recipe.stages] == [2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "A"\n', "there are no stages"),
        ('title = "A"\nrow = 3\n[[stage]]\ncommand = "distill"\n', "row must be a table"),
        ('title = "A"\ninputs = "x"\n[[stage]]\ncommand = "distill"\n', "inputs must be a table"),
        ('title = "A"\nstage = 3\n', "there are no stages"),
    ],
)
def test_a_fault_of_form(tmp_path: Path, text: str, words: str) -> None:
    _, faults = read_recipe(write(tmp_path, text))
    assert len(faults) == 1
    assert words in faults[0]


def test_no_such_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    with pytest.raises(InputError, match="no recipe") as raised:
        read_recipe(tmp_path / "chan.toml")
    assert raised.value.hint == "did you mean chain.toml?"


def test_a_folder_is_no_recipe_and_a_project_is_none_either(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    (tmp_path / "pyproject.toml").touch()
    with pytest.raises(InputError, match="is a folder, not a recipe") as raised:
        read_recipe(tmp_path)
    assert raised.value.hint == "choose one of: chain.toml"


def test_what_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not valid TOML.*line 1"):
        read_recipe(write(tmp_path, "title = \n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "not valid TOML"),
        ("# comment\n" * 100_000, "larger than"),
    ],
)
def test_documents_that_no_parser_can_read(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_recipe(path)
