"""What is drawn: tables, charts, one JSON document, progress only where somebody watches."""

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


def test_remarks_go_to_standard_error_and_quiet_keeps_the_warnings(capsys: Captured) -> None:
    for quiet, expected in ((False, "a note\nwarning: [careful]\n"), (True, "warning: [careful]\n")):
        with render.reporting(quiet) as reporter:
            reporter.note("a note")
            reporter.warn("[careful]")
            reporter.metrics({"loss": 1.0})
            with reporter.track("[odd] work", total=3) as task:
                task.advance()
                task.set_total(None)
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", expected)


def test_bars_are_drawn_on_a_terminal_only(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    watched = render.TerminalReporter(quiet=False)
    with watched.live(), watched.track("[odd] work", total=2000) as task:
        task.advance(500)
        task.set_total(4000)
        watched.metrics({"loss": 0.25, "dev": None})
        watched.console.print(watched._picture())  # not left to the clock
    err = capsys.readouterr().err
    assert "[odd] work" in err
    assert "500/4,000" in err
    assert "0.25" in err
    assert "dev" not in err


def test_a_long_description_is_cut_and_the_counts_stay_on_their_line(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    watched = render.TerminalReporter(quiet=False)
    with watched.track("dev: encoding with " + "a-model-of-a-long-name" * 3, total=225_000) as task:
        task.advance(1500)
        watched.console.print(watched._picture())
    (line,) = capsys.readouterr().err.splitlines()
    assert "1,500/225,000" in line
    assert "…" in line


def test_metrics_go_when_their_phase_is_over(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    watched = render.TerminalReporter(quiet=False)
    with watched.track("training"):
        watched.metrics({"loss": 0.25, "seconds_left": 200.0})
        watched.console.print(watched._picture())
    shown = capsys.readouterr().err
    assert "0.25" in shown
    assert "3 min" in shown, "a time in words"
    with watched.track("exporting"):
        watched.console.print(watched._picture())
    assert "0.25" not in capsys.readouterr().err


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


def test_a_log_gets_a_line_a_minute(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(quiet: bool) -> str:
        reporter = render.TerminalReporter(quiet)
        with reporter.track("training", total=None) as task:
            task.set_total(2000)
            reporter.metrics({"step": 3, "dev": 71.25, "best": 72.0, "loss": 0.25})
            reporter.metrics({"step": 4, "dev": None})
            task.advance(1500)
            reporter._beat()  # as once a second
            with reporter.phase("scoring"):
                reporter._beat()
        return capsys.readouterr().err

    assert said(quiet=False) == "", "less than a minute has passed"
    monkeypatch.setattr(render, "LOG_EVERY", 0)
    line = "1,500 of 2,000 sentences (75%), loss 0.25, dev 71.25 (best 72.00)"
    assert said(quiet=False) == f"training: {line}\ntraining, scoring: {line}\n"
    assert said(quiet=True) == ""


def test_a_signal_that_waits_is_told_once(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = render.TerminalReporter(quiet=False)
    watched._beat()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(render, "asked", lambda: 2)
    watched._beat()
    watched._beat()
    assert capsys.readouterr().err == f"{render.STOPPING}\n"


def test_a_terminal_is_never_blank(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    watched = render.TerminalReporter(quiet=False)
    watched.console.print(watched._picture())
    assert "working" in capsys.readouterr().err
    with watched.phase("choosing the number format"):
        watched.console.print(watched._picture())
    found = capsys.readouterr().err
    assert "choosing the number format" in found
    assert "0/" not in found
