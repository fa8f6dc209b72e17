"""An artifact that is being built: files written one by one, then the manifest, then the move into place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.json_documents import write_json
from sentcompress.store import atomic
from sentcompress.store.atomic import MANIFEST, SCAFFOLD
from sentcompress.store.manifests import (
    LOG,
    Artifact,
    combined_digest,
    file_digest,
    installed_libraries,
    read_artifact,
    sealed,
)
from sentcompress.store.request import REQUEST, Request
from sentcompress.store.unfinished import remove_leftovers


class Build:
    """An artifact that is being built; see `WorkDirectory.build`."""

    def __init__(self, request: Request, target: Path, partial: Path, fresh: Artifact | None, resumed: bool) -> None:
        # What ends before the artifact is put in its place.
        self.until_finished = ExitStack()
        # Raises an error if another process may have begun to build the same.
        self.check: Callable[[], None] = lambda: None
        self.request = request
        self.target = target
        self.path = partial
        self.fresh = fresh
        self.resumed = resumed
        self._started = time.monotonic()

    def has(self, name: str) -> bool:
        """Whether a file of this name is complete, written by this run or by the run that it resumes."""
        return (self.path / name).exists()

    def write(self, name: str) -> AbstractContextManager[Path]:
        """A path to write a file or folder to; it gets its final name when the block ends without an error.

        Files that are needed only during the build go into the folder SCAFFOLD, which `finish` removes.
        """
        return atomic.written(self.path / name)

    def remove(self, name: str) -> None:
        """Remove a file or folder that an interrupted run wrote."""
        atomic.remove(self.path / name)

    def clear(self) -> None:
        """Remove all that this run, or the one that it resumes, wrote."""
        for path in list(self.path.iterdir()) if self.path.is_dir() else []:
            if path.name != REQUEST:
                atomic.remove(path)

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Write the manifest and move the artifact into place, replacing an older one.

        Raises:
            BusyError: if this process has lost its lock; then nothing is replaced.
        """
        self.check()
        self.until_finished.close()
        remove_leftovers(self.path)
        files: dict[str, dict[str, Any]] = {
            path.relative_to(self.path).as_posix(): {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and self._is_lasting(path)
        }
        lasting = {name: entry["sha256"] for name, entry in files.items() if Path(name).name != LOG}
        manifest = {
            **self.request.as_dict(),
            "line": list(self.request.line),
            "fingerprint": self.request.fingerprint,
            "digest": combined_digest(lasting),
            "files": files,
            "facts": dict(facts),
            "libraries": installed_libraries(),
            "seconds": round(time.monotonic() - self._started, 3),
            "finished": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        atomic.fsync_tree(self.path)
        self.check()  # the files took a while
        with self.write(MANIFEST) as path:
            write_json(path, sealed(manifest))
        atomic.swap(self.path, self.target)
        return read_artifact(self.target, self.target)

    def _is_lasting(self, path: Path) -> bool:
        """Whether a file of the build belongs to the finished artifact and its digest."""
        name = path.relative_to(self.path)
        return name.parts[0] != SCAFFOLD and str(name) not in (MANIFEST, REQUEST)
