"""Graded pairs from our files and from SentEval's folder."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentcompress.corpora.sts import read_sts, read_sts_file
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError

LINES = "5\ta\tb\n1.5\tc\td\n"


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def shape(paths: Sequence[Path | str], split: str = "test") -> dict[str, dict[str, int]]:
    return {s.name: {subset.name: len(subset) for subset in s.subsets} for s in read_sts(paths, split)}


@pytest.mark.parametrize("header", ["", "score\tsentence1\tsentence2\n", "Score\tsentence1\tsentence2\tgenre\n"])
def test_file_with_and_without_header(tmp_path: Path, header: str) -> None:
    subset = read_sts_file(write(tmp_path / "x.tsv", header + LINES))
    assert (subset.scores, subset.first, subset.second) == ((5.0, 1.5), ("a", "c"), ("b", "d"))


def test_a_header_can_reorder_the_columns_and_quotes_are_plain_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b'sentence1\tsentence2\tscore\n"a\tb "c"\t3\n'))
    subset = read_sts_file(path)
    assert (subset.scores, subset.first, subset.second) == ((3.0,), ('"a',), ('b "c"',))


def test_blank_scores_and_empty_sides_are_dropped_and_counted(tmp_path: Path) -> None:
    subset = read_sts_file(write(tmp_path / "x.tsv", LINES + "\te\tf\n2\t \th\n\n"))
    assert (len(subset), subset.dropped, subset.empty) == (2, 1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINES + "high\te\tf\n", r"x.tsv, line 3: the score 'high' is not a number"),
        (LINES + "nan\te\tf\n", r"line 3: the score 'nan' is not a number"),
        (LINES + "2\te\n", r"line 3: found 2 columns, expected 3"),
        # Numbers of lines would be taken as scores.
        ("1\ta\tb\t5\n2\tc\td\t1.5\n", r"line 1: found 4 columns, expected 3"),
        ("score\tsentence1\tother\n2\te\tf\n", r"no column 'sentence2'"),
        ("score\tsentence1\tsentence2\n", r"holds no graded pair"),
        ("", r"is empty"),
    ],
)
def test_broken_files_name_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sts_file(write(tmp_path / "x.tsv", content))


def test_a_header_names_other_columns(tmp_path: Path) -> None:
    rows = "1\ta\tb\t5\n2\tc\td\t1.5\n"
    with pytest.raises(InputError) as told:
        read_sts_file(write(tmp_path / "x.tsv", rows))
    assert "with other columns, the first line must name them" in str(told.value.hint)
    assert read_sts_file(write(tmp_path / "x.tsv", f"id\tsentence1\tsentence2\tscore\n{rows}")).scores == (5.0, 1.5)
    assert read_sts_file(write(tmp_path / "x.tsv", "5\ta\tb\t\n1.5\tc\td\t \n")).scores == (5.0, 1.5)


def test_folder_of_sub_folders_makes_sets_of_subsets(tmp_path: Path) -> None:
    for name in ("sts13/FNWN.test.tsv", "sts13/OnWN.test.tsv", "sts13/SMT.test.tsv", "stsb/dev.tsv", "stsb/test.tsv"):
        write(tmp_path / name, LINES)
    write(tmp_path / "mine" / "first.tsv", LINES)
    assert shape([tmp_path]) == {"STS13": {"FNWN": 2, "OnWN": 2}, "STS-B": {"": 2}, "mine": {"first": 2}}
    assert shape([tmp_path], "dev") == {"STS-B": {"": 2}}
    # the folder of a published set can be named itself
    assert shape([tmp_path / "sts13"]) == {"STS13": {"FNWN": 2, "OnWN": 2}}
    assert shape([tmp_path / "stsb", tmp_path / "sts13"]) == {"STS13": {"FNWN": 2, "OnWN": 2}, "STS-B": {"": 2}}


def test_loose_files_make_sets_and_a_years_files_belong_together(tmp_path: Path) -> None:
    names = ("sts13-FNWN.tsv", "sts13-OnWN.tsv", "sts12.tsv", "sick-r.test.tsv", "sick-r.dev.tsv", "ours.tsv", "n.txt")
    for name in names:
        write(tmp_path / name, LINES)
    assert shape([tmp_path]) == {
        "STS12": {"": 2},
        "STS13": {"FNWN": 2, "OnWN": 2},
        "SICK-R": {"": 2},
        "ours": {"": 2},
    }


def test_a_named_file_is_read_regardless_of_its_split(tmp_path: Path) -> None:
    assert shape([write(tmp_path / "stsb" / "dev.tsv", LINES)]) == {"STS-B": {"": 2}}
    assert shape([write(tmp_path / "weather.train.txt", LINES)]) == {"weather": {"": 2}}
    assert shape([write(tmp_path / "mine" / "dev.tsv", LINES)]) == {"mine-dev": {"": 2}}


@pytest.fixture
def senteval(tmp_path: Path) -> Path:
    """A downstream folder in miniature, with the other tasks' files around it."""
    root = tmp_path / "downstream"
    year12, year13 = root / "STS" / "STS12-en-test", root / "STS" / "STS13-en-test"
    write(year12 / "STS.input.SMTeuroparl.txt", "a\tb\nc\td\n")
    write(year12 / "STS.gs.SMTeuroparl.txt", "1\n2\n\n")
    write(year12 / "STS.input.surprise.OnWN.txt", "a\tb\textra\nc\td\textra\ne\tf\textra\n")
    write(year12 / "STS.gs.surprise.OnWN.txt", "1\n\n3\n")
    write(year12 / "00-readme.txt", "words\n")
    for subset in ("FNWN", "SMT"):
        write(year13 / f"STS.input.{subset}.txt", "a\tb\nc\td\n")
        write(year13 / f"STS.gs.{subset}.txt", "1\n2\n")
    for split in ("train", "dev", "test"):
        lines = 'main\tMSR\t2012\t1\t5.000\ta\tb\nmain\tMSR\t2012\t2\t1.0\tc\t"d\tlicence\n'
        write(root / "STS" / "STSBenchmark" / f"sts-{split}.csv", lines)
    write(root / "STS" / "STSBenchmark" / "readme.txt", "words\n")
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name in ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"):
        write(root / "SICK" / name, head + "1\ta\tb\t4.5\tNEUTRAL\n2\tc\td\t1\tNEUTRAL\n")
    write(root / "MRPC" / "msr_paraphrase_test.txt", "Quality\t#1 ID\n1\t2\n")
    write(root / "CR" / "custrev.pos", "good\n")
    return root


def test_the_downstream_folder_of_senteval(senteval: Path) -> None:
    expected = {
        "STS12": {"SMTeuroparl": 2, "surprise.OnWN": 2},
        "STS13": {"FNWN": 2},
        "STS-B": {"": 2},
        "SICK-R": {"": 2},
    }
    assert shape([senteval]) == expected
    assert shape([senteval], "dev") == {"STS-B": {"": 2}, "SICK-R": {"": 2}}
    assert shape([senteval / "SICK" / "SICK_trial.txt"]) == {"SICK-R": {"": 2}}
    sets = {s.name: s for s in read_sts([senteval])}
    assert sets["STS12"].subsets[1].scores == (1.0, 3.0)
    assert sets["STS12"].subsets[1].dropped == 1
    assert sets["STS12"].subsets[1].second == ("b", "f")
    assert sets["STS-B"].subsets[0].second == ("b", '"d')
    assert sets["SICK-R"].subsets[0].scores == (4.5, 1.0)


def test_gold_scores_of_senteval_that_do_not_fit(senteval: Path) -> None:
    gold = senteval / "STS" / "STS13-en-test" / "STS.gs.FNWN.txt"
    gold.write_text("1\n")
    with pytest.raises(InputError, match=r"has 2 lines, STS\.gs\.FNWN\.txt has 1"):
        read_sts([senteval])
    gold.unlink()
    with pytest.raises(InputError, match="has no gold scores"):
        read_sts([senteval])


@pytest.mark.parametrize(
    ("broken", "name", "content"),
    [
        ("STS12", "STS/STS12-en-test/STS.input.surprise.OnWN.txt", b"a\tb\nc\ne\tf\n"),
        ("STS-B", "STS/STSBenchmark/sts-test.csv", b"main\tMSR\t2012\t1\t5.000\ta\tb\nmain\tMSR\n"),
        ("SICK-R", "SICK/SICK_test_annotated.txt", b"relatedness_score\tsentence_A\tsentence_B\n1\ta\tb\n2\t\xe4\tc\n"),
    ],
)
def test_bad_lines_of_senteval_are_skipped_on_request(senteval: Path, broken: str, name: str, content: bytes) -> None:
    (senteval / name).write_bytes(content)
    with pytest.raises(InputError, match=r"line [23]: ") as told:
        read_sts([senteval], bad=BadRecords(skip=False))
    assert "with `skip_bad`" in str(told.value.hint)
    sets = read_sts([senteval], bad=BadRecords(skip=True))
    assert {found.name for found in sets if sum(subset.bad for subset in found.subsets) == 1} == {broken}


def test_missing_and_repeated_sets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        read_sts([tmp_path / "missing"])
    with pytest.raises(InputError, match="no graded pairs of the split 'test'"):
        read_sts([tmp_path])
    write(tmp_path / "one" / "sts12.tsv", LINES)
    write(tmp_path / "two" / "sts12.tsv", LINES)
    with pytest.raises(InputError, match="STS12 occurs twice"):
        read_sts([tmp_path / "one" / "sts12.tsv", tmp_path / "two" / "sts12.tsv"])
    with pytest.raises(InputError, match="of the split 'dev'"):
        read_sts([tmp_path], "dev")


def test_real_sets_have_their_official_sizes(shared_data: Path) -> None:
    sizes = {"STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750}, "STS-B": {"": 1379}}
    assert shape([shared_data / "sts"]) == sizes
    assert shape([shared_data / "senteval"]) == sizes
    assert shape([shared_data / "sts"], "dev") == {"STS-B": {"": 1500}}
    ours, theirs = (read_sts([shared_data / place]) for place in ("sts", "senteval"))
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine.subsets, other.subsets, strict=True):
            assert (a.scores, a.first, a.second) == (b.scores, b.first, b.second)


def test_bad_lines_are_skipped_and_counted_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", LINES + "high\te\tf\n2\te\n3\tg\th\n")
    bad = BadRecords(skip=True)
    subset = read_sts_file(path, bad=bad)
    assert (subset.scores, subset.bad) == ((5.0, 1.5, 3.0), 2)
    assert "line 3: the score 'high' is not a number" in str(bad.first)
    assert sum(s.bad for s in read_sts([path], bad=BadRecords(skip=True))[0].subsets) == 2
    with pytest.raises(InputError, match="holds no graded pair"):
        read_sts_file(write(tmp_path / "y.tsv", "high\te\tf\n"), bad=BadRecords(skip=True))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, object]]]:
    """A hub whose data sets all hold the same rows; they can be changed by name."""
    import huggingface_hub

    datasets = pytest.importorskip("datasets")
    sets: dict[str, list[dict[str, object]]] = {}
    rows: list[dict[str, object]] = [
        {"sentence1": "a", "sentence2": "b", "score": 4.5, "genre": "x"},
        {"sentence1": "c", "sentence2": "d", "score": None},
        {"sentence1": " e", "sentence2": "f", "score": 0},
    ]

    def load(name: str, config: str | None, *, split: str, revision: str, streaming: bool) -> list[dict[str, object]]:
        if split not in ("test", "validation"):
            raise ValueError(f"Unknown split {split!r}.")
        return sets.get(f"{name}:{config}" if config else name, rows)

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="c0ffee"))
    return sets


def test_data_sets_of_the_hub_by_name(hub: dict[str, list[dict[str, object]]]) -> None:
    assert shape(["mteb/sts13-sts", "mteb/stsbenchmark-sts"]) == {"STS13": {"": 2}, "STS-B": {"": 2}}
    found = read_sts(["mteb/sickr-sts"])[0].subsets[0]
    assert (found.scores, found.first, found.second, found.dropped) == ((4.5, 0.0), ("a", "e"), ("b", "f"), 1)
    assert found.hub == ("hub:mteb/sickr-sts:test", "c0ffee")
    assert read_sts(["mteb/stsbenchmark-sts"], "dev")[0].subsets[0].hub == (
        "hub:mteb/stsbenchmark-sts:validation",
        "c0ffee",
    )
    hub["mteb/sts17-crosslingual-sts:en-en"] = [{"sentence1": "x", "sentence2": "y", "score": 1}]
    assert shape(["mteb/sts17-crosslingual-sts:en-en"]) == {"sts17-crosslingual-en-en": {"": 1}}


def test_one_word_names_all_seven(hub: dict[str, list[dict[str, object]]]) -> None:
    assert list(shape(["mteb"])) == ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    assert list(shape(["mteb"], "dev")) == ["STS-B"]


def test_a_folder_of_that_name_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: dict[str, list[dict[str, object]]]
) -> None:
    write(tmp_path / "mteb" / "sts12-sts" / "ours.tsv", LINES)
    monkeypatch.chdir(tmp_path)
    assert shape(["mteb"]) == {"sts12-sts": {"ours": 2}}
    assert shape(["hub:mteb/sts12-sts"]) == {"STS12": {"": 2}}
    with pytest.raises(InputError, match="no such file or folder"):
        read_sts(["mteb/typo.tsv"])


def test_data_sets_on_the_hub_that_cannot_be_scored(hub: dict[str, list[dict[str, object]]]) -> None:
    hub["owner/other"] = [{"text": "a", "label": 1}]
    with pytest.raises(InputError, match="no columns 'score', 'sentence1', 'sentence2'"):
        read_sts(["owner/other"])
    hub["owner/words"] = [{"sentence1": "a", "sentence2": "b", "score": "high"}]
    with pytest.raises(InputError, match="hub:owner/words:test, line 1: the score 'high' is not a number"):
        read_sts(["owner/words"])
    with pytest.raises(InputError, match="cannot be read: Unknown split 'train'"):
        read_sts(["mteb/sts12-sts"], "train")
