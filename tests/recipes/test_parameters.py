"""Options by their names: what a recipe may say is what the command line takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer

from sentcompress.cli.main import app
from sentcompress.recipes.parameters import build, command_words, from_text, keys_of
from sentcompress.stages import augment, bench, distill, mine_negatives, teacher_embed
from sentcompress.stages.run import STAGES, _params_of
from sentcompress.training.settings import Overrides

# Where results go and how they are shown is said to `run`, once for all stages.
OF_RUN = {"help", "work", "json", "quiet"}
# Settings of an index that mine-negatives leaves at their defaults on the command line.
BEYOND = {"mine-negatives": {"links", "segments", "ef-construction", "ef-search", "candidates", "rescore"}}


@pytest.mark.parametrize("command", STAGES)
def test_a_recipe_takes_what_the_command_line_takes(command: str) -> None:
    group: Any = typer.main.get_command(app)
    of_command_line = {
        parameter.opts[0].removeprefix("--") if parameter.opts[0].startswith("--") else parameter.name
        for parameter in group.commands[command].params
    } - OF_RUN
    assert set(keys_of(_params_of(command))) - BEYOND.get(command, set()) == of_command_line


def test_values_go_to_their_fields() -> None:
    values = {"method": "ckd", "lr": 1, "seed": 3, "dev": "dev.tsv", "set": {"queue": 10, "head_start": "identity"}}
    params, faults = build(distill.Params, values)
    assert not faults
    assert params == distill.Params(
        method="ckd",
        numbers=Overrides(lr=1.0, seed=3),
        dev=Path("dev.tsv"),
        options=("queue=10", "head_start=identity"),
    )
    assert isinstance(params.numbers.lr, float)


def test_several_values() -> None:
    listed, _ = build(teacher_embed.Params, {"layers": [2, 4]})
    with_commas, _ = build(teacher_embed.Params, {"layers": "2, 4"})
    assert listed.layers == with_commas.layers == (2, 4)
    assert build(augment.Params, {"inputs": "a.txt"})[0].inputs == ("a.txt",)


def test_an_option_goes_to_every_field_of_its_name() -> None:
    params, _ = build(mine_negatives.Params, {"seed": 7, "negatives": 3, "max-score": 0})
    assert (params.seed, params.settings.seed) == (7, 7)
    assert (params.rules.count, params.rules.max_score) == (3, None)


def test_none_for_what_is_on_by_default() -> None:
    assert build(bench.Params, {"compare": "none"})[0].compare is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epochs": "3"}, "epochs must be a whole number, not '3'"),
        ({"epochs": 3.0}, "epochs must be a whole number"),
        ({"epochs": True}, "epochs must be a whole number"),
        ({"lr": True}, "lr must be a number"),
        ({"method": 3}, "method must be a text"),
        ({"force": "yes"}, "force must be true or false"),
        ({"dev": ["a", "b"]}, "dev must be a text"),
        ({"batchsize": 3}, "no option 'batchsize'; did you mean batch-size?"),
    ],
)
def test_a_value_of_the_wrong_kind(values: dict[str, Any], words: str) -> None:
    params, faults = build(distill.Params, {**values, "dim": 64})
    assert len(faults) == 1
    assert words in faults[0]
    assert params.dim == 64  # the rest can still be checked


def test_lists_of_the_wrong_kind() -> None:
    assert "layers must be a list of such, or a whole number" in build(teacher_embed.Params, {"layers": "2,x"})[1][0]
    assert "inputs must be a list of such, or a text" in build(augment.Params, {"inputs": [3]})[1][0]


def test_what_is_missing() -> None:
    assert build(augment.Params, {"wordnet": 1}) == (None, ["it needs 'inputs'"])


def test_text_is_read_as_its_option_has_it() -> None:
    keys = keys_of(distill.Params)
    assert from_text(keys["epochs"], "3") == 3
    assert from_text(keys["lr"], "3") == 3.0
    assert from_text(keys["force"], "true") is True
    assert from_text(keys["student"], "3") == "3"
    assert from_text(keys["epochs"], "x") == "x"


def test_words_of_a_command_line() -> None:
    values = {"wordnet": 0, "inputs": ["a b.txt", "c.txt"], "column": ["x", "y"], "skip-bad": True, "force": False}
    words = command_words(augment.Params, values)
    assert words == ["a b.txt", "c.txt", "--wordnet", "0", "--column", "x", "--column", "y", "--skip-bad"]
    assert command_words(bench.Params, {"memory": False, "runtimes": ["onnx", "float32"]}) == [
        *("--no-memory", "--runtimes", "onnx,float32")
    ]


def test_a_default_that_is_made_anew() -> None:
    @dataclass(frozen=True)
    class Inner:
        size: int = 3

    @dataclass(frozen=True)
    class Outer:
        inner: Inner = field(default_factory=Inner)
        names: tuple[str, ...] = field(default_factory=tuple)

    # typing looks the names up where the class is defined
    globals()["Inner"] = Inner
    try:
        assert build(Outer, {"size": 5})[0] == Outer(Inner(5))
    finally:
        del globals()["Inner"]
