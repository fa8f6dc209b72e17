"""The transfer tasks from our files and from SentEval's folder."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.transfer import TASKS, read_transfer, task_name
from sentcompress.errors import InputError, UsageError


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def shape(folder: Path, *only: str) -> dict[str, dict[str, int]]:
    return {task.name: {name: len(s) for name, s in task.splits.items()} for task in read_transfer(folder, only)}


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    root = tmp_path / "ours"
    write(root / "MR" / "all.tsv", 'label\ttext\n1\tgood\n0\tbad\n1\ta "fine" one\n')
    write(root / "sst2" / "train.tsv", "1\tgood\n0\tbad\n")
    write(root / "sst2" / "dev.tsv.gz", gzip.compress(b"1\tfine\n0\tpoor\n"))
    write(root / "sst2" / "test.tsv", "1\tnice\n0\tawful\n")
    write(root / "TREC" / "train.tsv", "label\ttext\nNUM:dist\thow far\nNUM:count\thow many\nLOC:city\twhere\n")
    write(root / "TREC" / "test.tsv", "label\ttext\nNUM:date\twhen\nLOC:other\twhere to\n")
    write(root / "MRPC" / "train.tsv", "text1\ttext2\tlabel\na\tb\t1\nc\td\t0\n")
    write(root / "MRPC" / "test.tsv", "label\ttext1\ttext2\n1\te\tf\n0\tg\th\n")
    write(root / "notes" / "all.tsv", "1\tsomething else\n")
    return root


def test_our_files(ours: Path) -> None:
    assert shape(ours) == {
        "MR": {"all": 3},
        "SST-2": {"train": 2, "dev": 2, "test": 2},
        "TREC": {"train": 3, "test": 2},
        "MRPC": {"train": 2, "test": 2},
    }
    tasks = {task.name: task.splits for task in read_transfer(ours)}
    assert tasks["MR"]["all"].first[2] == 'a "fine" one'
    assert tasks["TREC"]["train"].labels == ("LOC", "NUM", "NUM")  # the coarse class is the task
    assert (tasks["MRPC"]["train"].first, tasks["MRPC"]["train"].second) == (("c", "a"), ("d", "b"))
    assert list(shape(ours, "trec", "SST")) == ["SST-2", "TREC"]
    assert list(shape(ours / "MR")) == ["MR"]


@pytest.fixture
def senteval(tmp_path: Path) -> Path:
    """SentEval's downstream folder in miniature, with the files of tasks that are none of the seven."""
    root = tmp_path / "downstream"
    write(root / "MR" / "rt-polarity.pos", "good film\nd\xe9j\xe0 vu\n".encode("latin-1"))
    write(root / "MR" / "rt-polarity.neg", "bad film\n")
    write(root / "CR" / "custrev.pos", "caf\u00e9 like\n")
    write(root / "CR" / "custrev.neg", "broke\n\n")
    write(root / "SUBJ" / "subj.subjective", "i think\n")
    write(root / "SUBJ" / "subj.objective", "it is\nit was\n")
    write(root / "MPQA" / "mpqa.pos", "hope\n")
    write(root / "MPQA" / "mpqa.neg", "fear\n")
    for split in ("train", "dev", "test"):
        write(root / "SST" / "binary" / f"sentiment-{split}", "a fine film\t1\na dull film\t0\n")
        write(root / "SST" / "fine" / f"sentiment-{split}", "4 a fine film\n0 a dull film\n")
    write(root / "TREC" / "train_5500.label", "NUM:dist How far ?\nLOC:city Where in Espa\xf1a ?\n".encode("latin-1"))
    write(root / "TREC" / "TREC_10.label", "NUM:date When ?\nLOC:other Where ?\n")
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for split in ("train", "test"):
        write(root / "MRPC" / f"msr_paraphrase_{split}.txt", head + '1\t7\t8\t"He" said\tSaid he\n0\t9\t10\tA\tB\n')
    write(root / "STS" / "STS12-en-test" / "STS.input.x.txt", "a\tb\n")
    write(root / "SICK" / "SICK_train.txt", "pair_ID\n")
    return root


def test_the_downstream_folder_of_senteval(senteval: Path) -> None:
    found = shape(senteval)
    assert list(found) == list(TASKS)
    assert found["SST-2"] == {"train": 2, "dev": 2, "test": 2}
    tasks = {task.name: task.splits for task in read_transfer(senteval)}
    assert tasks["MR"]["all"].first == ("bad film", "good film", "d\xe9j\xe0 vu")
    assert tasks["MR"]["all"].labels == ("0", "1", "1")
    assert tasks["CR"]["all"].first[1] == "caf\u00e9 like"  # a copy in UTF-8 is read as such
    assert tasks["CR"]["all"].empty == 1
    assert tasks["SUBJ"]["all"].labels == ("0", "1", "1")
    assert tasks["TREC"]["train"].first == ("How far ?", "Where in Espa\xf1a ?")
    assert tasks["TREC"]["train"].labels == ("NUM", "LOC")
    assert tasks["MRPC"]["test"].first == ("A", '"He" said')
    assert tasks["SST-2"]["dev"].labels == ("0", "1")


def test_examples_are_in_the_order_of_senteval(tmp_path: Path) -> None:
    """By words and label, else in the order of the files: `sorted(zip(X, y), key=lambda z: (len(z[0]), z[1]))`."""
    generator = random.Random(0)
    texts = [" ".join(["word"] * generator.randint(1, 5) + [str(number)]) for number in range(60)]
    write(tmp_path / "MR" / "rt-polarity.pos", "\n".join(texts[:35]))
    write(tmp_path / "MR" / "rt-polarity.neg", "\n".join(texts[35:]))
    samples, labels = [text.split() for text in texts], [1] * 35 + [0] * 25
    expected = sorted(zip(samples, labels, strict=True), key=lambda one: (len(one[0]), one[1]))
    (task,) = read_transfer(tmp_path)
    found = task.splits["all"]
    assert [text.split() for text in found.first] == [words for words, _ in expected]
    assert [int(label) for label in found.labels] == [label for _, label in expected]


def test_labels_can_be_written_as_floating_point_numbers(tmp_path: Path) -> None:
    """F1 of MRPC is that of the class 1."""
    write(tmp_path / "MR" / "all.tsv", "1.0\tgood\n0.0\tbad\n1\tso good\n")
    (task,) = read_transfer(tmp_path)
    assert task.splits["all"].labels == ("0", "1", "1")


def test_missing_splits_and_files(senteval: Path, ours: Path) -> None:
    (senteval / "TREC" / "TREC_10.label").unlink()
    with pytest.raises(InputError, match="TREC has no test split"):
        read_transfer(senteval)
    assert list(shape(senteval, "MR")) == ["MR"]  # the broken task was not asked for
    (senteval / "CR" / "custrev.neg").unlink()
    with pytest.raises(InputError, match=r"has no custrev\.neg"):
        read_transfer(senteval)
    (ours / "sst2" / "dev.tsv.gz").unlink()
    (ours / "sst2" / "test.tsv").unlink()
    with pytest.raises(InputError, match="SST-2 has no dev and no test split"):
        read_transfer(ours, ["sst-2"])


def test_missing_unknown_and_repeated_tasks(tmp_path: Path, ours: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_transfer(tmp_path / "missing")
    (tmp_path / "all.tsv").touch()
    with pytest.raises(InputError, match=r"all\.tsv is a file, not a folder"):
        read_transfer(tmp_path / "all.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="does not hold any of the seven tasks"):
        read_transfer(tmp_path / "empty")
    with pytest.raises(InputError, match="does not hold the task CR"):
        read_transfer(ours, ["CR"])
    with pytest.raises(UsageError, match="no transfer task 'TERC'") as caught:
        read_transfer(ours, ["TERC"])
    assert caught.value.hint == "did you mean TREC?"
    write(ours / "more" / "MR" / "all.tsv", "1\tgood\n0\tbad\n")
    with pytest.raises(InputError, match="MR occurs twice"):
        read_transfer(ours)
    assert task_name("STS") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tgood\n1\tfine\n", "one class only"),
        ("label\ttext\n", "no example"),
        ("1\tgood\nbad\n0\tx\n", "line 2: found 1 column, expected 2"),
        ("1\tgood\n\tbad\n0\tx\n", "line 2: no label"),
        ("label\tsentence\n1\tgood\n", "no column 'text'"),
        (b"1\tgood\n0\tcaf\xe9\n", "line 2: not UTF-8"),
        ("", "is empty"),
    ],
)
def test_broken_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    write(tmp_path / "MR" / "all.tsv", content)
    with pytest.raises(InputError, match=message):
        read_transfer(tmp_path)


def test_bad_lines_are_skipped_and_counted_on_request_and_empty_texts_always(tmp_path: Path) -> None:
    write(tmp_path / "MR" / "all.tsv", "1\tgood\nbad\n0\tx\n\ty\n1\t \n")
    bad = BadRecords(skip=True)
    split = read_transfer(tmp_path, bad=bad)[0].splits["all"]
    assert (split.first, split.bad, split.empty) == (("x", "good"), 2, 1)
    write(tmp_path / "MR" / "all.tsv", b"1\tgood\n0\tcaf\xe9\n0\tx\n")
    assert read_transfer(tmp_path, bad=BadRecords(skip=True))[0].splits["all"].bad == 1


def test_real_tasks_have_their_official_sizes(shared_data: Path) -> None:
    found = shape(shared_data / "transfer")
    assert found == {name: dict(TASKS[name]) for name in ("MR", "SUBJ", "TREC", "MRPC")}
    tasks = {task.name: task.splits for task in read_transfer(shared_data / "transfer", ["TREC"])}
    assert set(tasks["TREC"]["train"].labels) == {"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"}
