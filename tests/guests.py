"""Hosts with kernels of their own: guests of user-mode Linux (Debian's package user-mode-linux), and NFS between them.

A guest has the files of this machine, read-only, and one folder in which it leaves what its processes say. One guest is
an NFS server. It is set up through the kernel's own files, so that no package of NFS is needed. The guests are
connected by a bridge in a network namespace.

Starting a program in a guest, or touching a new page of memory, costs many times what it costs on this machine. So
nothing in a guest polls: it reads its commands from the console. Its Python processes are forks of its first process,
which has already imported the modules that they use (`guest_init`).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import guest_init
from hosts import ROOT, Process, variables, wait_for

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
set -e
{setup}
# By its own name: who polls /dev/console does not see its end.
exec < /dev/tty0
{then}
"""
# The end of the console, when the tests have ended, ends the guest.
SERVE = "touch ready; while read -r line; do :; done"
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

    def boot(self, name: str, address: str, setup: str, then: str) -> Guest:
        """Start a guest, and wait until it is ready.

        Args:
            setup: shell commands; the guest ends if one of them fails.
            then: the last command, which creates the file `ready` and then reads the console.

        Raises:
            GuestError: if it does not boot.
        """
        self.ip("tuntap", "add", name, "mode", "tap")
        self.ip("link", "set", name, "master", "bridge", "up")
        guest = Guest(self, name, address, setup.format(address=address), then)
        self._kernels.append(guest)
        deadline = time.monotonic() + BOOT_SECONDS
        while not (guest.folder / "booted").exists():
            if not guest.runs or time.monotonic() > deadline:
                raise GuestError(f"{name} does not boot: {guest.said()}")
            time.sleep(0.1)
        wait_for(lambda: (guest.folder / "ready").exists() or not guest.runs)
        assert (guest.folder / "ready").exists(), guest.said()
        return guest


class GuestError(Exception):
    """A guest does not boot."""


class Guest:
    """A kernel of user-mode Linux, and where its processes leave what they say."""

    def __init__(self, network: Network, name: str, address: str, setup: str, then: str) -> None:
        self.name, self.folder = name, network.folder / name
        self._network = network
        self.folder.mkdir()
        init = self.folder / "init"
        given = {"modules": " ".join(network.modules), "mounted": MOUNTED, "folder": self.folder}
        init.write_text(INIT.format(name=name, address=address, setup=setup, then=then, **given), encoding="utf-8")
        init.chmod(0o755)
        self.console = self.folder / "console"
        boot = f"mem=400M umid={network.name}-{name} root=/dev/root rootfstype=hostfs rootflags=/ ro init={init}"
        devices = f"eth0=tuntap,{name} con=null con0=fd:0,fd:1 ssl=null"
        with self.console.open("w") as console:
            self._kernel = subprocess.Popen(
                ["ip", "netns", "exec", network.name, KERNEL, *boot.split(), *devices.split()],
                stdin=subprocess.PIPE,
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

    def tell(self, *words: str) -> None:
        """Write a line to its console."""
        assert self._kernel.stdin
        self._kernel.stdin.write(f"{' '.join(words)}\n".encode())
        self._kernel.stdin.flush()

    def cut_off(self, yes: bool) -> None:
        """Take it off the network, or connect it again."""
        self._network.ip("link", "set", self.name, "down" if yes else "up")

    def die(self) -> None:
        """End all of it at once, as a loss of power does."""
        assert self._kernel.stdin
        self._kernel.stdin.close()
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
        request = {"words": [str(word) for word in words], "environment": variables(work)}
        self.file("cmd").write_text(json.dumps(request), encoding="utf-8")
        guest.tell("start", self._name)

    def file(self, suffix: str) -> Path:
        return self._guest.folder / f"{self._name}.{suffix}"

    @property
    def pid(self) -> int:
        return int(self.file("pid").read_text())

    @property
    def code(self) -> int | None:
        return int(self.file("rc").read_text()) if self.file("rc").exists() else None

    def go_on(self) -> None:
        if self._guest.runs:
            self._guest.tell("go", self._name)

    def kill(self) -> None:
        if self._guest.runs and self.code is None:
            self._guest.tell("kill", self._name)
            self.wait()


@contextmanager
def nfs_guests(folder: Path, modules: Mapping[str, Sequence[str]]) -> Iterator[list[Guest]]:
    """Guests that have mounted one folder of another guest at MOUNTED.

    Args:
        modules: names of the guests -> what Python has imported there before it starts processes.
    """
    with Network(folder) as network:
        network.boot("server", "10.9.0.1", SERVER, SERVE)
        guests = []
        for number, (name, loaded) in enumerate(modules.items(), 2):
            python = ["env", f"PYTHONPATH={ROOT}", sys.executable, guest_init.__file__, *loaded]
            guests.append(network.boot(name, f"10.9.0.{number}", CLIENT, f"exec {shlex.join(python)}"))
        yield guests


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
