"""Marked pairs and the retrieval tasks made of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from sentcompress.corpora import pairs as pairs_module
from sentcompress.corpora.pairs import Pair, collection_of_pairs, pairs_data_set, read_pairs
from sentcompress.errors import InputError

HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_official_quoting_with_line_breaks_in_fields(tmp_path: Path) -> None:
    content = HEADER + '0\t1\t2\t"When do I use ""&""?"\tWhat is it?\t1\n'
    content += '1\t3\t4\t"Two\nlines and a\ttab"\tOne line\t0\n2\t5\t6\t"""Quoted"" first"\tlast\t1\n'
    assert read_pairs(write(tmp_path / "q.tsv", content)).rows == (
        Pair('When do I use "&"?', "What is it?", True),
        Pair("Two\nlines and a\ttab", "One line", False),
        Pair('"Quoted" first', "last", True),
    )


def test_quotes_without_quoting_are_plain_characters(tmp_path: Path) -> None:
    content = HEADER + '0\t1\t2\t"A" or "B"?\t"C\t1\n1\t\t\tuse "&" instead\t"all"\t0\n'
    assert read_pairs(write(tmp_path / "q.tsv", content)).rows == (
        Pair('"A" or "B"?', '"C', True),
        Pair('use "&" instead', '"all"', False),
    )


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_csv_without_ids(tmp_path: Path, compress) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / f"q.csv.{'gz' if compress is gzip.compress else 'zst'}"
    path.write_bytes(compress(b'question1,question2,is_duplicate\n"a, b",c,1\n ,d,0\ne,f,False\n'))
    pairs = read_pairs(path)
    assert pairs.rows == (Pair("a, b", "c", True), Pair("e", "f", False))
    assert pairs.empty == 1


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("extension", "delimiter", "first"),
    [("csv", ";", ""), ("csv", "\t", ""), ("csv", ",", ""), ("tsv", "\t", ""), ("csv", "|", "sep=|\n")],
)
def test_the_first_line_of_a_csv_says_what_separates_it(
    tmp_path: Path, extension: str, delimiter: str, first: str, packed: str
) -> None:
    rows = [("id", "question1", "question2", "is_duplicate"), ("1", '"a, b; c"', "d", "1"), ("2", "e", '"f, g"', "0")]
    content = (first + "".join(delimiter.join(row) + "\n" for row in rows)).encode()
    path = tmp_path / f"q.{extension}{packed}"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read_pairs(path).rows == (Pair("a, b; c", "d", True), Pair("e", "f, g", False))
    assert len(pairs_data_set(path).read().corpus) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.tsv", "question1\tquestion2\nx\ty\n", "no column 'is_duplicate'"),
        ("q.tsv", HEADER + "0\t1\t2\ta\tb\tmaybe\n", "line 2: is_duplicate is 'maybe'"),
        ("q.tsv", HEADER + "0\t1\t2\ta\tb\t1\n0\t1\t2\ta\n", "line 3: 4 fields, the header has 6"),
        ("q.csv", 'question1,question2,is_duplicate\n"a,b,1\n', "broken quoting"),
        ("q.tsv", HEADER, "holds no pairs"),
        ("q.tsv", "", "is empty"),
        ("q.json", "{}", "cannot tell how its columns are separated"),
    ],
)
def test_errors_of_broken_files_name_the_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path / name, content))


def test_real_pairs_have_the_documented_counts(shared_data: Path) -> None:
    pairs = read_pairs(shared_data / "quora" / "quora.tsv.gz")
    assert len(pairs.rows) == 29_359
    assert sum(pair.match for pair in pairs.rows) == 13_425


PAIRS = [
    Pair("a", "x", True),
    Pair("a", "y", False),
    Pair("a", "z", True),
    Pair("b", "x", False),
    Pair("c", "x", True),
    Pair("c", "x", False),  # the same pair with both marks counts as a match
    Pair("d", "a", False),  # a text can be a query and a document
]


def test_corpus_queries_and_relevance_by_hand() -> None:
    collection = collection_of_pairs(PAIRS)
    assert list(collection.corpus.texts()) == [["x", "y", "z", "a"]]
    assert collection.queries == ("a", "b", "c", "d")
    assert collection.grades == ({0: 1, 2: 1}, {}, {0: 1}, {})
    assert collection.judged == 2
    assert [collection.corpus.ids[row] for row in range(4)] == [b"x", b"y", b"z", b"a"]


def test_the_corpus_can_be_that_of_duplicates_only() -> None:
    collection = collection_of_pairs(PAIRS, corpus="duplicates")
    assert list(collection.corpus.texts()) == [["x", "z"]]
    assert collection.queries == ("a", "b", "c", "d")
    assert collection.grades == ({0: 1, 1: 1}, {}, {0: 1}, {})
    assert collection.choice is not None
    assert collection.choice.as_dict() == {
        "taken": "duplicates",
        "sizes": {"all": 4, "duplicates": 2},
        "hpd_documents": 87_265,
        "hpd_met": False,
    }
    assert collection.choice.statement == "the pairs marked as duplicates, 2 documents (not the 87,265 of HPD's table)"


@pytest.mark.parametrize(
    ("published", "taken", "met"), [(87_265, "all", False), (4, "all", True), (2, "duplicates", True)]
)
def test_auto_takes_the_corpus_of_the_published_size_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, published: int, taken: str, met: bool
) -> None:
    monkeypatch.setattr(pairs_module, "HPD_DOCUMENTS", published)
    choice = collection_of_pairs(PAIRS).choice
    assert choice is not None
    assert (choice.taken, choice.met) == (taken, met)
    assert ("(the " if met else "(not the ") in choice.statement
    assert len(collection_of_pairs(PAIRS, corpus="all").corpus) == 4


def test_a_small_part_of_quora_is_searched_whole(shared_data: Path) -> None:
    collection = pairs_data_set(shared_data / "quora" / "quora.tsv.gz").read()
    pairs = read_pairs(shared_data / "quora" / "quora.tsv.gz").rows
    assert len(collection.corpus) == len({pair.second for pair in pairs})


def test_a_file_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question1,question2,is_duplicate\none,two,1\nthree,,0\n", encoding="utf-8")
    data = pairs_data_set(path)
    assert (data.protocol, data.name, data.split, data.files) == ("pairs", "pairs.csv", None, (path,))
    collection = data.read()
    assert collection.queries == ("one",)
    assert collection.warnings == (f"{path}: dropped 1 pair with an empty text",)


def test_pair_files_that_cannot_be_evaluated(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        pairs_data_set(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        pairs_data_set(tmp_path / "none.tsv")
    path = tmp_path / "none.csv"
    path.write_text("question1,question2,is_duplicate\none,two,0\n", encoding="utf-8")
    with pytest.raises(InputError, match="marks no pair as duplicates"):
        pairs_data_set(path).read()
