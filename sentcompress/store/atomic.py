"""Atomic writes of files and folders: written under a temporary name, synced to disk, then renamed.

A folder `name` is built as `.name.partial`; its last file is the manifest. Then the folder SCAFFOLD, which is needed
only during the build, is removed, and the rest is moved into place with two renames: the older folder to `.name.old`,
the new one to `name`. If the process is killed in between, `recover` finishes the move.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sentcompress.errors import InputError

MANIFEST = "manifest.json"
# Holds files needed only during the build (checkpoints, token caches). Removed after the manifest is written:
# otherwise a process killed in between could neither resume nor finish.
SCAFFOLD = ".scaffold"
# The disk, or the user's share of it, is full.
FULL = (errno.ENOSPC, errno.EDQUOT)


def _umask() -> int:
    # The umask can be read only by setting it; the value is strict in case another thread opens a file now.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


# Read at import, before there are other threads.
UMASK = _umask()


def beside(target: Path, suffix: str) -> Path:
    """The hidden neighbour `.name.<suffix>` of `target`."""
    return target.with_name(f".{target.name}.{suffix}")


@contextmanager
def written(final: Path) -> Iterator[Path]:
    """A path to write a file or folder to; it is renamed to `final` when the block ends without an error."""
    _refuse_special(final)
    make_folder(final.parent)
    unfinished = beside(final, "tmp")
    remove(unfinished)
    try:
        yield unfinished
        fsync_tree(unfinished)
        if final.is_dir():
            remove(final)
        unfinished.replace(final)
    except BaseException as error:
        remove(unfinished)  # frees its space on a full disk
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            error.filename = str(final)  # a failed write does not know its file, which tells whose disk is full
        raise
    fsync(final.parent)


def check_place(final: Path) -> None:
    """Create a nameless file where `final` will be written, to find out before the work is done.

    Args:
        final: a file or folder in an existing folder.

    Raises:
        OSError: if no file can be created there.
        InputError: for a device or a named pipe.
    """
    _refuse_special(final)
    with tempfile.TemporaryFile(dir=final if final.is_dir() else final.absolute().parent):
        pass


def _refuse_special(final: Path) -> None:
    """Raise InputError for a device or a named pipe, which the rename would replace."""
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = final.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            raise InputError(f"{final} is a device or a pipe, not a file", "name a file")


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync them: a file survives a power failure only if its folders do."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    fsync(folder.parent)


def swap(partial: Path, target: Path) -> None:
    """Replace an older folder with a complete new one."""
    remove(partial / SCAFFOLD)
    fsync(partial)  # otherwise it could reappear after a power failure, and nothing would remove it
    old = beside(target, "old")
    _discard(old)
    if os.path.lexists(target):
        target.rename(old)
    partial.rename(target)
    fsync(target.parent)
    _discard(old)


def _discard(old: Path) -> None:
    """Remove a replaced folder, and those that could not be removed earlier.

    On NFS and FUSE, a removed file that is still open keeps its folder. Such a folder gets another name until it can be
    removed, at the next replacement.
    """
    earlier = re.compile(re.escape(old.name) + "-[0-9a-f]{8}")
    for folder in [old, *(path for path in old.parent.iterdir() if earlier.fullmatch(path.name))]:
        try:
            drop(folder, MANIFEST)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EBUSY):
                raise
            if folder == old:
                old.rename(old.with_name(f"{old.name}-{secrets.token_hex(4)}"))


def interrupted(target: Path) -> bool:
    """Whether a swap was started but not finished."""
    return _is_complete(beside(target, "partial")) or _is_folder(beside(target, "old"))


def look_again(target: Path) -> None:
    """Open `target`, the folders beside it and the folders in them, so that their names are those that exist now.

    NFS remembers names that it has found or not found for up to a minute, and asks again when their folder is opened.
    """
    hidden = [beside(target, suffix) for suffix in ("partial", "old", "shards")]
    with suppress(OSError):
        os.scandir(target.parent).close()
    for folder in (target, *hidden):
        ask_again(folder)


def ask_again(folder: Path) -> None:
    """Open a folder and all folders in it; see `look_again`."""
    for _ in os.walk(folder):
        pass


def recover(target: Path) -> None:
    """Finish or undo a swap that a killed process did not complete. The caller holds the lock.

    Whoever takes the lock begins with this, so here the names are looked up again.
    """
    look_again(target)
    partial, old = beside(target, "partial"), beside(target, "old")
    if _is_complete(partial):
        swap(partial, target)
    elif _is_folder(old):
        if os.path.lexists(target) or not _is_complete(old):
            _discard(old)
        else:
            old.rename(target)


def where_complete(target: Path) -> Path | None:
    """Where the complete folder is, for readers that cannot move it; in an unfinished swap, the newer one."""
    if (target / MANIFEST).exists():
        return target
    return next((folder for folder in (beside(target, "partial"), beside(target, "old")) if _is_complete(folder)), None)


def _is_folder(path: Path) -> bool:
    # A swap creates only folders, so a link is not ours.
    return path.is_dir() and not path.is_symlink()


def _is_complete(folder: Path) -> bool:
    return _is_folder(folder) and (folder / MANIFEST).exists()


def drop(folder: Path, first: str) -> None:
    """Remove a folder, starting with the file `first`, so that a partly removed one does not count as complete."""
    if folder.is_dir() and not folder.is_symlink():
        remove(folder / first)  # of a damaged folder, it can be a folder itself
        fsync(folder)
    remove(folder)


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def fsync_tree(path: Path) -> None:
    """Sync a file, or a folder with everything in it, to disk, with the permissions that the umask allows."""
    for each in (*path.rglob("*"), path) if path.is_dir() else (path,):
        open_to_umask(each)
        fsync(each)


def open_to_umask(path: Path) -> None:
    """Add the permissions that `open` or `mkdir` would have given a file or folder; none are removed.

    Some libraries (safetensors) create files that only their owner can read.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    wanted = mode | ((0o777 if path.is_dir() else 0o666) & ~UMASK)
    if mode != wanted:
        with suppress(PermissionError):  # another user's file
            path.chmod(wanted)


def fsync(path: Path) -> None:
    """Sync one file's content, or one folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
