"""Documents written by hand: a `documents` artifact without judgements, and a folder with files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from beir import write_jsonl

from sentcompress.store import Artifact, Request, WorkDirectory

KINDS = ("span", "keywords", "title")


def write_held_out(folder: Path, passages: Sequence[str], queries: Sequence[str], documents: int | None = None) -> None:
    """corpus.jsonl and queries.jsonl; the kinds of queries take turns, and so do their parts, test first.

    Args:
        documents: how many the queries were made from in turns; None for a document for each, 0 for a log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"_id": f"p{place}", "title": "", "text": text} for place, text in enumerate(passages)]
    write_jsonl(folder / "corpus.jsonl", rows)
    rows = [
        {
            "_id": f"q{place}",
            "text": text,
            "kind": KINDS[place % len(KINDS)],
            "document": "" if documents == 0 else f"d{place % (documents or len(queries))}",
            "part": ("test", "dev")[place % 2],
        }
        for place, text in enumerate(queries)
    ]
    write_jsonl(folder / "queries.jsonl", rows)


def make_documents(
    work: WorkDirectory,
    passages: Sequence[str],
    queries: Sequence[str],
    name: str = "main",
    *,
    training_queries: Sequence[str] = (),
    documents: int | None = None,
) -> Artifact:
    """An artifact of kind `documents`."""
    texts = [*passages, *queries, *training_queries]
    request = Request("documents", name, "split-documents", {"texts": texts, "documents": documents})
    with work.build(request, force=True) as build:
        with build.write("train.jsonl") as path:
            kinds = {"passage": passages, "query": training_queries}
            rows = [{"text": text, "kind": kind, "document": "d"} for kind, of in kinds.items() for text in of]
            write_jsonl(path, rows)
        with build.write("held-out") as folder:
            write_held_out(folder, passages, queries, documents)
        return build.finish({"passages": len(passages), "held_out_queries": len(queries)})


def folder_with_unreadable(folder: Path, text: str) -> Path:
    """A folder with a.txt, which holds the text, b.txt, which is not UTF-8, and an empty file."""
    folder.mkdir()
    (folder / "a.txt").write_text(text)
    (folder / "b.txt").write_bytes("Größe".encode("latin-1"))
    (folder / "empty.txt").touch()
    return folder
