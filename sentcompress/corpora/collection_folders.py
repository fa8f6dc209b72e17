"""Collections with relevance judgements: folders in BEIR's or MS MARCO's layout, each file plain, `.gz` or `.zst`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sentcompress.corpora.byte_streams import COMPRESSED, format_extension
from sentcompress.corpora.collections import (
    CHUNK,
    DEV_FULL,
    DEV_SMALL,
    Collection,
    Corpus,
    DataSet,
    DocumentIds,
    pick_split,
    stem,
)
from sentcompress.corpora.delimited import parse_number
from sentcompress.corpora.records import BadRecordError, id_text, kind_of
from sentcompress.corpora.text_files import LONE_SURROGATE, batches, is_encodable, open_lines
from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json
from sentcompress.quantities import counted

TOGETHER = "name queries, documents and judgements of the same collection"
LAYOUTS = (
    "BEIR: corpus.jsonl, queries.jsonl, qrels/*.tsv or qrels.tsv; "
    "MS MARCO: collection.tsv, queries.*.tsv, qrels.*.tsv; each may be .gz or .zst"
)
JSON_FORM = 'a line is {"_id": "1", "title": "", "text": "..."}'
QRELS_FORM = "a line of judgements is: query, document, grade; or trec_eval's query, 0, document, grade"
CORPUS = ("corpus.jsonl", "collection.jsonl", "collection.tsv", "corpus.tsv")
# Names of the columns of judgements.
QUERY = ("query-id", "query_id", "queryid", "qid", "query")
DOCUMENT = ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document_id", "pid", "corpus")
SCORE = ("score", "relevance", "rel", "label", "grade")
SPLIT = ("split",)


@dataclass(frozen=True)
class Judgement:
    """One line: grades above zero are relevant; `split` is None in files without such a column."""

    query: str
    document: str
    grade: int
    split: str | None


@dataclass(frozen=True)
class _Columns:
    query: int
    document: int
    grade: int
    split: int | None
    width: int


@dataclass
class _Found:
    """The judged queries and documents read so far.

    Attributes:
        grades: query id -> document id -> grade, for grades above zero of one split.
        queries: id -> text of the judged queries.
        rows: id -> row of the judged documents.
        among_documents: ids of judged queries that are documents too.
    """

    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    among_documents: list[str] = field(default_factory=list)


def collection_data_set(folder: Path, split: str | None) -> DataSet:
    """The data set of a folder.

    Raises:
        InputError: if the folder, its corpus, its queries, its judgements or the split are missing.
    """
    corpus = corpus_file(folder)
    splits = find_splits(folder)
    if not splits:
        raise InputError(f"{folder} has no judgements", LAYOUTS)
    if list(splits) == [None] and split is not None:
        raise InputError(f"{folder} has no splits", "omit `split`")
    chosen = None if list(splits) == [None] else pick_split(str(folder), [name for name in splits if name], split)
    qrels, queries = splits[chosen], queries_file(folder, chosen)

    def read() -> Collection:
        return _read(corpus, queries, qrels, chosen)

    return DataSet("collection", folder.resolve().name, chosen, (corpus, queries, qrels), read)


def read_judgements(path: Path) -> Iterator[Judgement]:
    """The lines of a qrels file, with or without a header; tabs or blanks between the fields.

    With a header: `query-id`, `corpus-id`, `score` and optionally `split`, in any order. Without: query, document and
    grade, then a split if the fourth field is not a number; or trec_eval's query, iteration, document and grade.

    Raises:
        InputError: a line with too few fields, or a grade that is not a whole number (file and line).
    """
    columns: _Columns | None = None
    for number, line in open_lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if not fields or not line.strip():
            continue
        if columns is None:
            columns = _of_header(fields)
            if columns is not None:
                continue
            columns = _without_header(fields)
        if len(fields) < columns.width:
            raise InputError(f"{path}, line {number}: {len(fields)} fields, expected {columns.width}", QRELS_FORM)
        split = None if columns.split is None else fields[columns.split].strip()
        grade = parse_number(text := fields[columns.grade])
        if grade is None or not grade.is_integer():
            what = f"the grade is {text[:40]!r}, which is not a whole number or is too large"
            raise InputError(f"{path}, line {number}: {what}", QRELS_FORM)
        yield Judgement(fields[columns.query].strip(), fields[columns.document].strip(), int(grade), split)


def splits_of(path: Path) -> list[str]:
    """The splits named in a qrels file, in the order of their first lines; empty if it has no such column."""
    found: dict[str, None] = {}
    for judgement in read_judgements(path):
        if judgement.split is None:
            return []
        found.setdefault(judgement.split)
    return list(found)


def _of_header(fields: Sequence[str]) -> _Columns | None:
    names = [name.strip().lower() for name in fields]

    def place(known: Sequence[str]) -> int | None:
        return next((names.index(name) for name in known if name in names), None)

    query, document, grade = place(QUERY), place(DOCUMENT), place(SCORE)
    if query is None or document is None or grade is None:
        return None
    return _Columns(query, document, grade, place(SPLIT), len(fields))


def _without_header(fields: Sequence[str]) -> _Columns:
    if len(fields) >= 4 and fields[3].strip().lstrip("+-").isdecimal():
        return _Columns(0, 2, 3, None, 4)
    return _Columns(0, 1, 2, 3 if len(fields) >= 4 else None, min(max(len(fields), 3), 4))


def existing(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The first of some files that a folder has, plain or compressed."""
    spelt = (folder / f"{name}{ending}" for name in names for ending in ("", *COMPRESSED))
    return next((path for path in spelt if path.is_file()), None)


def find_splits(folder: Path) -> dict[str | None, Path]:
    """Split -> its file: by the names in `qrels/`, by `qrels.<split>.tsv`, or by a column of `qrels.tsv`.

    MS MARCO's `dev` is called dev.full if there is a dev.small, which is what published scores are on.
    """
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
    if DEV_SMALL in found and found[DEV_SMALL] != found.get("dev", found[DEV_SMALL]):
        found[DEV_FULL] = found.pop("dev")
    return found


def corpus_file(folder: Path) -> Path:
    """The documents of a collection.

    Raises:
        InputError: if it is not a folder, or has none.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder", f"give a folder. {LAYOUTS}")
    corpus = existing(folder, CORPUS)
    if corpus is None:
        raise InputError(f"{folder} has no corpus", LAYOUTS)
    return corpus


def queries_file(folder: Path, split: str | None) -> Path:
    """The queries of a split of a collection; those of all splits may be in one file.

    Raises:
        InputError: if there are none.
    """
    parts = [split, split.split(".")[0]] if split else []
    names = [f"queries.{part}.tsv" for part in parts]
    path = existing(folder, (*names, "queries.jsonl", "queries.tsv"))
    if path is None:
        raise InputError(f"{folder} has no queries" + (f" of split {split!r}" if split else ""), LAYOUTS)
    return path


def _read(corpus: Path, queries: Path, qrels: Path, split: str | None) -> Collection:
    found = _Found()
    _read_grades(qrels, split, found)
    _read_queries(queries, qrels, found)
    ids = _read_ids(corpus, qrels, found)
    grades = (
        {found.rows[document]: grade for document, grade in found.grades[query].items()} for query in found.queries
    )
    return Collection(
        Corpus(ids, lambda: _texts(corpus)),
        tuple(found.queries.values()),
        tuple(grades),
        tuple(found.warnings),
        among_documents=tuple(found.among_documents),
    )


def _read_grades(qrels: Path, split: str | None, found: _Found) -> None:
    for line in read_judgements(qrels):
        if line.grade > 0 and (line.split is None or line.split == split):
            of_query = found.grades.setdefault(line.query, {})
            of_query[line.document] = max(line.grade, of_query.get(line.document, 0))
    if not found.grades:
        where = f" in split {split!r}" if split else ""
        raise InputError(f"{qrels} judges no document above zero{where}", "at least one document must be relevant")


def _read_queries(path: Path, qrels: Path, found: _Found) -> None:
    empty = 0
    for one, text in rows_of(path):
        if one not in found.grades:
            continue
        if found.queries.get(one, text) != text:
            raise InputError(f"{path} has two queries with the id {one!r}", "ids must be unique")
        if text:
            found.queries[one] = text
        else:
            empty += 1
    unknown = len(found.grades) - len(found.queries) - empty
    if not found.queries:
        judged = counted(len(found.grades), "query", "queries")
        raise InputError(f"{path} has none of the {judged} judged in {qrels}", TOGETHER)
    if unknown:
        dropped = counted(unknown, "judged query", "judged queries")
        found.warnings.append(f"{qrels}: dropped {dropped} missing from {path.name}")
    if empty:
        found.warnings.append(f"{path}: dropped {counted(empty, 'judged query', 'judged queries')} without text")


def _read_ids(path: Path, qrels: Path, found: _Found) -> DocumentIds:
    """All ids, and the rows of the judged documents; missing documents get rows beyond the end."""
    judged = {document for query in found.queries for document in found.grades[query]}
    ids, empty = DocumentIds(), 0
    for one, text in rows_of(path):
        if one in judged:
            found.rows[one] = len(ids)
        # A document can have a title besides; ids alone can be equal by chance, if both are numbers.
        if one in found.queries and found.queries[one] in text:
            found.among_documents.append(one)
        ids.append(one)
        empty += not text
    repeated = ids.repeated()
    if repeated is not None:
        raise InputError(f"{path} has two documents with the id {repeated!r}", "ids must be unique")
    missing = sorted(judged - found.rows.keys())
    if len(missing) == len(judged):
        documents = counted(len(judged), "document")
        raise InputError(
            f"{path} has none of the {documents} judged relevant in {qrels}, for example {missing[0]!r}",
            TOGETHER,
        )
    found.rows |= {one: len(ids) + number for number, one in enumerate(missing)}
    if missing:
        found.warnings.append(
            f"{qrels}: {counted(len(missing), 'relevant document')} missing from {path.name}, for example "
            f"{missing[0]!r}; counted as not found"
        )
    if empty:
        found.warnings.append(f"{path}: {counted(empty, 'document')} without text, searched like the others")
    return ids


def _texts(path: Path) -> Iterator[list[str]]:
    return batches((text for _, text in rows_of(path)), CHUNK, len)


def rows_of(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each line; the text of a JSON line is its title, a blank and its text, stripped.

    Raises:
        InputError: at the first line without an id, or without a text field, with its number.
    """
    as_json = format_extension(path) == "jsonl"
    for number, line in open_lines(path):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        one, text = _json_row(place, line) if as_json else _tab_row(place, line)
        if not one:
            raise InputError(f"{place}: no id", "every document and query needs an id")
        yield one, text


def _json_row(place: str, line: str) -> tuple[str, str]:
    row = parse_json(line, place)
    if not isinstance(row, dict):
        raise InputError(f"{place}: {kind_of(row)}, not a JSON object", JSON_FORM)
    one, title, text = row.get("_id", row.get("id")), row.get("title") or "", row.get("text") or ""
    has_id = isinstance(one, str | int | float) and not isinstance(one, bool)
    if not has_id or "text" not in row or not isinstance(title, str) or not isinstance(text, str):
        raise InputError(f"{place}: no _id and text", JSON_FORM)
    if not is_encodable(f"{title}{text}"):
        raise InputError(f"{place}: {LONE_SURROGATE}", "fix the line; no model can read it")
    try:
        return id_text(one, "the id"), f"{title} {text}".strip()
    except BadRecordError as error:
        raise InputError(f"{place}: {error}", JSON_FORM) from None


def _tab_row(place: str, line: str) -> tuple[str, str]:
    one, tab, text = line.partition("\t")
    if not tab:
        raise InputError(f"{place}: no tab", "a line is an id, a tab and the text")
    return one.strip(), text.strip()
