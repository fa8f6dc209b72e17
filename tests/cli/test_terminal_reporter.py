"""Progress is drawn only where somebody watches; a log gets a line a minute."""

from __future__ import annotations

import pytest

from sentcompress.cli import terminal_reporter
from sentcompress.cli.terminal_reporter import STOPPING, TerminalReporter, reporting

Captured = pytest.CaptureFixture[str]


def test_remarks_go_to_standard_error_and_quiet_keeps_the_warnings(capsys: Captured) -> None:
    for quiet, expected in ((False, "a note\nwarning: [careful]\n"), (True, "warning: [careful]\n")):
        with reporting(quiet) as reporter:
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
    watched = TerminalReporter(quiet=False)
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
    watched = TerminalReporter(quiet=False)
    with watched.track("dev: encoding with " + "a-model-of-a-long-name" * 3, total=225_000) as task:
        task.advance(1500)
        watched.console.print(watched._picture())
    (line,) = capsys.readouterr().err.splitlines()
    assert "1,500/225,000" in line
    assert "…" in line


def test_metrics_go_when_their_phase_is_over(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    watched = TerminalReporter(quiet=False)
    with watched.track("training"):
        watched.metrics({"loss": 0.25, "seconds_left": 200.0})
        watched.console.print(watched._picture())
    shown = capsys.readouterr().err
    assert "0.25" in shown
    assert "3 min" in shown, "a time in words"
    with watched.track("exporting"):
        watched.console.print(watched._picture())
    assert "0.25" not in capsys.readouterr().err


def test_a_log_gets_a_line_a_minute(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(quiet: bool) -> str:
        reporter = TerminalReporter(quiet)
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
    monkeypatch.setattr(terminal_reporter, "LOG_EVERY", 0)
    line = "1,500 of 2,000 sentences (75%), loss 0.25, dev 71.25 (best 72.00)"
    assert said(quiet=False) == f"training: {line}\ntraining, scoring: {line}\n"
    assert said(quiet=True) == ""


def test_a_signal_that_waits_is_told_once(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = TerminalReporter(quiet=False)
    watched._beat()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(terminal_reporter, "asked", lambda: 2)
    watched._beat()
    watched._beat()
    assert capsys.readouterr().err == f"{STOPPING}\n"


def test_a_terminal_is_never_blank(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    watched = TerminalReporter(quiet=False)
    watched.console.print(watched._picture())
    assert "working" in capsys.readouterr().err
    with watched.phase("choosing the number format"):
        watched.console.print(watched._picture())
    found = capsys.readouterr().err
    assert "choosing the number format" in found
    assert "0/" not in found
