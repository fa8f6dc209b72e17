"""Progress is drawn only where somebody watches; a log gets a line a minute."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sentcompress import signals
from sentcompress.cli import terminal_reporter
from sentcompress.cli.terminal_reporter import TerminalReporter, reporting
from sentcompress.exit_codes import INTERRUPTED

ROOT = Path(__file__).resolve().parents[2]
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


def test_a_narrow_terminal_shows_what_is_being_done(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "60")
    now = iter(range(10_000))
    watched = TerminalReporter(quiet=False)
    watched._progress.get_time = lambda: float(next(now))
    with watched.track("measuring", total=78_000) as task:
        for _ in range(20):
            task.advance(20)
        watched.console.print(watched._picture())
    (line,) = capsys.readouterr().err.splitlines()
    assert "measuring" in line
    assert "400/78,000" in line


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


def test_metrics_that_come_while_others_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would end the thread that draws, and with it the picture."""
    watched = TerminalReporter(quiet=False)

    def show(value: object) -> str:
        watched.metrics({f"more {value}": 0.5})
        return str(value)

    monkeypatch.setattr(terminal_reporter, "show", show)
    watched.metrics({"loss": 0.25, "lr": 0.01})
    watched._picture()
    assert set(watched._metrics) == {"loss", "lr", "more 0.25", "more 0.01"}


@pytest.mark.parametrize(
    ("columns", "dev"),
    [("79", "dev 95.12"), ("80", "dev (search fidelity) 95.12"), ("120", "dev (search fidelity) 95.12")],
)
def test_the_dev_score_has_its_name_where_there_is_room(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, columns: str, dev: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", columns)
    watched = TerminalReporter(quiet=False)
    figures = {"loss": 0.02114, "seconds_left": 200.0, "dev": 95.12, "best": 95.42, "measure": "search fidelity"}
    with watched.track("training"):
        watched.metrics(figures)
        watched.console.print(watched._picture())
    lines = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capsys.readouterr().err).splitlines()
    assert all(len(line) <= int(columns) for line in lines)
    shown = " ".join(" ".join(lines).split())
    assert f"{dev} best 95.42" in shown
    assert "measure" not in shown
    assert shown.count("search fidelity") == ("(" in dev), "once"


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


def test_that_a_signal_was_heard_is_told_in_a_log_too(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TOLD_AFTER_SECONDS", 0)
    for quiet in (False, True):
        with signals.Working(), reporting(quiet):
            signals._tell_later(signal.SIGTERM)
        assert capsys.readouterr().err == "stopping (SIGTERM)\n"


# A terminal whose keys are what this process reads, and whose screen is what it writes.
TERMINAL = """
import os, pty, sys
resized = ["sh", "-c", 'stty rows 24 cols "$0"; exec "$@"', *sys.argv[1:]]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(resized)))
"""
# In a phase with metrics, so that the picture has two lines, a call of the C library that ends when the pipe `release`
# is opened. Its shell has opened the pipe `ready` once it ignores Ctrl-C.
STUCK = """
import ctypes
from sentcompress.__main__ import main
from sentcompress.stages import status
def run(params, work, reporter):
    library = ctypes.CDLL(None)
    library.popen.restype, library.pclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    shell = library.popen(b"trap '' INT; : > ready; read line < release", b"w")
    open("ready").close()
    with reporter.track("training", total=3) as task:
        reporter.metrics({"loss": 0.25, "dev": 71.5})
        task.advance()
        library.pclose(shell)
    return []
status.run = run
main()
"""


def shown_on(drawn: str) -> list[str]:
    """The lines of the screen after what rich writes to a terminal; of its sequences, it uses these few."""
    lines, row, column = [""], 0, 0
    for up, erase, other, text in re.findall(r"\x1b\[(\d*)A|\x1b\[(\d?)K|(\x1b\[[^a-zA-Z]*[a-zA-Z])|([^\x1b])", drawn):
        if up:
            row -= int(up)
        elif text == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif text:
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + 1 :]
            column += 1
        elif not other:
            lines[row] = "" if erase == "2" else lines[row][:column]
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("columns", [80, 120])
def test_ctrl_c_is_told_above_the_picture_and_nothing_of_it_stays(tmp_path: Path, columns: int) -> None:
    for pipe in ("release", "ready"):
        os.mkfifo(tmp_path / pipe)
    words = [sys.executable, "-c", STUCK, "status", "--work", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    drawn = ""
    with subprocess.Popen(
        [sys.executable, "-c", TERMINAL, str(columns), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    ) as process:
        watch = threading.Timer(600, process.kill)
        watch.start()
        assert process.stdin is not None
        assert process.stdout is not None

        def read() -> None:
            nonlocal drawn
            block = os.read(process.stdout.fileno(), 2**16)  # type: ignore[union-attr]
            assert block, drawn
            drawn += block.decode()

        def read_until(line: str) -> None:
            while not any(line in shown for shown in shown_on(drawn)):
                read()

        read_until("1/3")
        process.stdin.write(b"\x03")
        process.stdin.flush()
        line = signals.stopping(signal.SIGINT, held=False)
        read_until(line)
        after = drawn.count("1/3")
        while drawn.count("1/3") < after + 3:
            read()
        screen = [shown for shown in shown_on(drawn) if shown]
        assert screen[0] == line
        assert ["loss" in shown for shown in screen[1:]] == [True, False]
        assert "1/3" in screen[2]
        (tmp_path / "release").write_text("now\n")
        drawn += process.communicate()[0].decode()
        watch.cancel()
    assert process.returncode == INTERRUPTED
    assert [shown for shown in shown_on(drawn) if shown] == [line, "error: interrupted", f"help:  {signals.GO_ON}"]


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
