"""weigh-tokens: what it makes of a model, what it tells, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import add_sentences, make_work
from tiny_models import break_weights, load_model, make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.models.layout import save_encoder
from sentcompress.models.token_weights import LEAST, sif_weights
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.models.vocabulary import token_occurrences
from sentcompress.stages import average, distill, export
from sentcompress.stages.weigh_tokens import Params, run
from sentcompress.store import WorkDirectory, ancestors, students_of

SENTENCES = [*make_sentences(150), *(f"the {word} . the , the" for word in ("dog", "cat", "man"))]


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    add_sentences(work, [SENTENCES[:100], SENTENCES[100:]])
    return work


def test_the_model_with_the_weights_of_the_formula(work: WorkDirectory, tiny_model: Path) -> None:
    artifact = run(Params(model=str(tiny_model), smoothing=0.05, punctuation=0.2), work)
    assert artifact.reference == f"students/{tiny_model.name}-weighed"
    plain, saved = load_model(tiny_model), load_model(artifact.path / "model")
    expected = sif_weights(plain.tokenizer, token_occurrences(plain, [SENTENCES]), 0.05, 0.2)
    assert saved.token_weights is not None
    np.testing.assert_allclose(saved.token_weights.detach(), expected)
    assert artifact.facts["lightest"][:2] == [".", ","]
    assert 0 < artifact.facts["mean_weight"] < 1
    assert artifact.facts["parameters"] == plain.count_parameters() + len(plain.tokenizer)
    assert artifact.facts["teacher"] == tiny_model.name
    texts = ["the dog .", "a cat , a man"]
    cosines = (EncodeEngine(plain).encode(texts) * EncodeEngine(saved).encode(texts)).sum(axis=1)
    assert (cosines < 0.9999).all()


def test_the_same_again_is_fresh_and_other_numbers_are_not(work: WorkDirectory, tiny_model: Path) -> None:
    first = run(Params(model=str(tiny_model), name="w"), work)
    assert run(Params(model=str(tiny_model), name="w"), work).digest == first.digest
    assert run(Params(model=str(tiny_model), name="w", smoothing=0.5, force=True), work).digest != first.digest


def test_what_cannot_be_weighed_is_refused(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    run(Params(model=str(tiny_model), name="w"), work)
    with pytest.raises(InputError, match="w already has token weights"):
        run(Params(model="w", name="twice"), work)
    plain = load_model(tiny_model)
    save_encoder(
        TransformerEncoder(plain.transformer, plain.tokenizer, pooling=("cls",), text=plain.text), tmp_path / "first"
    )
    with pytest.raises(InputError, match="does not use mean pooling"):
        run(Params(model=str(tmp_path / "first")), work)
    with pytest.raises(MissingArtifactError, match="sentences"):
        run(Params(model=str(tiny_model)), WorkDirectory(tmp_path / "empty"))
    assert work.names("students") == ["w"]


def test_a_table_of_unknown_words_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    add_sentences(work, [["qwertz uiop", "asdfgh"]])
    with pytest.raises(InputError, match="knows none of the tokens of sentences/main"):
        run(Params(model=str(tiny_model)), work)


def test_a_prompt_is_not_counted(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    encoder = load_model(tiny_model)
    encoder.text = replace(encoder.text, prompt="guitar ")
    save_encoder(encoder, tmp_path / "prompted")
    found = load_model(run(Params(model=str(tmp_path / "prompted")), work).path / "model")
    expected = load_model(run(Params(model=str(tiny_model)), work).path / "model")
    assert found.text.prompt == "guitar "
    assert found.token_weights is not None
    assert expected.token_weights is not None
    np.testing.assert_array_equal(found.token_weights.detach(), expected.token_weights.detach())


def test_counting_is_not_training(work: WorkDirectory, tiny_model: Path) -> None:
    """Sentences that a model's tokens were counted in are as good as unseen."""
    weighed = run(Params(model=str(tiny_model)), work)
    assert students_of(work, weighed.reference, weighed.digest, work.get("sentences")) == []


def test_weighed_models_are_averaged_with_their_like_alone(work: WorkDirectory, tiny_model: Path) -> None:
    one = run(Params(model=str(tiny_model), name="one", smoothing=0.01), work)
    run(Params(model=str(tiny_model), name="other", smoothing=0.5), work)
    made = average.run(average.Params(inputs=("one", "other"), weights=(2.0, -1.0), name="beyond"), work)
    found = load_model(made.path / "model").token_weights
    assert found is not None
    assert float(found.min()) == pytest.approx(LEAST)
    assert made.facts["weights_cosine"] == pytest.approx(1)  # of what is trained
    assert load_model(one.path / "model").count_parameters() == made.facts["parameters"]
    with pytest.raises(InputError, match=r"one and .* differ in their token weights"):
        average.run(average.Params(inputs=("one", str(tiny_model))), work)


def test_all_faults_are_told_at_once(work: WorkDirectory) -> None:
    with pytest.raises(UsageError) as caught:
        run(Params(smoothing=-1, punctuation=2), work)
    assert "`smoothing`" in str(caught.value)
    assert "`punctuation`" in str(caught.value)
    with pytest.raises(UsageError, match="weigh all tokens equally"):
        run(Params(smoothing=0, punctuation=1), work)


def test_a_weighed_teacher_teaches_a_student_without_weights(tmp_path: Path) -> None:
    """A student that was cut from it has a plain mean, and learns the weighted vectors."""
    model = make_tiny_model(tmp_path / "tiny")
    texts = make_sentences(150)
    weighed = run(Params(model=str(model), name="w"), make_work(tmp_path / "first", model, texts))
    work = make_work(tmp_path / "work", weighed.path / "model", texts)
    overrides: dict[str, Any] = {"epochs": 1, "batch_size": 16}
    trained = distill.run(
        distill.Params(method="simtde", student="teacher:1", **overrides, options=("states=0.1",)), work
    )
    assert load_model(weighed.path / "model").token_weights is not None
    assert load_model(trained.path / "model").token_weights is None
    assert trained.facts["dev"] > trained.facts["dev_before_training"]


def test_an_export_has_the_weights(work: WorkDirectory, tiny_model: Path) -> None:
    weighed = run(Params(model=str(tiny_model), name="w"), work)
    made = export.run(export.Params(model=weighed.name, formats=("folder", "onnx")), work)
    assert made.facts["checked"]["folder"]["min_cosine"] > 0.9999
    assert made.facts["checked"]["onnx"]["min_cosine"] > 0.9999
    assert "mean, with token weights" in (made.path / "README.md").read_text()


def test_the_command(work: WorkDirectory, tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["weigh-tokens", "--model", str(tiny_model), "--work", str(work.path), "--name", "w"]
    assert _run(line) == 0
    shown = capsys.readouterr()
    assert "lowest weights" in shown.out
    assert "mean weight" in shown.out
    assert _run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["method"] == "weigh-tokens"
    assert [a.reference for a in ancestors(work, "students/w", work.get("students", "w").digest)] == [
        *("students/w", "sentences/main")
    ]
    assert _run(["weigh-tokens", "--smoothing", "much", "--work", str(work.path)]) == 2


def test_one_broken_row_of_the_token_table_makes_no_model(
    work: WorkDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = break_weights(make_tiny_model(tmp_path / "broken"), token="guitar")
    assert _run(["weigh-tokens", "--model", str(broken), "--work", str(work.path)]) == 1
    assert "defect" not in capsys.readouterr().err
    assert work.names("students") == work.unfinished("students") == []
