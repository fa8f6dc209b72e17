"""Collections with judgements as folders: BEIR's layout and MS MARCO's, each file plain, `.gz` or `.zst`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sentcompress.corpora.collections import CHUNK, Collection, Corpus, DataSet
from sentcompress.corpora.document_ids import DocumentIds
from sentcompress.corpora.holding import batches
from sentcompress.corpora.judgements import read_judgements, splits_of
from sentcompress.corpora.splits import pick_split, stem
from sentcompress.corpora.text_files import COMPRESSED, HALF_A_CHARACTER, format_extension, is_encodable, open_lines
from sentcompress.documents import parse_json
from sentcompress.errors import InputError

LAYOUTS = (
    "BEIR: corpus.jsonl, queries.jsonl, qrels/*.tsv or qrels.tsv; "
    "MS MARCO: collection.tsv, queries.*.tsv, qrels.*.tsv; each may be .gz or .zst"
)
JSON_FORM = 'a line is {"_id": "1", "title": "", "text": "..."}'
CORPUS = ("corpus.jsonl", "collection.jsonl", "collection.tsv", "corpus.tsv")


@dataclass
class _Found:
    """Grades above zero of the queries of a split: query id -> document id -> grade; as they stand in the file."""

    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def collection_data_set(folder: Path, split: str | None) -> DataSet:
    """The data set of a folder.

    Raises:
        InputError: if the folder, its corpus, its queries, its judgements or the split are not there.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder", f"give a folder. {LAYOUTS}")
    corpus = _existing(folder, CORPUS)
    if corpus is None:
        raise InputError(f"{folder} has no corpus", LAYOUTS)
    parts = _splits(folder)
    if not parts:
        raise InputError(f"{folder} has no judgements", LAYOUTS)
    if list(parts) == [None] and split is not None:
        raise InputError(f"{folder} has no splits", "leave out --split")
    chosen = None if list(parts) == [None] else pick_split(str(folder), [part for part in parts if part], split)
    qrels, queries = parts[chosen], _queries_file(folder, chosen)

    def read() -> Collection:
        return _read(corpus, queries, qrels, chosen)

    return DataSet("collection", folder.resolve().name, chosen, (corpus, queries, qrels), read)


def _existing(folder: Path, names: tuple[str, ...]) -> Path | None:
    spelt = (folder / f"{name}{ending}" for name in names for ending in ("", *COMPRESSED))
    return next((path for path in spelt if path.is_file()), None)


def _splits(folder: Path) -> dict[str | None, Path]:
    """Split -> its file: by the names in `qrels/`, by `qrels.<split>.tsv`, or by a column of `qrels.tsv`."""
    found: dict[str | None, Path] = {}
    inside = folder / "qrels"
    for path in sorted(inside.iterdir()) if inside.is_dir() else []:
        if format_extension(path) in ("tsv", "txt", "trec"):
            found[stem(path)] = path
    for path in sorted(folder.glob("qrels*")):
        if not path.is_file() or format_extension(path) not in ("tsv", "txt", "trec"):
            continue
        name = stem(path).removeprefix("qrels").lstrip(".")
        names: list[str | None] = [name] if name else [*splits_of(path)] or [None]
        found |= {one: path for one in names if one not in found}
    if len(found) > 1:
        found.pop(None, None)
    return found


def _queries_file(folder: Path, split: str | None) -> Path:
    parts = [split, split.split(".")[0]] if split else []
    names = [f"queries.{part}.tsv" for part in parts]
    path = _existing(folder, (*names, "queries.jsonl", "queries.tsv"))
    if path is None:
        raise InputError(f"{folder} has no queries" + (f" of split {split!r}" if split else ""), LAYOUTS)
    return path


def _read(corpus: Path, queries: Path, qrels: Path, split: str | None) -> Collection:
    found = _Found()
    _read_grades(qrels, split, found)
    _read_queries(queries, qrels, found)
    documents = _read_ids(corpus, qrels, found)
    return Collection(
        Corpus(documents, lambda: _texts(corpus)),
        tuple(found.queries.values()),
        tuple(
            {found.rows[document]: grade for document, grade in found.grades[query].items()} for query in found.queries
        ),
        tuple(found.warnings),
    )


def _read_grades(qrels: Path, split: str | None, found: _Found) -> None:
    for line in read_judgements(qrels):
        if line.grade > 0 and (line.split is None or line.split == split):
            of_query = found.grades.setdefault(line.query, {})
            of_query[line.document] = max(line.grade, of_query.get(line.document, 0))
    if not found.grades:
        raise InputError(
            f"{qrels} judges no document above zero" + (f" in split {split!r}" if split else ""),
            "without any there is nothing to find",
        )


def _read_queries(path: Path, qrels: Path, found: _Found) -> None:
    empty = 0
    for one, text in _rows(path):
        if one not in found.grades:
            continue
        if text:
            found.queries[one] = text
        else:
            empty += 1
    unknown = len(found.grades) - len(found.queries) - empty
    if not found.queries:
        raise InputError(
            f"{path} has none of the {len(found.grades)} queries that {qrels} judges", "do they belong together?"
        )
    if unknown:
        found.warnings.append(f"{qrels}: {unknown} judged queries are not in {path.name}; left out")
    if empty:
        found.warnings.append(f"{path}: {empty} judged queries without text left out")


def _read_ids(path: Path, qrels: Path, found: _Found) -> DocumentIds:
    """All ids, and the rows of the judged documents; those that are missing get rows behind the end."""
    judged = {document for query in found.queries for document in found.grades[query]}
    ids, empty = DocumentIds(), 0
    for one, text in _rows(path):
        if one in judged:
            found.rows[one] = len(ids)
        ids.append(one)
        empty += not text
    repeated = ids.repeated()
    if repeated is not None:
        raise InputError(f"{path} has two documents of id {repeated!r}", "an id belongs to one document")
    missing = sorted(judged - found.rows.keys())
    if len(missing) == len(judged):
        raise InputError(
            f"{path} has none of the {len(judged)} documents that {qrels} judges relevant, such as {missing[0]!r}",
            "do they belong together?",
        )
    found.rows |= {one: len(ids) + number for number, one in enumerate(missing)}
    if missing:
        found.warnings.append(
            f"{qrels}: {len(missing)} relevant documents are not in {path.name}, such as {missing[0]!r}; they count as "
            "not found"
        )
    if empty:
        found.warnings.append(f"{path}: {empty} documents without text are searched all the same")
    return ids


def _texts(path: Path) -> Iterator[list[str]]:
    return batches((text for _, text in _rows(path)), CHUNK, len)


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each line; the text of a JSON line is its title, a blank and its text, stripped."""
    as_json = format_extension(path) == "jsonl"
    for number, line in open_lines(path):
        if not line.strip():
            continue
        one, text = _json_row(path, number, line) if as_json else _tab_row(path, number, line)
        if not one:
            raise InputError(f"{path}, line {number}: no id", "every document and query needs one")
        yield one, text


def _json_row(path: Path, number: int, line: str) -> tuple[str, str]:
    row = parse_json(line, f"{path}, line {number}")
    if not isinstance(row, dict):
        raise InputError(f"{path}, line {number}: a JSON {type(row).__name__}, not an object", JSON_FORM)
    one, title, text = row.get("_id", row.get("id")), row.get("title") or "", row.get("text") or ""
    if (
        isinstance(one, bool)
        or not isinstance(one, str | int)
        or not isinstance(title, str)
        or not isinstance(text, str)
    ):
        raise InputError(f"{path}, line {number}: no _id and text", JSON_FORM)
    if not is_encodable(f"{title}{text}"):
        raise InputError(f"{path}, line {number}: {HALF_A_CHARACTER}", "fix the line; no model can read it")
    return str(one).strip(), f"{title} {text}".strip()


def _tab_row(path: Path, number: int, line: str) -> tuple[str, str]:
    one, tab, text = line.partition("\t")
    if not tab:
        raise InputError(f"{path}, line {number}: no tab", "a line is an id, a tab and the text")
    return one.strip(), text.strip()
