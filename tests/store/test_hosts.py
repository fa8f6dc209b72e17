"""Two hosts on one work directory: real processes, host names, boot ids and mounts, of one kernel."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hosts import Host, make_host, mounted, why_no_hosts, why_no_mounts

from sentcompress.exit_codes import BUSY
from sentcompress.store.mounts import locks_everywhere

pytestmark = pytest.mark.skipif(bool(why := why_no_hosts()), reason=f"two hosts: {why}")

# Builds teacher-vectors/main: writes a file, says so, and finishes when it reads a line or the end of its input.
BUILD = """
import os, socket, sys
from sentcompress.errors import SentcompressError
from sentcompress.store import Request, WorkDirectory
request = Request("teacher-vectors", "main", "teacher-embed", {"seed": 0}, {})
work = WorkDirectory(os.environ["SENTCOMPRESS_WORK"], wait=float(sys.argv[1]))
try:
    with work.build(request) as build:
        if not build.fresh:
            if not build.has("a.txt"):
                with build.write("a.txt") as path:
                    path.write_text(socket.gethostname())
            print("building", flush=True)
            sys.stdin.readline()
            build.finish({})
    print((work.path / "teacher-vectors" / "main" / "a.txt").read_text())
except SentcompressError as error:
    print(error.message, error.hint, sep="\\n")
    sys.exit(error.exit_code)
"""
# Holds the lock of sentences/main until it reads a line.
HOLD = """
import os, sys
from pathlib import Path
from sentcompress.store.locking import locked
folder = Path(os.environ["SENTCOMPRESS_WORK"]) / "sentences"
folder.mkdir(exist_ok=True)
with locked(folder / ".main.lock", "it"):
    print("holding", flush=True)
    sys.stdin.readline()
"""
# Takes a lock again and again, and counts how often somebody else is in the same place at the same time.
CONTEND = """
import os, sys, time
from pathlib import Path
from sentcompress.store.locking import locked
inside, rounds = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
clashes = 0
for _ in range(rounds):
    with locked(Path(os.environ["SENTCOMPRESS_WORK"]) / ".it.lock", "it", patience=240):
        try:
            os.mkdir(inside)
        except FileExistsError:
            clashes += 1
        else:
            time.sleep(0.002)
            os.rmdir(inside)
print(clashes)
"""
# A command that waits with everything loaded until it reads a line.
COMMAND = """
import sys
from sentcompress.cli.main import main
import sentcompress.stages.augment
print("ready", flush=True)
sys.stdin.readline()
main()
"""
SHARED, MOUNTS, CONTAINERS = "locks that hold on both", "a FUSE mount each", "two FUSE mounts on one kernel"


@pytest.fixture(scope="session")
def no_mounts(tmp_path_factory: pytest.TempPathFactory) -> str:
    return why_no_mounts(tmp_path_factory.mktemp("mounts"))


@pytest.fixture
def hosts_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], tuple[Host, Host]]]:
    """Two hosts with a common work directory, whose real folder is `tmp_path / "work"`."""
    real = tmp_path / "work"
    real.mkdir()
    with ExitStack() as stack:

        def made(kind: str) -> tuple[Host, Host]:
            if kind != SHARED and (why := request.getfixturevalue("no_mounts")):
                pytest.skip(f"two mounts: {why}")
            works = [
                real if kind == SHARED else stack.enter_context(mounted(real, tmp_path / f"mount-{number}"))
                for number in (1, 2)
            ]
            first, second = (make_host(tmp_path, f"node{number}", work) for number, work in enumerate(works, 1))
            return first, replace(second, boot_id=first.boot_id) if kind == CONTAINERS else second

        yield made


@contextmanager
def started(host: Host, *words: object, until: str) -> Iterator[subprocess.Popen[str]]:
    """A process on a host that has said `until`; killed at the end."""
    process = host.start(*words)
    assert process.stdout
    assert process.stderr
    try:
        said = process.stdout.readline().strip()
        assert said == until, process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Let a process go on to its end; what it says."""
    return process.communicate("\n", timeout=300)


def status(host: Host) -> tuple[str, str]:
    """State of teacher-vectors/main, and why, as a host sees them."""
    done = host.run("-m", "sentcompress", "status", "--json")
    (row,) = json.loads(done.stdout)["artifacts"]
    return row["state"], row["why"]


every = pytest.mark.parametrize("kind", [SHARED, MOUNTS, CONTAINERS])
fuse = pytest.mark.parametrize("kind", [MOUNTS, CONTAINERS])
Hosts = Callable[[str], tuple[Host, Host]]


@every
def test_a_holder_that_runs_on_the_other_host_is_left_alone(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        who = f"process {holder.pid} on node1"
        refused = second.run("-c", BUILD, 0)
        assert refused.returncode == BUSY, refused.stderr
        assert f"{second.work}/teacher-vectors/main is being written by {who}, since 20" in refused.stdout
        state, why = status(second)
        assert state == "running"
        assert who in why
        assert end(holder)[0] == "node1\n"
        assert holder.returncode == 0
    # The second one finds the result and builds nothing.
    assert second.run("-c", BUILD, 0).stdout == "node1\n"
    assert status(second)[0] == "fresh"


def test_a_killed_holder_is_followed_where_locks_hold_on_all_hosts(hosts_of: Hosts) -> None:
    first, second = hosts_of(SHARED)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        kill(holder)
    assert status(second) == ("partial", "interrupted; run teacher-embed again to resume")
    assert second.run("-c", BUILD, 0).stdout == "building\nnode1\n"


@fuse
def test_a_killed_holder_on_the_other_host_is_not_followed_where_locks_may_not_hold(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        kill(holder)
    refused = second.run("-c", BUILD, 0)
    assert refused.returncode == BUSY, refused.stderr
    message, hint = refused.stdout.splitlines()
    assert f"process {holder.pid} on node1" in message
    assert "cannot be told from here" in message
    assert hint.endswith(f"if it has ended, remove {second.work}/teacher-vectors/.main.lock.claim")
    state, why = status(second)
    assert state == "running"
    assert f"process {holder.pid} on node1" in why
    assert "cannot be told from here" in why
    # The host itself knows, without a hint from anybody.
    assert status(first)[0] == "partial"
    assert first.run("-c", BUILD, 0).stdout == "building\nnode1\n"
    # What it left does not stand in the way of the other one.
    assert second.run("-c", BUILD, 0).stdout == "node1\n"


@fuse
def test_the_file_that_the_message_names_frees_the_lock(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        kill(holder)
    # Started anew, the machine is another one: host names are not unique.
    anew = replace(make_host(first.boot_id.parent, "anew", first.work), name=first.name)
    for host in (anew, second) if kind == MOUNTS else (second,):
        refused = host.run("-c", BUILD, 0)
        assert refused.returncode == BUSY, refused.stderr
    named = Path(refused.stdout.splitlines()[1].rpartition(" ")[2])
    assert named.parent == second.work / "teacher-vectors"
    named.unlink()
    assert second.run("-c", BUILD, 0).stdout == "building\nnode1\n"


@every
def test_hosts_that_want_a_lock_at_the_same_moment_get_it_one_after_the_other(
    hosts_of: Hosts, kind: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        words = ("-c", CONTEND, tmp_path / "inside", 40)
        both = [stack.enter_context(started(host, *words, until="ready")) for host in hosts_of(kind)]
        for process in both:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=600) for process in both]
    assert [output for output, _ in told] == ["0\n", "0\n"], told


@every
def test_commands_that_start_at_the_same_moment_make_one_result(hosts_of: Hosts, kind: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("One sentence.\nAnother sentence.\n")
    words = ("-c", COMMAND, "augment", lines, "--wordnet", "0", "--back-translate", "0", "--wait", "5m")
    first, second = hosts_of(kind)
    with ExitStack() as stack:
        both = [stack.enter_context(started(host, *words, until="ready")) for host in (first, second)]
        for process in both:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=600)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sorted("up to date" in error for error in told) == [False, True], told
    found = second.run("-m", "sentcompress", "status", "--verify", "--json")
    (row,) = json.loads(found.stdout)["artifacts"]
    assert row["state"] == "fresh"
    assert sorted(path.name for path in (tmp_path / "work" / "sentences").iterdir()) == [".main.lock", "main"]


@every
def test_a_command_waits_for_the_other_host(hosts_of: Hosts, kind: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("One sentence.\n")
    words = ("-m", "sentcompress", "augment", lines, "--wordnet", "0", "--back-translate", "0")
    first, second = hosts_of(kind)
    with started(first, "-c", HOLD, until="holding") as holder:
        who = f"process {holder.pid} on node1"
        refused = second.run(*words)
        assert refused.returncode == BUSY, refused.stderr
        assert who in refused.stderr.replace("\n", " ")
        waiting = second.start(*words, "--wait", "5m")
        assert waiting.stderr
        heard = ""
        while "waiting:" not in heard and waiting.poll() is None:
            heard += waiting.stderr.readline()
        assert who in heard
        end(holder)
        _, error = waiting.communicate(timeout=300)
    assert waiting.returncode == 0, heard + error
    assert (tmp_path / "work" / "sentences" / "main" / "manifest.json").exists()


def test_who_waits_follows_a_holder_that_is_killed_meanwhile(hosts_of: Hosts) -> None:
    first, second = hosts_of(SHARED)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        waiting = second.start("-c", BUILD, 300)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(5)
        kill(holder)
        assert end(waiting) == ("building\nnode1\n", "")


@fuse
def test_who_waits_in_vain_breaks_no_lock(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        kill(holder)
    refused = second.run("-c", BUILD, 4)
    assert refused.returncode == BUSY, refused.stderr
    assert "cannot be told from here" in refused.stdout
    assert first.run("-c", BUILD, 0).stdout == "building\nnode1\n"


@every
@pytest.mark.parametrize("finished", [True, False])
def test_who_has_lost_the_lock_replaces_nothing(hosts_of: Hosts, kind: str, finished: bool) -> None:
    """A user removes the files of a lock although its holder still runs; on NFS, a server may give its lock away."""
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as late:
        for path in (first.work / "teacher-vectors").glob(".main.lock*"):
            path.unlink()
        with started(second, "-c", BUILD, 0, until="building") as next_one:
            who = f"process {next_one.pid} on node2"
            if finished:
                end(next_one)
            said, error = end(late)
            assert late.returncode == BUSY, error
            assert "lost" in said
            if not finished:
                assert who in said
                assert status(first)[0] == "running"
                end(next_one)
            assert next_one.returncode == 0
    assert status(second)[0] == "fresh"


def test_the_mount_that_a_file_is_on_counts_and_not_its_name(tmp_path: Path, no_mounts: str) -> None:
    """A later mount of the folder above hides an earlier one, which the table of mounts still has."""
    if no_mounts:
        pytest.skip(f"two mounts: {no_mounts}")
    point = tmp_path / "above" / "point"
    with mounted(tmp_path / "real", point):
        with (point / "file").open("w") as file:
            assert not locks_everywhere(file.fileno())
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", point.parent], check=True)
        try:
            point.mkdir()
            with (point / "file").open("w") as file:
                assert locks_everywhere(file.fileno())
        finally:
            subprocess.run(["umount", point.parent], check=True)
