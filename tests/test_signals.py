"""Ctrl-C and SIGTERM at every moment: two lines, the right code, no traceback."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sentcompress.signals import ENDS, GO_ON, stopping

ROOT = Path(__file__).resolve().parents[1]
ALL = pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1], ids=lambda number: number.name)
# Where Ctrl-C has words or rules of its own.
BOTH = pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGUSR1], ids=lambda number: number.name)
# Where nothing depends on which one it is but the message and the code, which the tests of all show.
SENT = signal.SIGTERM
# However slow the machine is, what ends by itself says no more than how it ended.
START = "from sentcompress import signals; signals.TOLD_AFTER_SECONDS = 1000; "
START += "from sentcompress.__main__ import main; import sys, os, signal; send = lambda n: os.kill(os.getpid(), n); "


def told(sent: signal.Signals) -> tuple[int, str]:
    reason, code = ENDS[sent]
    return code, f"error: {reason}\nhelp:  {GO_ON}\n"


def outcome(code: str, folder: Path, *arguments: str, modules: Path | None = None) -> tuple[int, str]:
    """Of a process that runs this Python code; `modules` are found before the real ones."""
    done = process_of(code, folder, *arguments, modules=modules)
    return done.returncode, done.stderr


def process_of(
    code: str, folder: Path, *arguments: str, modules: Path | None = None
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, [*([modules] if modules else []), ROOT]))
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=600)


@ALL
def test_while_the_modules_of_the_command_line_are_loaded(sent: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(f"import os\nos.kill(os.getpid(), {int(sent)})\n")
    assert outcome(START + "main()", tmp_path, "status", modules=tmp_path) == told(sent)


def test_while_the_commands_are_put_together(tmp_path: Path) -> None:
    code = "import typer; typer.main.get_command = lambda app: send(%d); main()"
    assert outcome(START + code % SENT, tmp_path, "status") == told(SENT)


def test_before_the_command_has_begun_no_part_is_said_to_be_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A line.\n")
    code = "import typer; typer.main.get_command = lambda app: send(15); main()"
    _, said = outcome(START + code, tmp_path, "encode", "a.txt", "-o", "x.npy")
    assert "run the same command again" in said
    assert "part" not in said


WORK = """
from sentcompress.stages import status
def run(*_):
    {}
    open("went-on", "w").close()
    return []
status.run = run
main()
"""


def while_working(what: str, folder: Path) -> tuple[int, str]:
    return outcome(START + WORK.format(what), folder, "status", "--work", str(folder))


@ALL
def test_while_it_works_files_are_put_in_order(sent: signal.Signals, tmp_path: Path) -> None:
    what = "from sentcompress.store.atomic import written\n    from pathlib import Path\n"
    what += f"    with written(Path('result')) as path: path.touch(); send({int(sent)})"
    assert while_working(what, tmp_path) == told(sent)
    assert list(tmp_path.iterdir()) == []


def test_an_import_is_ended_first(tmp_path: Path) -> None:
    """An exception inside would be lost where a library tries an import and goes on without it."""
    (tmp_path / "careless.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {int(SENT)})\ntime.sleep(0.1)\nopen('loaded', 'w').close()\n"
    )
    what = "import time\n    try:\n        import careless\n    except BaseException:\n        pass\n    time.sleep(60)"
    assert outcome(START + WORK.format(what), tmp_path, "status", "--work", ".", modules=tmp_path) == told(SENT)
    assert (tmp_path / "loaded").exists()
    assert not (tmp_path / "went-on").exists()


def test_the_import_of_a_stage_is_not_waited_for(tmp_path: Path) -> None:
    """Nothing was begun that would have to be put in order; with --json, standard output gets its document."""
    (tmp_path / "slow.py").write_text(f"import os\nos.kill(os.getpid(), {int(SENT)})\nopen('loaded', 'w').close()\n")
    replaced = "from dataclasses import replace; from sentcompress.commands import status; "
    replaced += "status.COMMAND = replace(status.COMMAND, module='slow'); main()"
    for words, document in (((), ""), (("--json",), "document")):
        done = process_of(START + replaced, tmp_path, "status", *words, modules=tmp_path)
        assert (done.returncode, done.stderr) == told(SENT)
        if document:
            reason, code = ENDS[SENT]
            assert json.loads(done.stdout) == {"error": reason, "help": GO_ON, "exit_code": code}
        else:
            assert done.stdout == ""
    assert not (tmp_path / "loaded").exists()


def test_what_another_rank_got_is_passed_on_only_once_during_an_import(tmp_path: Path) -> None:
    """The thread that passes signals on asks every second; an import can take longer."""
    (tmp_path / "slow.py").write_text(
        "import time\nfrom sentcompress.signals import pass_on\n"
        f"for _ in range(3):\n    pass_on({int(signal.SIGUSR1)})\n    time.sleep(0.05)\nopen('loaded', 'w').close()\n"
    )
    what = "import time\n    try:\n        import slow\n        time.sleep(60)\n    finally:\n"
    what += "        open('cleared', 'w').close()"
    assert outcome(START + WORK.format(what), tmp_path, "status", "--work", ".", modules=tmp_path) == told(
        signal.SIGUSR1
    )
    assert {"loaded", "cleared"} <= {path.name for path in tmp_path.iterdir()}
    assert not (tmp_path / "went-on").exists()


def test_what_is_raised_in_a_destructor_is_raised_again(tmp_path: Path) -> None:
    what = f"import time\n    class Last:\n        def __del__(self): send({int(SENT)}); time.sleep(0)\n"
    what += "    last = Last()\n    del last\n    time.sleep(60)"
    assert while_working(what, tmp_path) == told(SENT)
    assert not (tmp_path / "went-on").exists()


def test_a_second_one_ends_the_clearing_up(tmp_path: Path) -> None:
    what = f"try: send({int(SENT)})\n    finally: send({int(SENT)}); open('cleared', 'w').close()"
    assert while_working(what, tmp_path) == told(SENT)
    assert list(tmp_path.iterdir()) == []


WRITING = """import time
    import sentcompress.signals as own
    write = os.write
    def written(*given):
        os.write = write
        {}
        return write(*given)
    """


def test_one_that_arrives_while_the_message_is_written_does_not_prevent_it(tmp_path: Path) -> None:
    what = WRITING.format(f"send({int(SENT)})") + "own.BOUNCE_SECONDS = 30\n"
    what += f"    try: send({int(SENT)})\n    finally: os.write = written; send({int(SENT)})"
    assert while_working(what, tmp_path) == told(SENT)


def test_a_message_that_is_written_slowly_is_waited_for(tmp_path: Path) -> None:
    """The main thread and the one that hears signals both end the process, and the first one writes the message."""
    what = WRITING.format("time.sleep(1)") + "own.MESSAGE_SECONDS = 500\n"
    what += f"    try: send({int(SENT)})\n    finally: os.write = written; time.sleep(0.5); send({int(SENT)})"
    assert while_working(what, tmp_path) == told(SENT)


def test_the_code_is_that_of_the_first_signal(tmp_path: Path) -> None:
    """Launchers send SIGTERM to the other processes of a job as soon as one has ended."""
    what = f"try: send({int(signal.SIGUSR1)})\n    finally: send({int(signal.SIGTERM)}); open('cleared', 'w').close()"
    assert while_working(what, tmp_path) == told(signal.SIGUSR1)
    assert list(tmp_path.iterdir()) == []


def test_while_libraries_are_put_away_at_the_exit(tmp_path: Path) -> None:
    what = f"import atexit; atexit.register(lambda: send({int(SENT)}))"
    assert while_working(what, tmp_path) == told(SENT)


@BOTH
def test_when_the_interpreter_itself_ends_it_is_too_late(sent: signal.Signals, tmp_path: Path) -> None:
    """The work is done, and its exit code says so; the interpreter has given the signals back by then."""
    what = "import os, sys\n    class Last:\n"
    what += f"        def __del__(self, kill=os.kill, own=os.getpid()): kill(own, {int(sent)})\n    sys.last = Last()\n"
    what += (
        "    import sentcompress.cli.main as own; own.ends_with = lambda code: None"  # the process is not ended before
    )
    assert while_working(what, tmp_path) == (0, "")


def test_the_memory_is_not_freed_piece_by_piece_at_the_exit(tmp_path: Path) -> None:
    what = "import atexit, sys\n    class Last:\n        def __del__(self): print('freed', file=sys.__stderr__)\n"
    what += "    sys.last = Last(); atexit.register(lambda: print('put in order', file=sys.stderr))"
    assert while_working(what, tmp_path) == (0, "put in order\n")


HELD = """
    import time
    from sentcompress.signals import Held, check
    with Held():
        {}
"""


def while_held(what: str, folder: Path) -> tuple[int, str]:
    return while_working(HELD.format(what.replace("\n", "\n        ")), folder)


@BOTH
def test_where_it_is_held_back_it_waits_for_the_place_where_the_state_is_whole(
    sent: signal.Signals, tmp_path: Path
) -> None:
    """Whatever else is sent until the state is saved changes nothing: launchers pass signals on twice."""
    again = f"send({int(signal.SIGTERM)}); send({int(signal.SIGUSR1)}); send({int(sent)})"
    what = f"send({int(sent)}); {again}; open('whole', 'w').close()\n"
    what += f"try: check()\nfinally: {again}; open('saved', 'w').close()"
    assert while_held(what, tmp_path) == told(sent)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "saved"}


def test_a_second_interrupt_ends_what_is_held_back(tmp_path: Path) -> None:
    sent = int(signal.SIGINT)
    what = f"send({sent}); time.sleep(0.5); send({sent}); open('whole', 'w').close()"
    assert while_held(what, tmp_path) == told(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


def test_what_was_held_back_to_the_end_is_raised_there(tmp_path: Path) -> None:
    assert while_held(f"send({int(SENT)}); open('whole', 'w').close()", tmp_path) == told(SENT)
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize(
    ("part", "patience", "whole"),
    [("time.sleep(30)", 0.1, "False"), ("with own.Unchanged(): time.sleep(30)", 30, "True")],
    ids=["anything", "changes nothing"],
)
def test_what_takes_too_long_need_not_end(part: str, patience: float, whole: str, tmp_path: Path) -> None:
    """The state can only be saved if nothing was being changed."""
    what = f"import sentcompress.signals as own; own.PATIENCE_SECONDS, own.UNCHANGED_SECONDS = {patience}, 0.1\n"
    what += f"try:\n    send({int(SENT)})\n    {part}\nexcept own.StoppedError as stop:\n"
    what += "    open(str(stop.whole), 'w').close()\n    raise\nopen('went-on', 'w').close()"
    assert while_held(what, tmp_path) == told(SENT)
    assert [path.name for path in tmp_path.iterdir()] == [whole]


def test_in_a_background_shell_an_interrupt_stays_ignored(tmp_path: Path) -> None:
    code = f"signal.signal(signal.SIGINT, signal.SIG_IGN); {START}{WORK.format(f'send({int(signal.SIGINT)})')}"
    assert outcome(f"import signal; {code}", tmp_path, "status", "--work", ".") == (0, "")
    assert (tmp_path / "went-on").exists()


# A call of the C library that a signal does not end. Its shell says `blocked` when the call waits for it, and ends when
# somebody has opened the pipe `release` to write.
BLOCKED = """
    import ctypes
    library = ctypes.CDLL(None)
    library.popen.restype, library.pclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    shell = library.popen(b"cat > unused; echo blocked; exec > unused 2>&1; read line < release", b"w")
    {}
"""


@contextmanager
def in_native_code(folder: Path, where: str = "library.pclose(shell)") -> Iterator[subprocess.Popen[str]]:
    """A process whose main thread is in a call of a library."""
    os.mkfifo(folder / "release")
    code = START.replace("1000", "0.5") + WORK.format(BLOCKED.format(where).strip())
    command = [sys.executable, "-c", code, "status", "--work", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    ) as process:
        watch = threading.Timer(600, process.kill)
        watch.start()
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "blocked\n"
            yield process
        finally:
            process.kill()
            watch.cancel()
            release(folder)


def release(folder: Path) -> None:
    """End the call; nothing happens if it was ended before."""
    with suppress(OSError):
        os.close(os.open(folder / "release", os.O_WRONLY | os.O_NONBLOCK))


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline().removesuffix("\n")


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate()
    return process.returncode, err


@BOTH
def test_in_a_call_of_a_library_it_is_told_and_a_second_one_ends_the_process(
    sent: signal.Signals, tmp_path: Path
) -> None:
    with in_native_code(tmp_path) as process:
        process.send_signal(sent)
        assert line_of(process) == stopping(sent, held=False)
        process.send_signal(sent)
        assert end_of(process) == told(sent)


def test_at_the_end_of_a_call_of_a_library_it_is_raised(tmp_path: Path) -> None:
    with in_native_code(tmp_path, "try: library.pclose(shell)\n    finally: open('cleared', 'w').close()") as process:
        process.send_signal(SENT)
        assert line_of(process) == stopping(SENT, held=False)
        release(tmp_path)
        assert end_of(process) == told(SENT)
    assert (tmp_path / "cleared").exists()
    assert not (tmp_path / "went-on").exists()


def test_what_another_rank_got_is_passed_on_only_once_during_a_call_of_a_library(tmp_path: Path) -> None:
    """Longer than a second Ctrl-C takes."""
    what = "import threading, time\n    def ask():\n        while not os.path.exists('begin'): time.sleep(0.01)\n"
    what += "        until = time.monotonic() + 2 * signals.BOUNCE_SECONDS\n"
    what += "        while time.monotonic() < until or not signals._state.heard:\n"
    what += f"            signals.pass_on({int(signal.SIGUSR1)})\n            time.sleep(0.05)\n"
    what += "        os.write(2, b'asked\\n')\n    threading.Thread(target=ask, daemon=True).start()\n"
    what += "    try: library.pclose(shell)\n    finally: open('cleared', 'w').close()"
    with in_native_code(tmp_path, what) as process:
        (tmp_path / "begin").touch()
        lines = [line_of(process), line_of(process)]
        assert sorted(lines) == ["asked", stopping(signal.SIGUSR1, held=False)]
        release(tmp_path)
        assert end_of(process) == told(signal.SIGUSR1)
    assert (tmp_path / "cleared").exists()


@BOTH
def test_in_a_call_of_a_library_where_it_is_held_back_only_ctrl_c_ends_the_process(
    sent: signal.Signals, tmp_path: Path
) -> None:
    with in_native_code(tmp_path, "with signals.Held(): library.pclose(shell)") as process:
        process.send_signal(sent)
        assert line_of(process) == stopping(sent, held=True)
        for other in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            process.send_signal(other)
        assert end_of(process) == told(signal.SIGINT)


def test_what_has_said_how_it_ended_says_no_more(tmp_path: Path) -> None:
    """The thread that says that the command is stopping looks again after that."""
    code = "import threading; over, looked = threading.Event(), threading.Event()\n"
    code += "from sentcompress import signals; import sentcompress.cli.main as own, time; tell = signals._tell_later\n"
    code += "class Clock: monotonic = time.monotonic; sleep = lambda seconds: over.wait()\n"
    code += "def look(number): tell(number); looked.set()\n"
    code += "signals.time, signals._tell_later, own.ends_with = Clock, look, lambda code: (over.set(), looked.wait())\n"
    sent = int(signal.SIGINT)
    assert outcome(code + START + WORK.format(f"send({sent})"), tmp_path, "status", "--work", ".") == told(
        signal.SIGINT
    )


READY = """
from sentcompress import signals
install = signals.install
def installed():
    install()
    os.write(1, b"ready")
signals.install = installed
main()
"""


@ALL
def test_at_random_moments(sent: signal.Signals, tmp_path: Path) -> None:
    """From the moment on in which signals are ours; before, Python itself is starting."""
    draw = random.Random(int(sent))
    command = [sys.executable, "-c", START + READY, "status", "--work", str(tmp_path)]
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"ready"
            time.sleep(draw.uniform(0, 0.4))
            process.send_signal(sent)
            _, err = process.communicate(timeout=600)
        assert (process.returncode, err.decode()) in (told(sent), (0, ""))
