"""Samples of distinct sentences: what is read, how it is drawn."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.text_sample import find_text_files, sample_texts, texts_of_files
from sentcompress.errors import InputError


def test_files_of_a_folder_are_found_by_format_without_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a.txt").write_text("one\n\n two \n")
    (tmp_path / "deep" / "b.txt.gz").write_bytes(gzip.compress(b"three\none\n"))
    (tmp_path / "deep" / "c.jsonl").write_text('{"text": "four"}\n{"text": ""}\n')
    (tmp_path / "deep" / "d.csv").write_text('sentence1,sentence2\n"five, six",seven\n')
    (tmp_path / "notes.md").write_text("no sentences\n")
    (tmp_path / ".hidden" / "e.txt").write_text("secret\n")
    files = find_text_files([tmp_path, tmp_path / "a.txt"])
    assert [path.name for path in files] == ["a.txt", "b.txt.gz", "c.jsonl", "d.csv"]
    texts = list(texts_of_files(files, BadRecords()))
    assert texts == ["one", "two", "three", "one", "four", "five, six", "seven"]


def test_a_named_file_is_read_regardless_of_its_extension(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    assert list(texts_of_files(find_text_files([tmp_path / "lines"]), BadRecords())) == ["one", "two"]


def test_missing_files_and_folders_without_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find_text_files([tmp_path / "missing.txt"])
    with pytest.raises(InputError, match="holds no file of sentences"):
        find_text_files([tmp_path])


def test_a_small_input_is_taken_whole() -> None:
    sample = sample_texts(["b", "a", "b", "c"], 5, seed=0)
    assert sorted(sample.texts) == ["a", "b", "c"]
    assert (sample.read, sample.complete) == (4, True)
    assert sample_texts(["b", "a", "b"], 2, seed=0).complete


def test_a_sample_does_not_depend_on_order_or_repetitions_but_on_the_seed() -> None:
    texts = [f"text {number}" for number in range(500)]
    sample = sample_texts(texts, 50, seed=1)
    assert len(set(sample.texts)) == 50
    assert not sample.complete
    assert sample_texts([*reversed(texts), *texts[:100]], 50, seed=1).texts == sample.texts
    assert set(sample_texts(texts, 50, seed=2).texts) != set(sample.texts)
    # a larger sample holds the smaller one
    assert set(sample_texts(texts, 80, seed=1).texts) > set(sample.texts)


def test_every_text_has_the_same_chance() -> None:
    texts = [f"text {number}" for number in range(40)]
    drawn = [text for seed in range(400) for text in sample_texts(texts, 10, seed).texts]
    counts = [drawn.count(text) for text in texts]
    # 400 draws of a quarter: 100 each, with a standard deviation of 8.7
    assert min(counts) > 60
    assert max(counts) < 140


def test_halves_of_characters_are_bad_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "half \\ud800"}\n{"text": "whole"}\n')
    with pytest.raises(InputError, match="record 1: contains a lone surrogate"):
        list(texts_of_files([tmp_path / "a.jsonl"], BadRecords()))
    bad = BadRecords(skip=True)
    assert (list(texts_of_files([tmp_path / "a.jsonl"], bad)), bad.count) == (["whole"], 1)
