"""Several hosts on one machine: processes with a host name and a boot id of their own, and mounts of one folder.

A host is a UTS and a mount namespace in which another file is mounted over the kernel's boot id. The kernel remains the
same, so its locks hold on all of these hosts, like those of NFS. Two mounts of one folder through FUSE (bindfs) show
the same files, but a lock on one of them does not hold on the other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOT_ID = "/proc/sys/kernel/random/boot_id"
ENTER = f'hostname "$1" && mount --bind "$2" {BOOT_ID} && shift 2 && exec "$@"'
LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Host:
    """A host, as its processes see it.

    Attributes:
        boot_id: the file with its boot id.
        work: where it has mounted the work directory.
    """

    name: str
    boot_id: Path
    work: Path

    def start(self, *words: object, **options: int) -> subprocess.Popen[str]:
        """Start Python there with these arguments, its standard input and output connected to pipes."""
        command = ["unshare", "--uts", "--mount", "sh", "-c", ENTER, "sh", self.name, self.boot_id, sys.executable]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "SENTCOMPRESS_WORK": str(self.work)}
        variables.pop("SLURM_JOB_ID", None)
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*map(str, command), *map(str, words)],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=variables,
            **options,
        )

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run Python there to its end."""
        process = self.start(*words)
        try:
            output, error = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(process.args, process.returncode, output, error)


def make_host(folder: Path, name: str, work: Path) -> Host:
    """A host that has not run yet; `folder` keeps its boot id."""
    boot_id = folder / f"{name}.boot_id"
    boot_id.write_text(f"00000000-0000-0000-0000-{name:0>12}\n", encoding="ascii")
    return Host(name, boot_id, work)


@contextmanager
def mounted(folder: Path, point: Path) -> Iterator[Path]:
    """`folder` mounted at `point` through FUSE; removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    point.mkdir(parents=True)
    subprocess.run(["bindfs", folder, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def why_no_hosts() -> str:
    """Why this machine cannot be several hosts; empty if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root, for namespaces"
    if not shutil.which("unshare") or not Path(BOOT_ID).exists():
        return "needs Linux and unshare, of util-linux"
    tried = subprocess.run(
        ["unshare", "--uts", "--mount", "sh", "-c", ENTER, "sh", "node1", "/dev/null", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else ""


def why_no_mounts(folder: Path) -> str:
    """Why one folder cannot be mounted twice here; empty if it can. `folder` is for a try."""
    if not shutil.which("bindfs"):
        return "needs bindfs (apt-get install bindfs)"
    if not Path("/dev/fuse").exists():
        return "needs FUSE: no /dev/fuse"
    try:
        with mounted(folder / "real", folder / "point"):
            return ""
    except subprocess.CalledProcessError as error:
        return f"FUSE cannot be mounted here: {error}"
