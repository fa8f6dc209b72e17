"""Collections with judgements in the layouts of BEIR and MS MARCO."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import zstandard

from sentcompress.corpora import collection_folders
from sentcompress.corpora.collection_folders import Judgement, collection_data_set, read_judgements, splits_of
from sentcompress.errors import InputError

DOCUMENTS = [
    {"_id": "d1", "title": "Cats", "text": "They sleep. "},
    {"_id": "d2", "title": "", "text": "Dogs run."},
    {"_id": "d3", "text": "Birds sing."},
]
QUERIES = [{"_id": "q1", "text": "sleep"}, {"_id": "q2", "text": "run"}, {"_id": "q3", "text": "nothing"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td2\t1\nq2\td3\t0\nq3\td1\t0\n"


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files by name; `.gz` and `.zst` are compressed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode()
        packed = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}.get(path.suffix)
        path.write_bytes(packed(data) if packed else data)
    return folder


BEIR = {"corpus.jsonl": lines(DOCUMENTS), "queries.jsonl": lines(QUERIES)}
MARCO = {
    "collection.tsv.gz": "d1\tCats They sleep.\nd2\tDogs run.\nd3\tBirds sing.\n",
    "queries.dev.small.tsv": "q1\tsleep\nq2\trun\nq3\tnothing\n",
    "queries.train.tsv": "t1\ttrain\n",
    "qrels.dev.small.tsv": "q1\t0\td1\t2\nq1\t0\td2\t1\nq2\t0\td2\t1\n",
    "qrels.train.tsv": "t1\t0\td3\t1\n",
}


@pytest.mark.parametrize(
    ("files", "split"),
    [
        (BEIR | {"qrels/test.tsv": QRELS, "qrels/train.tsv": "q3\td1\t1\n"}, "test"),
        (BEIR | {"qrels.tsv": QRELS}, None),
        (BEIR | {"qrels.tsv": QRELS.split("\n", 1)[1]}, None),
        ({f"{name}.zst": text for name, text in BEIR.items()} | {"qrels.tsv.gz": QRELS}, None),
        (MARCO, "dev.small"),
    ],
    ids=["qrels folder", "qrels file", "no header", "compressed", "ms marco"],
)
def test_layouts(tmp_path: Path, files: dict[str, str], split: str | None) -> None:
    data = collection_data_set(write(tmp_path / "set", files), None)
    assert (data.protocol, data.name, data.split) == ("collection", "set", split)
    collection = data.read()
    assert list(collection.corpus.texts()) == [["Cats They sleep.", "Dogs run.", "Birds sing."]]
    assert [collection.corpus.ids[row] for row in range(3)] == [b"d1", b"d2", b"d3"]
    assert collection.queries == ("sleep", "run")
    assert collection.grades == ({0: 2, 1: 1}, {1: 1})
    assert collection.warnings == collection.among_documents == ()


def test_a_split_is_chosen_by_name_or_by_column(tmp_path: Path) -> None:
    assert collection_data_set(write(tmp_path / "marco", MARCO), "train").read().queries == ("train",)
    rows = "query-id\tcorpus-id\tscore\tsplit\nq1\td1\t1\ttrain\nq2\td2\t1\tdev\n"
    folder = write(tmp_path / "column", BEIR | {"qrels.tsv": rows})
    assert collection_data_set(folder, None).split == "dev"
    assert collection_data_set(folder, None).read().queries == ("run",)
    assert collection_data_set(folder, "train").read().queries == ("sleep",)
    with pytest.raises(InputError, match="no split 'test'"):
        collection_data_set(folder, "test")
    with pytest.raises(InputError, match="has no splits"):
        collection_data_set(write(tmp_path / "plain", BEIR | {"qrels.tsv": QRELS}), "dev")
    several = BEIR | {"qrels/one.tsv": QRELS, "qrels/two.tsv": QRELS}
    with pytest.raises(InputError, match="several splits, and none is called test or dev: one, two") as caught:
        collection_data_set(write(tmp_path / "several", several), None)
    assert caught.value.alternatives == ("choose one with `split`", "name one of them test"), "compress has no `split`"


def test_dev_of_ms_marco_is_dev_small_and_full_dev_has_its_own_name(tmp_path: Path) -> None:
    full = {"queries.dev.tsv": "q1\tsleep\nq4\tsing\n", "qrels.dev.tsv": "q1\t0\td1\t1\nq4\t0\td3\t1\n"}
    folder = write(tmp_path / "marco", MARCO | full)
    for asked in (None, "dev", "dev.small"):
        data = collection_data_set(folder, asked)
        assert (data.split, data.read().queries) == ("dev.small", ("sleep", "run"))
        assert [path.name for path in data.files[1:]] == ["queries.dev.small.tsv", "qrels.dev.small.tsv"]
    data = collection_data_set(folder, "dev.full")
    assert (data.split, data.read().queries) == ("dev.full", ("sleep", "sing"))
    (folder / "qrels.dev.small.tsv").unlink()
    assert collection_data_set(folder, "dev").read().queries == ("sleep", "sing")
    with pytest.raises(InputError, match=r"no split 'dev\.small'"):
        collection_data_set(folder, "dev.small")


def test_unknown_documents_count_as_not_found_and_unknown_queries_are_dropped(tmp_path: Path) -> None:
    rows = QRELS + "q1\tlost\t3\nq9\td1\t1\nq2\tgone\t1\n"
    collection = collection_data_set(write(tmp_path, BEIR | {"qrels.tsv": rows}), None).read()
    assert collection.queries == ("sleep", "run")
    assert collection.grades == ({0: 2, 1: 1, 4: 3}, {1: 1, 3: 1})
    assert [warning.split(": ", 1)[1] for warning in collection.warnings] == [
        "dropped 1 judged query missing from queries.jsonl",
        "2 relevant documents missing from corpus.jsonl, for example 'gone'; counted as not found",
    ]


def test_queries_that_are_documents_too_are_found_by_id_and_text(tmp_path: Path) -> None:
    queries = [
        {"_id": "d1", "text": "They sleep."},
        {"_id": "d2", "text": "run by chance"},
        {"_id": "q3", "text": "run"},
    ]
    judged = "d1\td2\t1\nd2\td1\t1\nq3\td2\t1\n"
    files = {"corpus.jsonl": lines(DOCUMENTS), "queries.jsonl": lines(queries), "qrels.tsv": judged}
    collection = collection_data_set(write(tmp_path, files), None).read()
    assert collection.among_documents == ("d1",)
    assert collection.warnings == ()


def test_empty_texts_are_counted(tmp_path: Path) -> None:
    files = {
        "corpus.jsonl": lines([*DOCUMENTS, {"_id": "d4", "title": " ", "text": ""}]),
        "queries.jsonl": lines([QUERIES[0], {"_id": "q2", "text": " "}]),
        "qrels.tsv": QRELS,
    }
    collection = collection_data_set(write(tmp_path, files), None).read()
    assert collection.queries == ("sleep",)
    assert len(collection.corpus) == 4
    assert [warning.split(": ", 1)[1] for warning in collection.warnings] == [
        "dropped 1 judged query without text",
        "1 document without text, searched like the others",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qrels.tsv": "q1\td1\t0\n"}, "judges no document above zero"),
        ({"qrels.tsv": "x1\td1\t1\n"}, "has none of the 1 query judged"),
        ({"qrels.tsv": "q1\tx1\t1\n"}, "has none of the 1 document judged"),
        ({"corpus.jsonl": lines(DOCUMENTS) + lines(DOCUMENTS[:1])}, "two documents with the id 'd1'"),
        ({"queries.jsonl": lines([*QUERIES, QUERIES[0] | {"text": "other"}])}, "two queries with the id 'q1'"),
        ({"corpus.jsonl": lines(DOCUMENTS) + "{broken\n"}, "line 4 is not valid JSON"),
        ({"corpus.jsonl": '["d1"]\n'}, "line 1: a list, not a JSON object"),
        ({"corpus.jsonl": '{"text": "no id"}\n'}, "line 1: no _id and text"),
        ({"corpus.jsonl": '{"_id": "d1", "text": "half \\ud800"}\n'}, "line 1: contains a lone surrogate"),
        ({"corpus.jsonl": '{"_id": "", "text": "no id"}\n'}, "line 1: no id"),
        ({"corpus.jsonl": '{"_id": 1.5, "text": "half"}\n'}, "line 1: the id is 1.5; an id is text or a whole number"),
    ],
)
def test_broken_files_are_errors(tmp_path: Path, change: dict[str, str], message: str) -> None:
    folder = write(tmp_path, {**BEIR, "qrels.tsv": QRELS, **change})
    with pytest.raises(InputError, match=message):
        collection_data_set(folder, None).read()


def test_ids_can_be_floating_point_numbers(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": 7.0, "text": "one"}\n', encoding="utf-8")
    assert list(collection_folders.rows_of(tmp_path / "corpus.jsonl")) == [("7", "one")]


def test_a_tab_separated_line_without_a_tab(tmp_path: Path) -> None:
    folder = write(tmp_path, MARCO | {"collection.tsv.gz": "d1 Cats\n"})
    with pytest.raises(InputError, match="line 1: no tab"):
        collection_data_set(folder, None).read()


@pytest.mark.parametrize(
    ("missing", "message"), [("corpus", "no corpus"), ("queries", "no queries"), ("qrels", "no judge")]
)
def test_a_folder_without_corpus_queries_or_judgements(tmp_path: Path, missing: str, message: str) -> None:
    files = {name: text for name, text in (BEIR | {"qrels.tsv": QRELS}).items() if not name.startswith(missing)}
    with pytest.raises(InputError, match=message) as caught:
        collection_data_set(write(tmp_path, files), None)
    assert "BEIR" in (caught.value.hint or "")


def test_texts_come_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_folders, "CHUNK", 2)
    collection = collection_data_set(write(tmp_path, BEIR | {"qrels.tsv": QRELS}), None).read()
    for _ in range(2):
        assert [len(chunk) for chunk in collection.corpus.texts()] == [2, 1]


def test_real_collections(shared_data: Path) -> None:
    scifact = collection_data_set(shared_data / "retrieval" / "scifact", "dev")
    assert scifact.split == "validation"
    collection = scifact.read()
    assert (len(collection.corpus), collection.judged, collection.warnings) == (5183, 300, ())
    train = collection_data_set(shared_data / "retrieval" / "scifact", "train").read()
    assert train.judged == 809


def read(path: Path, content: str) -> list[Judgement]:
    path.write_text(content, encoding="utf-8")
    return list(read_judgements(path))


ONE, TWO = Judgement("q1", "d1", 2, None), Judgement("q2", "d 2", 0, None)


@pytest.mark.parametrize(
    "content",
    [
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td 2\t0\n",
        "score\tcorpus-id\tquery-id\textra\n2\td1\tq1\tx\n0\td 2\tq2\tx\n",
        "q1\td1\t2\n\nq2\td 2\t0\n",
        "q1\t0\td1\t2\nq2\t0\td 2\t0\n",
        "q1\t0\td1\t2.0\nq2\tQ0\td 2\t0\n".replace("2.0", "2"),
    ],
    ids=["header", "header in another order", "three columns", "trec", "trec with Q0"],
)
def test_layouts_of_judgements(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "qrels.tsv", content) == [ONE, TWO]


def test_blanks_between_fields_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt.gz"
    path.write_bytes(gzip.compress(b"q1 0  d1 2\nq3 0 d3 -1\n"))
    assert list(read_judgements(path)) == [ONE, Judgement("q3", "d3", -1, None)]


def test_a_split_column_with_and_without_a_header(tmp_path: Path) -> None:
    rows = "q1\td1\t1\ttrain\nq2\td2\t1\tdev\nq3\td3\t1\ttrain\n"
    for header in ("query-id\tcorpus-id\tscore\tsplit\n", ""):
        found = read(tmp_path / "qrels.tsv", header + rows)
        assert [one.split for one in found] == ["train", "dev", "train"]
        assert splits_of(tmp_path / "qrels.tsv") == ["train", "dev"]
    read(tmp_path / "plain.tsv", "q1\td1\t1\n")
    assert splits_of(tmp_path / "plain.tsv") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\td1\t1\nq2\td2\n", "line 2: 2 fields, expected 3"),
        ("q1\td1\tgood\n", "line 1: the grade is 'good'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t0.5\n", "line 2: the grade is '0.5'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\tnan\n", "line 2: the grade is 'nan'"),
    ],
)
def test_errors_of_broken_judgements_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "qrels.tsv", content)
