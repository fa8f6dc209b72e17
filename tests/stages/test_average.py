"""average: the mean of weights, what it says of models that do not belong together, and its command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import make_work
from tiny_models import break_weights, load_model, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, UsageError
from sentcompress.models.averaging import average
from sentcompress.models.catalog import NamedModel
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import Reporter
from sentcompress.stages import distill
from sentcompress.stages.average import Params, run
from sentcompress.store import WorkDirectory, ancestors


def moved(model: Path, folder: Path, seed: int, by: float = 0.01) -> Path:
    """The model after a step in a random direction."""
    encoder = load_model(model)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weights in encoder.parameters():
            weights.add_(by * torch.randn_like(weights))
    save_encoder(encoder, folder)
    return folder


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path, Path]:
    start = make_tiny_model(tmp_path / "start")
    return start, moved(start, tmp_path / "left", 1), moved(start, tmp_path / "right", 2)


@pytest.mark.parametrize(
    ("weights", "shares"),
    [((), [1 / 3] * 3), ((2.0, 1.0, 5.0), [0.25, 0.125, 0.625]), ((-0.5, 1.5, 1.0), [-0.25, 0.75, 0.5])],
)
def test_every_weight_is_the_mean(
    tmp_path: Path, models: tuple[Path, Path, Path], weights: tuple[float, ...], shares: list[float]
) -> None:
    artifact = run(Params(inputs=tuple(map(str, models)), weights=weights), WorkDirectory(tmp_path / "work"))
    assert artifact.name == "start-average"
    assert artifact.facts["shares"] == pytest.approx(shares)
    assert artifact.facts["models"] == ["start", "left", "right"]
    found = load_model(artifact.path / "model").state_dict()
    states = [load_model(model).state_dict() for model in models]
    flat = [np.concatenate([state[name].double().numpy().ravel() for name in found]) for state in states]
    for name, value in found.items():
        wanted = sum(share * state[name].double().numpy() for share, state in zip(shares, states, strict=True))
        np.testing.assert_allclose(value.numpy(), wanted, atol=1e-7)
    cosines = [flat[0] @ other / np.linalg.norm(flat[0]) / np.linalg.norm(other) for other in flat[1:]]
    assert artifact.facts["weights_cosine"] == pytest.approx(min(cosines), abs=1e-9)


def test_a_model_with_itself_is_itself(tmp_path: Path, models: tuple[Path, Path, Path]) -> None:
    artifact = run(Params(inputs=(str(models[0]), str(models[0]))), WorkDirectory(tmp_path / "work"))
    found, wanted = load_model(artifact.path / "model").state_dict(), load_model(models[0]).state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert artifact.facts["weights_cosine"] == pytest.approx(1)


def test_an_average_of_copies_has_their_digest(tmp_path: Path, models: tuple[Path, Path, Path]) -> None:
    """So its vectors are in the cache when it is evaluated: `compress` averages a student with the start it kept."""
    start = load_model(models[0])
    with torch.no_grad():
        next(iter(start.parameters()))[0] = -0.0
    save_encoder(start, tmp_path / "signed")
    work = WorkDirectory(tmp_path / "work")
    student = run(Params(inputs=(str(tmp_path / "signed"),) * 2, weights=(0.75, 0.25)), work)
    found = load_model(student.path / "model").state_dict()
    assert all(torch.equal(found[name].signbit(), value.signbit()) for name, value in start.state_dict().items())
    copy = run(Params(inputs=(student.name, str(tmp_path / "signed")), weights=(0.75, 0.25), name="copy"), work)
    assert copy.digest == student.digest


def test_copies_are_loaded_once(
    tmp_path: Path, models: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, left, _ = models
    copy = shutil.copytree(start, tmp_path / "copy")
    load, loaded = NamedModel.load, list[str]()

    def counted(model: NamedModel) -> Encoder:
        loaded.append(model.label)
        return load(model)

    monkeypatch.setattr(NamedModel, "load", counted)
    work = WorkDirectory(tmp_path / "work")
    run(Params(inputs=(str(start), str(copy)), name="copies"), work)
    assert len(loaded) == 1
    found = run(Params(inputs=(str(start), str(left), str(copy)), weights=(1.0, 2.0, 1.0)), work)
    assert len(loaded) == 3
    one, other = (load_model(model).state_dict() for model in (start, left))
    for name, value in load_model(found.path / "model").state_dict().items():
        torch.testing.assert_close(value, (one[name] + other[name]) / 2)


def test_a_student_before_and_after_stage_2(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    work = make_work(tmp_path / "work", tiny_model, sentences)
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "warmup_steps": 0, "device": "cpu"}
    before = distill.run(distill.Params(method="mse", student="teacher:1", **numbers, name="before"), work)
    after = distill.run(distill.Params(method="mse", student="before", **numbers, name="after"), work)
    asked = Params(inputs=("before", "after"))
    mean = run(asked, work)
    assert (mean.name, mean.facts["teacher"]) == ("before-average", before.facts["teacher"])
    assert mean.facts["parameters"] == before.facts["parameters"]
    assert mean.inputs == {"students/before": before.digest, "students/after": after.digest}
    made_of = {artifact.reference for artifact in ancestors(work, mean.reference, mean.digest)}
    assert {"students/before", "students/after", "sentences/main"} <= made_of
    assert run(asked, work).manifest["finished"] == mean.manifest["finished"]
    weighted = run(Params(inputs=("before", "after"), weights=(3.0, 1.0), name="weighted"), work)
    assert weighted.facts["shares"] == [0.75, 0.25]
    # What was averaged is a student like any other: it can be trained further.
    further = distill.run(distill.Params(method="mse", student="before-average", **numbers, name="further"), work)
    assert further.inputs["students/before-average"] == work.get("students", "before-average").digest


def test_models_of_two_starts_are_warned_of(tmp_path: Path, models: tuple[Path, Path, Path]) -> None:
    said: list[str] = []

    class Listening(Reporter):
        def warn(self, message: str) -> None:
            said.append(message)

    other = make_tiny_model(tmp_path / "other", seed=7)
    work = WorkDirectory(tmp_path / "work")
    run(Params(inputs=(str(models[0]), str(models[1]))), work, Listening())
    assert said == []
    run(Params(inputs=(str(models[0]), str(other)), name="far"), work, Listening())
    assert len(said) == 1
    assert "not trained from the same initialisation" in said[0]


def test_models_that_differ_in_more_than_weights_are_refused(
    tmp_path: Path, models: tuple[Path, Path, Path], tiny_model: Path
) -> None:
    start = load_model(models[0])
    deeper, wider = make_tiny_model(tmp_path / "deeper", layers=3), make_tiny_model(tmp_path / "wider", width=64)
    projected = TransformerEncoder(start.transformer, start.tokenizer, dense=[Dense(32, 8)], text=start.text)
    save_encoder(projected, tmp_path / "projected")
    pooled = TransformerEncoder(start.transformer, start.tokenizer, pooling=("cls",), text=start.text)
    save_encoder(pooled, tmp_path / "pooled")
    tokens = load_model(models[0])
    tokens.tokenizer.add_tokens(["banjo"])
    again = [
        InitialStudent("teacher:1", resolve(str(models[0])), Shape(1, token_dim=8, passes=passes)).load()
        for passes in (2, 3)
    ]
    others = [(load_model(folder), what) for folder, what in ((deeper, "architecture"), (wider, "shapes"))]
    others += [
        (load_model(tmp_path / "projected"), "shapes"),
        (load_model(tmp_path / "pooled"), "pooling"),
        (tokens, "tokens"),
    ]
    for other, what in others:
        with pytest.raises(InputError, match=f"one and two differ in their {what}"):
            average([start, other], ["one", "two"], [0.5, 0.5])
    with pytest.raises(InputError, match="differ in their architecture"):
        average(again, ["one", "two"], [0.5, 0.5])


def test_what_is_asked_is_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least two models, not 1"):
        Params(inputs=("a",)).check()
    with pytest.raises(UsageError) as caught:
        Params(inputs=("a", "b"), weights=(1.0, 0.0, float("nan"))).check()
    assert "3 numbers for 2 models" in str(caught.value)
    assert "must be numbers other than zero, not 1,0,nan" in str(caught.value)
    with pytest.raises(UsageError, match="must add up to more than zero, not 1,-1"):
        Params(inputs=("a", "b"), weights=(1.0, -1.0)).check()
    with pytest.raises(InputError, match="no model"):
        run(Params(inputs=("embedde", "embedded")), WorkDirectory(tmp_path / "work"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_broken_row_of_a_token_table_makes_no_model(
    tmp_path: Path, models: tuple[Path, Path, Path], value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = break_weights(models[1], value, "guitar")
    assert _run(["average", str(models[0]), str(broken), "--name", "a", "--work", str(tmp_path / "work")]) == 1
    assert "defect" not in capsys.readouterr().err
    work = WorkDirectory(tmp_path / "work")
    assert work.names("students") == work.unfinished("students") == []


def test_weights_that_no_sum_can_hold_are_refused() -> None:
    with pytest.raises(UsageError, match=r"must be at most 1e\+12"):
        Params(inputs=("a", "b"), weights=(1e308, 1e308)).check()
    with pytest.raises(UsageError, match="more than a million times their sum"):
        Params(inputs=("a", "b"), weights=(1.0, -0.9999999999)).check()


def test_the_command(tmp_path: Path, models: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["average", *map(str, models[:2]), "--weights", "3,1", "--work", str(tmp_path / "work")]
    assert _run(words) == 0
    shown = capsys.readouterr().out
    assert "75% start, 25% left" in shown
    assert _run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["shares"] == [0.75, 0.25]
    assert _run([*words[:3], "--weights", "1,x", "--work", str(tmp_path / "work")]) == 2
    assert "must be numbers, separated by commas" in capsys.readouterr().err
