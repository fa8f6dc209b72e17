"""merge: shards in any order, twice and killed give the bytes of one run; what is not whole is refused by name."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import interrupted
from sharding import bytes_of, make_table
from tiny_models import make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.encoding import batches, sharded_vectors
from sentcompress.errors import BusyError, InputError, MissingArtifactError, UsageError
from sentcompress.stages import merge, status, teacher_embed
from sentcompress.store import Artifact, Build, WorkDirectory
from sentcompress.store.locking import locked
from sentcompress.store.shard import Shard, find_shard

TEXTS = make_sentences(230)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 10)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    make_table(work, TEXTS)
    return work


def embed(work: WorkDirectory, model: Path, shard: str | None = None, **options: Any) -> Artifact:
    return teacher_embed.run(teacher_embed.Params(teacher=str(model), dtype="float32", shard=shard, **options), work)


def merged(work: WorkDirectory, what: str | None = "teacher-vectors/main") -> Artifact:
    return merge.run(merge.Params(what=what), work)


def states(work: WorkDirectory) -> dict[str, tuple[str, str]]:
    return {f"{row['kind']}/{row['name']}": (row["state"], row["why"]) for row in status.run(status.Params(), work)}


@pytest.mark.parametrize("count", [1, 3, 25])
def test_the_bytes_are_those_of_one_run(work: WorkDirectory, tiny_model: Path, count: int) -> None:
    options = {"layers": (1, 2), "store": "float16", "content_words": 0.5}
    whole = embed(work, tiny_model, name="whole", **options)
    numbers = list(range(1, count + 1))
    random.Random(count).shuffle(numbers)
    for number in [*numbers, *numbers[:2]]:  # two of them twice
        embed(work, tiny_model, f"{number}/{count}", **options)
    found = merged(work)
    assert found.digest == whole.digest
    assert found.fingerprint == whole.fingerprint
    assert bytes_of(found.path) == bytes_of(whole.path)
    same = ("rows", "dimension", "layers", "teacher", "compute_dtype", "content_words", "left_out", "device")
    assert {name: found.facts[name] for name in same} == {name: whole.facts[name] for name in same}
    assert found.facts["shards"] == count
    assert not list((work.path / "teacher-vectors").glob(".*.shards"))
    # Neither a shard that is late nor the whole run does anything again.
    assert embed(work, tiny_model, f"1/{count}", **options) == found
    assert embed(work, tiny_model, **options) == found
    assert merged(work) == found


def test_shards_without_normalisation(work: WorkDirectory, tiny_model: Path) -> None:
    whole = embed(work, tiny_model, name="whole", normalize=False)
    for number in (1, 2):
        embed(work, tiny_model, f"{number}/2", normalize=False)
    assert merged(work).digest == whole.digest
    assert whole.digest != embed(work, tiny_model, name="scaled").digest


@pytest.mark.parametrize("count", [1, 3, 8, 50])
@pytest.mark.parametrize("sizes", [[7] * 20, [1, 0, 90, 3, 3, 40, 0], [5], []])
def test_every_piece_is_in_one_shard_of_about_the_same_size(sizes: list[int], count: int) -> None:
    shards = [Shard(number, count).of_sizes(sizes) for number in range(1, count + 1)]
    assert [piece for shard in shards for piece in shard] == list(range(len(sizes)))
    sums = [sum(max(1, sizes[piece]) for piece in shard) for shard in shards]
    assert max(sums) <= sum(sums) / count + max([1, *sizes])


def test_shards_have_about_the_same_text(work: WorkDirectory, tiny_model: Path) -> None:
    """Long texts at the end: the last shard has fewer of them, and only as much of each counts as the teacher reads."""
    long = [" ".join([text] * 10) for text in TEXTS[:100]]
    make_table(work, [*(" ".join(text.split()[:3]) + f" {row}" for row, text in enumerate(TEXTS)), *long], name="mixed")
    whole = embed(work, tiny_model, sentences="mixed", name="whole")
    rows = [embed(work, tiny_model, f"{n}/4", sentences="mixed", max_length=None).facts["rows"] for n in range(1, 5)]
    assert sum(rows) == len(TEXTS) + len(long)
    assert rows[0] > 3 * rows[3]
    assert bytes_of(merged(work, "teacher-vectors/mixed").path) == bytes_of(whole.path)


def test_a_finished_shard_is_not_made_again(work: WorkDirectory, tiny_model: Path) -> None:
    first = embed(work, tiny_model, "2/3")
    assert first.facts["shard"] == "2/3"
    assert first.reference == "teacher-vectors/main/2-of-3"
    assert embed(work, tiny_model, "2/3") == first
    again = embed(work, tiny_model, "2/3", force=True)
    assert again.digest == first.digest
    assert again.finished > first.finished


def test_shards_are_no_artifact_until_they_are_merged(work: WorkDirectory, tiny_model: Path) -> None:
    embed(work, tiny_model, "2/3")
    assert work.find("teacher-vectors", "main") is None
    assert work.names("teacher-vectors") == []
    assert work.unfinished("teacher-vectors") == []
    with pytest.raises(MissingArtifactError, match="shards are not merged yet") as error:
        work.get("teacher-vectors")
    assert "sentcompress merge teacher-vectors/main" in str(error.value.hint)
    with pytest.raises(MissingArtifactError) as error:
        work.get("teacher-vectors", "main")
    assert "sentcompress merge teacher-vectors/main" in str(error.value.hint)
    assert states(work)["teacher-vectors/main"] == ("partial", "1 of 3 shards are finished")
    embed(work, tiny_model, "1/3")
    embed(work, tiny_model, "3/3")
    assert states(work)["teacher-vectors/main"][1] == ("3 of 3 shards are finished; run merge teacher-vectors/main")
    with locked(work.path / "teacher-vectors" / ".main.shards" / ".3-of-3.lock", "it"):
        assert states(work)["teacher-vectors/main"] == (
            "running",
            "3 of 3 shards are finished, 1 is being written now",
        )


def test_what_is_missing_is_named(work: WorkDirectory, tiny_model: Path) -> None:
    for number in (1, 4):
        embed(work, tiny_model, f"{number}/5")
    folder = work.path / "teacher-vectors" / ".main.shards"
    (folder / ".2-of-5.partial").mkdir()
    with pytest.raises(InputError, match=r"shards 3/5, 5/5 are missing; shard 2/5 is unfinished") as error:
        merged(work)
    assert "teacher-embed" in str(error.value.hint)
    assert "--shard 2/5" in str(error.value.hint)
    with locked(folder / ".5-of-5.lock", "it"), pytest.raises(InputError, match="shard 5/5 is being written"):
        merged(work)
    with locked(folder / ".2-of-5.lock", "it"), pytest.raises(InputError, match="shard 2/5 is being written") as error:
        merged(work)
    assert "--shard 3/5" in str(error.value.hint), "not the one that is being written"
    for number in (3, 5):
        embed(work, tiny_model, f"{number}/5")
    with locked(folder / ".2-of-5.lock", "it"), pytest.raises(InputError) as error:
        merged(work)
    assert error.value.hint == "wait for the shards that are being written"
    assert work.find("teacher-vectors", "main") is None


def test_what_is_extra_foreign_doubled_or_damaged_is_named(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    other = WorkDirectory(tmp_path / "other")
    make_table(other, TEXTS[:200])
    for number in (1, 2, 3):
        embed(work, tiny_model, f"{number}/3")
        embed(other, tiny_model, f"{number}/3")
    mine, theirs = (each.path / "teacher-vectors" / ".main.shards" for each in (work, other))
    for source, place, fault in (
        (mine / "1-of-3", "4-of-3", "4-of-3 is a copy of shard 1/3"),
        (mine / "1-of-3", "copy", "copy is a copy of shard 1/3"),
        (theirs / "2-of-3", "4-of-3", "4-of-3 is none of the 3 shards"),
        (theirs / "2-of-3", "2-of-3", "2-of-3 is of another plan"),
        (mine / "1-of-3", "2-of-3", "2-of-3 is a copy of shard 1/3"),
    ):
        kept = tmp_path / "kept"
        if (mine / place).exists():
            (mine / place).rename(kept)
        shutil.copytree(source, mine / place)
        with pytest.raises(InputError, match=fault):
            merged(work)
        shutil.rmtree(mine / place)
        if kept.exists():
            kept.rename(mine / place)
    vectors = next((mine / "3-of-3").glob("vectors-*.npy"))
    sound = vectors.read_bytes()
    vectors.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(InputError, match=r"3-of-3 is damaged \(.* SHA-256 differs\)"):
        merged(work)
    vectors.write_bytes(sound)
    assert merged(work).facts["shards"] == 3


def test_shards_without_their_plan_are_kept(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    old = embed(work, tiny_model)
    for number in (1, 2):
        embed(work, tiny_model, f"{number}/2", force=True)
    folder = work.path / "teacher-vectors" / ".main.shards"
    shutil.rmtree(folder / "plan")
    made = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="the plan of its shards is missing"):
        merged(work)
    output = tmp_path / "out"
    shutil.copytree(folder, tmp_path / ".out.shards")
    with pytest.raises(InputError, match="the plan of its shards is missing"):
        merged(work, str(output))
    assert (tmp_path / ".out.shards" / "2-of-2" / "manifest.json").is_file()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == made
    embed(work, tiny_model, "2/2", force=True)
    assert merged(work).finished > old.finished


def test_another_number_other_options_and_changed_inputs_are_refused(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    embed(work, model, "1/3")
    with pytest.raises(UsageError, match=r"being made in 3 shards, so 2/4 is not one of them"):
        embed(work, model, "2/4")
    with pytest.raises(UsageError, match=r"planned with different options \(store: not given, now float16\)"):
        embed(work, model, "2/3", store="float16")
    with pytest.raises(UsageError, match="is being made in shards") as error:
        embed(work, model)
    assert "sentcompress merge teacher-vectors/main" in str(error.value.hint)
    table = work.get("sentences")
    shutil.rmtree(table.path)
    make_table(work, TEXTS[:220])
    with pytest.raises(UsageError, match=r"inputs of shard 2/3 .*: sentences/main has changed"):
        embed(work, model, "2/3")
    shutil.rmtree(table.path)
    make_table(work, TEXTS)
    make_tiny_model(tmp_path / "other", seed=7)
    shutil.copy(tmp_path / "other" / "model.safetensors", model / "model.safetensors")
    with pytest.raises(UsageError, match=f"{model} has changed"):
        embed(work, model, "2/3")
    with locked(work.path / "teacher-vectors" / ".main.shards" / ".1-of-3.lock", "it"), pytest.raises(BusyError):
        embed(work, model, "2/3", force=True)
    # With force, the shards are planned again, and what was made is dropped.
    embed(work, model, "2/3", force=True)
    assert states(work)["teacher-vectors/main"][1] == "1 of 3 shards are finished"


def test_a_finished_artifact_is_replaced_only_by_force(work: WorkDirectory, tiny_model: Path) -> None:
    whole = embed(work, tiny_model)
    with pytest.raises(UsageError, match="already exists with different options"):
        embed(work, tiny_model, "1/2", normalize=True)
    assert embed(work, tiny_model, "1/2") == whole
    for number in (1, 2):
        embed(work, tiny_model, f"{number}/2", force=True)
    assert work.get("teacher-vectors") == whole
    found = merged(work)
    assert found.digest == whole.digest
    assert found.facts["shards"] == 2


def test_shards_of_an_older_version_are_not_merged(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(work, tiny_model, "1/1")
    monkeypatch.setattr("sentcompress.store.shard_plan.version_of", lambda command: 7)
    with pytest.raises(UsageError, match="planned by version 1 of teacher-embed, now 7") as error:
        merged(work)
    assert error.value.hint == "run the commands of its shards again, the first one with --force", (
        "not an option of merge"
    )


def test_what_to_merge(work: WorkDirectory, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError, match="there are no shards in") as raised:
        merged(work, None)
    assert "--shard 1/N" in str(raised.value.hint)  # no option of merge, whose field would not be spelled as a flag
    with pytest.raises(MissingArtifactError, match="there are no shards of teacher-vectors/main in"):
        merged(work)
    with pytest.raises(UsageError, match="teacher-vector is neither an artifact nor the output folder"):
        merged(work, "teacher-vector")
    embed(work, tiny_model, "1/1")
    embed(work, tiny_model, "1/1", name="other")
    with pytest.raises(UsageError, match="more than one") as error:
        merged(work, "teacher-vectors")
    assert error.value.hint == "name one of: teacher-vectors/main, teacher-vectors/other"
    assert merged(work, "teacher-vectors/other").name == "other"
    assert merged(work, None).name == "main"


def test_a_path_in_a_work_directory_is_no_folder_of_encode(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(work, tiny_model, "1/1")
    with pytest.raises(UsageError, match="main is in a work directory"):
        merged(work, str(work.path / "teacher-vectors" / "main"))
    monkeypatch.chdir(work.path)
    assert merged(work).facts["shards"] == 1


def test_a_merge_that_was_interrupted_goes_on(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = embed(work, tiny_model, name="whole")
    for number in (1, 2):
        embed(work, tiny_model, f"{number}/2")
    with interrupted(sharded_vectors, "_join", call=3):
        merged(work)
    assert work.unfinished("teacher-vectors") == ["main"]
    said = [row["why"] for row in status.run(status.Params(), work) if row["name"] == "main"]
    assert "the merge of its shards was interrupted; run merge teacher-vectors/main again to resume" in said
    join, made = sharded_vectors._join, []
    monkeypatch.setattr(sharded_vectors, "_join", lambda *given: (made.append(given[3]), join(*given)))
    assert merged(work).digest == whole.digest
    assert made == ["vectors-00002.npy"]


JOIN = """
import sys
from pathlib import Path
from sentcompress.encoding import sharded_vectors
from sentcompress.process_memory import peak_memory, resident_memory
from sentcompress.store import Request, WorkDirectory

folder, rows = Path(sys.argv[1]), int(sys.argv[2])
with WorkDirectory(folder / "work").build(Request("teacher-vectors", "main", "teacher-embed", {})) as build:
    before = resident_memory()
    sharded_vectors._join(iter(sorted(folder.glob("*.npy"))), rows, build, "vectors-00000.npy")
    print((peak_memory() - before) // 2**20)
    build.finish({})
"""


def test_a_merge_takes_little_memory(tmp_path: Path) -> None:
    parts, rows, width = 4, 50_000, 256
    vectors = np.ones((rows, width), dtype=np.float32)
    for part in range(parts):
        np.save(tmp_path / f"{part}.npy", vectors * part)
    run = subprocess.run(
        [sys.executable, "-c", JOIN, str(tmp_path), str(parts * rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) < 25  # MiB, of 195 that are merged; measured: 12
    joined = np.load(tmp_path / "work" / "teacher-vectors" / "main" / "vectors-00000.npy", mmap_mode="r")
    assert joined[::rows, 0].tolist() == [0, 1, 2, 3]


def run_shards(work: str, model: str, shards: list[str], *, held: bool = False) -> None:
    """What the processes run; if it is `held`, a shard that has all its files waits to be killed."""
    batches.WINDOW_SENTENCES = 10
    finish = Build.finish

    def waiting(build: Build, facts: Mapping[str, Any]) -> Artifact:
        while held and build.path.name != ".plan.partial":
            time.sleep(1000)
        return finish(build, facts)

    Build.finish = waiting  # type: ignore[method-assign]
    for shard in shards:
        embed(WorkDirectory(work), Path(model), shard)


@pytest.mark.slow
@pytest.mark.cluster
def test_sixteen_shards_two_at_a_time_ten_of_them_killed(work: WorkDirectory, tiny_model: Path) -> None:
    whole = embed(work, tiny_model, name="whole")
    generator = random.Random(3)
    waiting = [f"{number}/16" for number in range(1, 17)]
    generator.shuffle(waiting)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sentcompress.stages.teacher_embed", "transformers.models.bert.modeling_bert"])
    begun, to_kill, kills, running = 0, set(), 0, {}
    while waiting or running:
        while waiting and len(running) < 2:
            shard, held = waiting.pop(0), begun < 10
            begun += 1
            given = (str(work.path), str(tiny_model), [shard])
            running[shard] = context.Process(target=run_shards, args=given, kwargs={"held": held}, daemon=True)
            running[shard].start()
            to_kill |= {shard} if held else set()
        time.sleep(generator.random() * 0.3)
        if to_kill:
            shard = generator.choice(sorted(to_kill))
            to_kill.remove(shard)
            os.kill(running[shard].pid, signal.SIGKILL)
            kills += 1
        for shard, process in list(running.items()):
            if not process.is_alive():
                process.join()
                if running.pop(shard).exitcode != 0:
                    waiting.append(shard)
    assert kills == 10
    assert bytes_of(merged(work).path) == bytes_of(whole.path)


def test_the_command_line(
    work: WorkDirectory, tiny_model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["teacher-embed", "--teacher", str(tiny_model), "--dtype", "float32", "--work", str(work.path)]
    assert _run([*words, "--shard", "3/2"]) == 2
    assert "--shard 3/2: the number of the shard must be from 1 to 2" in capfd.readouterr().err
    monkeypatch.setenv("SENTCOMPRESS_SHARD", "1/2")
    assert _run([*words, "--shard", "auto"]) == 0
    told = capfd.readouterr()
    assert "1 of 2 shards" in told.out
    assert "merge" not in told.err
    assert _run([*words, "--shard", "2/2"]) == 0
    told = capfd.readouterr()
    assert f"Next: sentcompress merge teacher-vectors/main --work {work.path}" in told.err
    assert _run(["merge", "--work", str(work.path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["facts"]["shards"] == 2
    assert _run(["merge", "teacher-vectors/main", "--work", str(work.path)]) == 0
    assert "sentcompress distill" in capfd.readouterr().err


ARRAY = {"ID": "7", "MIN": "5", "MAX": "11", "STEP": "2", "COUNT": "4"}


def of_array(**changes: str | None) -> dict[str, str]:
    return {f"SLURM_ARRAY_TASK_{name}": value for name, value in {**ARRAY, **changes}.items() if value is not None}


def test_the_shard_of_an_array_job() -> None:
    assert find_shard("auto", of_array()) == Shard(2, 4)
    assert find_shard("auto", of_array(MAX=None, STEP=None, MIN="0", COUNT="16")) == Shard(8, 16)
    assert find_shard("auto", {**of_array(), "SENTCOMPRESS_SHARD": "3/16"}) == Shard(3, 16)
    assert find_shard(None, of_array()) is None
    assert find_shard("3/16", of_array()) == Shard(3, 16)


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        ("0/3", {}, "must be from 1 to 3"),
        ("4/3", {}, "must be from 1 to 3"),
        ("1/0", {}, "number of shards must be from 1"),
        ("3", {}, "must be I/N, such as 3/16, or auto, not '3'"),
        ("-1/3", {}, "must be I/N"),
        ("١/3", {}, "must be I/N"),
        ("auto", {}, "SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_MIN and SLURM_ARRAY_TASK_COUNT are not set"),
        ("auto", of_array(COUNT=None), "SLURM_ARRAY_TASK_COUNT is not set; submit an array job"),
        ("auto", of_array(ID="x"), "SLURM_ARRAY_TASK_ID must be a whole number, not 'x'"),
        ("auto", of_array(ID="6"), "not evenly spaced"),
        ("auto", of_array(MAX="20"), "not evenly spaced"),
        ("auto", of_array(ID="13"), "must be from 1 to 4"),
        ("auto", of_array(ID="3"), "not evenly spaced"),
        ("auto", {"SENTCOMPRESS_SHARD": "all"}, "SENTCOMPRESS_SHARD must be I/N, such as 3/16, not 'all'"),
        ("auto", {"SENTCOMPRESS_SHARD": "5/4"}, "SENTCOMPRESS_SHARD 5/4: the number of the shard"),
    ],
)
def test_odd_shards_are_refused(text: str, environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_shard(text, environment)
