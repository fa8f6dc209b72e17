"""Hosts that share a work directory: real processes, host names, boot ids and mounts, and kernels with NFS between."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from guests import LEASE_SECONDS, MOUNTED, Guest, GuestError, GuestHost, nfs_guests, why_no_guests
from hosts import Host, Machine, make_host, mounted, run, started, why_no_hosts, why_no_mounts

from sentcompress.exit_codes import BUSY
from sentcompress.store.mounts import locks_everywhere

pytestmark = pytest.mark.skipif(bool(why := why_no_hosts()), reason=f"several hosts: {why}")

# A process is refused a lock after 0.2 seconds, not 2.
IMPATIENT = """
from sentcompress.store import artifacts, locking
artifacts.PATIENCE_SECONDS = locking.PATIENCE_SECONDS = 0.2
"""
# Builds teacher-vectors/main: writes a file, says so, and finishes when it has read a line.
BUILD = f"""{IMPATIENT}
import os, socket, sys
from sentcompress.errors import SentcompressError
from sentcompress.progress import Reporter
from sentcompress.store import Request, WorkDirectory
class Teller(Reporter):
    def note(self, message):
        if "--tell" in sys.argv:
            print(message, file=sys.stderr, flush=True)
work = WorkDirectory(os.environ["SENTCOMPRESS_WORK"], wait=float(sys.argv[1]))
request = Request("teacher-vectors", "main", "teacher-embed", {{"seed": 0}}, {{}})
try:
    with work.build(request, force="--force" in sys.argv, reporter=Teller()) as build:
        if not build.fresh:
            if not build.has("a.txt"):
                with build.write("a.txt") as path:
                    path.write_text(socket.gethostname())
            print("building", flush=True)
            sys.stdin.readline()
            build.finish({{}})
    print("made on", (work.path / "teacher-vectors" / "main" / "a.txt").read_text())
except SentcompressError as error:
    print(error.message, error.hint, sep="\\n")
    sys.exit(error.exit_code)
"""
# Reads a file of teacher-vectors/main to its end when it has read a line.
READ = """
import os, sys
from pathlib import Path
with (Path(os.environ["SENTCOMPRESS_WORK"]) / "teacher-vectors" / "main" / "a.txt").open() as file:
    print("reading", flush=True)
    sys.stdin.readline()
    print(file.read())
"""
# Holds the lock of sentences/main until it has read a line.
HOLD = """
import os, sys
from pathlib import Path
from sentcompress.store.locking import locked
folder = Path(os.environ["SENTCOMPRESS_WORK"]) / "sentences"
folder.mkdir(parents=True, exist_ok=True)
with locked(folder / ".main.lock", "it"):
    print("holding", flush=True)
    sys.stdin.readline()
"""
# Takes a lock again and again, and counts how often somebody else is in the same place at the same time.
CONTEND = """
import os, sys, time
from pathlib import Path
from sentcompress.store.locking import locked
folder = Path(os.environ["SENTCOMPRESS_WORK"])
folder.mkdir(exist_ok=True)
print("ready", flush=True)
sys.stdin.readline()
clashes = 0
for _ in range(int(sys.argv[1])):
    with locked(folder / ".it.lock", "it", patience=500):
        try:
            (folder / "inside").mkdir()
        except FileExistsError:
            clashes += 1
        else:
            time.sleep(0.002)
            (folder / "inside").rmdir()
print("clashes:", clashes)
"""
# A command that has loaded everything, and starts when it has read a line.
COMMAND = f"""{IMPATIENT}
import sys
from sentcompress.cli.main import main
import sentcompress.stages.augment
print("ready", flush=True)
sys.stdin.readline()
main()
"""
# A command that starts at once.
AT_ONCE = f"""{IMPATIENT}
from sentcompress.cli.main import main
main()
"""
# Removes the files of a lock.
UNLOCK = """
import os
from pathlib import Path
for path in (Path(os.environ["SENTCOMPRESS_WORK"]) / "teacher-vectors").glob(".main.lock*"):
    path.unlink()
"""
LIST = "import os, sys; print(sorted(os.listdir(os.environ['SENTCOMPRESS_WORK'] + sys.argv[1])))"
KERNEL, NFS = "one kernel", "NFS"
MOUNTS, CONTAINERS = "a FUSE mount each", "two FUSE mounts on one kernel"
# What the processes of each guest import. They run commands, for which typer imports a module that older ones do not
# have, and rich shows progress.
COMMANDS = (
    "sentcompress.cli.main",
    "sentcompress.stages.augment",
    "sentcompress.stages.status",
    "rich.progress",
    *(name for name in ["typer._adapters"] if find_spec(name)),
)
LOADED = {"node1": COMMANDS, "node2": COMMANDS}
Hosts = Callable[[str], tuple[Machine, Machine]]


@pytest.fixture(scope="session")
def no_mounts(tmp_path_factory: pytest.TempPathFactory) -> str:
    return why_no_mounts(tmp_path_factory.mktemp("mounts"))


@pytest.fixture(scope="session")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Guest]]:
    """Two for all tests."""
    if why := why_no_guests():
        pytest.skip(f"NFS: {why}")
    with ExitStack() as stack:
        try:
            found = stack.enter_context(nfs_guests(tmp_path_factory.mktemp("guests"), LOADED))
        except (GuestError, subprocess.CalledProcessError) as error:
            pytest.skip(f"NFS: user-mode Linux does not run here: {error}")
        yield found


@pytest.fixture
def hosts_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Two hosts with a common work directory."""
    with ExitStack() as stack:

        def made(kind: str) -> tuple[Machine, Machine]:
            if kind == NFS:
                one, other = (GuestHost(guest, MOUNTED / tmp_path.name) for guest in request.getfixturevalue("guests"))
                return one, other
            if kind != KERNEL and (why := request.getfixturevalue("no_mounts")):
                pytest.skip(f"two mounts: {why}")
            folder = tmp_path / "folder"
            folders = [
                folder if kind == KERNEL else stack.enter_context(mounted(folder, tmp_path / f"mount-{number}"))
                for number in (1, 2)
            ]
            folder.mkdir(exist_ok=True)
            first, second = (
                make_host(tmp_path / f"node{number}", f"node{number}", folders[number - 1] / "work")
                for number in (1, 2)
            )
            if kind == CONTAINERS:
                second = Host(second.name, second.folder, second.work, first.boot_id)
            return first, second

        yield made


def status(host: Machine) -> tuple[str, str]:
    """State of the one artifact, and why, as a host sees them."""
    done = run(host, "-m", "sentcompress", "status", "--verify", "--json")
    (row,) = json.loads(done.said())["artifacts"]
    return row["state"], row["why"]


def built(host: Machine, wait: float = 0) -> tuple[int | None, str]:
    """Exit code and output of BUILD, which does not wait for a line."""
    done = run(host, "-c", BUILD, wait)
    assert not done.complained(), done.complained()
    return done.code, done.said()


# To boot the guests takes a third of a minute of processor time, and so do the tests.
BETWEEN_KERNELS = pytest.param(NFS, marks=[pytest.mark.slow, pytest.mark.cluster])
every = pytest.mark.parametrize("kind", [KERNEL, MOUNTS, CONTAINERS, BETWEEN_KERNELS])
certain = pytest.mark.parametrize("kind", [KERNEL, BETWEEN_KERNELS])
RESUMED, FOUND = (0, "building\nmade on node1\n"), (0, "made on node1\n")


@every
def test_a_holder_that_runs_on_the_other_host_is_left_alone(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        who = f"process {holder.pid} on node1"
        code, said = built(second)
        assert code == BUSY
        assert f"{second.work}/teacher-vectors/main is being written by {who}, since 20" in said
        state, why = status(second)
        assert state == "running"
        assert who in why
        assert holder.end() == 0
    # The second one finds the result and builds nothing.
    assert built(second) == FOUND
    assert status(second)[0] == "fresh"


@certain
def test_a_killed_holder_is_followed_where_locks_hold_on_all_hosts(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        holder.kill()
        assert status(second) == ("partial", "interrupted in teacher-embed; run the same command again to resume")
        assert built(second) == RESUMED


@pytest.mark.parametrize("kind", [MOUNTS, CONTAINERS])
def test_a_killed_holder_on_the_other_host_is_not_followed_where_locks_may_not_hold(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        holder.kill()
    code, said = built(second)
    assert code == BUSY
    message, hint = said.splitlines()
    assert f"process {holder.pid} on node1" in message
    assert "unknown whether that process is still running" in message
    assert hint.endswith(f"if it has ended, remove {second.work}/teacher-vectors/.main.lock.claim")
    state, why = status(second)
    assert state == "running"
    assert f"process {holder.pid} on node1" in why
    assert "unknown whether that process is still running" in why
    # The host itself knows.
    assert status(first)[0] == "partial"
    assert built(first) == RESUMED
    # What the dead process left does not stand in the way of the other host any more.
    assert built(second) == FOUND


def test_the_file_that_the_message_names_frees_the_lock(hosts_of: Hosts, tmp_path: Path) -> None:
    first, second = hosts_of(MOUNTS)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        holder.kill()
    # Started anew, the host is another one: host names are not unique.
    anew = make_host(tmp_path / "anew", first.name, first.work)
    for host in (anew, second):
        code, said = built(host)
        assert code == BUSY
        named = Path(said.splitlines()[1].rpartition(" ")[2])
        assert named.parent == host.work / "teacher-vectors"
    named.unlink()
    assert built(second) == RESUMED


@every
def test_hosts_that_want_a_lock_at_the_same_moment_get_it_one_after_the_other(hosts_of: Hosts, kind: str) -> None:
    with ExitStack() as stack:
        both = [stack.enter_context(started(host, "-c", CONTEND, 40, until="ready")) for host in hosts_of(kind)]
        for process in both:
            process.go_on()
        for process in both:
            assert process.wait() == 0, process.complained()
            assert process.said() == "ready\nclashes: 0\n"


@certain
def test_commands_that_start_at_the_same_moment_make_one_result(hosts_of: Hosts, kind: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("One sentence.\nAnother sentence.\n")
    words = ("-c", COMMAND, "augment", lines, "--wordnet", "0", "--back-translate", "0", "--wait", "5m")
    first, second = hosts_of(kind)
    with ExitStack() as stack:
        both = [stack.enter_context(started(host, *words, until="ready")) for host in (first, second)]
        for process in both:
            process.go_on()
        for process in both:
            assert process.wait() == 0, process.complained()
        assert sorted("is up to date" in process.complained() for process in both) == [False, True]
    assert status(second)[0] == "fresh"
    assert run(second, "-c", LIST, "/sentences").said() == "['.main.lock', 'main']\n"


@certain
def test_a_command_waits_for_the_other_host(hosts_of: Hosts, kind: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("One sentence.\n")
    words = ("-c", AT_ONCE, "augment", lines, "--wordnet", "0", "--back-translate", "0")
    first, second = hosts_of(kind)
    with started(first, "-c", HOLD, until="holding") as holder:
        who = f"is being written by process {holder.pid} on node1"
        refused = run(second, *words)
        assert refused.code == BUSY
        assert who in refused.complained()
        with started(second, *words, "--wait", "5m", until="waiting: ") as waiting:
            assert who in waiting.complained()
            assert holder.end() == 0
            assert waiting.wait() == 0
    assert status(first)[0] == "fresh"


@certain
def test_who_waits_follows_a_holder_that_is_killed_meanwhile(hosts_of: Hosts, kind: str) -> None:
    first, second = hosts_of(kind)
    with (
        started(first, "-c", BUILD, 0, until="building") as holder,
        started(second, "-c", BUILD, 300, "--tell", until="waiting: ") as waiting,
    ):
        waiting.go_on()
        assert waiting.said() == ""
        holder.kill()
        assert waiting.wait() == 0
        assert waiting.said() == RESUMED[1]


def test_who_waits_in_vain_breaks_no_lock(hosts_of: Hosts) -> None:
    first, second = hosts_of(MOUNTS)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        holder.kill()
    code, said = built(second, wait=1)
    assert code == BUSY
    assert "unknown whether that process is still running" in said
    assert built(first) == RESUMED


@every
@pytest.mark.parametrize("finished", [True, False])
def test_who_has_lost_the_lock_replaces_nothing(hosts_of: Hosts, kind: str, finished: bool) -> None:
    """A user removes the files of the lock although its holder still runs."""
    first, second = hosts_of(kind)
    with started(first, "-c", BUILD, 0, until="building") as late:
        assert run(first, "-c", UNLOCK).code == 0
        with started(second, "-c", BUILD, 0, until="building") as next_one:
            if finished:
                assert next_one.end() == 0
            assert late.end() == BUSY, late.complained()
            assert "this process has lost its lock on " in late.said()
            if not finished:
                assert f"held by process {next_one.pid} on node2" in late.said()
                assert status(first)[0] == "running"
                assert next_one.end() == 0
    assert status(second)[0] == "fresh"


@pytest.mark.parametrize("kind", [KERNEL, MOUNTS, BETWEEN_KERNELS])
def test_what_is_read_can_be_replaced_on_the_same_host(hosts_of: Hosts, kind: str) -> None:
    """NFS and FUSE rename a removed file that is still open; its folder cannot be removed until it is closed."""
    host, other = hosts_of(kind)
    assert built(host)[0] == 0
    with started(host, "-c", READ, until="reading") as reader:
        for _ in range(2):
            rebuilt = run(host, "-c", BUILD, 0, "--force")
            assert (rebuilt.code, rebuilt.complained()) == (0, "")
        assert status(other)[0] == "fresh"
        assert reader.end() == 0
        assert reader.said() == "reading\nnode1\n"
    assert run(other, "-c", BUILD, 0, "--force").code == 0
    assert run(other, "-c", LIST, "/teacher-vectors").said() == "['.main.lock', 'main']\n"


@pytest.mark.slow
@pytest.mark.cluster
def test_a_server_of_nfs_gives_away_the_lock_of_a_machine_that_it_does_not_hear(
    guests: list[Guest], tmp_path: Path
) -> None:
    """It is cut off from the network, as one that has died; but its process goes on."""
    first, second = (GuestHost(guest, MOUNTED / tmp_path.name) for guest in guests)
    with started(first, "-c", BUILD, 0, until="building") as holder:
        guests[0].cut_off(True)
        assert built(second)[0] == BUSY
        # The server waits for it as long as its lease lasts.
        assert built(second, wait=20 * LEASE_SECONDS) == RESUMED
        guests[0].cut_off(False)
        assert holder.end() == BUSY, holder.complained()
        assert "this process has lost its lock on " in holder.said()
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
