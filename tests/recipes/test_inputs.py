"""Inputs and settings: what stands where a recipe leaves a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.recipes.document import Recipe, Slot, Stage
from sentcompress.recipes.inputs import faults_of_inputs, named_values, overridden


def recipe(*stages: Stage, **inputs: Slot) -> Recipe:
    return Recipe(Path("chain.toml"), "A chain", "", (), inputs, stages)


def test_settings_go_to_stages_by_number_or_command() -> None:
    stages = (Stage(1, "finetune", {"lr": 0.1}), Stage(2, "finetune"), Stage(3, "distill", {"set": {"beta": 1}}))
    faults: list[str] = []
    changed = overridden(
        recipe(*stages),
        ["finetune.epochs=2", "1.lr=0.2", "distill.set.gamma=3", "distill.set.head-start=identity", "1.dev=a=b"],
        faults,
    )
    assert not faults
    assert changed.stages[0].values == {"lr": "0.2", "epochs": "2", "dev": "a=b"}
    assert changed.stages[1].values == {"epochs": "2"}
    assert changed.stages[2].values == {"set": {"beta": 1, "gamma": "3", "head_start": "identity"}}


def test_switches_in_any_form_take_another() -> None:
    stages = (Stage(1, "distill", {"set": ["beta=1", "gamma=2"]}), Stage(2, "distill", {"set": "beta=1"}))
    changed = overridden(recipe(*stages), ["distill.set.beta=3"], [])
    assert changed.stages[0].values == {"set": {"beta": "3", "gamma": "2"}}
    assert changed.stages[1].values == {"set": {"beta": "3"}}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("distill.lr", "write --set STAGE.OPTION=VALUE"),
        ("lr=3", "write --set STAGE.OPTION=VALUE"),
        ("distil.lr=3", "no stage 'distil'; did you mean distill?"),
        ("2.lr=3", "no stage '2'"),
    ],
)
def test_settings_that_fit_nowhere(setting: str, words: str) -> None:
    faults: list[str] = []
    overridden(recipe(Stage(1, "distill")), [setting], faults)
    assert len(faults) == 1
    assert words in faults[0]


def test_the_numbers_of_a_variants_stages_are_named() -> None:
    faults: list[str] = []
    overridden(recipe(Stage(1, "augment"), Stage(7, "distill")), ["3.lr=3"], faults)
    assert faults == [
        "--set 3.lr: the recipe has no stage '3'; choose one of: all, augment, distill; or a number: 1, 7"
    ]


def test_an_empty_input_is_told_as_such() -> None:
    faults, _ = faults_of_inputs(recipe(nli=Slot("pairs")), {"nli": [""]}, {"nli"})
    assert faults == ["input 'nli' is empty"]


def test_inputs_are_all_looked_at(tmp_path: Path) -> None:
    there = tmp_path / "nli.csv"
    there.touch()
    slots = {name: Slot(f"about {name}") for name in ("nli", "dev", "news", "more")}
    asked = recipe(**slots, sts=Slot("sets", optional=True))
    given = {"nli": [str(there)], "dev": [f"{tmp_path}/dev.tsv"], "more": ["hub:some/set"], "nil": ["x"]}
    faults, bad = faults_of_inputs(asked, given, {"nli", "dev", "news", "more", "sts"})
    assert faults == [
        "--input nil: the recipe has no such input; did you mean nli?",
        "input 'news' is missing: about news (--input news=...)",
        f"input 'dev': no such file: {tmp_path}/dev.tsv",
    ]
    assert bad == ["${news}", f"{tmp_path}/dev.tsv"]


def test_an_input_that_no_stage_wants_any_more_may_be_missing() -> None:
    assert faults_of_inputs(recipe(dev=Slot("pairs")), {}, set()) == ([], [])


def test_named_values_keep_their_order() -> None:
    faults: list[str] = []
    assert named_values(["a=1", "b=2", "a=3", "c"], "--input", faults) == {"a": ["1", "3"], "b": ["2"]}
    assert faults == ["--input c: write --input name=value"]
