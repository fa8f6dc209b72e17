"""JSON lines, and folders of documents, queries and judgements in BEIR's layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """One row a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_beir(
    folder: Path, documents: Iterable[object], queries: Iterable[object], **judged: Iterable[tuple[str, str, int]]
) -> Path:
    """A collection, with the judgements of each split: query, document and grade."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "corpus.jsonl", documents)
    write_jsonl(folder / "queries.jsonl", queries)
    for split, rows in judged.items():
        lines = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in rows)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}", encoding="utf-8")
    return folder


def with_ids(texts: Iterable[str], letter: str = "") -> list[Mapping[str, str]]:
    """Texts as rows with ids: a letter and their numbers."""
    return [{"_id": f"{letter}{number}", "text": text} for number, text in enumerate(texts)]
