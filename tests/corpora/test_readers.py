from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir import write_jsonl

from sentcompress.corpora.readers import ReadOptions, find_format, read_records, read_table
from sentcompress.corpora.records import BadRecordError, Record, Relation, parse_label
from sentcompress.corpora.text_files import BadRecords, as_source
from sentcompress.errors import InputError

NLI = [("p", "h", Relation.ENTAILMENT), ("q", "i", Relation.CONTRADICTION), ("r", "j", Relation.NEUTRAL)]
EXPECTED = [Record((premise, hypothesis), relation) for premise, hypothesis, relation in NLI]


def test_snli_jsonl_with_its_own_keys(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"gold_label": relation.name.lower(), "sentence1": premise, "sentence2": hypothesis, "pairID": "1"}
        for premise, hypothesis, relation in NLI
    ]
    rows.append({"gold_label": "-", "sentence1": "s", "sentence2": "k"})
    records = list(read_records(write_jsonl(tmp_path / "a.jsonl", rows)))
    assert records[:3] == EXPECTED
    assert records[3].relation is Relation.NO_GOLD


def test_hub_jsonl_with_numbers(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"premise": p, "hypothesis": h, "label": int(r)} for p, h, r in NLI]
    rows.append({"premise": "s", "hypothesis": "k", "label": -1})
    records = list(read_records(write_jsonl(tmp_path / "a.jsonl", rows)))
    assert records[:3] == EXPECTED
    assert records[3].relation is Relation.NO_GOLD


@pytest.mark.parametrize("header", ["premise;hypothesis;label", '\ufeff"premise";"hypothesis";"label"'])
def test_a_csv_separated_by_semicolons(tmp_path: Path, header: str) -> None:
    """Spreadsheets write it where the decimal sign is a comma; the fields then have commas of their own."""
    path = tmp_path / "a.csv"
    path.write_text(f'{header}\np, and more;"h; more, too";0\nq;i;2\n', encoding="utf-8")
    expected = [
        Record(("p, and more", "h; more, too"), Relation.ENTAILMENT),
        Record(("q", "i"), Relation.CONTRADICTION),
    ]
    assert list(read_records(path)) == expected
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_records(packed)) == expected


def test_a_csv_separated_by_tabs(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('premise\thypothesis\tlabel\np, and; more\t"h\tmore"\t0\n', encoding="utf-8")
    assert list(read_records(path)) == [Record(("p, and; more", "h\tmore"), Relation.ENTAILMENT)]


@pytest.mark.parametrize("line", ["sep=;", "\ufeffSEP=;\r", '"sep=;"', "sep=\t", "sep=|", "sep=,"])
def test_the_first_line_of_a_csv_can_name_the_separator(tmp_path: Path, line: str) -> None:
    """Excel reads it; the header would be split at its comma otherwise."""
    path, separator = tmp_path / "a.csv", line.strip('\r"')[-1]
    rows = [["text", '"a, b"'], ['"x; y"', "1"], ["sep=", ""]]
    path.write_text(f"{line}\n" + "".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
    assert list(read_table(path)) == [(3, {"text": "x; y", "a, b": "1"}), (4, {"text": "sep=", "a, b": ""})]


def test_a_comma_inside_quotes_does_not_separate_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"name, first";text\n"Ann, B.";one\n', encoding="utf-8")
    assert [record.texts for record in read_records(path, ReadOptions(columns=("text",)))] == [("one",)]


def test_a_csv_whose_header_has_commas_is_separated_by_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"premise","hypothesis","label","a;b"\np;q,h,0,\n', encoding="utf-8")
    assert list(read_records(path)) == [Record(("p;q", "h"), Relation.ENTAILMENT)]


def test_allnli_tsv_takes_one_split(tmp_path: Path) -> None:
    header = "split\tdataset\tfilename\tsentence1\tsentence2\tlabel\n"
    rows = [f'train\tSNLI\tx\t{p}\t"{h}\t{r.name.lower()}\n' for p, h, r in NLI] + ["dev\tSNLI\tx\tz\tz\tneutral\n"]
    path = tmp_path / "AllNLI.tsv.gz"
    path.write_bytes(gzip.compress((header + "".join(rows)).encode()))
    assert [record.texts for record in read_records(path)] == [("p", '"h'), ("q", '"i'), ("r", '"j')]
    assert [record.texts for record in read_records(path, ReadOptions(split="dev"))] == [("z", "z")]
    with pytest.raises(InputError, match="no rows of split 'test'") as caught:
        list(read_records(path, ReadOptions(split="test")))
    assert caught.value.hint == "its splits: dev, train"


def test_snli_txt_is_tab_separated_and_may_end_short(tmp_path: Path) -> None:
    path = tmp_path / "snli_1.0_dev.txt"
    path.write_text(
        "gold_label\tsentence1\tsentence2\tlabel1\tlabel2\nneutral\tp\th\tneutral\nentailment\tq\ti\te\te\n"
    )
    assert [record.relation for record in read_records(path)] == [Relation.NEUTRAL, Relation.ENTAILMENT]


def test_triplets_of_simcse_csv_and_of_tsv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('sent0,sent1,hard_neg\n"a, b",c,d\n')
    assert list(read_records(tmp_path / "a.csv")) == [Record(("a, b", "c", "d"), Relation.TRIPLET)]
    (tmp_path / "a.tsv").write_text("premise\tentailment\tcontradiction\tsource\na\tb\tc\tx\n")
    assert list(read_records(tmp_path / "a.tsv")) == [Record(("a", "b", "c"), Relation.TRIPLET)]


def test_numbers_of_binary_sets_are_not_nli_labels(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("label\tsentence1\tsentence2\n0\ta\tb\n")
    assert list(read_records(tmp_path / "a.tsv")) == [Record(("a", "b"), Relation.UNRELATED)]


PARAPHRASE, NOT_PARAPHRASE = Relation.PARAPHRASE, Relation.NOT_PARAPHRASE
GLUE = {
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "5\t1\t2\ta\tb\t{}", "1", "0"),
    "QNLI": ("index\tquestion\tsentence\tlabel", "0\ta\tb\t{}", "entailment", "not_entailment"),
    "MRPC": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "{}\t7\t8\ta\tb", "1", "0"),
}


@pytest.mark.parametrize("name", GLUE)
@pytest.mark.parametrize("extension", ["tsv", "txt"])
def test_files_of_glue(tmp_path: Path, name: str, extension: str) -> None:
    header, form, *labels = GLUE[name]
    path = tmp_path / f"train.{extension}"
    rows = "".join(form.format(label) + "\n" for label in labels)
    path.write_text(f"\ufeff{header}\n{rows}", encoding="utf-8")
    expected = (Relation.ENTAILMENT, Relation.CONTRADICTION) if name == "QNLI" else (PARAPHRASE, NOT_PARAPHRASE)
    assert list(read_records(path)) == [Record(("a", "b"), relation) for relation in expected]


@pytest.mark.parametrize(
    ("columns", "labels", "expected"),
    [
        (("question1", "question2"), (1, 0, -1), (PARAPHRASE, NOT_PARAPHRASE, Relation.NO_GOLD)),
        (("question1", "question2"), ("duplicate", "not_duplicate"), (PARAPHRASE, NOT_PARAPHRASE)),
        (("question1", "question2"), (1.0, 0.0, float("nan")), (PARAPHRASE, NOT_PARAPHRASE, Relation.NO_GOLD)),
        (("question", "sentence"), (0, 1), (Relation.ENTAILMENT, Relation.CONTRADICTION)),
        (("query", "entity"), (0, 1), (Relation.CONTRADICTION, Relation.ENTAILMENT)),
        (("sentence1", "sentence2"), ("equivalent", "not_equivalent"), (PARAPHRASE, NOT_PARAPHRASE)),
        (("sentence1", "sentence2"), ("entailment", "not_entailment"), (Relation.ENTAILMENT, Relation.NEUTRAL)),
        (("sentence1", "sentence2"), (1, 0), (Relation.UNRELATED, Relation.UNRELATED)),
    ],
)
def test_rows_of_labelled_pairs(
    tmp_path: Path, columns: tuple[str, str], labels: tuple[object, ...], expected: tuple[Relation, ...]
) -> None:
    rows: list[dict[str, object]] = [{columns[0]: "a", columns[1]: "b", "label": label, "idx": 0} for label in labels]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    assert [record.relation for record in read_records(path)] == list(expected)


def test_question_pairs_know_no_other_labels(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"question1": "a", "question2": "b", "is_duplicate": "2"}])
    with pytest.raises(InputError, match=r"line 1: unknown label '2' \(known: 1, "):
        list(read_records(path))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_parquet(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"premise": ["p", "q"], "hypothesis": ["h", "i"], "label": [0, 2], "vector": [[1.0], [2.0]]})
    pq.write_table(table, tmp_path / "a.parquet")
    path = tmp_path / f"a.parquet{suffix}"
    if suffix:
        path.write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    assert list(read_records(path)) == EXPECTED[:2]


def test_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tcaption1\tcaption2\n7\ta\tb\n")
    options = ReadOptions(columns=("caption2", "caption1"))
    assert list(read_records(tmp_path / "a.tsv", options)) == [Record(("b", "a"), Relation.UNRELATED)]
    with pytest.raises(InputError, match="no column 'x'") as caught:
        list(read_records(tmp_path / "a.tsv", ReadOptions(columns=("x",))))
    assert caught.value.hint == "its columns: id, caption1, caption2"
    with pytest.raises(InputError, match="cannot tell which columns"):
        list(read_records(tmp_path / "a.tsv"))


def test_a_broken_json_line_has_a_number_and_can_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"\n[1]\n{"texts": "c"}\n{"text": 3}\n\n{"text": "d"}\n')
    with pytest.raises(InputError, match=r"a\.jsonl, line 2 is not valid JSON"):
        list(read_records(path))
    bad = BadRecords(skip=True)
    assert [record.texts for record in read_records(path, bad=bad)] == [("a",), ("d",)]
    assert bad.count == 4


@pytest.mark.parametrize(
    ("value", "kind"),
    [(3, "a number"), (0.5, "a number"), (True, "true or false"), (["a"], "a list"), ({}, "an object")],
)
def test_a_value_that_is_not_text_is_named_by_its_kind(tmp_path: Path, value: object, kind: str) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": value}])
    with pytest.raises(InputError, match=f"line 1: 'text' is {kind}, not text"):
        list(read_records(path))


def test_an_unknown_label_is_a_bad_record(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"premise": "a", "hypothesis": "b", "label": "maybe"}])
    with pytest.raises(InputError, match="line 1: unknown label 'maybe'"):
        list(read_records(path))
    with pytest.raises(BadRecordError):
        parse_label("3")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", '{"text": "a"}', "jsonl"),
        ("a", '{"text": "a"}', "jsonl"),
        ("a", "sent0,sent1,hard_neg\na,b,c", "csv"),
        ("a.txt", "gold_label\tsentence1\tsentence2\n", "tsv"),
        ("a.txt", "Just a sentence, with a comma.\n", "text"),
        ("a.data", "Just a sentence.\n", "text"),
        ("a.csv", "Just a sentence.\n", "csv"),
    ],
)
def test_the_format_is_recognised(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content)
    assert find_format(as_source(tmp_path / name), None) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"not json\n", "line 1: not JSON"),
        ("a.json", b'[{"text": "a"}]', "one JSON array"),
        ("a.txt", b'{"text": "a"}\n', "holds JSON"),
        ("a.parquet", b"not parquet", "not a Parquet file"),
        ("a.jsonl", b"PAR1....", "is a Parquet file"),
        ("a.csv", b"\x89PNG\r\n", "is a PNG image"),
        ("a.tsv", b"", "is empty"),
        ("a.tsv", b"text\n", "a header and no rows"),
        ("a.tsv", b"text\ttext\na\tb\n", "same name: text"),
        ("a.parquet", b"PAR1 broken", "not a Parquet file"),
    ],
)
def test_contradictory_content_is_a_clear_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / name))


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('[{"text": "a"},\n {"text": "b"}]', "jq -c '.[]' OLD > NEW.jsonl"),
        ('\ufeff[\n  {"text": "a"}\n]\n', "jq -c '.[]' OLD > NEW.jsonl"),
        ('{\n  "text": "a"\n}\n', "jq -c . OLD > NEW.jsonl"),
        ("{text}\n", "give one JSON object per line, or name its `format`"),
    ],
)
def test_json_that_is_not_one_object_per_line_can_be_converted(tmp_path: Path, content: str, hint: str) -> None:
    """The hint was to name its format, which ends in the next error."""
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        list(read_records(tmp_path / "a.json"))
    assert str(caught.value.hint).endswith(hint)


def test_the_format_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('{"text": "a"}\n')
    assert next(read_records(tmp_path / "a.txt", ReadOptions("jsonl"))).texts == ("a",)
    assert next(read_records(tmp_path / "a.txt", ReadOptions("text"))).texts == ('{"text": "a"}',)
    (tmp_path / "b").write_text("text\nx\n")
    assert next(read_records(tmp_path / "b", ReadOptions("csv"))).texts == ("x",)


def test_real_files_read(shared_data: Path) -> None:
    first = next(read_records(shared_data / "nli" / "snli.dev.jsonl.gz"))
    assert first.relation is Relation.NEUTRAL
    first = next(read_records(shared_data / "nli" / "triplets_strict_noSTS.train.tsv.gz"))
    assert first.relation is Relation.TRIPLET
