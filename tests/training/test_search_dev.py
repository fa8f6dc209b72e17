"""Checkpoint selection by search fidelity to the teacher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import make_work
from listening import Listener
from number_words import TABLE, mean, tokenize
from search_documents import make_documents, write_held_out

from sentcompress.corpora.search_texts import SearchTexts, collection_source
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.stages import distill, finetune, fit_pca, train_teacher
from sentcompress.store import WorkDirectory
from sentcompress.training.dev import LOWEST, score_of
from sentcompress.training.job import warn_of_start
from sentcompress.training.run_state import Progress
from sentcompress.training.search_dev import search_dev

CPU = torch.device("cpu")
NUMBERS: dict[str, Any] = {"epochs": 1, "batch_size": 16, "eval_every": 2, "dtype": "float32", "device": "cpu"}


def test_it_is_the_search_fidelity_to_the_teacher() -> None:
    queries, passages = [f"{n} {n + 1}" for n in range(1, 9)], [f"{n}" for n in range(20, 60)]
    texts = SearchTexts("set", tuple(passages), tuple(queries), ("span",) * 8, ("",) * 8, True)
    random = np.random.default_rng(0)
    gold = [random.normal(size=(len(part), 5)) for part in (queries, passages)]
    dev = search_dev(texts, GoldRanking.of(*gold), "big", tokenize, 0)
    own = [np.stack([TABLE[ids].mean(0).numpy() for ids in tokenize(part)]) for part in (queries, passages)]
    assert dev.score(mean, CPU) == pytest.approx(100 * GoldRanking.of(*gold).fidelity(*own).mean())
    assert dev.protocol == "search fidelity to big (nDCG@10 x 100) on 8 queries of set, among 40 passages"
    assert score_of(dev, lambda ids, mask: torch.full((len(ids), 3), torch.nan), CPU) == LOWEST


def test_with_a_kept_index_the_teachers_vectors_of_the_passages_are_searched() -> None:
    queries, passages = [f"{n} {n + 1}" for n in range(1, 9)], [f"{n}" for n in range(20, 60)]
    texts = SearchTexts("set", tuple(passages), tuple(queries), ("span",) * 8, ("",) * 8, True)
    random = np.random.default_rng(0)
    gold = [random.normal(size=(len(part), 4)).astype(np.float32) for part in (queries, passages)]
    dev = search_dev(texts, GoldRanking.of(*gold), "big", tokenize, 0, gold[1])
    own = np.stack([TABLE[ids].mean(0).numpy() for ids in tokenize(queries)])
    assert dev.score(mean, CPU) == pytest.approx(100 * GoldRanking.of(*gold).fidelity(own, gold[1]).mean())
    assert dev.protocol.endswith("among 40 passages, by vectors of big")
    with pytest.raises(InputError, match="the teacher's 4 dimensions, not 3") as raised:
        dev.score(lambda ids, mask: torch.ones(len(ids), 3), CPU)
    # finetune has no methods of distillation to choose from.
    assert raised.value.hint == "omit `keep_index`, or train a student that has as many dimensions and no new layer"


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> WorkDirectory:
    work = make_work(tmp_path / "work", tiny_model, sentences[:100])
    make_documents(work, sentences[100:160], sentences[160:180])
    return work


def test_documents_choose_the_checkpoint(work: WorkDirectory, sentences: list[str]) -> None:
    asked = distill.Params(method="mse", student="teacher:2", dev=Path("documents/main"), **NUMBERS, name="chosen")
    listener = Listener()
    student = distill.run(asked, work, listener)
    facts = student.facts
    assert facts["dev_protocol"].startswith("search fidelity to ")
    assert facts["dev_protocol"].endswith("on 10 queries of main dev, among 60 passages")
    # The student starts as the whole teacher.
    assert facts["dev_before_training"] > 99
    assert facts["training_rows"] == 100  # nothing is held out
    assert any(note.startswith("dev score before training: ") for note in listener.notes)
    documents = work.get("documents", "main")
    assert student.inputs[documents.reference] == documents.digest
    assert f"--dev {documents.reference}" in student.command_line()
    assert distill.run(asked, work).manifest["finished"] == student.manifest["finished"]
    make_documents(work, sentences[100:150], sentences[160:180])
    assert distill.run(asked, work).manifest["fingerprint"] != student.manifest["fingerprint"]


def test_a_kept_index_needs_documents_and_the_teachers_dimensions(
    work: WorkDirectory, sentences: list[str], tmp_path: Path
) -> None:
    documents = Path("documents/main")
    asked = {**NUMBERS, "student": "teacher:2", "keep_index": True}
    facts = distill.run(distill.Params(method="lrn-kd", dev=documents, name="kept", **asked), work).facts
    assert ", by vectors of " in facts["dev_protocol"]
    fit_pca.run(fit_pca.Params(dim=8), work)
    with pytest.raises(InputError, match="`keep_index` needs a student with the teacher's 32 dimensions, not 8"):
        distill.run(distill.Params(method="hpd", dev=documents, name="short", **asked), work)
    with pytest.raises(UsageError, match="`keep_index` needs `dev`"):
        distill.run(distill.Params(method="lrn-kd", **asked), work)
    pairs = tmp_path / "dev.tsv"
    pairs.write_text("".join(f"{n}\t{sentences[n]}\t{sentences[n + 1]}\n" for n in range(5)), encoding="utf-8")
    with pytest.raises(UsageError, match="`keep_index` needs `dev` documents/NAME"):
        distill.run(distill.Params(method="lrn-kd", dev=pairs, **asked), work)


def test_fewer_passages_can_be_searched(work: WorkDirectory) -> None:
    asked = {**NUMBERS, "method": "mse", "student": "teacher:2", "dev_passages": 20}
    facts = distill.run(distill.Params(dev=Path("documents/main"), name="few", **asked), work).facts
    assert "among 20 passages" in facts["dev_protocol"]
    with pytest.raises(UsageError, match="`dev_passages` needs `dev` documents/NAME"):
        distill.run(distill.Params(**asked), work)


def test_a_start_that_is_better_than_the_end_is_told(work: WorkDirectory) -> None:
    ruinous: dict[str, Any] = {**NUMBERS, "lr": 0.3, "name": "ruined"}
    listener = Listener()
    facts = distill.run(
        distill.Params(method="mse", student="teacher:2", dev=Path("documents/main"), **ruinous), work, listener
    ).facts
    assert facts["best_step"] == 0
    told = [warning for warning in listener.warnings if "did not improve the dev score" in warning]
    assert len(told) == 1
    assert "at the end" in told[0]


def test_a_later_peak_does_not_hide_a_worse_end() -> None:
    listener = Listener()
    warn_of_start(Progress(start_score=80.0, last_score=70.0, best_score=81.0, best_step=4), listener)
    assert "lower at the end of training (70.00) than at the start (80.00)" in listener.warnings[0]
    warn_of_start(Progress(start_score=80.0, last_score=80.5, best_score=81.0, best_step=4), listener)
    assert len(listener.warnings) == 1


def test_finetune_takes_the_teacher_of_the_work_directory(
    work: WorkDirectory, tiny_model: Path, sentences: list[str]
) -> None:
    from sentcompress.stages import augment

    rows = "\n".join("\t".join(sentences[n : n + 3]) for n in range(180, 270, 3))
    path = work.path.parent / "triplets.tsv"
    path.write_text(f"sent0\tsent1\thard_neg\n{rows}\n", encoding="utf-8")
    augment.run(augment.Params(inputs=(str(path),), wordnet=0, name="triplets"), work)
    params = finetune.Params(
        model=str(tiny_model), sentences="triplets", dev=Path("documents/main"), options=("keep=0",), **NUMBERS
    )
    assert finetune.run(params, work).facts["dev_protocol"].startswith("search fidelity to ")
    teaching = train_teacher.Params(model=str(tiny_model), triplets=(str(path),), dev=Path("documents/main"), **NUMBERS)
    with pytest.raises(InputError, match="train-teacher has none"):
        train_teacher.run(teaching, work)


def test_documents_that_are_not_there(work: WorkDirectory) -> None:
    with pytest.raises(MissingArtifactError, match="no documents named 'nothing'"):
        distill.run(distill.Params(method="mse", dev=Path("documents/nothing"), **NUMBERS), work)
    with pytest.raises(UsageError, match="no such file or folder"):
        distill.run(distill.Params(method="mse", dev=Path("other/nothing"), **NUMBERS), work)


def test_a_sample_holds_the_documents_of_its_queries_and_few_words(tmp_path: Path) -> None:
    texts = [f"word{n} " * 10 for n in range(200)]
    write_held_out(tmp_path, texts, ["one", "two"])
    corpus = tmp_path / "corpus.jsonl"
    named = corpus.read_text().replace('"p150"', '"d0#0"').replace('"p151"', '"d0#1"').replace('"p152"', '"d1"')
    corpus.write_text(named)
    source = collection_source(tmp_path, None)
    found = source.read(queries=5, passages=20, seed=0)
    assert {texts[150].strip(), texts[151].strip(), texts[152].strip()} <= set(found.passages)
    assert len(found.passages) == 20
    assert not found.complete
    assert len(source.read(queries=5, passages=200, seed=0, words=155).passages) == 15
    assert len(source.read(queries=5, passages=200, seed=0, words=1).passages) == 11
    assert source.read(queries=5, passages=200, seed=0).complete
