"""The committed sample corpora: they are what `data/generate.py` writes, and they are what they promise."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
FILES = ("nli.jsonl", "sts/dev.tsv", "sts/test.tsv", "quora.tsv")
MAX_BYTES = 3_000_000


def read_tsv(name: str) -> list[dict[str, str]]:
    header, *lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


@pytest.fixture(scope="module")
def nli() -> list[dict[str, str]]:
    lines = (DATA / "nli.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def nli_sentences(nli: list[dict[str, str]]) -> set[str]:
    return {line[key] for line in nli for key in ("sentence1", "sentence2")}


@pytest.fixture(scope="module")
def quora() -> list[dict[str, str]]:
    return read_tsv("quora.tsv")


def generate(output: Path, *options: str, hash_seed: str = "0") -> None:
    command = [sys.executable, str(DATA / "generate.py"), "--output", str(output), *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, env=environment)


def test_the_committed_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    for hash_seed in ("1", "2"):
        generate(tmp_path / hash_seed, hash_seed=hash_seed)
        for name in FILES:
            assert (tmp_path / hash_seed / name).read_bytes() == (DATA / name).read_bytes(), name


def test_another_seed_gives_other_sentences(tmp_path: Path) -> None:
    generate(tmp_path, "--seed", "7")
    for name in FILES:
        assert (tmp_path / name).read_bytes() != (DATA / name).read_bytes(), name


def test_the_folder_stays_small() -> None:
    sizes = [path.stat().st_size for path in DATA.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(sizes) < MAX_BYTES


def test_nli_has_the_keys_and_labels_of_snli(nli: list[dict[str, str]]) -> None:
    assert all(list(line) == ["sentence1", "sentence2", "gold_label"] for line in nli)
    labels = Counter(line["gold_label"] for line in nli)
    assert set(labels) == {"entailment", "neutral", "contradiction", "-"}
    assert min(labels[label] for label in ("entailment", "neutral", "contradiction")) >= 2000
    assert 20 <= labels["-"] <= 200


def test_nli_has_many_sentences_of_usual_length(nli_sentences: set[str]) -> None:
    assert len(nli_sentences) >= 8000
    lengths = [len(sentence.split()) for sentence in nli_sentences]
    assert min(lengths) >= 4
    assert max(lengths) <= 35


def test_nli_has_a_wide_vocabulary(nli_sentences: set[str]) -> None:
    words = {word for sentence in nli_sentences for word in re.findall(r"[a-z']+", sentence.lower())}
    assert len(words) >= 3000


def test_nli_premises_make_triplets(nli: list[dict[str, str]]) -> None:
    labels = defaultdict(set)
    for line in nli:
        labels[line["sentence1"]].add(line["gold_label"])
    triplets = sum({"entailment", "contradiction"} <= found for found in labels.values())
    assert triplets == len(labels) >= 1500


def test_no_nli_pair_occurs_twice_and_none_is_a_sentence_with_itself(nli: list[dict[str, str]]) -> None:
    pairs = [(line["sentence1"], line["sentence2"]) for line in nli]
    assert len(set(pairs)) == len(pairs)
    assert all(premise != hypothesis for premise, hypothesis in pairs)


@pytest.mark.parametrize(("split", "at_least"), [("dev", 300), ("test", 500)])
def test_sts_grades_are_all_well_represented(split: str, at_least: int) -> None:
    rows = read_tsv(f"sts/{split}.tsv")
    assert list(rows[0]) == ["score", "sentence1", "sentence2"]
    assert len(rows) >= at_least
    grades = [float(row["score"]) for row in rows]
    assert min(grades) == 0.0
    assert max(grades) == 5.0
    levels = Counter(int(grade + 0.5) for grade in grades)
    assert min(levels[level] for level in range(6)) >= at_least // 10


def test_sts_sentences_are_in_no_other_file(nli_sentences: set[str]) -> None:
    dev, test = (
        {row[key] for row in read_tsv(f"sts/{split}.tsv") for key in ("sentence1", "sentence2")}
        for split in ("dev", "test")
    )
    assert not dev & nli_sentences
    assert not test & nli_sentences
    assert not dev & test


def test_quora_is_laid_out_as_the_official_file(quora: list[dict[str, str]]) -> None:
    assert list(quora[0]) == ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    assert [int(row["id"]) for row in quora] == list(range(len(quora)))
    qids = {row[f"question{side}"]: row[f"qid{side}"] for row in quora for side in "12"}
    assert len(set(qids.values())) == len(qids)
    assert all(qids[row[f"question{side}"]] == row[f"qid{side}"] for row in quora for side in "12")


def test_quora_is_large_and_mixed(quora: list[dict[str, str]]) -> None:
    assert len(quora) >= 1500
    assert len({row["question2"] for row in quora}) >= 1000
    duplicates = sum(row["is_duplicate"] == "1" for row in quora)
    assert {row["is_duplicate"] for row in quora} == {"0", "1"}
    assert 0.25 < duplicates / len(quora) < 0.5
    assert len({(row["question1"], row["question2"]) for row in quora}) == len(quora)


def test_no_quora_query_is_in_the_collection_it_searches(quora: list[dict[str, str]]) -> None:
    queries = {row["question1"] for row in quora if row["is_duplicate"] == "1"}
    assert len(queries) >= 300
    assert not queries & {row["question2"] for row in quora}


def test_quora_questions_are_not_in_nli(quora: list[dict[str, str]], nli_sentences: set[str]) -> None:
    assert not {row[f"question{side}"] for row in quora for side in "12"} & nli_sentences


@pytest.mark.parametrize("name", FILES)
def test_sentences_are_tidy(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert "{" not in text.replace('{"sentence1"', "")
    assert "  " not in text
    assert " ," not in text
    assert " ." not in text
    assert ",," not in text
    assert ",." not in text
    assert not re.search(r"\b[Aa] [aeiou](?!sed |niversity)", text)
