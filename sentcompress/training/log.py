"""The numbers of training as JSON lines, which a resumed run goes on with as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sentcompress.documents import finite


class TrainingLog:
    """A file of one JSON object a line."""

    def __init__(self, path: Path, size: int) -> None:
        """Open a log, dropping what was written after its first `size` bytes: those steps will be done again."""
        self._stream = path.open("ab")
        self._stream.truncate(size)

    def write(self, values: Mapping[str, float | int | str | None]) -> None:
        shown = {key: round(value, 8) if isinstance(value, float) else value for key, value in values.items()}
        # In their order: what stands between two of the keys are the terms of the loss.
        self._stream.write(json.dumps(finite(shown), allow_nan=False).encode() + b"\n")

    def size(self) -> int:
        """Bytes written so far, all of them on the disk."""
        self._stream.flush()
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
