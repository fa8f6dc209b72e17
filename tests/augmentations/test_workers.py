"""Worker processes: their results, errors and ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from sentcompress.augmentations.base import Augmenter
from sentcompress.augmentations.workers import HIDDEN_LIBRARIES, Piece, augment_pieces
from sentcompress.errors import InputError, SentcompressError


@dataclass(frozen=True)
class ShoutSpec:
    """Upper-cases texts; some texts make the worker fail or report on itself."""

    source = "shout"
    summary = "for tests"
    in_workers = True

    def describe(self) -> dict[str, str]:
        return {}

    def load(self) -> Augmenter:
        return Shouter()


class Shouter:
    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        if "die" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fail" in texts:
            raise InputError("it failed", "a hint")
        if "sleep" in texts:
            time.sleep(1000)
        if "import" in texts:
            return [" ".join(name for name in HIDDEN_LIBRARIES if importlib.util.find_spec(name))]
        return [f"{text.upper()} {os.getpid()}" for text in texts]


def pieces(*texts: str) -> list[Piece]:
    return [Piece(number, "shout", 1, number, [text]) for number, text in enumerate(texts)]


def test_every_piece_is_returned_once() -> None:
    given = pieces(*"abcdefg")
    found = {piece.number: new[0].split()[0] for piece, new in augment_pieces({"shout": ShoutSpec()}, given, 2)}
    assert found == dict(enumerate("ABCDEFG"))


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    with pytest.raises(InputError, match="it failed") as caught:
        list(augment_pieces({"shout": ShoutSpec()}, pieces("a", "fail", "b"), 1))
    assert caught.value.hint == "a hint"


def test_workers_do_not_load_heavy_libraries() -> None:
    assert [new for _, new in augment_pieces({"shout": ShoutSpec()}, pieces("import"), 1)] == [[""]]


def test_a_worker_that_is_killed_is_noticed() -> None:
    with pytest.raises(SentcompressError, match="killed"):
        list(augment_pieces({"shout": ShoutSpec()}, pieces("a", "die"), 1))


def test_an_interrupt_while_workers_start_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    start = SpawnProcess.start

    def interrupted(process: SpawnProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(augment_pieces({"shout": ShoutSpec()}, pieces("a"), 1))


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 85)],
)
def test_workers_leave_signals_to_their_parent_and_do_not_outlive_it(
    tmp_path: Path, how: signal.Signals, code: int
) -> None:
    """All but SIGKILL are sent to the workers too, as by a terminal and by a scheduler."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_workers import ShoutSpec, pieces\n"
        "from sentcompress.augmentations.workers import augment_pieces\n"
        "from sentcompress.signals import ENDS, StoppedError, Working, install\n"
        "if __name__ == '__main__':\n"
        "    install()\n"
        "    try:\n"
        "        with Working():\n"
        "            for _, new in augment_pieces({'shout': ShoutSpec()}, pieces('a', 'b', 'sleep', 'sleep'), 2):\n"
        "                print(new, flush=True)\n"
        "    except StoppedError as stop:\n"
        "        sys.exit(ENDS[stop.number][1])\n"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True, env=environment
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    parent.stdout.readline()
    os.kill(parent.pid, how) if how == signal.SIGKILL else os.killpg(parent.pid, how)
    assert parent.wait(timeout=300) == code
    deadline = time.monotonic() + 300
    while _alive(parent.pid):
        assert time.monotonic() < deadline, "workers are still running"
        time.sleep(0.05)


def test_a_script_without_a_guard_for_its_main_part_is_not_run_by_the_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_workers import ShoutSpec, pieces\n"
        "from sentcompress.augmentations.workers import augment_pieces\n"
        "print(*sorted(new[0][0] for _, new in augment_pieces({'shout': ShoutSpec()}, pieces('a', 'b'), 2)))\n"
        "assert sys.modules['__main__'].__file__ == __file__\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "A B\n"), ran.stderr


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
