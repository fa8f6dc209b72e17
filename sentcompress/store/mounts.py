"""Whether a file lock holds on every machine that can reach the file, or only on this one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
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
    "cifs": ("nobrl",),
    "smb3": ("nobrl",),
}
# File systems that only one machine reaches at a time.
LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs tmpfs ramfs overlay vfat exfat hfsplus apfs".split())


def locks_everywhere(path: Path, mounts: Path = MOUNTS) -> bool:
    """Whether no machine can take a lock on a file while another one holds it.

    False for what is not known to be so: FUSE, BeeGFS and folders of virtual machines can lock on one machine only.

    Args:
        mounts: the table of mounts; without one, as on macOS, the answer is True.
    """
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return True
    kind, options = _mount_of(os.path.realpath(path), table)
    if kind in LOCAL:
        return True
    return kind in SHARED and not options & set(SHARED[kind])


def _mount_of(path: str, table: str) -> tuple[str, set[str]]:
    """The type and the options of the mount that a path is on: the deepest one, the last of several in one place."""
    found, deepest = ("", set[str]()), -1
    for line in table.splitlines():
        # proc(5): ... root, mount point, options, optional fields, "-", type, source, super options
        before, _, after = line.partition(" - ")
        fields, more = before.split(" "), after.split(" ")
        if len(fields) < 6 or len(more) < 3:
            continue
        point = _unescaped(fields[4])
        inside = point == "/" or path == point or path.startswith(f"{point}/")
        if inside and len(point) >= deepest:
            deepest = len(point)
            found = more[0], {*fields[5].split(","), *more[2].split(",")}
    return found


def _unescaped(text: str) -> str:
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
