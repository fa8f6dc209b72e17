"""Which stages are run, and which earlier ones have to be up to date for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sentcompress.commands import find_command
from sentcompress.recipes.plan import Step
from sentcompress.recipes.selection import StageSelection, needed


def step(number: int, command: str, **options: Any) -> Step:
    return Step(number, command, find_command(command).params(**options), ())


# Two students on the same vectors, one of them trained further on mined negatives; numbers as in a variant without 4.
STEPS = [
    step(1, "augment", inputs=("a.txt",), name="text"),
    step(2, "teacher-embed", sentences="text", name="vectors"),
    step(3, "distill", teacher_vectors="vectors", sentences="text", method="lrn-kd", name="one"),
    step(5, "distill", teacher_vectors="vectors", sentences="text", method="lrn-kd", name="two"),
    step(6, "mine-negatives", model="one", sentences="text", name="mined"),
    step(7, "finetune", model="one", sentences="mined", teacher_vectors="vectors", name="one-tuned"),
    step(8, "eval-sts", sts=("mteb",), model="one-tuned", compare="teacher"),
    step(9, "eval-sts", sts=("mteb",), model="students/two"),
    step(10, "export"),
]


def numbers(steps: Sequence[Step]) -> list[int]:
    return [one.number for one in steps]


def of(**asked: Any) -> list[int]:
    faults: list[str] = []
    found = numbers(StageSelection(**asked).of(STEPS, faults))
    assert not faults
    return found


def test_stages_are_named_by_number_command_or_result() -> None:
    assert of() == numbers(STEPS)
    assert of(only=["2"]) == of(only=["teacher-embed"]) == of(only=["vectors"]) == [2]
    assert of(only=["eval-sts", "two"]) == [5, 8, 9]
    assert of(first="distill") == of(first="one") == [3, 5, 6, 7, 8, 9, 10]
    assert of(last="distill") == [1, 2, 3, 5]
    assert of(first="mined", last="7") == [6, 7]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"only": ["distil"]}, "`only` distil: no such stage; did you mean distill?; or a number: 1, 2, 3, 5"),
        ({"first": "4"}, "`first` 4: no such stage"),
        ({"last": "onne"}, "`last` onne: no such stage; did you mean one"),
        ({"first": "7", "last": "2"}, "`first` 7 comes after `last` 2"),
        ({"only": ["1"], "last": "2"}, "give either `only`, or `first` and `last`"),
    ],
)
def test_what_cannot_be_selected_is_an_error(asked: dict[str, Any], told: str) -> None:
    faults: list[str] = []
    StageSelection(**asked).of(STEPS, faults)
    assert [fault[: len(told)] for fault in faults] == [told]


@pytest.mark.parametrize(
    ("only", "used"),
    [
        ("1", []),
        ("two", [1, 2]),
        ("mined", [1, 2, 3]),  # one was made from the vectors
        ("one-tuned", [1, 2, 3, 6]),
        ("8", [1, 2, 3, 6, 7]),  # and the teacher is that of the vectors
        ("9", [1, 2, 5]),  # not the other branch
        ("export", [1, 2, 3, 5, 6, 7]),  # the newest student: the last one, so all have to be there
    ],
)
def test_what_a_stage_uses_has_to_be_up_to_date_and_nothing_else(only: str, used: list[int]) -> None:
    chosen = StageSelection([only]).of(STEPS, [])
    assert numbers(needed(chosen, STEPS)) == used


def test_chosen_stages_are_not_among_those_that_they_need() -> None:
    assert numbers(needed(StageSelection(first="3", last="7").of(STEPS, []), STEPS)) == [1, 2]


def test_a_result_without_a_name_and_documents_in_place_of_a_file() -> None:
    steps = [
        step(1, "split-documents", inputs=("docs",), name="docs"),
        step(2, "augment", inputs=("documents/docs",)),
        step(3, "teacher-embed", sentences="main"),
        step(4, "fit-quantizer", vector_bytes=8, model="embedded", compare=None, sentences=None),
    ]
    assert numbers(needed(steps[2:3], steps)) == [1, 2]
    assert numbers(needed(steps[3:], steps)) == [1], "it takes documents, unless it is given sentences"
