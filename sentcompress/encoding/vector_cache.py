"""A cache of computed vectors in the work directory.

Every evaluation compares a student with the same teacher, and the same texts are searched with several indexes. Without
a cache they would be encoded each time, which is most of the time of an evaluation.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.errors import SentcompressError
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import tree_digest
from sentcompress.store.arrays import save_array
from sentcompress.store.locking import locked

Vectors = npt.NDArray[np.float32]
# Maximum vectors per model: a large corpus is not worth the disk space and the memory for its keys.
MOST = 200_000
# Maximum texts, and characters of texts, that are looked up at a time.
WINDOW_TEXTS, WINDOW_CHARACTERS = 8192, 2**25
# A smaller batch is read into memory: a mapped file stays open, and there can be as many batches as vectors, such as
# those of single queries.
LEAST_MAPPED = 1024
KEY_BYTES = 16
KEYS, VECTORS = ".keys.npy", ".vectors.npy"
NEW_KEYS, NEW_VECTORS = ".keys.tmp", ".vectors.tmp"
NAME = re.compile(r"[0-9a-f]{64}")
LOCK = ".lock"
# A batch is written in less than a second; a process that holds the lock longer than this is suspended or hangs.
PATIENCE_SECONDS = 60.0


class VectorCache:
    """Vectors by text, in one folder per model and number format, which can be deleted at any time.

    Every batch of new vectors is a pair of files named by the SHA-256 of their contents. The files are not synced to
    disk: if a power failure or a bad disk damages a batch, its SHA-256 differs, and it is removed and recomputed.
    Several processes can write at the same time. If the disk is full, or the folder cannot be locked, a warning says
    so, and no more vectors are written.

    Attributes:
        damaged: number of damaged pairs of files found when the folder was opened.
    """

    def __init__(self, folder: Path, reporter: Reporter = SILENT) -> None:
        self._folder, self._reporter = folder, reporter
        self._parts: list[Vectors] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        self.damaged = 0
        # A link could point to a folder with other files of the same names.
        linked = folder.is_symlink()
        self._writable = not linked and _may_write(folder)
        self._remove_leftovers()
        for path in [] if linked else sorted(folder.glob(f"*{KEYS}")):
            if NAME.fullmatch(path.name.removesuffix(KEYS)):
                self._open(path, path.with_name(path.name.removesuffix(KEYS) + VECTORS))

    def _open(self, keys: Path, vectors: Path) -> None:
        try:
            whole = keys.name.removesuffix(KEYS) == _digest(keys, vectors)
        except FileNotFoundError:
            whole = False
        except PermissionError:
            return  # another user's file
        if whole:
            table = np.load(keys)
            self._add(table, np.load(vectors, mmap_mode="r" if len(table) >= LEAST_MAPPED else None))
            return
        self.damaged += 1
        for path in (keys, vectors) if self._writable else ():
            path.unlink(missing_ok=True)

    def _remove_leftovers(self) -> None:
        """Remove incomplete files of a killed process, unless another process is writing now."""
        if self._writable and self._leftovers():
            with suppress(OSError, SentcompressError), locked(self._folder / LOCK, str(self._folder), patience=0):
                for path in self._leftovers():
                    path.unlink(missing_ok=True)

    def _leftovers(self) -> list[Path]:
        """Files without their final name, and vectors whose keys were never written."""
        lonely = [
            path
            for path in self._folder.glob(f"*{VECTORS}")
            if NAME.fullmatch(path.name.removesuffix(VECTORS))
            and not path.with_name(path.name.removesuffix(VECTORS) + KEYS).exists()
        ]
        unfinished = (self._folder / name for name in (NEW_KEYS, NEW_VECTORS))
        return [*(path for path in unfinished if path.exists()), *lonely]

    def __len__(self) -> int:
        return len(self._places)

    def encode(self, texts: Sequence[str], compute: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """Vectors of texts in their order, [N, D]; `compute` computes those that are not in the cache."""
        keys = [_key(text) for text in texts]
        unknown: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            if key not in self._places:
                unknown.setdefault(key, text)
        if not unknown and texts:
            return self._gather(keys)
        computed = compute(list(unknown.values()))
        # A vector with NaN or infinity is an error, and may be right with another release of a library.
        if len(self) + len(unknown) <= MOST and np.isfinite(computed).all():
            if unknown:
                self._store(list(unknown), computed)
            return self._gather(keys) if texts else computed
        fresh = {key: row for row, key in enumerate(unknown)}
        return np.stack([computed[fresh[key]] if key in fresh else self._of(key) for key in keys])

    def _of(self, key: bytes) -> Vectors:
        part, row = self._places[key]
        vector: Vectors = self._parts[part][row]
        return vector

    def _gather(self, keys: Sequence[bytes]) -> Vectors:
        return np.stack([self._of(key) for key in keys])

    def _store(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)
        if self._writable:
            try:
                self._write_pair(table, vectors)
            except PermissionError:  # the folder is writable, but another user's files in it are not
                self._writable = False
            except (OSError, SentcompressError) as error:  # of the disk, or of the lock
                self._writable = False
                why = error.strerror if isinstance(error, OSError) else error
                self._reporter.warn(f"no more vectors are cached in {self._folder}: {why}")
        self._add(table, vectors)

    def _write_pair(self, table: npt.NDArray[np.uint8], vectors: Vectors) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder / LOCK, str(self._folder), patience=PATIENCE_SECONDS):
            new_keys, new_vectors = self._folder / NEW_KEYS, self._folder / NEW_VECTORS
            try:
                self._write(new_keys, table)
                self._write(new_vectors, vectors)
            except OSError:
                for path in (new_keys, new_vectors):
                    path.unlink(missing_ok=True)  # frees its space on a full disk
                raise
            name = _digest(new_keys, new_vectors)
            # The keys come last: if they exist, so do the vectors.
            new_vectors.replace(self._folder / f"{name}{VECTORS}")
            new_keys.replace(self._folder / f"{name}{KEYS}")

    def _write(self, path: Path, values: npt.NDArray[Any]) -> None:
        path.unlink(missing_ok=True)  # never write through a link
        save_array(path, values)

    def _add(self, keys: npt.NDArray[np.uint8], vectors: Vectors) -> None:
        part = len(self._parts)
        self._parts.append(vectors)
        self._places.update((key.tobytes(), (part, row)) for row, key in enumerate(keys))


def _may_write(folder: Path) -> bool:
    """Whether files can be written to a folder, or the folder can be created."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
    return os.access(there, os.W_OK | os.X_OK)


def _digest(keys: Path, vectors: Path) -> str:
    return tree_digest({"keys": keys, "vectors": vectors})


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
