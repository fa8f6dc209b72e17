"""The artifact store: requests, freshness, resumption and names."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from building import KIND, asked, content, interrupt, make
from listening import Listener

from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.progress import Overview
from sentcompress.signals import StoppedError
from sentcompress.store import MANIFEST, REQUEST, Request, WorkDirectory, check_name, name_part


def test_a_build_leaves_data_request_and_manifest_and_nothing_hidden_but_the_lock(work: WorkDirectory) -> None:
    artifact = make(work)
    assert artifact.path == work.path / KIND / "main"
    found = {p.relative_to(artifact.path).as_posix() for p in artifact.path.rglob("*") if p.is_file()}
    assert found == {"a.txt", "model/b.txt", REQUEST, MANIFEST}
    assert sorted(p.name for p in artifact.path.parent.iterdir()) == [".main.lock", "main"]
    assert artifact.reference == f"{KIND}/main"
    assert artifact.facts == {"text": "one"}
    assert artifact.input_of_kind("sentences") == "main"
    assert artifact.input_of_kind("students") is None


def test_the_same_request_is_fresh_and_force_does_it_again(work: WorkDirectory) -> None:
    first = make(work)
    hearing = Listener()
    again = make(work, text="two", reporter=hearing)
    assert again.digest == first.digest
    assert hearing.heard == [f"teacher-embed: {KIND}/main is up to date, skipped (`force` to rerun)"]
    forced = make(work, text="two", force=True)
    assert content(forced) == {"two"}
    assert forced.fingerprint == first.fingerprint
    assert forced.digest != first.digest


def test_other_inputs_replace_the_artifact(work: WorkDirectory) -> None:
    make(work, data=0)
    assert content(make(work, text="two", data=1)) == {"two"}
    assert work.names(KIND) == ["main"]


def test_other_options_replace_nothing_without_force(work: WorkDirectory) -> None:
    made = make(work, lr=1e-4, text="one")
    with pytest.raises(UsageError, match=r"already exists with different options \(lr: 0.0001, now 0.0003\)"):
        make(work, lr=3e-4)
    with pytest.raises(UsageError, match=r"lr: 0\.0001, now not given; seed: not given, now 0"):
        make(work)
    assert content(work.get(KIND, "main")) == content(made) == {"one"}
    assert content(make(work, lr=3e-4, text="two", force=True)) == {"two"}
    assert content(make(work, "other", lr=1e-4, text="three")) == {"three"}


def test_an_unfinished_build_with_other_options_is_kept_without_force(work: WorkDirectory) -> None:
    interrupt(work, text="hours of training", lr=1e-4)
    with pytest.raises(UsageError, match="an unfinished teacher-vectors/main already exists with different options"):
        make(work, lr=3e-4)
    assert content(make(work, text="more", lr=1e-4)) == {"hours of training", "more"}


def test_an_artifact_of_an_older_version_is_replaced(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    make(work, lr=1e-4)
    monkeypatch.setattr("sentcompress.store.request.version_of", lambda command: 99)
    assert content(make(work, rate=1e-4, text="new")) == {"new"}


def test_the_fingerprint_knows_parameters_inputs_kind_and_command_but_no_name() -> None:
    base = asked("a").fingerprint
    assert asked("b").fingerprint == base
    others = [
        asked("a", seed=1),
        Request(KIND, "a", "teacher-embed", {"seed": 0}, {"sentences/main": "d2"}),
        Request(KIND, "a", "merge", {"seed": 0}, {"sentences/main": "d1"}),
        Request("students", "a", "teacher-embed", {"seed": 0}, {"sentences/main": "d1"}),
    ]
    assert len({base, *(other.fingerprint for other in others)}) == 5


def test_the_fingerprint_does_not_depend_on_the_order_of_parameters() -> None:
    assert asked("a", x=1, y=[2]).fingerprint == asked("a", y=[2], x=1).fingerprint


def test_the_digest_leaves_out_logs_wherever_they_are_but_lists_them(work: WorkDirectory) -> None:
    plain = make(work, "plain")
    logged = make(work, "logged", files=("a.txt", "model/b.txt", "log.jsonl", "model/log.jsonl"))
    assert plain.digest == logged.digest
    assert "model/log.jsonl" in logged.manifest["files"]


def test_the_digest_counts_a_nested_file_that_is_called_like_the_manifest(work: WorkDirectory) -> None:
    nested = make(work, files=("a.txt", f"model/{MANIFEST}"))
    assert f"model/{MANIFEST}" in nested.manifest["files"]


def test_the_digest_knows_names_of_files(work: WorkDirectory) -> None:
    assert make(work, "x", files=("a.txt",)).digest != make(work, "y", files=("b.txt",)).digest


def test_a_file_has_no_name_until_it_is_complete(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        with build.write("good.txt") as path:
            path.write_text("good")
            assert not build.has("good.txt")
        with pytest.raises(KeyError), build.write("bad.txt") as path:
            raise KeyError(path.write_text("half"))
        assert sorted(p.name for p in build.path.iterdir()) == ["good.txt", REQUEST]


def test_a_folder_is_written_whole_and_replaces_an_older_one(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        for text in ("old", "new"):
            with build.write("model") as folder:
                folder.mkdir()
                (folder / f"{text}.txt").write_text(text)
        artifact = build.finish({})
    assert list(artifact.manifest["files"]) == ["model/new.txt"]


def test_leftovers_of_a_killed_write_do_not_end_up_in_the_artifact(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        (build.path / ".a.txt.tmp").write_text("half")
        (build.path / ".model.tmp").mkdir()
        (build.path / ".model.tmp" / "weights").write_text("half")
        artifact = build.finish({})
    assert artifact.manifest["files"] == {}
    assert not list(artifact.path.rglob(".*"))


def test_a_signal_after_the_artifact_is_in_place_is_told_as_one(work: WorkDirectory) -> None:
    def stopped() -> None:
        with work.build(asked()) as build:
            (build.path / "a.txt").write_text("one")
            build.finish({})
            raise StoppedError(signal.SIGTERM)

    with pytest.raises(StoppedError):
        stopped()
    assert work.get(KIND, "main").damage() is None


def test_a_stage_that_fails_before_it_made_anything_leaves_nothing(work: WorkDirectory) -> None:
    with pytest.raises(InputError), work.build(asked()):
        raise InputError("the vectors are no good")
    assert work.unfinished(KIND) == []
    assert work.names(KIND) == []


def test_an_unfinished_build_is_resumed_for_the_same_request_only(work: WorkDirectory) -> None:
    def stop() -> None:
        interrupt(work, text="from the first run", data=0)

    stop()
    assert work.unfinished(KIND) == ["main"]
    assert work.names(KIND) == []
    hearing = Listener()
    artifact = make(work, text="second", reporter=Overview(hearing), data=0)
    assert content(artifact) == {"from the first run", "second"}
    assert "resuming the unfinished" in hearing.heard[0]

    shutil.rmtree(artifact.path)
    stop()
    hearing = Listener()
    assert content(make(work, text="second", reporter=Overview(hearing), data=1)) == {"second"}
    assert "main (its parameters or inputs differ)" in hearing.heard[0]

    stop_forced = Listener()
    shutil.rmtree(artifact.path)
    stop()
    assert content(make(work, text="second", force=True, reporter=stop_forced, data=0)) == {"second"}
    assert "main (`force`)" in stop_forced.heard[0]


def interrupt_forced(work: WorkDirectory) -> None:
    def stop() -> None:
        with work.build(asked(), force=True) as build:
            with build.write("a.txt") as path:
                path.write_text("forced")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()


def test_a_forced_build_that_was_interrupted_goes_on_when_it_is_forced_again(work: WorkDirectory) -> None:
    make(work)
    interrupt_forced(work)
    hearing = Listener()
    assert content(make(work, text="two", force=True, reporter=hearing)) == {"forced", "two"}
    assert "resuming the unfinished" in hearing.heard[0]


def test_what_an_interrupted_force_left_is_dropped_where_the_finished_one_is_taken(work: WorkDirectory) -> None:
    make(work)
    interrupt_forced(work)
    hearing = Listener()
    assert content(make(work, reporter=hearing)) == {"one"}
    assert [line for line in hearing.heard if "removed the unfinished rebuild of an interrupted `force`" in line]
    assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"]


def test_what_was_begun_with_other_parameters_is_not_dropped_by_a_fresh_one(work: WorkDirectory) -> None:
    make(work, data=0)
    interrupt(work, data=1)
    make(work, data=0)
    assert work.unfinished(KIND) == ["main"]


def test_a_new_request_keeps_the_finished_artifact_until_it_is_done(work: WorkDirectory) -> None:
    make(work, data=0)
    interrupt(work, data=1)
    assert content(work.get(KIND, "main")) == {"one"}
    assert work.unfinished(KIND) == ["main"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '"text"', "\xff"])
def test_a_partial_with_a_damaged_request_is_dropped(work: WorkDirectory, damage: str) -> None:
    partial = work.path / KIND / ".main.partial"
    partial.mkdir(parents=True)
    (partial / "a.txt").write_text("unknown origin")
    (partial / REQUEST).write_bytes(damage.encode("latin-1"))
    assert content(make(work)) == {"one"}


@pytest.mark.parametrize("name", [MANIFEST, REQUEST])
def test_an_artifact_with_a_folder_in_place_of_a_document_is_rebuilt(work: WorkDirectory, name: str) -> None:
    made = make(work)
    (made.path / name).unlink()
    (made.path / name).mkdir()
    for force in (True, False):  # the second time, nothing of the first is in the way
        assert content(make(work, force=force)) == {"one"}


def test_a_drop_that_is_killed_half_way_is_not_resumed(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = interrupt(work, files=("a.txt", "model/b.txt", "model/c.txt"), data=0)

    def killed(path: Path) -> None:
        (path / "model" / "c.txt").unlink()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(SystemExit):
            make(work, data=1)
    assert (partial / "model").is_dir()
    assert content(make(work, text="second", data=0)) == {"second"}


def test_names_are_ordered_by_time_and_pass_over_what_is_hidden_or_unfinished(work: WorkDirectory) -> None:
    for name in ("zulu", "alpha", "v1.2", "Größe-名前"):
        make(work, name)
    folder = work.path / KIND
    (folder / ".gone.lock").touch()
    (folder / ".DS_Store").touch()
    (folder / "a stray file").touch()
    (folder / "no manifest").mkdir()
    interrupt(work, "half")
    assert work.names(KIND) == ["zulu", "alpha", "v1.2", "Größe-名前"]
    assert work.get(KIND).name == "Größe-名前"
    assert work.unfinished(KIND) == ["half"]


def test_a_copied_folder_is_an_artifact_of_its_own_name(work: WorkDirectory) -> None:
    made = make(work)
    shutil.copytree(made.path, made.path.with_name("copy"))
    assert set(work.names(KIND)) == {"main", "copy"}
    assert work.get(KIND, "copy").reference == f"{KIND}/copy"
    assert work.get(KIND, "copy").digest == made.digest


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../up", "a\\b", "a\nb", "a\0b", "x" * 201, "ü" * 150, "\udcff"]
)
def test_names_that_cannot_be_a_folder_s_are_refused(work: WorkDirectory, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name"):
        check_name(name)
    with pytest.raises(InputError, match="cannot be the name"):
        make(work, name)
    assert work.find(KIND, name) is None
    assert not work.path.exists()


def test_a_long_name_of_many_bytes_that_is_allowed_can_be_built(work: WorkDirectory) -> None:
    assert make(work, "ü" * 100).name == "ü" * 100


def test_a_missing_artifact_names_the_command_and_a_near_miss_the_name(work: WorkDirectory) -> None:
    with pytest.raises(MissingArtifactError, match="no teacher vectors in ") as raised:
        work.get(KIND)
    assert raised.value.hint == f"run: sentcompress teacher-embed --work {work.path}"
    with pytest.raises(MissingArtifactError) as raised:
        work.get("sentences", "main")
    assert raised.value.hint == f"run: sentcompress augment FILE --work {work.path}"
    with pytest.raises(MissingArtifactError) as raised:
        work.get("students")
    assert raised.value.hint == f"run: sentcompress compress DOCUMENTS --work {work.path}"
    make(work, "captions")
    with pytest.raises(MissingArtifactError) as raised:
        work.get("students")
    assert raised.value.hint == f"run: sentcompress distill --work {work.path}"
    with pytest.raises(MissingArtifactError, match="named 'caption'") as raised:
        work.get(KIND, "caption")
    assert raised.value.hint == "did you mean captions?"


def test_a_missing_artifact_that_a_living_process_works_towards_is_not_to_be_begun_again(work: WorkDirectory) -> None:
    interrupt(work, "killed")
    with work.build(asked("captions")):
        with pytest.raises(
            MissingArtifactError, match=rf"no students in .*\({KIND}/captions is being made\)"
        ) as raised:
            work.get("students")
        assert raised.value.hint == f"run: sentcompress status --work {work.path}"
        with pytest.raises(MissingArtifactError) as raised:
            work.get("sentences")
        assert raised.value.hint == f"run: sentcompress augment FILE --work {work.path}", "vectors are made from them"
    with pytest.raises(MissingArtifactError) as raised:
        work.get("students")
    assert raised.value.hint == f"run: sentcompress compress DOCUMENTS --work {work.path}"


def test_a_work_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work"
    path.write_text("notes")
    for use in (lambda work: make(work), lambda work: work.get(KIND), lambda work: work.names(KIND)):
        with pytest.raises(InputError, match="is a file"):
            use(WorkDirectory(path))
    with pytest.raises(InputError, match="a file is in the way"):
        make(WorkDirectory(path / "deeper"))
    assert path.read_text() == "notes"


def test_a_file_in_the_place_of_a_kind_is_refused(work: WorkDirectory) -> None:
    work.path.mkdir()
    (work.path / KIND).touch()
    assert work.names(KIND) == []
    with pytest.raises(InputError, match="in the way"):
        make(work)


def test_what_is_fresh_needs_no_right_to_write(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(work)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)

    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("sentcompress.store.locking.os.open", refuse)
    assert make(work).digest == made.digest
    with pytest.raises(PermissionError):
        make(work, data=1)


def test_a_request_is_plain_json(work: WorkDirectory) -> None:
    artifact = make(work)
    request = json.loads((artifact.path / REQUEST).read_text(encoding="utf-8"))
    assert request["fingerprint"] == artifact.fingerprint
    assert request["parameters"] == {"seed": 0}


def test_nothing_is_made_of_itself(work: WorkDirectory) -> None:
    made = make(work)
    again = Request(KIND, made.name, "teacher-embed", {}, {made.reference: made.digest})
    with pytest.raises(UsageError, match="cannot be its own input") as caught, work.build(again):
        pass
    assert "`name`" in str(caught.value.hint)
    assert work.get(KIND, made.name).digest == made.digest


@pytest.mark.parametrize(
    ("label", "part"),
    [
        ("owner/a model", "owner-a-model"),
        ("..hidden-", "hidden"),
        ("naïve_2.0", "naïve_2.0"),
        ("???", ""),
        ("x" * 119 + "-tail", "x" * 119),
    ],
)
def test_a_label_as_a_part_of_a_name(label: str, part: str) -> None:
    assert name_part(label) == part
    if part:
        check_name(part)


@pytest.mark.parametrize(("error", "left"), [(UsageError("cannot be so"), []), (InputError("cannot be read"), ["a"])])
def test_what_cannot_be_done_as_asked_leaves_nothing_to_go_on_with(
    tmp_path: Path, error: Exception, left: list[str]
) -> None:
    work = WorkDirectory(tmp_path)

    def fail() -> None:
        with work.build(Request("students", "a", "distill", {})) as build:
            with build.write("tokens") as path:
                path.touch()
            raise error

    with pytest.raises(type(error)):
        fail()
    assert work.unfinished("students") == left
