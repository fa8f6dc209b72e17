"""Test sets: graded pairs, SentEval's folders, question and entity pairs, collections, judgements, transfer tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import mutated, packed
from properties.test_text_readers import write

from sentcompress.corpora.collection_folders import collection_data_set, read_judgements, splits_of
from sentcompress.corpora.collections import Collection, DataSet
from sentcompress.corpora.entities import entities_data_set
from sentcompress.corpora.pairs import pairs_data_set, read_pairs
from sentcompress.corpora.sts import read_dev, read_sts, read_sts_file
from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.transfer import read_transfer
from sentcompress.errors import SentcompressError
from sentcompress.evaluation.similarity import UndefinedError, pearson, spearman

STS = b"5.0\tA dog runs.\tA dog is running.\n2.5\tA man sings.\tA woman talks.\n0\tOne.\tTwo.\n\tno score\there\n"
STS_NAMED = b"sentence1\tsentence2\tscore\nA dog.\tDogs.\t4\nA cat.\tNo cat.\t1\n"
QUORA = (
    b'id\tquestion1\tquestion2\tis_duplicate\n0\t"How, and\nwhy?"\tWhy?\t1\n'
    b'1\tWhat?\t"Say ""what""?"\t0\n2\t\tEmpty?\t0\n'
)
ENTITIES = b"query,entity,label\nacme inc,Acme,1\nacme inc,Other,0\nfoo ltd,Foo,1\n"
QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t2\n"
TREC_QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 2\n"
COLLECTION: Mapping[str, bytes] = {
    "corpus.jsonl": b'{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "title": "", "text": "two"}\n',
    "queries.jsonl": b'{"_id": "q1", "text": "first?"}\n{"_id": "q2", "text": "second?"}\n',
    "qrels/test.tsv": QRELS,
}
MS_MARCO: Mapping[str, bytes] = {
    "collection.tsv": b"d1\tone\nd2\ttwo\n",
    "queries.dev.small.tsv": b"q1\tfirst?\nq2\tsecond?\n",
    "qrels.dev.small.tsv": TREC_QRELS,
}
SENTEVAL: Mapping[str, bytes] = {
    "STS/STS12-en-test/STS.input.MSRpar.txt": b"A dog.\tDogs.\nA cat.\tNo cat.\nx\ty\n",
    "STS/STS12-en-test/STS.gs.MSRpar.txt": b"4.5\n\n1\n",
    "STS/STSBenchmark/sts-test.csv": b"main\tf\t2012\t1\t4.5\tA dog.\tDogs.\nmain\tf\t2012\t2\t1\tA cat.\tNo cat.\n",
    "SICK/SICK_test_annotated.txt": b"id\tsentence_A\tsentence_B\trelatedness_score\n1\ta\tb\t4\n2\tx\ty\t1\n",
}
TRANSFER: Mapping[str, bytes] = {
    "MR/all.tsv": b"1\tgood film\n0\tbad film\n",
    "TREC/train.tsv": b"label\ttext\nDESC:x\tWhat is it?\nNUM:y\tHow many?\n",
    "TREC/test.tsv": b"DESC:x\tWhat is it?\nNUM:y\tHow many?\n",
    "MRPC/train.tsv": b"1\tone text\tanother\n0\tone\ttwo\n",
    "MRPC/test.tsv": b"1\tone text\tanother\n0\tone\ttwo\n",
}
TRANSFER_SENTEVAL: Mapping[str, bytes] = {
    "CR/custrev.pos": b"good phone \xe9\n",
    "CR/custrev.neg": b"bad phone\n",
    "TREC/train_5500.label": b"DESC:manner How is it ?\nNUM:count How many ?\n",
    "TREC/TREC_10.label": b"DESC:manner How is it ?\nNUM:count How many ?\n",
    "MRPC/msr_paraphrase_train.txt": b"Quality\t1\t2\ts1\ts2\n1\ta\tb\tone text\tanother\n0\ta\tb\tone\ttwo\n",
    "MRPC/msr_paraphrase_test.txt": b"Quality\t1\t2\ts1\ts2\n1\ta\tb\tone text\tanother\n0\ta\tb\tone\ttwo\n",
    "SST/binary/sentiment-train": b"good film\t1\nbad film\t0\n",
    "SST/binary/sentiment-dev": b"good film\t1\nbad film\t0\n",
    "SST/binary/sentiment-test": b"good film\t1\nbad film\t0\n",
}


@st.composite
def folders(draw: st.DrawFn, valid: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files by name, one or two of which are damaged."""
    files = dict(valid)
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(files)))
        content, suffix = draw(mutated(files.pop(name), draw(st.sampled_from((b"\t", b'"', b" ")))).flatmap(packed))
        files[name + suffix] = content
    return files


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    place = Path(mkdtemp(dir=folder))
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def check_scores(scores: tuple[float, ...]) -> None:
    """The scores give correlations, or say why not."""
    gold = np.array(scores)
    for score in (spearman, pearson):
        with contextlib.suppress(UndefinedError):
            assert abs(score(gold, np.linspace(-1, 1, len(gold)))) < 1.01


def check_collection(data: DataSet) -> Collection:
    collection = data.read()
    rows = sum(len(texts) for texts in collection.corpus.texts())
    assert rows == len(collection.corpus)
    assert len(collection.queries) == len(collection.grades) > 0
    assert collection.judged
    return collection


@given(st.sampled_from((STS, STS_NAMED)).flatmap(mutated).flatmap(packed), st.booleans())
@example((b"1e308\ta\tb\n-1e308\tc\td\n", ""), False)
@example((b"1e-320\ta\tb\n2e-320\tc\td\n", ""), False)
@example((b"nan\ta\tb\ninf\tc\td\n1e999\te\tf\n1_0\tg\th\n", ""), True)
def test_graded_pairs(tmp_path: Path, document: tuple[bytes, str], skip: bool) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"a.tsv{suffix}")
    found = kept(lambda: read_sts_file(path, bad=BadRecords(skip)), path)
    if not isinstance(found, SentcompressError):
        check_scores(found.scores)
    kept(lambda: read_dev(path), path)


@given(folders(SENTEVAL), st.booleans(), st.sampled_from(("test", "dev")))
def test_senteval_folders_of_graded_pairs(tmp_path: Path, files: dict[str, bytes], skip: bool, split: str) -> None:
    place = write_folder(tmp_path, files)
    found = kept(lambda: read_sts([place], split, BadRecords(skip)), place)
    if not isinstance(found, SentcompressError):
        for one in found:
            for subset in one.subsets:
                check_scores(subset.scores)


@given(st.sampled_from((QUORA, ENTITIES)).flatmap(mutated).flatmap(packed), st.sampled_from(("tsv", "csv")))
@example((b'question1,question2,is_duplicate\n"a,b,1\n' + b"text\n" * 1000, ""), "csv")
def test_question_pairs(tmp_path: Path, document: tuple[bytes, str], kind: str) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"q.{kind}{suffix}")
    kept(lambda: read_pairs(path), path)
    kept(lambda: check_collection(pairs_data_set(path)), path)


@given(folders({"train.csv": ENTITIES, "test.csv": ENTITIES}), st.sampled_from((None, "test", "dev")))
def test_entities(tmp_path: Path, files: dict[str, bytes], split: str | None) -> None:
    place = write_folder(tmp_path, files)
    kept(lambda: check_collection(entities_data_set(place, split)), place)
    for name in files:
        kept(lambda name=name: check_collection(entities_data_set(place / name, None)), place)


@given(folders(COLLECTION) | folders(MS_MARCO), st.sampled_from((None, "test", "dev.small")))
@example({**COLLECTION, "corpus.jsonl": b'{"_id": ' + b"[" * 3000}, None)
@example({**COLLECTION, "corpus.jsonl": b'{"_id": "d1", "text": "a"}\n' * 2}, None)
@example({**COLLECTION, "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1e308\nq2\td2\tinf\n"}, None)
def test_collections(tmp_path: Path, files: dict[str, bytes], split: str | None) -> None:
    place = write_folder(tmp_path, files)
    kept(lambda: check_collection(collection_data_set(place, split)), place)


@given((mutated(QRELS) | mutated(TREC_QRELS, b" ")).flatmap(packed))
@example((b"q1\td1\t" + b"9" * 5000 + b"\n", ""))
@example((b"q1\td1\t1_000\n", ""))
def test_judgements(tmp_path: Path, document: tuple[bytes, str]) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"qrels.tsv{suffix}")
    found = kept(lambda: list(read_judgements(path)), path)
    if not isinstance(found, SentcompressError):
        assert all(abs(line.grade) <= 10**9 for line in found)
    kept(lambda: splits_of(path), path)


@given(folders(TRANSFER) | folders(TRANSFER_SENTEVAL), st.booleans())
def test_transfer_tasks(tmp_path: Path, files: dict[str, bytes], skip: bool) -> None:
    place = write_folder(tmp_path, files)
    kept(lambda: read_transfer(place, bad=BadRecords(skip)), place)
