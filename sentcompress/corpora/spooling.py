"""Streams that can be read only once, put aside in a temporary file."""

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
# Of the space that is free at the beginning; others need the disk as well.
SHARE_OF_FREE_SPACE = 0.9


@contextmanager
def spooled(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[BinaryIO]:
    """A nameless temporary file with the content of a stream, at its beginning.

    Args:
        stream: read to its end.
        name: what errors call it.
        folder: where the file is; by default where temporary files are.

    Raises:
        InputError: if the content takes more than SHARE_OF_FREE_SPACE of the space that is free there.
    """
    place = folder or Path(tempfile.gettempdir())
    room = int(shutil.disk_usage(place).free * SHARE_OF_FREE_SPACE)
    with tempfile.TemporaryFile(dir=place) as file:
        size = 0
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > room:
                free = f"{room // 2**20} MiB, {SHARE_OF_FREE_SPACE:.0%} of what is free"
                raise InputError(f"{name} does not fit into {place} ({free})", "set TMPDIR, or unpack it yourself")
            file.write(block)
        file.flush()
        file.seek(0)
        yield file


@contextmanager
def spooled_source(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[Source]:
    """The same as a source, which can be read several times, one reading after the other.

    Raises:
        InputError: see `spooled`.
    """
    with spooled(stream, name, folder) as file:

        def reopen() -> BinaryIO:
            file.seek(0)
            return os.fdopen(os.dup(file.fileno()), "rb")

        yield Source(name, reopen)
