"""Commands in two ranks: bytes and weights, kills and resumption, and what goes wrong between ranks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from distilling import make_work, write_dev
from ranked import free_port, run_ranks
from safetensors.torch import load_file
from sharding import bytes_of
from warm import Commands

from sentcompress import __version__
from sentcompress.store import Artifact, WorkDirectory

# Windows of 20 sentences instead of 10,000, so that three files of a table are 5 windows each.
SMALL_WINDOWS = """
import runpy
from sentcompress.encoding import batches
batches.WINDOW_SENTENCES = 20
{}
runpy.run_module("sentcompress", run_name="__main__", alter_sys=True)
"""
# The process ends when it is about to write this file.
ENDED_AT = """
import os
from sentcompress.store import atomic
written = atomic.written
def ending(path):
    if path.name == {!r}:
        os._exit(9)
    return written(path)
atomic.written = ending
"""


@pytest.fixture
def work(tmp_path: Path, teacher: Path, sentences: list[str]) -> WorkDirectory:
    """Sentences in three files, with the teacher's vectors, both called main."""
    return make_work(tmp_path / "work", teacher, sentences, file_rows=100)


@pytest.fixture(scope="module")
def alone(
    tmp_path_factory: pytest.TempPathFactory, teacher: Path, sentences: list[str], commands: Commands
) -> Artifact:
    """The vectors that one process makes of the same sentences; do not write to them."""
    work = make_work(tmp_path_factory.mktemp("alone") / "work", teacher, sentences, file_rows=100)
    done = commands(embedding(work, teacher, "alone"), code=SMALL_WINDOWS.format(""))
    assert done.returncode == 0, done.stderr
    return work.get("teacher-vectors", "alone")


def embedding(work: WorkDirectory, teacher: Path, name: str, *more: object) -> list[object]:
    return [
        *("teacher-embed", "--teacher", teacher, "--dtype", "float32", "--layers", "1,2", "--device", "cpu"),
        *("--content-words", 0.5, "--name", name, "--work", work.path, "--quiet", *more),
    ]


def distilling(work: WorkDirectory, name: str, *more: object) -> list[object]:
    numbers = ("--lr", 3e-5, "--batch-size", 10, "--epochs", 1, "--max-steps", 12, "--eval-every", 4, "--dropout", 0)
    return [
        *("distill", "--method", "ckd", "--student", "teacher:1", "--dev", work.path / "dev.tsv", "--device", "cpu"),
        *("--dtype", "float32", *numbers, "--name", name, "--work", work.path, "--quiet", *more),
    ]


def codes(ended: dict[int, object]) -> list[int]:
    return [rank.code for rank in ended.values()]  # type: ignore[attr-defined]


def test_teacher_vectors_have_the_bytes_of_one_process(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands, alone: Artifact
) -> None:
    """Of three files, each rank encodes one, and the windows of the third are divided."""
    ended = run_ranks(commands, embedding(work, teacher, "two"), tmp_path, code=SMALL_WINDOWS.format(""))
    assert codes(ended) == [0, 0], ended
    one, two = alone, work.get("teacher-vectors", "two")
    assert sorted(bytes_of(one.path)) == [f"{kind}-0000{n}.npy" for kind in ("layers", "vectors") for n in range(3)]
    assert bytes_of(one.path) == bytes_of(two.path)
    assert one.fingerprint == two.fingerprint
    assert one.facts.keys() == two.facts.keys()
    # Only the first rank tells of the result.
    assert ended[0].out
    assert not ended[1].out
    again = run_ranks(commands, embedding(work, teacher, "two"), tmp_path)
    assert codes(again) == [0, 0]
    assert work.get("teacher-vectors", "two").finished == two.finished


def test_killed_vectors_go_on_with_another_number_of_ranks(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands, alone: Artifact
) -> None:
    # Three whole files for three ranks; when rank 0 is to finish the last of all, there are others, or parts of them.
    for count, killed in ((2, "vectors-00002-000000020.npy"), (3, "manifest.json")):
        code = SMALL_WINDOWS.format(ENDED_AT.format(killed))
        ended = run_ranks(commands, embedding(work, teacher, "cut"), tmp_path, count, code=code)
        assert 9 in codes(ended), ended
    last = run_ranks(commands, embedding(work, teacher, "cut"), tmp_path, code=SMALL_WINDOWS.format(""))
    assert codes(last) == [0, 0], last
    assert bytes_of(alone.path) == bytes_of(work.get("teacher-vectors", "cut").path)


def test_a_killed_training_goes_on_in_one_process_and_in_three(
    work: WorkDirectory, tmp_path: Path, sentences: list[str], commands: Commands
) -> None:
    write_dev(work.path / "dev.tsv", sentences[:40])
    alone = commands(distilling(work, "alone"))
    assert alone.returncode == 0, alone.stderr
    code = SMALL_WINDOWS.format(ENDED_AT.format("last-6.pt"))
    ended = run_ranks(commands, distilling(work, "cut", "--checkpoint-every", 0.001), tmp_path, code=code)
    assert ended[0].code == 9, ended
    assert ended[1].code != 0
    assert (work.path / "students/.cut.partial/.scaffold/state/checkpoints/last-5.pt").is_file()
    other = WorkDirectory(shutil.copytree(work.path, tmp_path / "other"))
    done = commands(distilling(work, "cut"))
    assert done.returncode == 0, done.stderr
    # The dev pairs are those of the first directory: their path is part of what was asked for.
    words = [other.path if word == work.path else word for word in distilling(work, "cut")]
    assert codes(run_ranks(commands, words, tmp_path, 3)) == [0, 0, 0]
    students = {"alone": work.get("students", "alone"), "one": work.get("students", "cut")}
    students["three"] = other.get("students", "cut")
    weights = {name: load_file(found.path / "model" / "model.safetensors") for name, found in students.items()}
    for name in ("one", "three"):
        assert students[name].facts["best_step"] == students["alone"].facts["best_step"]
        assert students[name].facts["dev"] == pytest.approx(students["alone"].facts["dev"], abs=1e-3)
        for tensor, values in weights["alone"].items():
            assert float((values - weights[name][tensor]).abs().max()) < 1e-5, tensor
        steps = [json.loads(line)["step"] for line in (students[name].path / "log.jsonl").read_text().splitlines()]
        assert steps == [0, 4, 8, 10, 12]


def failing(commands: Commands, words: Sequence[object], folder: Path, **more: object) -> dict[int, str]:
    """What each rank says that fails."""
    ended = run_ranks(commands, words, folder, **more)  # type: ignore[arg-type]
    for rank in ended.values():
        assert "Traceback" not in rank.err
    return {number: rank.err for number, rank in ended.items() if rank.code}


# Rank 1 reads what the others say when rank 0 has long said, and has ended with an error if it could.
LATE = """
import os, time
from sentcompress.ranks.meeting import Meeting
heard = Meeting._heard
def late(meeting, rank):
    time.sleep(2.5 if os.environ["RANK"] == "1" and rank == 0 else 0)
    return heard(meeting, rank)
Meeting._heard = late
"""


@pytest.mark.parametrize("code", [None, SMALL_WINDOWS.format(LATE)], ids=["at once", "late"])
def test_ranks_that_disagree_are_told_in_what(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands, code: str | None
) -> None:
    words = [embedding(work, teacher, "main", "--force"), embedding(work, teacher, "main", "--max-length", 8)]
    said = failing(commands, words, tmp_path, kill=False, code=code)
    host = socket.gethostname()
    assert set(said) == {0, 1}
    for number, text in said.items():
        assert f"error: rank {number} on {host}: rank 1 on {host} differs from rank 0 on {host}: " in text
        assert "--max-length 8 and not None" in text


def test_ranks_of_other_versions_or_with_other_inputs_are_told_so(
    work: WorkDirectory, teacher: Path, tmp_path: Path, sentences: list[str], commands: Commands
) -> None:
    other = make_work(tmp_path / "other", teacher, sentences[:40])
    host = socket.gethostname()
    changed = """
import os
from sentcompress.ranks import group
if os.environ["RANK"] == "1":
    group.__version__ = "0.0.1"
"""
    older = SMALL_WINDOWS.format(changed)
    for code, words, told in (
        (older, embedding(work, teacher, "new"), f"sentcompress 0.0.1 and not {__version__}\n"),
        (None, [embedding(each, teacher, "new") for each in (work, other)], "sentences/main is not the same there\n"),
    ):
        said = failing(commands, words, tmp_path, kill=False, code=code)
        assert set(said) == {0, 1}
        assert all(f"rank 1 on {host} differs from rank 0 on {host}: {told}" in text for text in said.values()), said
        assert not (work.path / "teacher-vectors" / ".new.partial").exists()


def test_a_missing_rank_is_named_when_the_time_is_up(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands
) -> None:
    words = embedding(work, teacher, "new")
    # The time is up when it begins, which is once rank 2 has joined.
    late = """
import os, time
from dataclasses import replace
from sentcompress.ranks.meeting import Meeting
arrive = Meeting._arrive
def arrived(meeting):
    while os.environ["RANK"] == "0" and not meeting.store.check(["host/2"]):
        time.sleep(0.01)
    meeting.launch = replace(meeting.launch, seconds=0.5)
    return arrive(meeting)
Meeting._arrive = arrived
"""
    said = failing(commands, words, tmp_path, count=3, start=(0, 2), kill=False, code=SMALL_WINDOWS.format(late))
    assert set(said) == {0, 2}
    assert "rank 1 has not joined at 127.0.0.1:" in said[0]
    assert "3 ranks are expected" in said[0]
    # Without rank 0 there is no place to meet.
    said = failing(commands, words, tmp_path, start=(1,), kill=False, SENTCOMPRESS_RANK_SECONDS="2")
    assert "rank 0 did not answer at 127.0.0.1:" in said[1]
    assert not (work.path / "teacher-vectors" / ".new.partial").exists()


def test_the_message_is_all_that_is_printed(work: WorkDirectory, teacher: Path) -> None:
    """Torch prints stacks of C++ calls by a setting that it reads when it is loaded, so that no fork will do here."""
    environment = {**os.environ, "WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1"}
    environment |= {"MASTER_PORT": str(free_port()), "SENTCOMPRESS_RANK_SECONDS": "1"}
    words = map(str, embedding(work, teacher, "new"))
    done = subprocess.run(
        [sys.executable, "-m", "sentcompress", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "help"], done.stderr


def test_a_port_in_use_is_told(work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = failing(commands, embedding(work, teacher, "new"), tmp_path, start=(0,), port=port)
    assert f"port {port} is in use by another process" in said[0]
    assert "set MASTER_PORT to a free port" in said[0]


# Whenever a rank looks what became of the others, ten seconds pass in which it is paused itself.
PAUSED = """
import time
from types import SimpleNamespace
from sentcompress.ranks import meeting
pauses = []
def look(self, look=meeting.Meeting._end_of_another):
    pauses.append(10.0)
    return look(self)
meeting.Meeting._end_of_another = look
meeting.time = SimpleNamespace(sleep=time.sleep, monotonic=lambda: time.monotonic() + sum(pauses))
"""


def test_a_rank_that_dies_ends_the_others_which_name_it(
    work: WorkDirectory, tmp_path: Path, sentences: list[str], commands: Commands
) -> None:
    """Without torchrun, which would stop them: one dies within an exchange, and one while the other waits for it."""
    write_dev(work.path / "dev.tsv", sentences[:40])
    host = socket.gethostname()
    for killed in (0, 1):
        die = f"""
import os
from sentcompress.training import loop
step = loop.Training._step
def dying(self, *given):
    if self.progress.step == 3 and self.ranks.number == {killed}:
        os._exit(9)
    return step(self, *given)
loop.Training._step = dying
{PAUSED}
"""
        words = distilling(work, f"dies-{killed}")
        ended = run_ranks(
            commands, words, tmp_path, code=SMALL_WINDOWS.format(die), kill=False, SENTCOMPRESS_RANK_SECONDS="200"
        )
        other = ended[1 - killed]
        assert ended[killed].code == 9
        assert other.code == 1
        named = [f"rank {killed} on {host} has ended", "rank 0 at 127.0.0.1:"]
        assert any(name in other.err for name in named), other.err
        assert "run the same command again" in other.err


def test_an_error_of_one_rank_is_told_by_the_others(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands
) -> None:
    full = """
import os
from sentcompress.store import atomic
def full(path):
    raise OSError(28, "No space left on device")
if os.environ["RANK"] == "1":
    atomic.written = full
"""
    code = SMALL_WINDOWS.format(full)
    ended = run_ranks(commands, embedding(work, teacher, "full"), tmp_path, code=code, kill=False)
    host = socket.gethostname()
    assert codes(ended) == [1, 1]
    assert f"error: rank 1 on {host}: the disk is full" in ended[1].err
    assert f"stopped, because rank 1 on {host} has ended: " in ended[0].err


def test_commands_that_are_not_shared_are_done_by_the_first_process(
    work: WorkDirectory, tmp_path: Path, commands: Commands
) -> None:
    ended = run_ranks(commands, ["status", "--work", work.path], tmp_path)
    assert codes(ended) == [0, 0]
    assert "teacher-vectors" in ended[0].out
    assert ended[1].out == ended[1].err == ""


def test_shards_and_ranks_are_not_combined(
    work: WorkDirectory, teacher: Path, tmp_path: Path, commands: Commands
) -> None:
    said = failing(commands, embedding(work, teacher, "new", "--shard", "1/2"), tmp_path, kill=False)
    assert "--shard and torchrun both divide the work" in said[0]


def test_an_evaluation_has_the_scores_of_one_process(
    work: WorkDirectory, teacher: Path, tmp_path: Path, sentences: list[str], commands: Commands
) -> None:
    """Of so many texts that ranks share them."""
    dev = write_dev(tmp_path / "sts.tsv", sentences)

    def words(name: str) -> list[object]:
        asked = ["eval-sts", "--model", teacher, "--sts", dev, "--device", "cpu", "--name", name]
        return [*asked, "--work", tmp_path / name, "--json"]

    encoded = """
import os
from sentcompress.encoding.engine import EncodeEngine
encode = EncodeEngine.encode
def told(self, texts, task=None):
    print(os.environ["RANK"], len(texts), file=open(os.environ["COUNTS"], "a"))
    return encode(self, texts, task)
EncodeEngine.encode = told
"""
    alone = commands(words("alone"))
    assert alone.returncode == 0, alone.stderr
    counts = tmp_path / "counts"
    ended = run_ranks(commands, words("two"), tmp_path, code=SMALL_WINDOWS.format(encoded), COUNTS=str(counts))
    assert codes(ended) == [0, 0], ended
    assert not ended[1].out
    one, two = (json.loads(text)["facts"]["scores"] for text in (alone.stdout, ended[0].out))
    assert [score["value"] for score in two] == pytest.approx([score["value"] for score in one], abs=1e-3)
    assert sorted(counts.read_text().splitlines()) == ["0 150", "1 150"]
