"""Hosts with kernels of their own: guests of user-mode Linux (Debian's package user-mode-linux), and NFS between them.

A guest has the files of this machine, read-only, and one folder in which it leaves what its processes say. One guest is
an NFS server. It is set up through the kernel's own files, so that no package of NFS is needed. The guests are
connected by a bridge in a network namespace.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hosts import Process, variables, wait_for

KERNEL = "linux.uml"
# Each needs some of those before it.
MODULES = "netfs fscache sunrpc grace lockd nfs dns_resolver nfsv4 nfs_acl oid_registry auth_rpcgss nfsd".split()
MOUNTED = Path("/run/nfs")
# A server forgets a client of which it has not heard for so long, with its locks.
LEASE_SECONDS = 20
BOOT_SECONDS = 300
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
for module in {modules}; do insmod $module; done
hostname {name}
ip link set lo up
ip link set eth0 up
ip address add {address}/24 dev eth0
mkdir /run/said {mounted}
mount -t hostfs none /run/said -o {folder}
cd /run/said
touch booted
(
set -e
{setup}
)
[ $? = 0 ] && touch ready || touch failed
while :; do
    for file in *.cmd; do
        [ -e "$file" ] || continue
        mv "$file" "${{file%.cmd}}.run"
        sh "${{file%.cmd}}.run" &
    done
    sleep 0.1
done
"""
# Clients may use the folder; grace, in which a server that was restarted grants no new locks, is over. The kernel
# refuses to end it without a folder in which it notes its clients.
SERVER = f"""
mount -t tmpfs exported {MOUNTED}
mount -t nfsd nfsd /proc/fs/nfsd
echo {LEASE_SECONDS} > /proc/fs/nfsd/nfsv4leasetime
echo {LEASE_SECONDS} > /proc/fs/nfsd/nfsv4gracetime
for last in 2 3 4 5; do echo "nfsd 10.9.0.$last 2147483647 all" > /proc/net/rpc/auth.unix.ip/channel; done
echo 'all {MOUNTED} 2147483647 9218 65534 65534 0' > /proc/net/rpc/nfsd.export/channel
echo 'all 1 \\x00000000 2147483647 {MOUNTED}' > /proc/net/rpc/nfsd.fh/channel
echo '-3 +4 +4.1 +4.2' > /proc/fs/nfsd/versions
mkdir /run/recovery
echo /run/recovery > /proc/fs/nfsd/nfsv4recoverydir
echo 'tcp 2049' > /proc/fs/nfsd/portlist
echo 4 > /proc/fs/nfsd/threads
echo Y > /proc/fs/nfsd/v4_end_grace
"""
CLIENT = f"mount -i -t nfs4 -o vers=4.2,sec=sys,addr=10.9.0.1,clientaddr={{address}} 10.9.0.1:/ {MOUNTED}"


class Network:
    """A bridge in a network namespace, to which guests are connected."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"guests-{os.getpid()}"
        self._kernels: list[Guest] = []
        found = {path.stem: path for path in sorted(Path("/usr/lib/uml/modules").rglob("*.ko"))}
        self.modules = [str(found[name]) for name in MODULES if name in found]

    def __enter__(self) -> Self:
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.ip("link", "add", "name", "bridge", "type", "bridge")
        self.ip("link", "set", "bridge", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for kernel in self._kernels:
            kernel.die()
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", "-n", self.name, *words], check=True)

    def boot(self, name: str, address: str, setup: str) -> Guest:
        """Start a guest, and wait until `setup` has been done.

        Raises:
            GuestError: if it does not boot.
        """
        self.ip("tuntap", "add", name, "mode", "tap")
        self.ip("link", "set", name, "master", "bridge", "up")
        guest = Guest(self, name, address, setup.format(address=address))
        self._kernels.append(guest)
        deadline = time.monotonic() + BOOT_SECONDS
        while not (guest.folder / "booted").exists():
            if not guest.runs or time.monotonic() > deadline:
                raise GuestError(f"{name} does not boot: {guest.said()}")
            time.sleep(0.1)
        wait_for(lambda: (guest.folder / "ready").exists() or (guest.folder / "failed").exists())
        assert (guest.folder / "ready").exists(), guest.said()
        return guest


class GuestError(Exception):
    """A guest does not boot."""


class Guest:
    """A kernel of user-mode Linux, and where its processes leave what they say."""

    def __init__(self, network: Network, name: str, address: str, setup: str) -> None:
        self.name, self.folder = name, network.folder / name
        self._network = network
        self.folder.mkdir()
        init = self.folder / "init"
        given = {"modules": " ".join(network.modules), "mounted": MOUNTED, "folder": self.folder, "setup": setup}
        init.write_text(INIT.format(name=name, address=address, **given), encoding="utf-8")
        init.chmod(0o755)
        self.console = self.folder / "console"
        boot = f"mem=400M umid={network.name}-{name} root=/dev/root rootfstype=hostfs rootflags=/ ro init={init}"
        devices = f"eth0=tuntap,{name} con=null con0=null,fd:1 ssl=null"
        with self.console.open("w") as console:
            self._kernel = subprocess.Popen(
                ["ip", "netns", "exec", network.name, KERNEL, *boot.split(), *devices.split()],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                # Its memory is a file there; /dev/shm can be small.
                env={"PATH": os.environ["PATH"], "TMPDIR": str(self.folder), "HOME": str(self.folder)},
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        return self._kernel.poll() is None

    def said(self) -> str:
        """The last lines of its console."""
        return self.console.read_text(encoding="utf-8", errors="replace")[-500:]

    def execute(self, name: object, script: str) -> None:
        """Have a script run there, in the folder of the guest."""
        unfinished = self.folder / f"{name}.new"
        unfinished.write_text(script, encoding="utf-8")
        unfinished.rename(self.folder / f"{name}.cmd")

    def cut_off(self, yes: bool) -> None:
        """Take it off the network, or connect it again."""
        self._network.ip("link", "set", self.name, "down" if yes else "up")

    def die(self) -> None:
        """End all of it at once, as a loss of power does."""
        if self.runs:
            os.killpg(self._kernel.pid, signal.SIGKILL)
            self._kernel.wait()


@dataclass(frozen=True)
class GuestHost:
    """A guest with a work directory."""

    guest: Guest
    work: Path

    @property
    def name(self) -> str:
        return self.guest.name

    def start(self, *words: object) -> Process:
        process = GuestProcess(self.guest, words, self.work)
        wait_for(process.file("pid").exists)
        return process


class GuestProcess(Process):
    """Python in a guest."""

    def __init__(self, guest: Guest, words: Sequence[object], work: Path) -> None:
        self._guest, self._name = guest, str(time.monotonic_ns())
        super().__init__(self.file("out"))
        given = [f"{name}={value}" for name, value in variables(work).items()]
        line, name = shlex.join(["env", *given, sys.executable, *map(str, words)]), self._name
        guest.execute(
            name,
            f"mkfifo /run/{name}\n"
            f"(until [ -e {name}.go ]; do sleep 0.1; done; echo) > /run/{name} &\n"
            f"sh -c 'echo $$ > {name}.tmp; mv {name}.tmp {name}.pid; exec \"$@\"' sh {line} "
            f"< /run/{name} > {name}.out 2> {name}.err\n"
            f"echo $? > {name}.tmp; mv {name}.tmp {name}.rc\n",
        )

    def file(self, suffix: str) -> Path:
        return self._guest.folder / f"{self._name}.{suffix}"

    @property
    def pid(self) -> int:
        return int(self.file("pid").read_text())

    @property
    def code(self) -> int | None:
        return int(self.file("rc").read_text()) if self.file("rc").exists() else None

    def go_on(self) -> None:
        self.file("go").touch()

    def kill(self) -> None:
        if self._guest.runs and self.code is None:
            self._guest.execute(f"{self._name}-end", f"kill -9 {self.pid}\n")
            self.wait()
        self.go_on()  # ends what waits for it there


@contextmanager
def nfs_guests(folder: Path, names: Sequence[str]) -> Iterator[list[Guest]]:
    """Guests that have mounted one folder of another guest at MOUNTED."""
    with Network(folder) as network:
        network.boot("server", "10.9.0.1", SERVER)
        yield [network.boot(name, f"10.9.0.{number}", CLIENT) for number, name in enumerate(names, 2)]


def why_no_guests() -> str:
    """Why this machine can have no guests; empty if it may."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root"
    if missing := [name for name in (KERNEL, "ip", "insmod") if not shutil.which(name)]:
        return f"needs {', '.join(missing)} (apt-get install user-mode-linux iproute2 kmod)"
    if Path(sys.executable).is_relative_to("/run") or not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun, and Python outside of /run"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else ""
