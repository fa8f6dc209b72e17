"""Checkpoint selection by retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from beir import with_ids, write_beir
from distilling import make_work
from listening import Listener
from number_words import TABLE, mean, tokenize

from sentcompress.corpora.dev_collection import RetrievalSample
from sentcompress.errors import InputError
from sentcompress.stages import distill
from sentcompress.training.dev import LOWEST, score_of
from sentcompress.training.given_dev import GivenDev
from sentcompress.training.retrieval_dev import retrieval_dev

CPU = torch.device("cpu")


def sample(relevant: tuple[tuple[int, ...], ...], documents: int = 40) -> RetrievalSample:
    queries = tuple(f"{50 + number} {number + 1}" for number in range(len(relevant)))
    return RetrievalSample(
        "set dev", queries, tuple(str(n + 1) for n in range(documents)), relevant, len(relevant), 1234
    )


def test_it_is_the_mean_reciprocal_rank_in_the_first_ten() -> None:
    relevant = tuple((number, (number + 7) % 40) for number in range(30))
    dev = retrieval_dev(sample(relevant), tokenize, 0)
    expected = []
    unit = torch.nn.functional.normalize(TABLE[1:41].double(), dim=1)
    for number, wanted in enumerate(relevant):
        query = (TABLE[50 + number] + TABLE[number + 1]).double()
        ranked = torch.argsort(unit @ query, descending=True).tolist()
        rank = min(ranked.index(place) for place in wanted) + 1
        expected.append(1 / rank if rank <= 10 else 0)
    assert 0 < np.mean(expected) < 1
    assert dev.score(mean, CPU) == pytest.approx(100 * np.mean(expected))
    assert dev.protocol == (
        "MRR@10 x 100 on 30 queries of set dev, among 40 of 1,234 documents: all 30 relevant ones and 10 others"
    )


def test_queries_without_a_relevant_document_score_nothing() -> None:
    dev = retrieval_dev(sample(((0,), ())), tokenize, 0)
    assert dev.score(lambda ids, mask: TABLE[ids[:, -1]], CPU) == 50


def test_collapsed_and_broken_vectors() -> None:
    dev = retrieval_dev(sample(tuple((number,) for number in range(30))), tokenize, 0)
    assert dev.score(lambda ids, mask: torch.ones(len(ids), 3), CPU) == 0
    assert score_of(dev, lambda ids, mask: torch.full((len(ids), 3), torch.nan), CPU) == LOWEST


def write_collection(folder: Path, texts: list[str], split: str) -> Path:
    queries = with_ids([f"{text} fresh" for text in texts])
    judged = [(str(n), str(n), 1) for n in range(len(texts))]
    return write_beir(folder, with_ids(texts), queries, **{split: judged})


def test_a_collection_chooses_the_checkpoint(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    work = make_work(tmp_path / "work", tiny_model, sentences[:100])
    folder = write_collection(tmp_path / "set", sentences[100:160], "dev")
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "eval_every": 2, "dtype": "float32", "device": "cpu"}
    asked = distill.Params(method="mse", student="teacher:2", dev=folder, **numbers, name="chosen")
    student = distill.run(asked, work)
    facts = student.facts
    assert "MRR@10 x 100 on 60 queries of set dev, among 60 of 60 documents" in facts["dev_protocol"]
    assert 0 < facts["dev_before_training"] <= facts["dev"] <= 100
    assert facts["training_rows"] == 100  # nothing is held out
    assert {Path(name).name for name in student.inputs if name.startswith("file:")} == {
        "corpus.jsonl",
        "queries.jsonl",
        "dev.tsv",
    }
    assert distill.run(asked, work).manifest["finished"] == student.manifest["finished"]
    # Other judgements are another request.
    (folder / "qrels" / "dev.tsv").write_text("0\t0\t1\n")
    assert distill.run(asked, work).digest != student.digest


def test_what_is_dropped_of_a_dev_file_or_a_collection_is_told(tmp_path: Path) -> None:
    folder, pairs = write_collection(tmp_path / "set", ["one", "two"], "dev"), tmp_path / "dev.tsv"
    with (folder / "qrels" / "dev.tsv").open("a") as stream:
        stream.write("lost\t0\t1\n")
    pairs.write_text("1\tone\ttwo\n2\ttwo\tthree\n\tthree\tfour\n3\t\tfive\n3\tsix\t\n")
    for path, told in (
        (folder, ["dropped 1 judged query missing from queries.jsonl"]),
        (pairs, ["dropped 1 pair without a score", "dropped 2 pairs with an empty sentence"]),
    ):
        listener = Listener()
        GivenDev(path, {}, None, "cpu").open(listener)(lambda texts: [[1] for _ in texts], 0)
        assert [warning.rpartition(": ")[2] for warning in listener.warnings] == told


def test_a_test_split_does_not_choose_a_checkpoint(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    work = make_work(tmp_path / "work", tiny_model, sentences[:60])
    folder = write_collection(tmp_path / "set", sentences[60:90], "test")
    with pytest.raises(InputError, match="no dev split to select checkpoints on, only test"):
        distill.run(distill.Params(method="mse", student="teacher:2", dev=folder, device="cpu"), work)
    assert work.names("students") == []
