"""The states that a power cut can leave of a folder, computed from the recorded operations.

POSIX promises this much, and nothing else is assumed: the bytes of a file are durable after an fsync of that file;
the entries of a folder (names made, moved and removed) after an fsync of that folder, whatever ext4 would add. A
rename is atomic: both of its halves are durable, or neither. Everything at the start is durable. Four states are made
of the rest, all of them lawful:

    least     only what is durable; a file whose name is durable and whose bytes are not is empty
    names     all changes of folders, and of the files only what is durable: what a journal of metadata leaves
    journal   the changes of folders up to a random one, in their order; of each file what is durable, or all, or half
              of its bytes, or zeros in place of them
    scattered the same, but each folder keeps its changes up to a random one of its own
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from faults.shim import Operation

STATES = ("least", "names", "journal", "scattered")


@dataclass(eq=False)
class File:
    """A file: the bytes that are durable, and whether it was written to since."""

    durable: bytes = b""
    dirty: bool = False


@dataclass(eq=False)
class Folder:
    """A folder: what it holds now, and what it held at the start."""

    now: dict[str, Node] = field(default_factory=dict)
    start: dict[str, Node] = field(default_factory=dict)


Node = File | Folder


@dataclass
class Change:
    """What one operation did to entries of folders: (folder, name, what is there afterwards)."""

    at: int
    entries: list[tuple[Folder, str, Node | None]]
    durable: bool = False


class Disk:
    """A folder as it is now, all of it durable, and what happens to it then."""

    def __init__(self, box: Path, store: Path) -> None:
        self._box, self._store = box, store
        self._root = _read(box)
        self._changes: list[Change] = []

    def replay(self, operations: Sequence[Operation]) -> None:
        """Follow the operations; the bytes at every fsync are in the store."""
        for at, operation in enumerate(operations):
            if operation.done:
                self._follow(at, operation)

    def unlike(self) -> list[str]:
        """Differences between the box and the recorded operations: changes that the shim missed."""
        nodes = {path: node for node, path in _walk(self._root, self._box)}
        found = [str(path) for path in nodes.keys() ^ set(self._box.rglob("*"))]
        clean = [(path, node) for path, node in nodes.items() if isinstance(node, File) and not node.dirty]
        return found + [str(path) for path, node in clean if path.exists() and path.read_bytes() != node.durable]

    def leave(self, state: str, rng: random.Random) -> None:
        """Replace the content of the box with what a power cut leaves of it."""
        kept = self._chosen(state, rng)
        left: dict[Folder, dict[str, Node]] = {}
        for change in filter(kept, self._changes):
            for folder, name, node in change.entries:
                entries = left.setdefault(folder, dict(folder.start))
                entries.pop(name, None)
                if node is not None:
                    entries[name] = node
        places = {node: path for path, node in _walk(self._root, self._box) if isinstance(node, File)}
        found = {file: path.read_bytes() for file, path in places.items() if file.dirty}
        shutil.rmtree(self._box)

        def write(folder: Folder, path: Path) -> None:
            path.mkdir()
            for name, node in left.get(folder, folder.start).items():
                if isinstance(node, Folder):
                    write(node, path / name)
                else:
                    (path / name).write_bytes(_bytes(node, found.get(node), state, rng))

        write(self._root, self._box)

    def _follow(self, at: int, operation: Operation) -> None:
        if operation.path.endswith(" (deleted)"):
            return
        if operation.kind in ("write", "truncate", "fsync"):
            file = self._node(operation.path)
            assert isinstance(file, File), operation
            file.dirty = operation.kind != "fsync"
            if not file.dirty:
                file.durable = (self._store / str(at)).read_bytes()
        elif operation.kind == "fsync-folder":
            folder = self._node(operation.path)
            for change in self._changes:
                change.durable |= any(changed is folder for changed, _, _ in change.entries)
        else:
            self._change(at, operation)

    def _change(self, at: int, operation: Operation) -> None:
        folder, name = self._place(operation.path)
        if operation.kind in ("unlink", "rmdir"):
            entries: list[tuple[Folder, str, Node | None]] = [(folder, name, None)]
        elif operation.kind in ("create", "mkdir"):
            entries = [(folder, name, File(dirty=True) if operation.kind == "create" else Folder())]
        else:
            moved = [(*self._place(operation.other), folder.now[name])]
            entries = [*([(folder, name, None)] if operation.kind == "rename" else []), *moved]
        for changed, entry, node in entries:
            changed.now.pop(entry, None)
            if node is not None:
                changed.now[entry] = node
        self._changes.append(Change(at, entries))

    def _chosen(self, state: str, rng: random.Random) -> Callable[[Change], bool]:
        if state == "least":
            return lambda change: change.durable
        if state == "names":
            return lambda change: True
        last = self._changes[-1].at if self._changes else 0
        if state == "journal":
            end = rng.randint(max((change.at for change in self._changes if change.durable), default=0), last)
            return lambda change: change.durable or change.at <= end
        ends: dict[Folder, int] = {}
        for change in self._changes:
            for folder, _, _ in change.entries:
                ends.setdefault(folder, rng.randint(0, last))
        return lambda change: change.durable or all(change.at <= ends[folder] for folder, _, _ in change.entries)

    def _node(self, path: str) -> Node:
        node: Node = self._root
        for part in PurePosixPath(path).parts:
            assert isinstance(node, Folder)
            node = node.now[part]
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        place = PurePosixPath(path)
        folder = self._node(str(place.parent))
        assert isinstance(folder, Folder)
        return folder, place.name


def _bytes(file: File, current: bytes | None, state: str, rng: random.Random) -> bytes:
    if not file.dirty or state in ("least", "names") or current is None:
        return file.durable
    return rng.choice((file.durable, current, current[: len(current) // 2], bytes(len(current))))


def _read(path: Path) -> Folder:
    folder = Folder()
    for inner in sorted(path.iterdir()):
        folder.start[inner.name] = _read(inner) if inner.is_dir() else File(inner.read_bytes())
    folder.now = dict(folder.start)
    return folder


def _walk(folder: Folder, path: Path) -> list[tuple[Node, Path]]:
    found: list[tuple[Node, Path]] = []
    for name, node in folder.now.items():
        found.append((node, path / name))
        if isinstance(node, Folder):
            found += _walk(node, path / name)
    return found
