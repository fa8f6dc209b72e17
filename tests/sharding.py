"""What the tests of sharded commands share."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.sentence_table import SCHEMA, SHARD_PATTERN
from sentcompress.store import Artifact, Request, WorkDirectory


def bytes_of(
    folder: Path, without: tuple[str, ...] = ("manifest.json", "request.json", "log.jsonl")
) -> dict[str, bytes]:
    """The files of a folder by name, without those that hold times."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in without]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def make_table(work: WorkDirectory, texts: list[str], shard_rows: int = 100, name: str = "main") -> Artifact:
    """A sentence table in small shards."""
    request = Request("sentences", name, "augment", {"texts": len(texts)}, {})
    with work.build(request) as build:
        for shard, start in enumerate(range(0, len(texts), shard_rows)):
            part = texts[start : start + shard_rows]
            rows = [
                {"row": start + i, "text": text, "source": "original", "parent": -1, "origin": "test", "domain": ""}
                for i, text in enumerate(part)
            ]
            with build.write(SHARD_PATTERN.format(shard)) as path:
                pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
        return build.finish({"rows": len(texts), "originals": len(texts)})
