"""Results: tables, charts, paragraphs, one JSON document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sentcompress.cli import render
from sentcompress.cli.terminal import print_json, say_wrapped

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.98123456, "0.9812"),
        (82.034, "82.03"),
        (12345.6, "12,346"),
        (0.00001234, "1.23e-05"),
        (0.0, "0"),
        (float("nan"), "not defined"),
        (float("-inf"), "not defined"),
        (None, ""),
        ("[bold]text", "[bold]text"),
    ],
)
def test_numbers_have_about_four_digits(value: Any, shown: str) -> None:
    assert render.show(value) == shown


def test_json_is_one_document_without_numbers_that_are_none(capsys: Captured) -> None:
    print_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": (float("-inf"), "ü")}})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": None, "b": [None, 1.5], "c": {"d": [None, "ü"]}}
    assert "ü" in out


def test_a_table_shows_what_looks_like_markup_and_cuts_nothing_in_a_pipe(capsys: Captured) -> None:
    long = "models/" + "x" * 100
    render.print_table(["name", "score"], [[long, 81.5], ["[red]y[/]", None]])
    out = capsys.readouterr().out
    assert long in out
    assert "[red]y[/]" in out
    assert "81.50" in out


def test_a_table_without_rows_has_its_columns(capsys: Captured) -> None:
    render.print_table(["name", "score"], [])
    assert "score" in capsys.readouterr().out


def test_a_chart_falls_as_its_values_do(capsys: Captured) -> None:
    render.print_chart([8.0, 4.0, 2.0, 1.0], "variance", height=4)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "variance"
    assert [line[9:].rstrip() for line in lines[1:5]] == ["█", "█", "██", "███▄"]
    assert lines[1].split()[0] == "8"
    assert lines[5].split() == ["1", "4"]


def test_many_values_share_the_columns_of_a_chart(capsys: Captured) -> None:
    render.print_chart([1.0] * 1000, "variance", width=60)
    lines = capsys.readouterr().out.splitlines()
    assert {len(line) for line in lines[1:]} == {69}


@pytest.mark.parametrize("values", [[], [0.0, 0.0]])
def test_a_chart_of_nothing_is_nothing(capsys: Captured, values: list[float]) -> None:
    render.print_chart(values, "variance")
    assert capsys.readouterr().out == ""


def test_a_chart_of_one_value(capsys: Captured) -> None:
    render.print_chart([1.0], "variance", height=2)
    assert capsys.readouterr().out.count("█") == 2


def test_a_paragraph_is_wrapped_between_words_in_a_terminal_only(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "the model is smaller; path/without-a-break-that-is-longer-than-the-line stays"
    say_wrapped(text)
    assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    say_wrapped(text)
    lines = ["the model is smaller;", "path/without-a-break-that-is-longer-than-the-line", "stays"]
    assert capsys.readouterr().out.splitlines() == lines
