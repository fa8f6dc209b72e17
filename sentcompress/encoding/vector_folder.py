"""Vectors of any number of texts as a folder of numbered files, written in resumable steps, and its reader.

manifest.json            what was asked for; when complete: rows, and the SHA-256 of the files of each number
vectors-00000.npy        [n, D] float32 or float16, or [n, B] uint8 codes
ids-00000.json           the n ids
texts-00000.json         the n texts, if they were asked for
quantizer.json, quantizer.safetensors    only with codes
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.encoding.npy_files import VECTORS_PATTERN, writing_vectors
from sentcompress.encoding.storage import Storage
from sentcompress.errors import InputError, UsageError
from sentcompress.json_documents import read_json, to_json, write_json
from sentcompress.quantization.quantizer import DOCUMENT, TENSORS, Quantizer
from sentcompress.store import MANIFEST, file_digest
from sentcompress.store.atomic import ask_again, beside, fsync_tree, make_folder, written
from sentcompress.store.locking import Lock, claim_of, locked

VERSION = 1
# What is kept of each text beside its vector, and the file of it.
IDS, TEXTS = "ids", "texts"
COLUMN_PATTERNS = {IDS: "ids-{:05d}.json", TEXTS: "texts-{:05d}.json"}
LOCK = ".lock"
# Rows decoded at a time by the reader.
BLOCK = 8192
OTHER_FOLDER = "choose another `output`, or remove the folder"
Vectors = npt.NDArray[np.float32]


class VectorFolder:
    """A folder that is being written; see `writing_folder`.

    Attributes:
        asked: the request, as in the manifest.
        finished: the manifest, if the folder was complete before.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any], finished: Mapping[str, Any] | None, lock: Lock) -> None:
        self.path, self.asked, self.finished, self._lock = path, asked, finished, lock

    def has(self, number: int) -> bool:
        """Whether all files of a number are there."""
        return _has(self.path, number, self.asked)

    def write(
        self, number: int, columns: Mapping[str, Sequence[str]], parts: Iterator[Vectors], storage: Storage
    ) -> None:
        """Write the files of a number, see `write_files`."""
        write_files(self._written, number, columns, parts, storage)

    def copy(self, number: int, source: Path) -> None:
        """Write the files of a number as they are in another folder."""
        for pattern in _patterns(self.asked).values():
            name = pattern.format(number)
            with self._written(name) as path:
                shutil.copyfile(source / name, path)

    def finish(self, rows: Sequence[int]) -> None:
        """Complete the manifest; `rows` are those of each number."""
        patterns = _patterns(self.asked)
        files = [
            {"rows": count}
            | {what: file_digest(self.path / pattern.format(number)) for what, pattern in patterns.items()}
            for number, count in enumerate(rows)
        ]
        with self._written(MANIFEST) as path:
            write_json(path, {**self.asked, "complete": True, "rows": sum(rows), "files": files})

    @contextmanager
    def _written(self, name: str) -> Iterator[Path]:
        """A file that replaces the one of this name, if the lock is still held.

        Raises:
            BusyError: if it is not; nothing is replaced.
        """
        with written(self.path / name) as path:
            yield path
            self._lock.check()


def write_files(
    write: Callable[[str], AbstractContextManager[Path]],
    number: int,
    columns: Mapping[str, Sequence[str]],
    parts: Iterator[Vectors],
    storage: Storage,
) -> None:
    """Write the files of a number: last the vectors, which tells that all of them are there.

    Args:
        write: opens a file by name.
        columns: n ids and, if they are to be kept, n texts, by the keys of COLUMN_PATTERNS.
        parts: the n vectors in parts [m, D].
    """
    for what, values in columns.items():
        with write(COLUMN_PATTERNS[what].format(number)) as path:
            path.write_text(json.dumps(values, ensure_ascii=False) + "\n", encoding="utf-8")
    with (
        write(VECTORS_PATTERN.format(number)) as path,
        writing_vectors(path, len(columns[IDS]), storage.width, storage.dtype) as append,
    ):
        # All at once: the bytes of a matrix product depend on how many rows it has.
        append(storage.encode(np.concatenate(list(parts))))


def finished_folder(path: Path, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest of a folder that is complete, None if there is none yet.

    Args:
        asked: the request, except how it is computed (`plan`).

    Raises:
        UsageError: if it was made by a different request, or is unfinished.
        InputError: if it is damaged.
    """
    said = _manifest(path, _as_written(asked))
    if said is not None and not said["complete"]:
        raise UsageError(
            f"encode: an unfinished {path} was begun without shards", "finish it without `shard`, or remove the folder"
        )
    return said


def _manifest(path: Path, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest of a folder; None if there is none. It says whether it is `complete`, and is then sound.

    Raises:
        UsageError: if it was made by a different request.
        InputError: if it is damaged.
    """
    said = read_json(path / MANIFEST) if (path / MANIFEST).exists() else None
    if said is None:
        return None
    changed = [name for name in asked if not isinstance(said, dict) or said.get(name) != asked[name]]
    if changed:
        raise UsageError(
            f"encode: {path} holds vectors of another request (different: {', '.join(changed)})",
            OTHER_FOLDER,
        )
    complete = said.get("complete")
    if not isinstance(complete, bool) or (complete and not _is_sound(said)):
        raise InputError(f"{path / MANIFEST} is damaged", OTHER_FOLDER)
    return dict(said)


def _as_written(asked: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(to_json({"version": VERSION, **asked})))


@contextmanager
def writing_folder(path: Path, asked: Mapping[str, Any], quantizer: Quantizer | None) -> Iterator[VectorFolder]:
    """Start a folder, or resume one of the same request.

    Args:
        asked: everything that the bytes of the vectors depend on.

    Raises:
        InputError: if the folder holds other files, or its manifest is damaged.
        UsageError: if it holds vectors of a different request.
        BusyError: if another process is writing it.
    """
    asked = _as_written(asked)
    # A process that was killed at the beginning leaves its lock and the unfinished manifest.
    ours = {LOCK, claim_of(path / LOCK).name, beside(path / MANIFEST, "tmp").name}
    if path.is_dir() and not (path / MANIFEST).exists() and {entry.name for entry in path.iterdir()} - ours:
        raise InputError(f"{path} is a folder with other files", "name a new or empty folder as `output`")
    make_folder(path)
    with locked(path / LOCK, str(path)) as lock:
        ask_again(path)
        said = _manifest(path, asked)
        if said is None:
            said = {**asked, "complete": False}
            with written(path / MANIFEST) as unfinished:
                write_json(unfinished, said)
        finished = said["complete"] and _is_whole(path, said)
        if quantizer and not finished:
            quantizer.save(path)
            for name in (TENSORS, DOCUMENT):
                fsync_tree(path / name)  # also lets others read it, as far as the umask does
        yield VectorFolder(path, asked, said if finished else None, lock)


def _is_whole(path: Path, said: Mapping[str, Any]) -> bool:
    """Whether a complete folder still has its files; missing ones are made again."""
    return bool(said["files"]) and all(_has(path, number, said) for number in range(len(said["files"])))


def _has(path: Path, number: int, asked: Mapping[str, Any]) -> bool:
    return all((path / pattern.format(number)).is_file() for pattern in _patterns(asked).values())


def _patterns(asked: Mapping[str, Any]) -> dict[str, str]:
    """The files of a number, by what they hold."""
    columns = (IDS, TEXTS) if asked["texts"] else (IDS,)
    return {"vectors": VECTORS_PATTERN, **{what: COLUMN_PATTERNS[what] for what in columns}}


@dataclass(frozen=True)
class StoredVectors:
    """Vectors that `encode -o FOLDER/` wrote, decoded as they are read.

    >>> stored = read_vectors("vectors")
    >>> for ids, vectors in stored.blocks(): ...

    Attributes:
        path: the folder.
        manifest: its manifest.
        quantizer: maps a query's vector to the space of these: `quantizer.turn`; None if they are the model's own.
    """

    path: Path
    # A notebook that shows the object would print pages of these.
    manifest: Mapping[str, Any] = field(repr=False)
    quantizer: Quantizer | None = field(repr=False)

    def __len__(self) -> int:
        return int(self.manifest["rows"])

    @property
    def dimension(self) -> int:
        """The width of a decoded vector."""
        return self.quantizer.dimension if self.quantizer else int(self.manifest["dimension"])

    @cached_property
    def ids(self) -> list[str]:
        """All ids, in the order of the vectors."""
        return [one for number in range(len(self.manifest["files"])) for one in self._column(IDS, number)]

    def blocks(self) -> Iterator[tuple[list[str], Vectors]]:
        """Ids and decoded float32 vectors [n, d] in order, in bounded memory.

        Raises:
            InputError: if a file is missing or was changed.
        """
        for number in range(len(self.manifest["files"])):
            ids, stored = self._column(IDS, number), self._stored(number)
            for start in range(0, len(ids), BLOCK):
                block = np.ascontiguousarray(stored[start : start + BLOCK])
                decoded = self.quantizer.decode(block) if self.quantizer else block.astype(np.float32)
                yield ids[start : start + BLOCK], decoded

    def rows(self) -> Iterator[tuple[str, str, Vectors]]:
        """Each id with its text and its decoded vector [d], in order, in bounded memory.

        Raises:
            InputError: if the texts were not kept; if a file is missing or was changed.
        """
        if not self.manifest["texts"]:
            raise InputError(f"{self.path} has vectors and ids, and no texts", "encode the texts again with `texts`")
        texts = (text for number in range(len(self.manifest["files"])) for text in self._column(TEXTS, number))
        for ids, vectors in self.blocks():
            yield from zip(ids, islice(texts, len(ids)), vectors, strict=True)

    def to_array(self) -> Vectors:
        """All decoded vectors, [N, d] float32."""
        found = np.empty((len(self), self.dimension), dtype=np.float32)
        start = 0
        for _, block in self.blocks():
            found[start : start + len(block)] = block
            start += len(block)
        return found

    def query(self, vectors: Vectors) -> Vectors:
        """Vectors of the model [Q, D] as they are compared with these, [Q, d]."""
        return self.quantizer.turn(vectors) if self.quantizer else vectors

    def _column(self, what: str, number: int) -> list[str]:
        """The ids, or the texts, of a number."""
        path = self._checked(COLUMN_PATTERNS[what].format(number), self.manifest["files"][number][what])
        found = read_json(path)
        if (
            not isinstance(found, list)
            or not all(isinstance(one, str) for one in found)
            or len(found) != self.manifest["files"][number]["rows"]
        ):
            raise _damaged(path)
        return list(found)

    def _stored(self, number: int) -> npt.NDArray[Any]:
        path = self._checked(VECTORS_PATTERN.format(number), self.manifest["files"][number]["vectors"])
        try:
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError):
            raise _damaged(path) from None
        form = Storage(self.manifest["store"], self.dimension, self.quantizer)
        if found.shape != (self.manifest["files"][number]["rows"], form.width) or str(found.dtype) != form.dtype:
            raise _damaged(path)
        return found

    def _checked(self, name: str, digest: str) -> Path:
        path = self.path / name
        if not path.is_file() or file_digest(path) != digest:
            raise _damaged(path)
        return path


def read_vectors(path: str | Path) -> StoredVectors:
    """Open a folder of stored vectors.

    Raises:
        InputError: if it is not one, is not complete, or its manifest or quantizer is damaged.
    """
    folder = Path(path)
    if not (folder / MANIFEST).is_file():
        hint = "make one: sentcompress encode FILE -o FOLDER/"
        if folder.is_file():
            hint += "; a .npy file is read with numpy.load, a Parquet file with pyarrow"
        raise InputError(f"{folder} is not a folder of vectors", hint)
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION or "store" not in manifest:
        raise InputError(f"{folder / MANIFEST} is not the manifest of vectors", "encode the texts again")
    if manifest.get("complete") is not True:
        raise InputError(f"{folder} is not complete", "run its command again; it resumes where it was interrupted")
    if not _is_sound(manifest):
        raise InputError(f"{folder / MANIFEST} is damaged", "encode the texts again")
    quantizer = Quantizer.load(folder) if (folder / DOCUMENT).exists() or manifest["quantizer"] else None
    return StoredVectors(folder, manifest, quantizer)


def _is_sound(manifest: Mapping[str, Any]) -> bool:
    """Whether all that the reader uses is there, and of the right type."""
    files, model = manifest.get("files"), manifest.get("model")
    if not isinstance(files, list) or not isinstance(model, dict) or "quantizer" not in manifest:
        return False
    if not isinstance(manifest.get("texts"), bool):
        return False
    kinds = {"rows": int, **dict.fromkeys(_patterns(manifest), str)}
    for one in files:
        if not isinstance(one, dict) or any(type(one.get(name)) is not kind for name, kind in kinds.items()):
            return False
    texts = (manifest["store"], model.get("reference"), model.get("digest"))
    sizes = (manifest.get("rows"), manifest.get("dimension"))
    rows = sum(one["rows"] for one in files)
    return all(isinstance(text, str) for text in texts) and all(type(n) is int for n in sizes) and rows == sizes[0]


def folder_digest(folder: Path) -> str:
    """SHA-256 of a folder of vectors: that of its manifest, which holds those of its files."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is missing or was changed", "remove it and run its command again, or copy it again")
