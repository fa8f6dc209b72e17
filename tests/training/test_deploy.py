"""What is saved is what was chosen, or the run fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import dev_of_saved, make_work, write_dev
from interrupting import interrupted
from sentence_transformers import SentenceTransformer
from tiny_models import break_weights, make_sentences

from sentcompress.errors import SentcompressError, TrainingError
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.sources import locate
from sentcompress.stages import distill
from sentcompress.store import WorkDirectory
from sentcompress.training import deploy
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.dev import StsDev
from sentcompress.training.selection import Selection

TEXTS = make_sentences(200)
FACTS = ("dev", "best_step", "mean_cosine", "effective_rank")
NUMBERS: dict[str, Any] = {
    "method": "mse",
    "student": "teacher:2",
    "epochs": 1,
    "batch_size": 16,
    "max_steps": 2,
    "dtype": "float32",
    "device": "cpu",
}
# A rate that grows too high: the best weights are those of step 2.
RUINED = {**NUMBERS, "lr": 0.04, "warmup_ratio": 1.0, "schedule": "constant", "max_steps": 6, "eval_every": 2}


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path) -> WorkDirectory:
    return make_work(tmp_path / "work", tiny_model, TEXTS)


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    return write_dev(tmp_path / "dev.tsv", TEXTS[:40])


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The dev scores that have been computed."""
    found, score = list[float](), StsDev.score

    def counted(*given: Any) -> float:
        found.append(score(*given))
        return found[-1]

    monkeypatch.setattr(StsDev, "score", counted)
    return found


def test_the_end_of_a_training_computes_no_dev_score(work: WorkDirectory, dev: Path, scores: list[float]) -> None:
    student = distill.run(distill.Params(dev=dev, **RUINED), work)
    log = [json.loads(line) for line in (student.path / "log.jsonl").read_text().splitlines()]
    assert scores == pytest.approx([line["dev"] for line in log])
    assert [line["step"] for line in log] == [0, 2, 4, 6]
    best = log[scores.index(max(scores))]
    assert student.facts["best_step"] == best["step"] == 2
    for name in ("mean_cosine", "effective_rank"):
        assert student.facts[name] == pytest.approx(best[name]) != log[-1][name]
    assert dev_of_saved(student, dev) == student.facts["dev"] == max(scores)


def test_the_best_weights_of_a_checkpoint_are_scored_again(
    work: WorkDirectory, dev: Path, scores: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may be resumed on another machine. The second one is as if the best weights had not been put back."""
    whole = distill.run(distill.Params(dev=dev, **RUINED), work)
    for name in ("resumed", "ruin"):
        asked = distill.Params(dev=dev, **RUINED, checkpoint_seconds=0.0, name=name)
        with interrupted(Checkpoints, "save", call=5, after=True):
            distill.run(asked, work)
        del scores[:]
        if name == "resumed":
            resumed = distill.run(asked, work)
            assert [resumed.facts[fact] for fact in FACTS] == [whole.facts[fact] for fact in FACTS]
            assert scores[1:] == [resumed.facts["dev"]]
    monkeypatch.setattr(Selection, "restore", lambda self: self.encoder.eval() and self.method.eval())
    with pytest.raises(TrainingError, match="the weights selected with a dev score of"):
        distill.run(asked, work)
    assert "ruin" not in work.names("students")


def test_a_student_keeps_only_the_prompt_that_it_was_trained_with(tmp_path: Path, tiny_model: Path) -> None:
    texts, start = make_sentences(200), shutil.copytree(tiny_model, tmp_path / "start")
    encoder = load_encoder(locate(str(start)))
    encoder.text = replace(encoder.text, prompt="the ", prompts={"query": "a dog "})
    save_encoder(encoder, start)
    work = make_work(tmp_path / "work", start, texts)
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 1, "dtype": "float32", "device": "cpu"}
    made = distill.run(distill.Params(method="mse", student="teacher:1", **numbers), work)
    text = load_encoder(locate(str(made.path / "model"))).text
    assert (text.prompt, text.prompts) == ("the ", dict.fromkeys(("default", "query", "document"), "the "))
    # It is put there whatever a text is for, as in the training.
    model = SentenceTransformer(str(made.path / "model"), device="cpu", local_files_only=True)
    for encode in (model.encode_query, model.encode_document):
        np.testing.assert_array_equal(encode(texts[:5]), model.encode(texts[:5]))


def other_weight(saved: Encoder) -> Encoder:
    saved.transformer.encoder.layer[1].output.dense.weight.zero_()
    return saved


def other_pooling(saved: Encoder) -> Encoder:
    saved.pooling = ("cls",)
    return saved


def other_width(saved: Encoder) -> Encoder:
    return saved.with_dense([Dense(32, 8)], normalize=True)


def other_length(saved: Encoder) -> Encoder:
    """Of the vectors: no dev score by cosines shows it."""
    layer = Dense(32, 32, bias=False)
    layer.linear.weight.copy_(2 * torch.eye(32))
    return saved.with_dense([layer], normalize=False)


@pytest.mark.parametrize("change", [other_weight, other_pooling, other_width, other_length])
def test_a_saved_student_with_other_vectors_is_not_kept(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, change: Callable[[Encoder], Encoder]
) -> None:
    honest = deploy.read_back

    def read_back(folder: Path, *, trust_remote_code: bool) -> Encoder:
        with torch.no_grad():
            return change(honest(folder, trust_remote_code=trust_remote_code)).eval()

    monkeypatch.setattr(deploy, "read_back", read_back)
    with pytest.raises(TrainingError, match="the vectors of the saved student differ from those of the trained one"):
        distill.run(distill.Params(**NUMBERS), work)
    assert not work.names("students")


def test_a_student_whose_dev_score_saw_no_numbers_is_not_kept(
    work: WorkDirectory, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selection, "_vectors", lambda self, ids, mask: self.encoder.embed(ids, mask) * torch.nan)
    with pytest.raises(TrainingError, match="returns vectors with NaN or infinity"):
        distill.run(distill.Params(dev=dev, **NUMBERS), work)
    assert not work.names("students")


def test_a_saved_student_that_gives_no_numbers_is_not_kept(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = deploy.read_back

    def read_back(*args: Any, **kwargs: Any) -> Encoder:
        saved = honest(*args, **kwargs)
        with torch.no_grad():
            saved.transformer.embeddings.word_embeddings.weight.mul_(torch.nan)
        return saved

    monkeypatch.setattr(deploy, "read_back", read_back)
    with pytest.raises(TrainingError, match="returns vectors with NaN or infinity"):
        distill.run(distill.Params(**NUMBERS), work)
    assert not work.names("students")


def test_a_start_with_nan_in_its_weights_is_not_trained(tmp_path: Path, tiny_model: Path) -> None:
    texts = make_sentences(200)
    work = make_work(tmp_path / "work", tiny_model, texts)
    broken = break_weights(shutil.copytree(tiny_model, tmp_path / "broken"), token="guitar")
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 2, "dtype": "float32", "device": "cpu"}
    with pytest.raises(SentcompressError) as raised:
        distill.run(distill.Params(method="mse", student=str(broken), **numbers), work)
    assert not isinstance(raised.value, TrainingError)
    assert not work.names("students")
