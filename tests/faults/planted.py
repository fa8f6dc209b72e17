"""Five typical bugs of such stores, planted only in the forked child and never in the package.

The harness has to catch each; test_campaign.py sees that it does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sentcompress.encoding import vector_cache
from sentcompress.json_documents import to_json
from sentcompress.store import MANIFEST, Build, atomic
from sentcompress.store.manifests import sealed


def no_fsync() -> None:
    """Files are not synced."""
    _skip_fsync(stat.S_ISREG)


def no_folder_fsync() -> None:
    """Folders are not synced."""
    _skip_fsync(stat.S_ISDIR)


def _skip_fsync(skipped: Callable[[int], bool]) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if not skipped(os.fstat(descriptor).st_mode):
            real(descriptor)

    os.fsync = fsync


def rename_first() -> None:
    """A file gets its name before its bytes are durable."""

    @contextmanager
    def written(final: Path) -> Iterator[Path]:
        final.parent.mkdir(parents=True, exist_ok=True)
        unfinished = atomic.beside(final, "tmp")
        atomic.remove(unfinished)
        yield unfinished
        if final.is_dir():
            atomic.remove(final)
        unfinished.replace(final)
        atomic.fsync_tree(final)
        atomic.fsync(final.parent)

    atomic.written = written


def marker_early() -> None:
    """The manifest, which says that an artifact is complete, is there as soon as its first file."""
    real = Build.write

    @contextmanager
    def write(build: Build, name: str) -> Iterator[Path]:
        with real(build, name) as path:
            yield path
        marker = build.path / MANIFEST
        if name != MANIFEST and not marker.exists():
            asked = {**build.request.as_dict(), "fingerprint": build.request.fingerprint}
            made = {"digest": "", "files": {}, "facts": {}, "libraries": {}, "finished": datetime.now(UTC).isoformat()}
            marker.write_text(to_json(sealed({**asked, **made})), encoding="utf-8")

    Build.write = write


def digest_unread() -> None:
    """Cache files, which are not synced, are used without comparing their SHA-256."""
    real = vector_cache._digest
    ending = vector_cache.KEYS

    def digest(keys: Path, vectors: Path) -> str:
        finished = keys.name.endswith(ending) and not keys.name.startswith(".")
        return keys.name.removesuffix(ending) if finished else real(keys, vectors)

    vector_cache._digest = digest


BUGS: Mapping[str, Callable[[], None]] = {
    "no fsync": no_fsync,
    "no folder fsync": no_folder_fsync,
    "rename first": rename_first,
    "digest unread": digest_unread,
    "marker early": marker_early,
}
