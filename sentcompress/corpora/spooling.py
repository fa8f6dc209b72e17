"""Temporary copies of streams that can be read only once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sentcompress.corpora.text_files import Source
from sentcompress.errors import InputError

_BLOCK = 2**20
# Share of the space that is free at the start; the rest is left to other processes.
SHARE_OF_FREE_SPACE = 0.9


@contextmanager
def spooled(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[BinaryIO]:
    """An unnamed temporary file with the content of a stream, positioned at its beginning.

    Args:
        stream: read to its end.
        name: its name in errors.
        folder: where the file is created; by default the folder for temporary files.

    Raises:
        InputError: if the content takes more than SHARE_OF_FREE_SPACE of the free space there.
    """
    place = folder or Path(tempfile.gettempdir())
    room = int(shutil.disk_usage(place).free * SHARE_OF_FREE_SPACE)
    with tempfile.TemporaryFile(dir=place) as file:
        size = 0
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > room:
                free = f"{room // 2**20} MiB, {SHARE_OF_FREE_SPACE:.0%} of the free space"
                raise InputError(
                    f"{name} does not fit into {place} ({free})",
                    "free some space there (for temporary files, TMPDIR names another disk)",
                )
            file.write(block)
        file.flush()
        file.seek(0)
        yield file


@contextmanager
def spooled_source(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[Source]:
    """Like `spooled`, but as a `Source`, which can be read several times, one after the other.

    Raises:
        InputError: see `spooled`.
    """
    with spooled(stream, name, folder) as file:

        def reopen() -> BinaryIO:
            file.seek(0)
            return os.fdopen(os.dup(file.fileno()), "rb")

        yield Source(name, reopen)
