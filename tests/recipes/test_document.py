"""Recipes as files: their form, and what is told of a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.errors import InputError, UsageError
from sentcompress.recipes.document import Slot, read_recipe
from sentcompress.recipes.rows import Row

WHOLE = """
title = "A chain"
paper = "Nobody 2020"
[[row]]
model = "X"
of = "student"
metric = "STS mean"
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
    assert (recipe.title, recipe.paper) == ("A chain", "Nobody 2020")
    assert recipe.rows == (Row(model="X", of="student", metric="STS mean", score=80.5),)
    assert recipe.inputs == {"nli": Slot("pairs"), "sts": Slot("sets", optional=True)}
    assert [(stage.number, stage.command) for stage in recipe.stages] == [(1, "augment"), (2, "distill")]
    # Underscores are read as the dashes of the command line; what is inside is left alone.
    assert recipe.stages[0].values == {"inputs": ["${nli}"], "back-translate": 0}
    assert recipe.stages[1].values == {"set": {"beta": 0.5}}


def test_all_faults_of_form_are_told_together(tmp_path: Path) -> None:
    text = """
titel = "A chain"
[[row]]
scor = 1
metric = "STS men"
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
    for words in ("'titel'; did you mean title?", "title is missing", "row 1: no key 'scor'; did you mean score?"):
        assert words in told
    for words in ("nli must be a string or a table", "dev: no key 'abuot'; did you mean about?", "stage 1: no command"):
        assert words in told
    assert "row 1: no metric 'STS men'; did you mean STS mean" in told
    assert "row 1: of is missing" in told
    assert len(faults) == 8
    assert [stage.number for stage in recipe.stages] == [2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "A"\n', "there are no stages"),
        ('title = "A"\nrow = 3\n[[stage]]\ncommand = "distill"\n', "row must be a list of tables"),
        ('title = "A"\ninputs = "x"\n[[stage]]\ncommand = "distill"\n', "inputs must be a table"),
        ('title = "A"\nstage = 3\n', "there are no stages"),
    ],
)
def test_a_fault_of_form(tmp_path: Path, text: str, words: str) -> None:
    _, faults = read_recipe(write(tmp_path, text))
    assert len(faults) == 1
    assert words in faults[0]


VARIANTS = """
title = "${student} at ${dim}"
[values]
student = "minilm"
dim = 128
short = false
copies = 1
name = "x-${dim}"
[[variant]]
name = "minilm-128"
[[variant.row]]
table = "Table 1"
of = "x-${dim}"
metric = "STS mean"
score = 81.2
[[variant]]
name = "tinybert-short"
values = { student = "tinybert", short = true, copies = 0 }
[[stage]]
command = "fit-pca"
if = "short"
dim = "${dim}"
[[stage]]
command = "augment"
if = ["short", "copies"]
[[stage]]
command = "distill"
student = "${student}"
name = "${name}"
"""


def test_variants_are_recipes_of_their_own(tmp_path: Path) -> None:
    recipe, faults = read_recipe(write(tmp_path, VARIANTS))
    assert not faults
    first, second = (recipe.of_variant(name) for name in recipe.variants)
    assert (first.title, first.variant, first.name) == (
        "minilm at 128",
        "minilm-128",
        f"{recipe.path} --variant minilm-128",
    )
    assert [(stage.number, stage.command) for stage in first.stages] == [(3, "distill")]
    assert first.rows == (Row(table="Table 1", of="x-128", metric="STS mean", score=81.2),)
    assert second.title == "tinybert at 128"
    assert [stage.number for stage in second.stages] == [1, 3]
    assert second.stages[0].values == {"dim": 128}
    assert second.stages[1].values == {"student": "tinybert", "name": "x-128"}
    assert second.rows == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (None, "choose one of: minilm-128, tinybert-short"),
        ("minilm-28", "did you mean minilm-128?"),
    ],
)
def test_a_recipe_with_variants_runs_as_one_of_them(tmp_path: Path, name: str | None, hint: str) -> None:
    recipe, _ = read_recipe(write(tmp_path, VARIANTS))
    with pytest.raises(UsageError, match="variant") as raised:
        recipe.of_variant(name)
    assert raised.value.hint == hint


def test_a_recipe_without_variants_has_none(tmp_path: Path) -> None:
    recipe, _ = read_recipe(write(tmp_path, WHOLE))
    assert recipe.of_variant(None).rows == recipe.rows
    with pytest.raises(UsageError, match="has no variant 'x'"):
        recipe.of_variant("x")


def test_all_faults_of_variants_are_told_together(tmp_path: Path) -> None:
    text = """
title = "A chain of ${nothing}"
[values]
dim = 128
list = [1]
nli = 3
idle = ""
name = "${dim}-${made}"
[inputs]
nli = "pairs"
[[row]]
of = "x"
metric = "STS mean"
[[variant]]
name = "a"
values = { din = 256 }
vales = 3
[[variant.row]]
of = "${no}"
metric = "STS mean"
score = nan
[[variant.row]]
of = "${no}"
metric = "STS mean kept"
documents = 0.5
[[variant]]
name = "a"
[[variant]]
values = {}
[[stage]]
command = "distill"
dim = "${dim}"
if = "din"
[[stage]]
command = "distill"
inputs = ["${nli}"]
if = 3
"""
    _, faults = read_recipe(write(tmp_path, text))
    assert faults == [
        "values: list must be a string, a finite number, true or false",
        "variant a: no key 'vales'; did you mean values?",
        "variant a: din is not among the values of the recipe; did you mean dim?",
        "variant a: row 1: score must be a finite number, not nan",
        "variant a: row 2: documents must be a whole number above 0, not 0.5",
        "variant a: there are two variants of that name",
        'variant 3: no name; write, for example, name = "minilm-128"',
        "row: a recipe with variants has its rows in them: [[variant.row]]",
        "stage 1 (distill): if: din is not among the values of the recipe; did you mean dim?",
        "stage 2 (distill): if must be the name of a value, or a list of names",
        "title: ${nothing} is not among the values of the recipe; choose one of: dim, idle, name, nli",
        "nli is both an input and a value",
        "values: idle is used nowhere",
        "values: name is used nowhere",
        "values: ${made} is neither a value nor an input",
    ]


DEEP = """
title = "A chain"
[values]
a = "${b}"
b = "x-${c}"
c = "y"
[[variant]]
name = "one"
[[variant]]
name = "two words"
[[variant]]
name = "round"
values = { c = "${a}" }
[[stage]]
command = "distill"
student = "${a}"
"""


def test_values_are_one_level_deep_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    recipe, faults = read_recipe(write(tmp_path, DEEP))
    assert faults == [
        "variant 2: 'two words' cannot be a name (letters, digits, ., - and _); write, for example, "
        'name = "minilm-128"',
        "values: a contains ${b}, which contains ${c}; write the text of b in its place",
        "values: b contains ${c}, which contains ${a}; write the text of c in its place",
        "values: c contains ${a}, which contains ${b}; write the text of a in its place",
    ]
    assert list(recipe.variants) == ["one", "round"]


def test_a_number_in_quotes_is_no_number(tmp_path: Path) -> None:
    _, faults = read_recipe(write(tmp_path, WHOLE.replace("score = 80.5", 'score = "80.5"\nqueries = "many"')))
    assert faults == [
        "row 1: score must be a finite number, not '80.5'",
        "row 1: queries must be a whole number above 0, not 'many'",
    ]


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
