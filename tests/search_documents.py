"""A `documents` artifact written by hand: passages and queries that were held out, without judgements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sentcompress.store import Artifact, Request, WorkDirectory

KINDS = ("span", "keywords", "title")


def write_held_out(folder: Path, passages: Sequence[str], queries: Sequence[str]) -> None:
    """corpus.jsonl and queries.jsonl; the kinds of queries take turns, and so do their parts, test first."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"_id": f"p{place}", "title": "", "text": text} for place, text in enumerate(passages)]
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    rows = [
        {
            "_id": f"q{place}",
            "text": text,
            "kind": KINDS[place % len(KINDS)],
            "document": f"d{place}",
            "part": ("test", "dev")[place % 2],
        }
        for place, text in enumerate(queries)
    ]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def make_documents(
    work: WorkDirectory, passages: Sequence[str], queries: Sequence[str], name: str = "main"
) -> Artifact:
    """An artifact of kind `documents`."""
    request = Request("documents", name, "split-documents", {"texts": [*passages, *queries]})
    with work.build(request, force=True) as build:
        with build.write("train.jsonl") as path:
            lines = [{"text": text, "kind": "passage", "document": "d"} for text in passages]
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        with build.write("held-out") as folder:
            write_held_out(folder, passages, queries)
        return build.finish({"passages": len(passages), "held_out_queries": len(queries)})
