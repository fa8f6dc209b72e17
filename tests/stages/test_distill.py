"""distill: what it makes, what it refuses, and a run that is killed again and again."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import TIMINGS, add_sentences, add_vectors, dev_of_saved, made_once, make_work, run_hinted, write_dev
from interrupting import interrupted
from listening import Listener
from tiny_models import load_model, make_plain, make_sentences, make_tiny_model

from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError, MissingArtifactError, TrainingError, UsageError
from sentcompress.methods.ckd import CKD
from sentcompress.models.principal_axes import Projection
from sentcompress.stages import average, fit_pca, status, teacher_embed
from sentcompress.stages import distill as stage
from sentcompress.stages.distill import Params
from sentcompress.store import Build, WorkDirectory
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.log import TrainingLog
from sentcompress.training.loop import Training

TEXTS = make_sentences(260)
SHORT: dict[str, Any] = {"epochs": 2, "batch_size": 32, "lr": 2e-3, "dtype": "float32"}


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path) -> WorkDirectory:
    def make(work: WorkDirectory) -> None:
        fit_pca.run(fit_pca.Params(dim=8), make_work(work.path, tiny_model, TEXTS))

    return made_once(tmp_path / "work", (tiny_model, "projection"), make)


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    return write_dev(tmp_path / "dev.tsv", make_sentences(60, seed=9))


def params(method: str = "hpd", **changes: Any) -> Params:
    return Params(**{"method": method, "student": "teacher:1", **SHORT, **changes})


def test_hpd_makes_a_student_with_the_projection_in_it(work: WorkDirectory) -> None:
    listener = Listener()
    artifact = stage.run(params(), work, listener)
    assert re.fullmatch("students/hpd-teacher-1-8-[0-9a-f]{6}", artifact.reference)
    assert set(artifact.inputs) >= {"sentences/main", "teacher-vectors/main", "projections/pca-8"}
    facts = artifact.facts
    assert (facts["method"], facts["student"], facts["dimension"]) == ("hpd", "teacher:1", 8)
    assert facts["training_rows"] == 250
    assert facts["recipe"]["lr"] == {"value": 2e-3, "source": "command option; default: 0.0001"}
    student = load_model(artifact.path / "model")
    assert (student.dimension, len(student.dense), student.config.num_hidden_layers) == (8, 1, 1)
    assert student.normalize
    log = [json.loads(line) for line in (artifact.path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [told["step"] for told in listener.told]
    assert {"mse", "lr", "sentences_per_second", "epoch"} <= set(log[-1])
    files = {path.relative_to(artifact.path).parts[0] for path in artifact.path.iterdir()}
    assert files == {"model", "log.jsonl", "manifest.json", "request.json"}


def test_a_length_beyond_what_the_model_reads_is_lowered_and_told(work: WorkDirectory) -> None:
    longest = load_model(stage.run(params(name="short", epochs=1), work).path / "model").text.max_length
    cut = f"texts are cut at {longest} tokens, as many as the model reads"
    for asked, told in ((longest, []), (longest + 1, [cut])):
        listener = Listener()
        stage.run(params(name=f"long-{asked}", epochs=1, max_length=asked), work, listener)
        assert [note for note in listener.notes if "cut at" in note] == told


def test_the_student_learns_the_projected_teacher(work: WorkDirectory) -> None:
    numbers = dict(SHORT, epochs=20, lr=5e-3)
    artifact = stage.run(params(student="teacher:2", **numbers), work)
    encoder = load_model(artifact.path / "model")
    projection = Projection.load(work.get("projections").path)
    target = projection.apply(NpyFiles(work.get("teacher-vectors").path).rows(np.arange(100)))
    tokens = encoder.tokenize(TEXTS[:100])
    found = []
    for line in tokens:
        with torch.inference_mode():
            found.append(encoder(torch.tensor([line]), torch.ones(1, len(line), dtype=torch.long))[0].numpy())
    cosines = (np.array(found) * target).sum(1) / np.linalg.norm(target, axis=1)
    assert cosines.mean() > 0.9
    assert artifact.facts["dev"] > 85


@pytest.mark.parametrize(("method", "options"), [("mse", ("head=none",)), ("ckd", ("queue=64", "head=linear"))])
def test_methods_whose_head_is_thrown_away(work: WorkDirectory, dev: Path, method: str, options: Any) -> None:
    artifact = stage.run(params(method, options=options, dev=dev), work)
    assert artifact.reference.startswith(f"students/{method}-teacher-1-")
    assert artifact.facts["dev_protocol"] == "Spearman x 100 of cosines on 59 graded pairs"
    assert artifact.facts["dev"] == dev_of_saved(artifact, dev)
    student = load_model(artifact.path / "model")
    assert (student.dimension, len(student.dense)) == (32, 0)


@pytest.mark.parametrize(("limit", "lr", "reason"), [(10**8, 3e-4, "52M and 14M"), (1, 2e-4, "110M")])
def test_ckd_trains_a_small_student_at_the_papers_rate(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, limit: int, lr: float, reason: str
) -> None:
    """What was taken and why is in the request, in the record and in the notes; `lr` overrides it."""
    notes: list[str] = []
    listener = Listener()
    monkeypatch.setattr(listener, "note", notes.append, raising=False)
    rate = replace(CKD.recipe.lr, sized=replace(CKD.recipe.lr.sized, below=limit))
    monkeypatch.setattr(CKD, "recipe", replace(CKD.recipe, lr=rate))
    numbers = dict(SHORT, lr=None, epochs=1)
    student = stage.run(params("ckd", name="own", **numbers), work, listener)
    assert student.parameters["lr"] == lr
    assert student.facts["recipe"]["lr"]["value"] == lr
    assert reason in student.facts["recipe"]["lr"]["source"]
    assert any(f"learning rate {lr:g} (paper, section 4.2" in note and reason in note for note in notes)
    assert any("weight_decay 0," in note and "betas 0.9 0.98" in note and "queue=65536" in note for note in notes)
    asked = stage.run(params("ckd", name="asked", **{**numbers, "lr": 1e-3}), work)
    assert (asked.parameters["lr"], asked.facts["recipe"]["lr"]["value"]) == (1e-3, 1e-3)


@pytest.mark.parametrize(
    ("options", "told"), [(("gamma=50",), True), (("gamma=50", "kernel=imq"), False), (("gamma=50", "beta=0"), False)]
)
def test_a_kernel_that_vanishes_is_told_early_and_once(
    work: WorkDirectory, options: tuple[str, ...], told: bool
) -> None:
    listener = Listener()
    student = stage.run(params("ibkd", options=options, eval_every=1000, lr=1e-5), work, listener)
    found = [text for text in listener.warnings if "mean kernel value" in text]
    assert len(found) == told
    if told:
        assert found[0].startswith("step 10: ")
        assert "smaller gamma, kernel=imq or normalise=true" in found[0]
        assert "mean kernel value" in student.facts["diagnosis"]


@pytest.mark.parametrize(("pooling", "mode", "dense"), [("mean", "mean", 0), ("cls", "cls", 0), ("cls-mlp", "cls", 1)])
@pytest.mark.parametrize("student", ["plain", "teacher:1"])
def test_a_pooling_that_is_asked_for_is_trained_and_saved(
    tmp_path: Path, tiny_model: Path, student: str, pooling: str, mode: str, dense: int
) -> None:
    plain = make_plain(tmp_path / "plain", tiny_model)
    work = make_work(tmp_path / "work", plain, TEXTS[:100])
    name = str(plain) if student == "plain" else student
    asked = params("ckd", student=name, pooling=pooling, max_steps=3, options=("queue=64",))
    made = stage.run(asked, work)
    assert made.parameters.get("pooling") == pooling
    saved = load_model(made.path / "model")
    assert saved.pooling == (mode,)
    assert [layer.activation_name for layer in saved.dense_layers] == ["Tanh"] * dense
    # Not above: the killed processes import this module, each of them anew.
    from sentence_transformers import SentenceTransformer

    other = SentenceTransformer(str(made.path / "model"), device="cpu")
    ids = [torch.tensor([row]) for row in saved.tokenize(TEXTS[:5])]
    with torch.inference_mode():
        ours = torch.cat([saved(row, torch.ones_like(row)) for row in ids]).numpy()
    np.testing.assert_allclose(other.encode(TEXTS[:5]), ours, atol=1e-6)
    # The new layer starts from the seed.
    again = stage.run(replace(asked, name="again"), work)
    assert again.facts["dev_before_training"] == made.facts["dev_before_training"]
    assert (again.path / "model/model.safetensors").read_bytes() == (made.path / "model/model.safetensors").read_bytes()


@pytest.mark.parametrize("student", ["teacher:1", "folder"])
def test_a_model_that_says_how_it_is_pooled_is_pooled_so(work: WorkDirectory, tiny_model: Path, student: str) -> None:
    name = str(tiny_model) if student == "folder" else student
    with pytest.raises(InputError, match=r"`pooling` cls: .* has modules of its own") as caught:
        stage.run(params("ckd", student=name, pooling="cls"), work)
    assert "`pooling` auto" in str(caught.value.hint)
    assert work.names("students") == work.unfinished("students") == []


@pytest.mark.parametrize("student", ["teacher:1", "folder"])
def test_a_student_starts_at_random_by_the_seed(work: WorkDirectory, tiny_model: Path, student: str) -> None:
    name = str(tiny_model) if student == "folder" else student
    asked = params("lrn-kd", student=name, max_steps=2)
    starts = {}
    for start, seed in (("weights", 0), ("random", 0), ("random", 1)):
        made = stage.run(replace(asked, start=start, seed=seed, name=f"{start}-{seed}"), work)
        starts[start, seed] = made.facts["dev_before_training"]
        assert made.facts["start"] == start
        assert made.parameters.get("start", "weights") == start
    assert len(set(starts.values())) == 3
    again = stage.run(replace(asked, start="random", name="again"), work)
    assert again.facts["dev_before_training"] == starts["random", 0]
    folders = [work.get("students", name).path / "model" for name in ("again", "random-0")]
    weights = [(folder / "model.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[1]


def test_the_best_checkpoint_is_kept_and_not_the_last(work: WorkDirectory, dev: Path) -> None:
    listener = Listener()
    # A learning rate that grows too high: later is worse.
    numbers = dict(SHORT, epochs=4, lr=0.3, eval_every=4, warmup_ratio=1.0, schedule="constant")
    artifact = stage.run(params(dev=dev, **numbers), work, listener)
    scores = {told["step"]: told["dev"] for told in listener.told if told["dev"] is not None}
    assert artifact.facts["dev"] == max(scores.values())
    assert artifact.facts["best_step"] == max(scores, key=lambda step: scores[step]) < max(scores)
    assert dev_of_saved(artifact, dev) == artifact.facts["dev"]


def test_patience_ends_the_training(work: WorkDirectory, dev: Path) -> None:
    numbers = dict(SHORT, epochs=50, lr=1e-9, eval_every=4, patience=1)
    artifact = stage.run(params("mse", options=("head=none",), dev=dev, **numbers), work)
    assert artifact.facts["stopped"] == "no better dev score in 1 epoch"
    epoch = math.ceil(artifact.facts["training_rows"] / numbers["batch_size"])
    assert epoch <= artifact.facts["steps"] - artifact.facts["best_step"] <= epoch + numbers["eval_every"]


def test_a_running_mean_is_saved_as_the_student(work: WorkDirectory, dev: Path) -> None:
    plain = stage.run(params(epochs=3, dev=dev), work)
    mean = stage.run(params(epochs=3, dev=dev, ema=0.8, name="mean"), work)
    assert plain.facts["best_step"]
    assert mean.facts["best_step"]
    assert dev_of_saved(mean, dev) == mean.facts["dev"] != plain.facts["dev"]
    assert stage.run(params(epochs=3, dev=dev, ema=0.8, name="mean"), work) == mean


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"warmup_steps": 3}, "warmup_steps 3, warmup_epochs 0,"), ({"warmup_ratio": 0.1}, "warmup_ratio 0.1")],
)
def test_the_warm_up_that_is_used_is_told(work: WorkDirectory, asked: dict[str, Any], told: str) -> None:
    listener = Listener()
    stage.run(params(max_steps=2, **asked), work, listener)
    (note,) = (note for note in listener.notes if "warmup_" in note)
    assert told in note
    assert note.count("warmup_") == told.count("warmup_")


def test_max_steps_ends_it_with_the_schedule(work: WorkDirectory) -> None:
    listener = Listener()
    artifact = stage.run(params(max_steps=7), work, listener)
    assert artifact.facts["steps"] == 7
    assert listener.told[-1]["lr"] < 0.5 * 2e-3


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second passes from one look at the clock to the next."""
    ticks = count(0.5, 0.5)
    monkeypatch.setattr("sentcompress.training.loop.time.perf_counter", lambda: next(ticks))


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize(("minutes", "scores"), [(0.3, 5), (0.1, 2)], ids=["each quarter", "only the end"])
def test_max_minutes_ends_it_with_the_schedule_and_counts_dev_scores(
    work: WorkDirectory, minutes: float, scores: int
) -> None:
    listener = Listener()
    limited = params("lrn-kd", epochs=1000, max_minutes=minutes, schedule="linear", name="limited")
    artifact = stage.run(limited, work, listener)
    assert artifact.facts["stopped"] == "the time is up"
    assert artifact.facts["steps"] < 1000
    scored = [told["step"] for told in listener.told if told.get("dev") is not None]
    # Each dev score takes half a second of this clock, and counts. Four are a third of the shorter time: too much.
    assert len(scored) == scores, "the start's, and those of the training"
    assert 60 * minutes - 0.5 * len(scored) <= artifact.facts["training_seconds"] < 60 * minutes
    rates = [told["lr"] for told in listener.told if "lr" in told]
    assert rates[-1] < 0.2 * 2e-3


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize(("minutes", "told"), [(0.005, 1), (0.1, 0)])
def test_a_time_limit_that_the_first_dev_score_exceeds_is_told(work: WorkDirectory, minutes: float, told: int) -> None:
    listener = Listener()
    artifact = stage.run(params("lrn-kd", max_minutes=minutes, name="limited"), work, listener)
    warned = [line for line in listener.warnings if "the student is not trained" in line]
    assert len(warned) == told
    if told:
        assert warned[0].startswith("scoring the start took 0.5 seconds, all of `max_minutes` 0.005: ")
        assert artifact.facts["steps"] == 1


@pytest.mark.usefixtures("slow_clock")
def test_the_time_before_an_interruption_counts(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = params("lrn-kd", epochs=1000, max_minutes=0.3, checkpoint_seconds=0.0, name="limited")
    with interrupted(Checkpoints, "save", call=10, after=True):
        stage.run(limited, work)
    steps: list[str] = []
    listener = Listener()
    monkeypatch.setattr(listener, "step", steps.append, raising=False)
    artifact = stage.run(limited, work, listener)
    assert steps[-1] == "resuming after step 10, with 6 s of training done"
    assert artifact.facts["stopped"] == "the time is up"
    assert 15 < artifact.facts["training_seconds"] < 18


def test_a_student_of_other_width_and_tokenizer(work: WorkDirectory, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "narrow-one", width=16, layers=1, seed=3)
    artifact = stage.run(params("ckd", student=str(other), options=("queue=32",)), work)
    assert artifact.name.startswith("ckd-narrow-one-")
    assert artifact.facts["dimension"] == 16


def test_a_student_of_the_work_directory_is_trained_further(work: WorkDirectory) -> None:
    first = stage.run(params("mse", name="first"), work)
    again = stage.run(params("mse", student="first", name="again"), work)
    assert again.inputs["students/first"] == first.digest
    assert again.facts["dev_before_training"] == pytest.approx(first.facts["dev"], abs=1e-9)
    with pytest.raises(UsageError, match="would replace the student it starts from"):
        stage.run(params("mse", student="first", name="first"), work)
    for name in ("students/first", str(first.path), str(first.path / "model")):
        same = stage.run(params("mse", student=name, name="again"), work)
        assert same.inputs == again.inputs, name


def test_a_finished_student_that_loses_its_dimensions_is_warned_of(work: WorkDirectory) -> None:
    listener = Listener()
    stage.run(params("mse", name="first"), work, listener)
    stage.run(params("mse", student="first", name="same", options=("head=none",)), work, listener)
    stage.run(params("hpd", student="teacher:1"), work, listener)
    assert not [line for line in listener.warnings if "dimensions" in line]
    stage.run(params("hpd", student="first", name="short"), work, listener)
    told = "the vectors of first change from 32 to 8 dimensions: hpd adds a layer with random weights"
    assert any(line.startswith(told) for line in listener.warnings)


def test_the_default_method_needs_no_projection(tmp_path: Path, tiny_model: Path) -> None:
    work = make_work(tmp_path / "plain", tiny_model, TEXTS)
    assert stage.run(Params(student="teacher:1", **SHORT), work).name.startswith("lrn-kd-teacher-1-")


@pytest.mark.parametrize("asked", [{"dim": 8}, {"projection": "pca-8"}])
def test_the_default_method_takes_no_projection(work: WorkDirectory, asked: dict[str, Any]) -> None:
    told = "is for methods that learn a projection, such as hpd, not for lrn-kd, the default"
    with pytest.raises(UsageError, match=told):
        stage.run(Params(student="teacher:1", **SHORT, **asked), work)


def test_the_options_of_a_model_that_gets_the_default_method_are_checked(work: WorkDirectory, tiny_model: Path) -> None:
    model = str(tiny_model)
    with pytest.raises(UsageError, match="no option 'normalize'; did you mean normalise"):
        stage.run(Params(student=model, options=("normalize=true",), **SHORT), work)
    with pytest.raises(UsageError, match="`dim` is for methods that learn a projection, such as hpd, not for lrn-kd"):
        stage.run(Params(student=model, dim=8, **SHORT), work)
    with pytest.raises(InputError, match="no model named 'generl-9m'"):
        stage.run(Params(student="generl-9m", options=("normalize=true",), **SHORT), work)


def test_a_second_run_is_fresh_and_other_numbers_are_not(work: WorkDirectory) -> None:
    first = stage.run(params(), work)
    same = dict(SHORT, checkpoint_seconds=0, device="cpu")
    assert stage.run(params(**same), work).manifest == first.manifest
    with pytest.raises(UsageError, match=r"already exists with different options .*seed: 0, now 1"):
        stage.run(params(seed=1, name=first.name), work)
    other = stage.run(params(seed=1), work)
    assert (other.name != first.name, other.digest != first.digest) == (True, True)


def test_the_same_request_gives_the_same_weights(work: WorkDirectory) -> None:
    digests = {stage.run(params(name=name), work).digest for name in ("one", "two")}
    assert len(digests) == 1


def test_bfloat16_trains_too(work: WorkDirectory, dev: Path) -> None:
    artifact = stage.run(params(dtype="bfloat16", dev=dev), work)
    assert artifact.facts["compute_dtype"] == "bfloat16"
    assert artifact.facts["dev"] == pytest.approx(dev_of_saved(artifact, dev), abs=1e-9)


def test_auto_measures_and_says_what_it_picked(work: WorkDirectory) -> None:
    artifact = stage.run(params(dtype="auto", max_steps=1), work)
    assert artifact.facts["compute_dtype"] in ("float32", "bfloat16")
    assert "times as fast" in artifact.facts["compute_dtype_reason"] or artifact.facts["device"] != "cpu"


def test_all_faults_are_told_at_once(work: WorkDirectory) -> None:
    numbers: dict[str, Any] = {"lr": -1.0, "epochs": 0}
    wrong = Params(
        method="mse", student="teacher:0", dim=8, **numbers, options=("normalize=true",), dev=Path("none.tsv")
    )
    with pytest.raises(UsageError) as caught:
        stage.run(wrong, work)
    for part in ("6 errors", "`lr`", "`epochs`", "`dim`", "did you mean normalise?", "teacher:0", "none.tsv"):
        assert part in caught.value.message


def test_an_unknown_method(work: WorkDirectory) -> None:
    with pytest.raises(UsageError, match="did you mean hpd"):
        stage.run(params("hdp"), work)


def test_missing_stages_are_named(tmp_path: Path, tiny_model: Path) -> None:
    empty = WorkDirectory(tmp_path / "empty")
    with pytest.raises(MissingArtifactError) as caught:
        stage.run(params(), empty)
    assert "teacher-embed" in str(caught.value.hint)
    work = make_work(tmp_path / "work", tiny_model, TEXTS[:50])
    with pytest.raises(MissingArtifactError) as caught:
        stage.run(params(), work)
    assert "sentcompress fit-pca" in str(caught.value.hint)
    fit_pca.run(fit_pca.Params(dim=8), work)
    with pytest.raises(MissingArtifactError) as caught:
        stage.run(params(dim=16), work)
    assert "--dim 16" in str(caught.value.hint)


def test_projections_are_chosen_by_dimension_or_name(work: WorkDirectory) -> None:
    fit_pca.run(fit_pca.Params(dim=4), work)
    assert stage.run(params(dim=8), work).facts["dimension"] == 8
    with pytest.raises(UsageError, match="several projections are fitted on teacher-vectors/main") as raised:
        stage.run(params(), work)
    assert "pca-8 (8 dimensions), pca-4 (4 dimensions)" in raised.value.message
    assert raised.value.hint == "choose one, for example: `projection` pca-4"
    assert stage.run(params(projection="pca-8"), work).name.startswith("hpd-teacher-1-8-")


def test_more_dimensions_than_the_teacher_has_are_not_advised(work: WorkDirectory) -> None:
    with pytest.raises(InputError, match="teacher-vectors/main has 32 dimensions: no projection of it has 999"):
        stage.run(params(dim=999), work)


def test_inputs_that_have_changed_are_refused_and_made_again_as_they_were(tmp_path: Path, tiny_model: Path) -> None:
    """The commands in the hints keep the teacher, and the options of the projection."""
    work = WorkDirectory(tmp_path / "work")
    add_sentences(work, [TEXTS[:100]])
    teacher_embed.run(teacher_embed.Params(teacher=str(tiny_model), dtype="float32"), work)
    fit_pca.run(fit_pca.Params(dim=8, whiten=True), work)
    add_sentences(work, [TEXTS[:90]])  # main again, now with other sentences
    asked = params(projection="whiten-8", max_steps=1)
    with pytest.raises(InputError, match="teacher-vectors/main was not made from sentences/main as") as caught:
        stage.run(asked, work)
    run_hinted(caught.value)
    assert work.get("teacher-vectors").parameters["teacher"] == str(tiny_model)
    with pytest.raises(InputError, match="projections/whiten-8 was not fitted on teacher-vectors/main as") as caught:
        stage.run(asked, work)
    run_hinted(caught.value)
    assert stage.run(asked, work).facts["dimension"] == 8


def test_vectors_of_other_sentences_are_refused(work: WorkDirectory) -> None:
    add_sentences(work, [TEXTS[:100]], "few")
    with pytest.raises(InputError, match="was not made from sentences/few") as caught:
        stage.run(params(sentences="few"), work)
    assert caught.value.hint == f"run: sentcompress teacher-embed --sentences few --work {work.path}"


def test_a_projection_of_other_vectors_is_refused(work: WorkDirectory, tiny_model: Path) -> None:
    add_vectors(work, add_sentences(work, [TEXTS[:100]], "few"), tiny_model, [TEXTS[:100]], "few")
    with pytest.raises(InputError, match="was not fitted on teacher-vectors/few") as caught:
        stage.run(params(teacher_vectors="few", dim=8), work)
    # Naming the sentences alone finds the vectors that belong to them.
    with pytest.raises(MissingArtifactError, match="fitted on teacher-vectors/few"):
        stage.run(params(sentences="few"), work)
    run_hinted(caught.value)
    assert stage.run(params(teacher_vectors="few", dim=8, max_steps=1), work).facts["dimension"] == 8


@pytest.mark.parametrize("name", ["pca-4", "whiten-4"])
def test_a_projection_that_is_missing_is_made_by_the_command_of_the_hint(work: WorkDirectory, name: str) -> None:
    asked = params(projection=name, max_steps=1)
    with pytest.raises(MissingArtifactError, match=rf"no projection '{name}' in .* \(there are: pca-8\)") as caught:
        stage.run(asked, work)
    run_hinted(caught.value)
    assert stage.run(asked, work).facts["dimension"] == 4
    with pytest.raises(MissingArtifactError) as caught:
        stage.run(params(projection="64"), work)
    assert caught.value.hint == f"run: sentcompress fit-pca --teacher-vectors main --name 64 --work {work.path}"


def test_a_teacher_whose_files_have_changed_is_refused(tmp_path: Path) -> None:
    teacher = make_tiny_model(tmp_path / "teacher")
    work = make_work(tmp_path / "work", teacher, TEXTS[:100])
    make_tiny_model(teacher, seed=5)
    with pytest.raises(InputError, match="its files have changed"):
        stage.run(params("mse"), work)


def test_more_layers_than_the_teacher_has(work: WorkDirectory) -> None:
    with pytest.raises(InputError, match="has 2 layers"):
        stage.run(params("mse", student="teacher:3"), work)


def test_layers_of_the_teacher_have_no_revision_of_their_own(work: WorkDirectory) -> None:
    with pytest.raises(InputError, match="`revision` v1: teacher:1 is not a model of the hub"):
        stage.run(params("mse", revision="v1"), work)


def test_a_head_that_cannot_be_left_out(work: WorkDirectory, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "narrow", width=16)
    with pytest.raises(UsageError, match="as wide as the teacher"):
        stage.run(params("mse", student=str(other), options=("head=none",)), work)


def test_an_error_of_a_methods_code_is_not_told_as_one_of_its_options(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("sizes do not match")

    monkeypatch.setattr(CKD, "__init__", broken)
    with pytest.raises(ValueError, match=r"^sizes do not match$"):
        stage.run(params("ckd"), work)


def test_a_dev_file_without_differences(work: WorkDirectory, tmp_path: Path) -> None:
    flat = tmp_path / "flat.tsv"
    flat.write_text("1\ta man\ta dog\n1\ta cat\ta bird\n")
    with pytest.raises(InputError, match="same score"):
        stage.run(params(dev=flat), work)


def test_a_loss_that_is_no_number_keeps_the_best(work: WorkDirectory, dev: Path, monkeypatch: Any) -> None:
    from sentcompress.methods.hpd import HPD

    whole = HPD.objective
    calls = [0]

    def broken(self: HPD, student: torch.Tensor, teacher: torch.Tensor) -> dict[str, torch.Tensor]:
        calls[0] += 1
        terms = whole(self, student, teacher)
        return {name: term * (float("nan") if calls[0] > 13 else 1.0) for name, term in terms.items()}

    monkeypatch.setattr(HPD, "objective", broken)
    with pytest.raises(TrainingError) as caught:
        stage.run(params(dev=dev, eval_every=5, checkpoint_seconds=0), work)
    assert re.search(r"\(step 1\d to 15\); the best weights so far \(step (0|5|10)\) are kept", caught.value.message)
    assert "`lr`" in str(caught.value.hint)
    assert "float32" not in str(caught.value.hint)  # it is already
    folder = next(work.path.glob("students/.hpd-teacher-1-8-*.partial")) / ".scaffold" / "best"
    assert str(folder) in str(caught.value.hint)
    assert load_model(folder).dimension == 8
    (checkpoint,) = (folder.parent / "state" / "checkpoints").glob("last-*.pt")
    last = torch.load(checkpoint, weights_only=True)
    assert last["progress"]["step"] < 14
    assert all(tensor.isfinite().all() for tensor in last["model"]["encoder"].values())
    assert work.names("students") == []
    (row,) = (row for row in status.run(status.Params(), work) if row["kind"] == "students")
    assert row["state"] == "failed"
    assert row["why"].startswith("training diverged: ")
    assert "try a lower --lr" in row["why"]


def test_a_student_that_collapses_is_said_to_have(work: WorkDirectory, dev: Path, monkeypatch: Any) -> None:
    from sentcompress.methods.mse import MSE

    def together(self: MSE, student: torch.Tensor, teacher: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"spread": student.var(dim=0).sum()}

    monkeypatch.setattr(MSE, "objective", together)
    listener = Listener()
    numbers = dict(SHORT, lr=3e-2, eval_every=4)
    artifact = stage.run(params("mse", dev=dev, **numbers), work, listener)
    told = [warning for warning in listener.warnings if "collapsed" in warning]
    assert len(told) == 1  # and not again at every look while it lasts
    where = int(re.match(r"step (\d+): the student has collapsed: unrelated", told[0])[1])  # type: ignore[index]
    facts = artifact.facts
    assert 0 < where <= facts["steps"]
    assert "the student has collapsed" in facts["diagnosis"]
    log = {line["step"]: line for line in map(json.loads, (artifact.path / "log.jsonl").read_text().splitlines())}
    assert log[0]["mean_cosine"] < 0.98 < log[facts["steps"]]["mean_cosine"]
    # What was saved may be from before that, and is recorded as it is.
    assert dev_of_saved(artifact, dev) == facts["dev"] >= facts["dev_before_training"]
    assert facts["mean_cosine"] == pytest.approx(log[facts["best_step"]]["mean_cosine"])


def test_a_student_that_learns_has_no_diagnosis(work: WorkDirectory, dev: Path) -> None:
    listener = Listener()
    artifact = stage.run(params(dev=dev, max_steps=4), work, listener)
    assert artifact.facts["diagnosis"] == "none"
    assert not [warning for warning in listener.warnings if "step" in warning]


def run_to_the_end(folder: str, asked: Params, most: int | None = None) -> None:
    """What the killed processes run; after `most` steps, they wait to be killed, so that none ends before."""
    os.fsync = os.fstat  # type: ignore[assignment]  # as in the tests themselves, see conftest.py
    torch.set_num_threads(1)
    step = Training._step

    def waiting(training: Training, *given: Any) -> Any:
        while training.progress.step == most:
            time.sleep(0.01)
        return step(training, *given)

    Training._step = waiting  # type: ignore[method-assign]
    stage.run(asked, WorkDirectory(folder))


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_weights(tmp_path: Path, dev: Path, kills: int) -> None:
    teacher = make_tiny_model(tmp_path / "teacher")
    for name in ("whole", "killed"):
        make_work(tmp_path / name, teacher, TEXTS)
    # Dropout, a queue, a learnt temperature, several epochs: everything that a checkpoint has to bring back.
    numbers = dict(SHORT, epochs=12, dropout=0.1, eval_every=10, checkpoint_seconds=0.02)
    asked = params("ckd", options=("queue=100",), dev=dev, name="ckd", **numbers)
    # A server that has loaded the libraries and forks: each run begins at once, in a clean process.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sentcompress.stages.distill", "transformers.models.bert.modeling_bert"])
    generator = random.Random(kills)
    partial = tmp_path / "killed" / "students" / ".ckd.partial"
    done, died_at = 0, []
    while done < kills:
        # Every ten steps are told; there are 96.
        process = context.Process(target=run_to_the_end, args=(str(tmp_path / "killed"), asked, 85), daemon=True)
        process.start()
        goal = min(80, len(died_at) and died_at[-1] + generator.randrange(1, 75 // kills))
        while last_step(partial) < goal:
            assert process.is_alive()
            time.sleep(0.005)
        time.sleep(generator.random() * 0.05)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        done += 1
        died_at.append(last_step(partial))
    for name in ("killed", "whole"):
        process = context.Process(target=run_to_the_end, args=(str(tmp_path / name), asked))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert died_at[-1] > 0
    killed, whole = (WorkDirectory(tmp_path / name).get("students") for name in ("killed", "whole"))
    assert killed.digest == whole.digest
    weights = [(found.path / "model" / "model.safetensors").read_bytes() for found in (killed, whole)]
    assert weights[0] == weights[1]
    for fact in ("best_step", "dev", "steps", "sentences_seen", "stopped"):
        assert killed.facts[fact] == whole.facts[fact]
    logs = [without_timings(found.path / "log.jsonl") for found in (killed, whole)]
    assert logs[0] == logs[1]
    steps = [line["step"] for line in logs[0]]
    assert steps == sorted(set(steps))


def without_timings(log: Path) -> list[dict[str, Any]]:
    """The lines of a training log but for what a clock had a say in."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in TIMINGS} for line in lines]


def stopped_before(what: str, work: WorkDirectory, asked: Params) -> Path:
    """The partial folder of a run that was stopped before `what`, a function of `Build`."""
    with interrupted(Build, what):
        stage.run(asked, work)
    return next(work.path.glob("students/.mse-teacher-1*.partial"))


def test_a_finished_training_needs_no_checkpoint_to_be_finished(
    work: WorkDirectory, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = params("mse", options=("head=none",), dev=dev)
    partial = stopped_before("finish", work, asked)
    shutil.rmtree(partial / ".scaffold" / "state")
    monkeypatch.setattr(Training, "run", None)  # nothing is left to train
    finished = stage.run(asked, work)
    monkeypatch.undo()
    assert not (finished.path / ".scaffold").exists()
    assert stage.run(replace(asked, force=True), work).digest == finished.digest


@pytest.mark.parametrize("damage", ["model", "outcome", "both"])
def test_a_finished_training_with_damage_is_told_and_trained_again(work: WorkDirectory, dev: Path, damage: str) -> None:
    asked = params("mse", options=("head=none",), dev=dev)
    partial = stopped_before("finish", work, asked)
    if damage in ("model", "both"):
        (partial / "model" / "model.safetensors").write_bytes(b"x")
    if damage in ("outcome", "both"):
        (partial / ".scaffold" / "outcome.json").write_text("[")
    shutil.rmtree(partial / ".scaffold" / "state" / "tokens")
    (checkpoint,) = (partial / ".scaffold" / "state" / "checkpoints").glob("last-*.pt")
    checkpoint.write_bytes(b"x")
    listener = Listener()
    finished = stage.run(asked, work, listener)
    assert "was changed after training" in listener.warnings[0]
    assert checkpoint.name in listener.warnings[1]
    assert stage.run(replace(asked, force=True), work).digest == finished.digest


def test_a_log_goes_on_with_the_means_of_all_steps(work: WorkDirectory, dev: Path) -> None:
    """Checkpoints are written at any time, the log every ten steps."""
    numbers = dict(SHORT, eval_every=10, checkpoint_seconds=0.0)
    asked = params("mse", options=("head=none",), dev=dev, **numbers)
    first = stage.run(asked, work)
    whole = without_timings(first.path / "log.jsonl")
    shutil.rmtree(first.path)
    with interrupted(Checkpoints, "save", call=4, after=True):
        stage.run(asked, work)
    assert without_timings(stage.run(asked, work).path / "log.jsonl") == whole


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        TrainingLog(tmp_path / "log.jsonl", 0)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_run_that_goes_on_does_not_watch_the_teacher_again(
    tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint brings the weights, whatever the student started from."""
    teacher = make_tiny_model(tmp_path / "teacher")
    whole, stopped = (make_work(tmp_path / name, teacher, TEXTS) for name in ("whole", "stopped"))
    numbers = dict(SHORT, epochs=1, checkpoint_seconds=0.0)
    asked = params("simtde", token_dim=8, start="sentences", options=("alpha=0",), dev=dev, **numbers)
    with interrupted(Checkpoints, "save", after=True):
        stage.run(asked, stopped)
    wanted = stage.run(asked, whole)

    def watched(*_: object) -> None:
        raise AssertionError("the teacher was watched")

    monkeypatch.setattr("sentcompress.models.students.measure_token_states", watched)
    found = stage.run(asked, stopped)
    assert found.digest == wanted.digest
    assert found.facts["start"] == "sentences"


def last_step(partial: Path) -> int:
    """The last step that the log tells of."""
    log = partial / "log.jsonl"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else 0


def test_the_command(work: WorkDirectory, capfd: pytest.CaptureFixture[str]) -> None:
    from sentcompress.cli.main import _run

    words = ["distill", "--method", "mse", "--student", "teacher:1", "--set", "head=none", "--epochs", "1"]
    words += ["--batch-size", "64", "--work", str(work.path)]
    assert _run([*words, "--json"]) == 0
    manifest = json.loads(capfd.readouterr().out)
    assert manifest["facts"]["options"]["head"] == "none"
    assert _run([*words, "--set", "hed=none"]) == 2
    assert "did you mean head?" in capfd.readouterr().err
    assert _run([*words, "--student", "tinybrt"]) == 1
    assert "did you mean tinybert" in capfd.readouterr().err
    assert _run([*words, "--student", "nosuch"]) == 1
    told = capfd.readouterr().err
    assert f"no model named 'nosuch' in {work.path}" in told
    assert "it has mse-teacher-1-epochs-1-batch-size-64-head-none; you can also give" in told
    assert _run([*words, "--force"]) == 0
    shown = capfd.readouterr()
    assert "dev before training" in shown.out
    name = "mse-teacher-1-epochs-1-batch-size-64-head-none"
    assert f"Next: sentcompress eval-fidelity --text FILE --model {name} --work {work.path}" in shown.err


def test_a_finished_student_goes_on_with_its_own_method_and_options(work: WorkDirectory) -> None:
    first = stage.run(params("simtde", options=("alpha=0", "normalise=true"), name="first"), work)
    again = stage.run(params(None, student="first", lr=None, name="again"), work)  # type: ignore[arg-type]
    assert again.facts["method"] == "simtde"
    assert again.facts["options"] == first.facts["options"]
    rate = again.facts["recipe"]["lr"]
    assert rate["value"] == pytest.approx(0.6 * 5e-4)
    assert rate["source"] == "ours: 0.6 times the method's, for a finished student; default: 0.0005"
    assert again.facts["recipe"]["epochs"]["source"] == "command option; default: 3"
    other = stage.run(params(None, student="first", options=("alpha=0.5",), name="other"), work)  # type: ignore[arg-type]
    assert other.facts["options"]["alpha"] == 0.5
    assert other.facts["options"]["normalise"] is True
    assert other.facts["recipe"]["lr"]["value"] == 2e-3
    averaged = average.run(average.Params(inputs=("first", "again"), name="mean"), work)
    assert stage.run(params(None, student="mean", name="fourth"), work).facts["method"] == "simtde"  # type: ignore[arg-type]
    assert averaged.facts["method"] == "average"


def test_a_student_of_hpd_does_not_go_on_with_hpd(work: WorkDirectory) -> None:
    stage.run(params("hpd", name="first"), work)
    with pytest.raises(UsageError, match="lrn-kd: the student must be as wide as the teacher"):
        stage.run(params(None, student="first", name="again"), work)  # type: ignore[arg-type]
