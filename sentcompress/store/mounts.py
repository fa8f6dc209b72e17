"""Whether a file lock holds on every machine that can reach the file, or only on this one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

PROC = Path("/proc/self")
_OF_NFS = ("nolock", "local_lock=flock", "local_lock=all")
# File systems that lock across machines, and the mount options that turn this off.
SHARED: Mapping[str, Collection[str]] = {
    "nfs": _OF_NFS,
    "nfs4": _OF_NFS,
    "lustre": ("localflock",),
    "gpfs": (),
    "ceph": (),
    "gfs2": ("localflocks",),
    "ocfs2": ("localflocks",),
}
# File systems that only one machine reaches at a time.
LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs tmpfs ramfs overlay vfat exfat hfsplus apfs".split())


def locks_everywhere(descriptor: int, proc: Path = PROC) -> bool:
    """Whether no machine can take a lock on an open file while another one holds it.

    False for what is not known to be so: FUSE, BeeGFS and folders of virtual machines can lock on one machine only, or
    on one mount; SMB does before Linux 5.5.

    Args:
        proc: where the kernel tells of this process. Other systems than Linux, as macOS, have no such folder; there,
            the answer is True.
    """
    try:
        about = (proc / "fdinfo" / str(descriptor)).read_text(encoding="ascii")
        table = (proc / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return sys.platform != "linux"
    number = next((line.split()[1] for line in about.splitlines() if line.startswith("mnt_id:")), "")
    kind, options = _mount(number, table)
    if kind in LOCAL:
        return True
    return kind in SHARED and not options & set(SHARED[kind])


def _mount(number: str, table: str) -> tuple[str, set[str]]:
    """The type and the options of a mount; empty if the table does not have it."""
    for line in table.splitlines():
        # proc(5): mount id, ..., root, mount point, options, optional fields, "-", type, source, super options
        before, _, after = line.partition(" - ")
        fields, more = before.split(" "), after.split(" ")
        if len(fields) >= 6 and len(more) >= 3 and fields[0] == number:
            return more[0], {*fields[5].split(","), *more[2].split(",")}
    return "", set()
