"""What the tests of sharded commands share."""

from __future__ import annotations

from pathlib import Path

from distilling import add_sentences

from sentcompress.store import Artifact, WorkDirectory


def bytes_of(
    folder: Path, without: tuple[str, ...] = ("manifest.json", "request.json", "log.jsonl")
) -> dict[str, bytes]:
    """The files of a folder by name, without those that hold times."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in without]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def make_table(work: WorkDirectory, texts: list[str], file_rows: int = 100, name: str = "main") -> Artifact:
    """A sentence table in small files."""
    return add_sentences(work, [texts[start : start + file_rows] for start in range(0, len(texts), file_rows)], name)
