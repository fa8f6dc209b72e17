"""The numbers of training as JSON lines, which a resumed run goes on with as if it had never stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from sentcompress.documents import finite
from sentcompress.store.atomic import fsync


class TrainingLog:
    """A file of one JSON object a line."""

    def __init__(self, path: Path, size: int) -> None:
        """Open a log, dropping what was written after its first `size` bytes: those steps will be done again."""
        new = not path.exists()
        # Refuse to write through a symbolic link.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        self._stream = os.fdopen(descriptor, "ab")
        self._stream.truncate(size)
        if new:
            fsync(path.parent)

    def write(self, values: Mapping[str, float | int | str | None]) -> None:
        shown = {key: round(value, 8) if isinstance(value, float) else value for key, value in values.items()}
        # Keys are not sorted: readers find the loss terms by their position between two other keys.
        self._stream.write(json.dumps(finite(shown), allow_nan=False).encode() + b"\n")

    def size(self) -> int:
        """Bytes written so far, all synced to disk, so that a checkpoint can refer to them after a power cut."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
