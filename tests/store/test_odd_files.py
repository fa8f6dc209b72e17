"""Links, pipes, files that stay open, and full disks in the place of what the store writes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from building import KIND, content, interrupt, make
from listening import Listener

from sentcompress.errors import InputError
from sentcompress.store import REQUEST, SCAFFOLD, WorkDirectory, atomic, is_being_written, read_request


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_a_lock_is_refused_and_its_target_kept(
    work: WorkDirectory, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (work.path / KIND).mkdir(parents=True)
    link(victim, work.path / KIND / ".main.lock")
    with pytest.raises(InputError, match="not a lock file of sentcompress"):
        make(work)
    assert victim.read_text() == "precious"
    assert work.names(KIND) == []
    # Readers take the lock to finish an interrupted swap.
    (work.path / KIND / ".main.old").mkdir()
    assert work.find(KIND, "main") is None
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("place", ["dangling", "folder"])
def test_a_lock_that_is_no_file_is_refused(work: WorkDirectory, tmp_path: Path, place: str) -> None:
    lock = work.path / KIND / ".main.lock"
    lock.parent.mkdir(parents=True)
    if place == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(tmp_path / "new")
    with pytest.raises(InputError, match="not a lock file of sentcompress"):
        make(work)
    assert not (tmp_path / "new").exists()


def test_a_partial_that_is_or_holds_a_link_is_dropped_and_nothing_else(work: WorkDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(interrupt(work, files=("a.txt",)), outside)
    partial = work.path / KIND / ".main.partial"
    shutil.rmtree(partial)
    before = {path: path.read_bytes() for path in outside.rglob("*")}
    for prepare in (
        lambda: partial.symlink_to(outside),
        lambda: link_inside(outside, partial),
        lambda: pipe_inside(outside, partial),
    ):
        prepare()
        hearing = Listener()
        assert content(make(work, reporter=hearing)) == {"one"}
        assert "contains links" in hearing.heard[0]
        assert {path: path.read_bytes() for path in outside.rglob("*")} == before
        shutil.rmtree(work.path / KIND / "main")


def test_a_partial_with_hard_links_is_neither_written_to_nor_dropped(work: WorkDirectory, tmp_path: Path) -> None:
    """As after `cp -al work backup`."""
    partial, backup = interrupt(work, files=("a.txt",)), tmp_path / "backup"
    shutil.copytree(partial, backup, copy_function=os.link)
    before = {path: path.read_bytes() for path in (*backup.rglob("*"), *partial.rglob("*")) if path.is_file()}
    with pytest.raises(InputError, match=r"the unfinished .* has hard links") as raised:
        make(work)
    assert "cp -a" in str(raised.value.hint)
    assert {path: path.read_bytes() for path in before} == before
    assert content(make(work, force=True)) == {"one"}
    assert {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()} == {
        path: text for path, text in before.items() if path.is_relative_to(backup)
    }


def link_inside(outside: Path, partial: Path) -> None:
    partial.mkdir()
    shutil.copy(outside / REQUEST, partial / REQUEST)
    (partial / SCAFFOLD).symlink_to(outside)


def pipe_inside(outside: Path, partial: Path) -> None:
    partial.mkdir()
    shutil.copy(outside / REQUEST, partial / REQUEST)
    os.mkfifo(partial / "a.txt")


@pytest.mark.parametrize("suffix", ["partial", "old"])
def test_a_linked_leftover_of_a_swap_is_not_taken_for_one(work: WorkDirectory, tmp_path: Path, suffix: str) -> None:
    make(work)
    outside = tmp_path / "outside"
    (work.path / KIND / "main").rename(outside)
    (outside / SCAFFOLD).mkdir()
    link = work.path / KIND / f".main.{suffix}"
    link.symlink_to(outside)
    assert work.find(KIND, "main") is None
    assert (outside / SCAFFOLD).is_dir()
    assert link.is_symlink()


def test_a_dangling_link_in_place_of_an_artifact_is_replaced(work: WorkDirectory, tmp_path: Path) -> None:
    (work.path / KIND).mkdir(parents=True)
    (work.path / KIND / "main").symlink_to(tmp_path / "nowhere")
    assert work.names(KIND) == []
    assert content(make(work)) == {"one"}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("place", ["main/manifest.json", ".main.lock", ".main.partial/request.json"])
def test_a_pipe_makes_nobody_wait(work: WorkDirectory, place: str) -> None:
    make(work, "good")
    pipe = work.path / KIND / place
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    assert work.names(KIND) == ["good"]
    assert not is_being_written(work.path / KIND / "main")
    assert read_request(work.path / KIND / ".main.partial") == {}


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as raised, atomic.written(tmp_path / "vectors.npy"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / "vectors.npy")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="Input/output") as raised, atomic.written(tmp_path / "vectors.npy"):
        raise OSError(errno.EIO, "Input/output error")  # perhaps of a file that was read
    assert raised.value.filename is None


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target = Path("/dev/null")
    before = target.stat().st_mode
    with pytest.raises(InputError, match="is a device or a pipe"), atomic.written(target) as path:
        path.write_text("x")
    assert target.stat().st_mode == before


@pytest.mark.parametrize("place", ["main", ".main.old"])
def test_an_artifact_that_is_a_link_is_replaced_and_what_it_points_to_kept(
    work: WorkDirectory, tmp_path: Path, place: str
) -> None:
    make(work)
    outside = tmp_path / "outside"
    (work.path / KIND / "main").rename(outside)
    (work.path / KIND / place).symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    assert content(make(work, text="two", data=1)) == {"two"}
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"]
    assert not (work.path / KIND / "main").is_symlink()


def test_a_replaced_folder_that_cannot_be_removed_yet_is_removed_later(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where a removed file that is still open keeps its folder."""
    folder = work.path / KIND
    make(work)
    make(work, "main.old-0123abcd")  # no leftover, whatever its name
    real = shutil.rmtree

    def rmtree(path: Path) -> None:
        if ".main.old" in path.name:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", rmtree)
        for data in (1, 2):
            make(work, text=f"of {data}", data=data)
        assert len([path for path in folder.iterdir() if path.name.startswith(".main.old-") and path.is_dir()]) == 2
        assert not (folder / ".main.old").exists()
    assert content(work.get(KIND, "main")) == {"of 2"}
    assert work.names(KIND) == ["main.old-0123abcd", "main"]
    make(work, text="of 3", data=3)
    assert sorted(p.name for p in folder.iterdir()) == [
        *(".main.lock", ".main.old-0123abcd.lock"),
        *("main", "main.old-0123abcd"),
    ]


def test_a_full_disk_keeps_what_was_finished_and_goes_on(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def full(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".b.txt.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            make(work)
    partial = work.path / KIND / ".main.partial"
    assert sorted(p.name for p in partial.rglob("*") if p.is_file()) == ["a.txt", REQUEST]
    assert content(make(work, text="two")) == {"one", "two"}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny file system takes root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        work = WorkDirectory(place / "work")
        make(work, data=0)
        with pytest.raises(OSError, match="No space"):
            make(work, text="x" * 16384, files=tuple(f"{number}.txt" for number in range(9)), data=1)
        assert content(work.get(KIND)) == {"one"}
        partial = work.path / KIND / ".main.partial"
        assert (partial / "0.txt").exists()
        assert not list(partial.glob(".*.tmp"))
    finally:
        subprocess.run(["umount", str(place)], check=True)
