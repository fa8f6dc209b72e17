"""What is saved is what was chosen, or the run fails."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from distilling import make_work, write_dev
from tiny_models import break_weights, make_sentences

from sentcompress.errors import SentcompressError, TrainingError
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.sources import locate
from sentcompress.stages import distill
from sentcompress.training import deploy
from sentcompress.training.dev import Embed, StsDev, encode_tokens
from sentcompress.training.selection import Selection


def test_weights_that_are_not_those_chosen_are_not_saved(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the best checkpoint had not been put back: a rate that ruins the student, and the ruin is left in place."""
    texts = make_sentences(200)
    work, dev = make_work(tmp_path / "work", tiny_model, texts), write_dev(tmp_path / "dev.tsv", texts[:40])
    numbers: dict[str, Any] = {
        "lr": 1.0,
        "epochs": 1,
        "batch_size": 16,
        "max_steps": 6,
        "eval_every": 2,
        "dtype": "float32",
        "device": "cpu",
    }
    asked = distill.Params(method="mse", student="teacher:2", dev=dev, **numbers)
    kept = distill.run(asked, work)
    assert kept.facts["best_step"] < kept.facts["steps"]
    assert kept.facts["dev_of_saved_model"] == kept.facts["dev"]
    monkeypatch.setattr(Selection, "restore", lambda self: self.encoder.eval() and self.method.eval())
    with pytest.raises(TrainingError, match="the weights selected with a dev score of"):
        distill.run(distill.Params(method="mse", student="teacher:2", dev=dev, **numbers, name="ruin"), work)
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
    assert (text.prompt, text.prompts) == ("the ", {"default": "the "})


def test_a_saved_student_that_scores_otherwise_is_not_kept(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a layer had been left out of the folder."""
    texts = make_sentences(200)
    work, dev = make_work(tmp_path / "work", tiny_model, texts), write_dev(tmp_path / "dev.tsv", texts[:40])
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 2, "dtype": "float32", "device": "cpu"}
    honest = deploy.read_back

    def read_back(folder: Path, *, trust_remote_code: bool) -> Encoder:
        saved = honest(folder, trust_remote_code=trust_remote_code)
        with torch.no_grad():
            saved.transformer.embeddings.word_embeddings.weight.mul_(-3)
        return saved

    monkeypatch.setattr(deploy, "read_back", read_back)
    with pytest.raises(TrainingError, match=r"the saved student scores .* but the trained one scored"):
        distill.run(distill.Params(method="mse", student="teacher:2", dev=dev, **numbers), work)
    assert not work.names("students")


def test_a_saved_student_that_gives_no_numbers_is_not_kept(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its dev score is no worse than that of the start: both are the lowest."""
    texts = make_sentences(200)
    work, dev = make_work(tmp_path / "work", tiny_model, texts), write_dev(tmp_path / "dev.tsv", texts[:40])
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 2, "dtype": "float32", "device": "cpu"}
    honest = deploy.read_back

    def read_back(*args: Any, **kwargs: Any) -> Encoder:
        saved = honest(*args, **kwargs)
        with torch.no_grad():
            saved.transformer.embeddings.word_embeddings.weight.mul_(torch.nan)
        return saved

    monkeypatch.setattr(deploy, "read_back", read_back)
    monkeypatch.setattr(StsDev, "score", seeing_all)
    with pytest.raises(TrainingError, match="returns vectors with NaN or infinity"):
        distill.run(distill.Params(method="mse", student="teacher:2", dev=dev, **numbers), work)
    assert not work.names("students")


def seeing_all(self: StsDev, vectors: Embed, device: torch.device) -> float:
    """A dev score that is never defined, of vectors that were looked at all the same."""
    encode_tokens(self.tokens, self.pad, vectors, device)
    return float("nan")


def test_a_start_with_nan_in_its_weights_is_not_trained(tmp_path: Path, tiny_model: Path) -> None:
    texts = make_sentences(200)
    work = make_work(tmp_path / "work", tiny_model, texts)
    broken = break_weights(shutil.copytree(tiny_model, tmp_path / "broken"), token="guitar")
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 2, "dtype": "float32", "device": "cpu"}
    with pytest.raises(SentcompressError) as raised:
        distill.run(distill.Params(method="mse", student=str(broken), **numbers), work)
    assert not isinstance(raised.value, TrainingError)
    assert not work.names("students")
