"""status: what is fresh, stale, damaged, partial or running, and the reason it gives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest
import report_works
from listening import Listener
from rich.console import Console

from sentcompress.cli import render
from sentcompress.cli.main import _run
from sentcompress.commands import version_of
from sentcompress.errors import BusyError, InputError, RankError, TrainingError, UsageError
from sentcompress.models import sources
from sentcompress.models.sources import resolve
from sentcompress.progress import SILENT
from sentcompress.signals import StoppedError
from sentcompress.stages import status
from sentcompress.stages.status import Params, run
from sentcompress.store import (
    KINDS,
    MANIFEST,
    REQUEST,
    Artifact,
    Build,
    Request,
    WorkDirectory,
    file_digest,
    freshness,
    lookup,
    manifests,
)
from sentcompress.store.running import PROGRESS, Snapshot
from sentcompress.store.shard import Shard
from sentcompress.store.shards import Part, Planner, sharded
from sentcompress.store.unfinished import FAILURE

Row = Mapping[str, Any]


def make(
    work: WorkDirectory,
    kind: str,
    name: str = "main",
    inputs: Mapping[str, str] | None = None,
    text: str = "one",
    facts: Mapping[str, Any] | None = None,
) -> Artifact:
    request = Request(kind, name, KINDS[kind].command, {"text": text}, inputs or {})
    with work.build(request, force=True) as build:
        with build.write("data.txt") as path:
            path.write_text(text)
        return build.finish(facts or {})


def of(*artifacts: Artifact) -> dict[str, str]:
    return {artifact.reference: artifact.digest for artifact in artifacts}


def chain(work: WorkDirectory) -> list[Artifact]:
    """One artifact of each kind; the evaluation is of the export, whose kind comes after it."""
    sentences = make(work, "sentences")
    vectors = make(work, "teacher-vectors", inputs=of(sentences))
    projection = make(work, "projections", "pca-8", inputs=of(vectors))
    student = make(work, "students", "small", inputs=of(sentences, vectors, projection))
    export = make(work, "exports", "small", inputs=of(student))
    return [sentences, vectors, projection, student, make(work, "evaluations", "sts-small", of(export)), export]


def states(work: WorkDirectory) -> dict[str, tuple[str, str]]:
    return {f"{row['kind']}/{row['name']}": (row["state"], row["why"]) for row in run(Params(), work)}


def test_rows_come_in_the_order_of_the_stages_and_are_fresh(work: WorkDirectory) -> None:
    made = chain(work)
    rows = run(Params(), work)
    assert [f"{row['kind']}/{row['name']}" for row in rows] == [artifact.reference for artifact in made]
    assert {(row["state"], row["why"]) for row in rows} == {("fresh", "")}
    assert all(row["bytes"] == 3 and row["finished"] and not row["drift"] and not row["gone"] for row in rows)


def test_a_rebuilt_input_makes_all_that_comes_of_it_stale(work: WorkDirectory) -> None:
    chain(work)
    make(work, "teacher-vectors", inputs=of(work.get("sentences")), text="two")
    assert states(work) == {
        "sentences/main": ("fresh", ""),
        "teacher-vectors/main": ("fresh", ""),
        "projections/pca-8": ("stale", "teacher-vectors/main has changed"),
        "students/small": ("stale", "teacher-vectors/main has changed"),
        "exports/small": ("stale", "students/small is stale"),
        "evaluations/sts-small": ("stale", "exports/small is stale"),
    }


def test_an_input_rebuilt_with_the_same_bytes_makes_nothing_stale(work: WorkDirectory) -> None:
    chain(work)
    make(work, "teacher-vectors", inputs=of(work.get("sentences")))
    assert {state for state, _ in states(work).values()} == {"fresh"}


def test_an_input_that_is_gone_or_damaged_makes_stale(work: WorkDirectory) -> None:
    made = chain(work)
    made[2].path.rename(work.path / "elsewhere")
    assert states(work)["students/small"] == ("stale", "projections/pca-8 is gone")
    (work.path / "elsewhere").rename(made[2].path)
    (made[2].path / "data.txt").unlink()
    found = states(work)
    assert found["projections/pca-8"] == ("damaged", "data.txt is missing")
    assert found["students/small"] == ("stale", "projections/pca-8 is damaged")
    (made[2].path / "data.txt").write_text("longer")
    assert states(work)["projections/pca-8"] == ("damaged", "data.txt has 6 bytes, expected 3")
    (made[2].path / MANIFEST).write_text("{")
    found = states(work)
    assert found["projections/pca-8"][0] == "damaged"
    assert MANIFEST in found["projections/pca-8"][1]
    assert found["students/small"] == ("stale", "projections/pca-8 is damaged")


def test_a_file_that_changed_makes_stale_and_one_that_is_gone_is_mentioned(work: WorkDirectory, tmp_path: Path) -> None:
    raw = tmp_path / "raw: 1.txt"
    raw.write_text("a")
    make(work, "sentences", inputs={f"file:{raw}": file_digest(raw), "stdin:-": "d", "hub:owner/set": "d"})
    assert states(work)["sentences/main"] == ("fresh", "")
    raw.write_text("b")
    assert states(work)["sentences/main"] == ("stale", f"{raw} has changed")
    raw.unlink()
    row = run(Params(), work)[0]
    assert (row["state"], row["gone"]) == ("fresh", [str(raw)])


def test_a_teacher_whose_files_changed_makes_stale(work: WorkDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "teacher"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    digest = resolve(str(folder)).digest
    make(work, "teacher-vectors", inputs={f"model:{folder}": digest, "model:owner/on-a-hub": "d"})
    assert states(work)["teacher-vectors/main"] == ("fresh", "")
    (folder / "model.safetensors").write_bytes(b"others!")
    assert states(work)["teacher-vectors/main"] == ("stale", f"{folder} has changed")
    (folder / "config.json").unlink()  # no model any more: nothing can be told, and nothing fails
    assert states(work)["teacher-vectors/main"] == ("fresh", "")


def test_an_artifact_of_an_older_stage_is_stale(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(work)
    before = version_of("distill")
    newer = {"distill": before + 1}
    monkeypatch.setattr("sentcompress.store.freshness.version_of", lambda name: newer.get(name) or version_of(name))
    found = states(work)
    assert found["students/small"] == ("stale", f"made by version {before} of distill, now {before + 1}")
    assert found["exports/small"] == ("stale", "students/small is stale")
    assert found["projections/pca-8"] == ("fresh", "")


def test_other_libraries_are_shown_and_force_nothing(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sentcompress.store.build.installed_libraries", lambda: {"numpy": "1.0", "torch": "9.9", "gone": "1"}
    )
    make(work, "sentences")
    monkeypatch.setattr(status, "installed_libraries", lambda: {"numpy": "2.0", "torch": "9.9"})
    row = run(Params(), work)[0]
    assert (row["state"], row["drift"]) == ("fresh", {"numpy": "1.0 -> 2.0"})


def test_inputs_that_go_in_a_circle_come_to_an_end(work: WorkDirectory) -> None:
    first = make(work, "students", "a")
    second = make(work, "students", "b", of(first), text="b")
    make(work, "students", "a", of(second))
    assert set(states(work)) == {"students/a", "students/b"}


def test_a_partial_build_says_how_to_go_on(work: WorkDirectory) -> None:
    partial = work.path / "students" / ".small.partial"
    partial.mkdir(parents=True)
    (partial / "weights").write_bytes(b"12345")
    (partial / REQUEST).write_text(json.dumps({"command": "finetune", "fingerprint": "f"}))
    row = run(Params(), work)[0]
    assert (row["kind"], row["name"], row["state"]) == ("students", "small", "partial")
    assert row["why"] == "interrupted in finetune; run the same command again to resume"
    assert row["bytes"] > 5
    for damage in ("", "[]", "{}"):
        (partial / REQUEST).write_text(damage)
        assert states(work)["students/small"] == ("partial", "interrupted; run distill again to start over")


def test_a_forced_build_that_was_interrupted_is_told_from_one_to_go_on_with(work: WorkDirectory) -> None:
    finished = make(work, "students", "small")
    partial = work.path / "students" / ".small.partial"
    partial.mkdir()
    (partial / REQUEST).write_text(json.dumps({"command": "distill", "fingerprint": finished.fingerprint}))
    found = [(row["state"], row["why"]) for row in run(Params(), work)]
    assert found == [
        ("fresh", ""),
        ("partial", "distill --force was interrupted; run it again with --force to resume, or without to discard it"),
    ]


def end(work: WorkDirectory, error: BaseException, *, written: bool = True) -> Path:
    """Begin a build, or resume it, and end it with an error; returns its folder."""
    with suppress(type(error)), work.build(Request("students", "small", "distill", {})) as build:
        if written:
            (build.path / "weights").write_bytes(b"12345")
        assert states(work)["students/small"][0] == "running"
        raise error
    return build.path


def test_a_build_that_failed_says_why_until_it_is_resumed(work: WorkDirectory) -> None:
    for error, why in [
        (TrainingError("training diverged", "try a lower `lr`"), "training diverged; try a lower --lr"),
        (InputError("no text", ("fix it", "use `corpus`")), "no text; fix it"),
        (RankError("rank 1 ended"), "rank 1 ended"),
    ]:
        end(work, error)
        assert states(work)["students/small"] == ("failed", why)
    end(work, StoppedError(SIGTERM))
    assert states(work)["students/small"] == ("partial", "interrupted in distill; run the same command again to resume")


def test_a_failure_is_kept_only_where_a_build_can_be_resumed(work: WorkDirectory) -> None:
    end(work, InputError("no text"), written=False)
    assert states(work) == {}
    end(work, UsageError("wrong"))
    assert states(work) == {}
    end(work, BusyError("the lock is lost"))
    assert states(work)["students/small"][0] == "partial"


def test_a_failure_that_cannot_be_read_is_an_interruption(work: WorkDirectory) -> None:
    partial = end(work, InputError("no text"))
    for damage in ("", "[]", "3", "{"):
        (partial / FAILURE).write_text(damage)
        assert states(work)["students/small"][0] == "partial"


def test_a_build_under_way_is_running(work: WorkDirectory) -> None:
    with work.build(Request("students", "small", "distill", {})) as build:
        ((state, why),) = states(work).values()
        assert state == "running"
        assert why.startswith(f"is being written by process {os.getpid()} on ")
        build.finish({})


def test_a_build_under_way_says_how_far_it_is(
    work: WorkDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its file, as another machine reads it; an old one is of a process that says nothing any more."""
    moment = datetime.now(UTC)

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment

    monkeypatch.setattr("sentcompress.store.running.datetime", Stopped)
    with work.build(Request("students", "small", "distill", {})) as build:
        with build.write("weights") as path:
            path.touch()
        for seconds in (4, 600):
            at = moment - timedelta(seconds=seconds)
            said = Snapshot("training", at.isoformat(), 25, 100, "sentences", dev=70.0)
            with build.write(PROGRESS) as path:
                path.write_text(json.dumps(said.as_dict()))
            (row,) = run(Params(), work)
            assert row["progress"]["line"] == "training: 25 of 100 sentences (25%), dev 70.00"
            assert row["progress"]["age_seconds"] == seconds
            assert _run(["status", "--work", str(work.path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"{row['progress']['line']} (4 s ago)" in shown
        assert "silent since 20" in shown
        assert "UTC (10 min): training: 25 of 100" in shown
    assert _run(["status", "--work", str(work.path)]) == 0, "as a process that was killed leaves it"
    assert "resume" in capsys.readouterr().out


def shard_of(work: WorkDirectory, number: int, planner: Planner) -> AbstractContextManager[Part | Artifact]:
    request = Request("sentences", "main", "augment", {})
    return sharded(work, request, Shard(number, 3), planner, force=False, reporter=SILENT)


def write_progress(build: Build, done: int) -> None:
    said = Snapshot("copying", datetime.now(UTC).isoformat(), done, 100, "sentences")
    with build.write(PROGRESS) as path:
        path.write_text(json.dumps(said.as_dict()))


def test_the_plan_of_shards_says_how_far_it_is_and_that_it_was_interrupted(
    work: WorkDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading a large input takes long, and other shards wait for it."""

    def plan(build: Build) -> Mapping[str, Any]:
        write_progress(build, 25)
        (row,) = run(Params(), work)
        assert (row["name"], row["state"]) == ("main", "running")
        assert row["why"].startswith(f"the plan of its shards is being written by process {os.getpid()} on ")
        assert row["progress"]["line"] == "copying: 25 of 100 sentences (25%)"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), shard_of(work, 1, plan):
        pass
    assert states(work) == {
        "sentences/main": ("partial", "the plan of its shards is unfinished; run any of them again")
    }
    assert _run(["status", "--work", str(work.path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "run any of them again last seen " in shown
    assert "copying: 25 of 100 sentences (25%)" in shown


def test_a_plan_keeps_its_progress_where_status_reads_it(work: WorkDirectory) -> None:
    kept: list[Path] = []

    class Recording(Listener):
        @contextmanager
        def recorded(self, path: Path) -> Iterator[None]:
            kept.append(path.relative_to(work.path))
            yield

    request = Request("sentences", "main", "augment", {})
    with sharded(work, request, Shard(2, 3), lambda _: {}, force=False, reporter=Recording()):
        pass
    folder = Path("sentences/.main.shards")
    assert kept == [folder / f".{name}.partial" / PROGRESS for name in ("plan", "2-of-3")]


def test_shards_under_way_are_named_with_their_process_and_progress(
    work: WorkDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    with shard_of(work, 1, lambda _: {}) as first, shard_of(work, 3, lambda _: {}) as third:
        assert isinstance(first, Part)
        assert isinstance(third, Part)
        write_progress(third.build, 50)
        (row,) = run(Params(), work)
        assert (row["state"], row["why"]) == ("running", "0 of 3 shards are finished, 2 are being written now")
        assert [part["shard"] for part in row["shards"]] == ["1/3", "3/3"]
        for part in row["shards"]:
            assert part["why"].startswith(f"is being written by process {os.getpid()} on ")
        assert row["shards"][0]["progress"] is None
        assert row["shards"][1]["progress"]["line"] == "copying: 50 of 100 sentences (50%)"
        assert _run(["status", "--work", str(work.path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"shard 1/3 is being written by process {os.getpid()}" in shown
        assert "copying: 50 of 100 sentences (50%) (" in shown
        third.finish({})
    assert run(Params(), work)[0]["shards"] == []


def test_verify_reads_every_file(work: WorkDirectory, capfd: pytest.CaptureFixture[str]) -> None:
    made = chain(work)
    assert _run(["status", "--verify", "--work", str(work.path)]) == 0
    (made[3].path / "data.txt").write_text("eno")
    assert states(work)["students/small"] == ("fresh", "")
    assert {row["state"] for row in run(Params(verify=True), work)} == {"fresh", "damaged", "stale"}
    capfd.readouterr()
    assert _run(["status", "--verify", "--work", str(work.path)]) == 1
    printed = capfd.readouterr()
    assert "data.txt was changed: its SHA-256 differs" in " ".join(printed.out.split())
    assert printed.err.splitlines() == [
        "error: damaged: students/small",
        "help:  run their commands again with --force to rebuild them",
    ]


def test_verify_finds_what_was_added(work: WorkDirectory) -> None:
    """Another file in a model's folder can change what the model does."""
    folder = make(work, "students", "small").path
    (folder / "special_tokens_map.json").write_text("{}")
    assert states(work)["students/small"] == ("fresh", "")
    (row,) = run(Params(verify=True), work)
    assert (row["state"], row["why"]) == ("damaged", "special_tokens_map.json was added later")


def test_a_date_that_is_still_to_come_is_told(work: WorkDirectory, capfd: pytest.CaptureFixture[str]) -> None:
    folder = make(work, "students", "small").path
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(
        json.dumps(manifests.sealed({**manifest, "finished": "2099-01-01T00:00:00+00:00"}), indent=1)
    )
    assert run(Params(), work)[0]["from_the_future"]
    assert _run(["status", "--work", str(work.path)]) == 0
    assert "dated 2099-01-01, in the future" in " ".join(capfd.readouterr().out.split())


def test_the_telling_facts_are_shown(work: WorkDirectory) -> None:
    make(work, "teacher-vectors", facts={"teacher": "t", "rows": 5, "dimension": 8, "other": 1})
    make(work, "evaluations", facts={"model": {"label": "small"}})
    report_works.sts(work, report_works.student(work, "tiny"), 81.5)
    rows = run(Params(), work)
    assert rows[0]["facts"] == {"teacher": "t", "rows": 5, "dimension": 8}
    found = {row["name"]: row["facts"] for row in rows if row["kind"] == "evaluations"}
    # One without scores, as no evaluation writes it, has nothing else to tell.
    assert found["main"] == {"model": "small"}
    tiny = {"model": "tiny", "compared_with": "owner/big", "Spearman x 100 (mean of the sets)": 81.0}
    assert found["sts-tiny"] == tiny


def test_a_narrow_terminal_breaks_no_words(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    report_works.sts(work, report_works.student(work, "a-student-with-a-long-name"), 81.5)
    monkeypatch.setattr(render, "stdout", lambda: Console(width=80, highlight=False))
    assert _run(["status", "--work", str(work.path)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("evaluations/sts-a-student-with-a-long-name  fresh") for line in lines)
    assert any("compared with big" in line for line in lines)


def test_every_kind_has_its_telling_facts() -> None:
    assert set(status.TELLING) == set(KINDS)


def test_a_work_directory_that_is_not_there_or_a_file_is_refused(work: WorkDirectory) -> None:
    with pytest.raises(InputError, match="no work directory"):
        run(Params(), work)
    work.path.touch()
    with pytest.raises(InputError, match="is a file"):
        run(Params(), work)


def test_looking_writes_nothing(work: WorkDirectory) -> None:
    chain(work)
    before = sorted(path.stat().st_mtime_ns for path in work.path.rglob("*"))
    states(work)
    assert sorted(path.stat().st_mtime_ns for path in work.path.rglob("*")) == before


def test_the_command_prints_a_table_or_one_document(work: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    work.path.mkdir()
    assert _run(["status", "--work", str(work.path)]) == 0
    assert "none yet; start with sentcompress compress DOCUMENTS" in capsys.readouterr().out
    chain(work)
    make(work, "sentences", text="two")
    assert _run(["status", "--work", str(work.path)]) == 0
    out = capsys.readouterr().out
    assert "projections/pca-8" in out
    assert "sentences/main has changed" in out
    assert _run(["status", "--json", "--work", str(work.path)]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["work"] == str(work.path)
    assert [row["state"] for row in document["artifacts"]].count("stale") == 5
    assert captured.err == ""


def test_what_may_not_be_read_is_told_in_its_row(
    work: WorkDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user who may not read another one's files; permissions do not bind root."""
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "model").mkdir()
    make(work, "sentences", inputs={f"file:{tmp_path / 'a.txt'}": "1" * 64})
    make(work, "teacher-vectors", inputs={f"model:{tmp_path / 'model'}": "1" * 64})
    make(work, "projections", "pca-8")
    make(work, "students", "hidden")

    def refuse(path: Any, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    def read(folder: Path, target: Path) -> Artifact:
        if target.name == "hidden":
            refuse(folder)
        return manifests.read_artifact(folder, target)

    monkeypatch.setattr(freshness, "file_digest", refuse)
    monkeypatch.setattr(sources, "locate", refuse)
    monkeypatch.setattr(lookup, "read_artifact", read)
    assert states(work) == {
        "sentences/main": ("unknown", f"no permission to read {tmp_path / 'a.txt'}"),
        "teacher-vectors/main": ("unknown", f"no permission to read {tmp_path / 'model'}"),
        "projections/pca-8": ("fresh", ""),
        "students/hidden": ("damaged", f"no permission to read {work.path / 'students' / 'hidden'}"),
    }
