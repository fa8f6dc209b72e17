"""Placeholders: values and inputs in the texts of a recipe."""

from __future__ import annotations

import pytest

from sentcompress.recipes.placeholders import FromUser, filled, placeholders, text_with_values, with_values


def test_placeholders_are_filled() -> None:
    value = {"inputs": ["${nli}", "more.txt"], "dev": "${folder}/dev.tsv", "lr": 0.1}
    given = {"nli": ["a.csv", "b.csv"], "folder": ["sts"]}
    assert list(placeholders(value)) == ["nli", "folder"]
    assert filled(value, given) == {"inputs": ["a.csv", "b.csv", "more.txt"], "dev": "sts/dev.tsv", "lr": 0.1}
    assert filled("${absent}", given) == "${absent}"
    with pytest.raises(ValueError, match="was given 2 times"):
        filled("${nli}", given)


def test_what_the_user_writes_is_no_placeholder() -> None:
    value = [FromUser("${nli}")]
    assert list(placeholders(value)) == []
    assert filled(value, {"nli": ["a"]}) == ["${nli}"]


def test_a_value_that_is_the_whole_option_keeps_its_type() -> None:
    values = {"dim": 128, "lr": 1e-3, "tanh": False, "student": "minilm"}
    given = {"dim": "${dim}", "set": {"tanh": "${tanh}"}, "lr": ["${lr}"], "name": "hpd-${dim}-${student}", "seed": 3}
    assert with_values(given, values) == {
        "dim": 128,
        "set": {"tanh": False},
        "lr": [1e-3],
        "name": "hpd-128-minilm",
        "seed": 3,
    }
    assert text_with_values("${tanh} ${dim} ${nli}", values) == "false 128 ${nli}"


def test_a_value_can_be_an_input() -> None:
    assert filled(with_values(["${data}"], {"data": "${nli}"}), {"nli": ["a", "b"]}) == ["a", "b"]
