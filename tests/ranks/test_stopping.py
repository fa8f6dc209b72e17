"""A signal to one rank: all ranks stop, with what is needed to go on, and with the exit code of that signal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from distilling import make_work, write_dev
from ranked import Ended, run_ranks
from safetensors.torch import load_file
from warm import Commands

from sentcompress.exit_codes import REQUEUE, TERMINATED
from sentcompress.store import WorkDirectory

RUN = """
import os, runpy, signal, time
from pathlib import Path
RANK = int(os.environ["RANK"])
def send(name, pid=None):
    os.kill(pid or os.getpid(), getattr(signal, name))
{}
runpy.run_module("sentcompress", run_name="__main__", alter_sys=True)
"""
# Rank 1 gets a signal in the middle of the fifth step.
IN_A_STEP = """
from sentcompress.training import loop
step = loop.Training._step
def signalled(self, *given):
    if self.progress.step == 4 and RANK == 1:
        send("SIGUSR1")
    return step(self, *given)
loop.Training._step = signalled
"""
# Rank 1 gets a signal while it waits for rank 0 to score the fourth step.
IN_A_SCORE = """
from sentcompress import signals
from sentcompress.training import selection
pids = Path(os.environ["PIDS"])
(pids / str(RANK)).write_text(str(os.getpid()))
score_of, calls = selection.score_of, []
def signalling(*given):
    calls.append(None)
    if len(calls) == 2:
        send("SIGTERM", int((pids / "1").read_text()))
        while signals.asked() is None:
            time.sleep(0.01)
    return score_of(*given)
selection.score_of = signalling
"""
# As IN_A_STEP, but rank 0 ends before rank 1 has heard why, as on a machine that stands still for a while.
UNHEARD = (
    IN_A_STEP
    + """
from sentcompress.ranks.meeting import Meeting
if RANK == 1:
    save = loop.Training._save_stopped
    def slow(*given):
        Meeting._listen = lambda meeting: None
        time.sleep(2)
        return save(*given)
    loop.Training._save_stopped = slow
else:
    Meeting._wait_until_heard = lambda meeting: None
    from sentcompress.ranks.group import Group
    stop = loop.Training._save_stopped
    def alone(*given):
        Group.meet = lambda group: None
        return stop(*given)
    loop.Training._save_stopped = alone
"""
)
# One rank gets a signal before its second file; the other one would never end its own.
BETWEEN_FILES = """
from sentcompress.stages import teacher_embed
embed, calls = teacher_embed._Embedding._embed_span, []
def signalled(*given):
    calls.append(None)
    if len(calls) == 2:
        if RANK == {rank}:
            send("SIGUSR1")
        while True:
            time.sleep(1)
    return embed(*given)
teacher_embed._Embedding._embed_span = signalled
"""
# One rank gets a signal when the other one has encoded its share, and waits for the vectors.
IN_ENCODING = """
from sentcompress.encoding.engine import EncodeEngine
encode = EncodeEngine.encode
def signalled(*given):
    if RANK == {rank}:
        time.sleep(1)
        send("SIGTERM")
    return encode(*given)
EncodeEngine.encode = signalled
"""


@pytest.fixture
def work(tmp_path: Path, teacher: Path, sentences: list[str]) -> WorkDirectory:
    """Sentences in four files, with the teacher's vectors, both called main; and graded pairs."""
    found = make_work(tmp_path / "work", teacher, sentences, file_rows=75)
    write_dev(found.path / "dev.tsv", sentences[:40])
    return found


def distilling(work: WorkDirectory, name: str) -> list[object]:
    numbers = ("--lr", 3e-5, "--batch-size", 10, "--epochs", 1, "--max-steps", 12, "--eval-every", 4, "--dropout", 0)
    return [
        *("distill", "--method", "ckd", "--student", "teacher:1", "--dev", work.path / "dev.tsv", "--device", "cpu"),
        *("--dtype", "float32", *numbers, "--name", name, "--work", work.path, "--quiet"),
    ]


def say_and_end(ended: Mapping[int, Ended], code: int, message: str) -> None:
    """Every rank ends with the code, and says why."""
    for rank in ended.values():
        assert rank.code == code, ended
        assert rank.err.splitlines()[-2].endswith(message)


def test_all_ranks_stop_after_the_same_step_and_any_number_goes_on(
    work: WorkDirectory, tmp_path: Path, commands: Commands
) -> None:
    """Also if a launcher ends the other ranks as soon as one has ended, with SIGTERM, which must not change the code.

    What a rank prints is then cut short; without it, all tell what was saved.
    """
    assert commands(distilling(work, "alone")).returncode == 0
    for name, code, stop, step, kill in (
        ("step", IN_A_STEP, (REQUEUE, "stopped by SIGUSR1"), 6, True),
        ("score", IN_A_SCORE, (TERMINATED, "stopped by SIGTERM"), 4, False),
    ):
        words, code = distilling(work, name), RUN.format(code)
        ended = run_ranks(commands, words, tmp_path, kill=kill, code=code, PIDS=str(tmp_path))
        say_and_end(ended, *stop)
        kept = f"saved after step {step}; run the same command again to resume there\n"
        assert kill or all(rank.err.endswith(kept) for rank in ended.values())
        checkpoints = work.path / "students" / f".{name}.partial" / ".scaffold/state/checkpoints"
        assert [path.name for path in checkpoints.glob("last-*.pt")] == [f"last-{step}.pt"]
        done = commands(distilling(work, name))
        assert done.returncode == 0, done.stderr
    students = [work.get("students", name) for name in ("alone", "step", "score")]
    weights = [load_file(student.path / "model" / "model.safetensors") for student in students]
    for student, found in zip(students[1:], weights[1:], strict=True):
        for fact in ("steps", "sentences_seen", "best_step"):
            assert student.facts[fact] == students[0].facts[fact], fact
        for tensor, values in weights[0].items():
            assert float((values - found[tensor]).abs().max()) < 1e-5, tensor


def test_a_rank_that_has_got_the_signal_ends_with_its_code_even_if_rank_0_is_gone(
    work: WorkDirectory, tmp_path: Path, commands: Commands
) -> None:
    """Otherwise a scheduler would count the job as failed, and not start it again."""
    ended = run_ranks(commands, distilling(work, "unheard"), tmp_path, kill=False, code=RUN.format(UNHEARD))
    say_and_end(ended, REQUEUE, "stopped by SIGUSR1")


@pytest.mark.parametrize("rank", [0, 1])
def test_all_ranks_stop_encoding_and_keep_their_files(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands, rank: int
) -> None:
    words = ["teacher-embed", "--teacher", teacher, "--device", "cpu", "--name", "new", "--work", work.path, "--quiet"]
    code = RUN.format(BETWEEN_FILES.format(rank=rank))
    say_and_end(run_ranks(commands, words, tmp_path, code=code, kill=False), REQUEUE, "stopped by SIGUSR1")
    assert list((work.path / "teacher-vectors" / ".new.partial").glob("vectors-*.npy"))


@pytest.mark.parametrize("rank", [0, 1])
def test_all_ranks_stop_an_evaluation(
    teacher: Path, tmp_path: Path, sentences: list[str], commands: Commands, rank: int
) -> None:
    dev = write_dev(tmp_path / "sts.tsv", sentences)
    words = ["eval-sts", "--model", teacher, "--sts", dev, "--device", "cpu", "--work", tmp_path / "work", "--quiet"]
    code = RUN.format(IN_ENCODING.format(rank=rank))
    say_and_end(run_ranks(commands, words, tmp_path, code=code, kill=False), TERMINATED, "stopped by SIGTERM")
