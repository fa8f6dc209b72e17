"""Every method of `distill` on the one loop: trains, is saved, read back and scored the same; batches may be joined."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import SHORT, dev_of_saved, make_work, write_dev
from interrupting import interrupted
from listening import Listener
from tiny_models import load_model, make_tiny_model

from benchmarks.host_waits import HostWaits
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.methods import METHODS
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve
from sentcompress.stages import distill, fit_pca, teacher_embed
from sentcompress.stages.distill import Params
from sentcompress.store import WorkDirectory
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.loop import Training


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> tuple[WorkDirectory, Path]:
    """Sentences, vectors with two layers, a projection, and graded pairs; the teacher has four layers."""
    folder = tmp_path_factory.mktemp("methods")
    teacher = make_tiny_model(folder / "teacher", layers=4)
    work = make_work(folder / "work", teacher, sentences[:120])
    teacher_embed.run(teacher_embed.Params(teacher=str(teacher), dtype="float32", layers=(2, 4), force=True), work)
    fit_pca.run(fit_pca.Params(dim=8), work)
    return work, write_dev(folder / "dev.tsv", sentences[:40])


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_trains_and_its_student_is_the_one_that_was_scored(
    prepared: tuple[WorkDirectory, Path], monkeypatch: pytest.MonkeyPatch, method: str, accumulate: int
) -> None:
    work, dev = prepared
    waits, step = HostWaits(), Training._step

    def watched(*arguments: Any) -> Any:
        with waits:
            return step(*arguments)

    monkeypatch.setattr(Training, "_step", watched)
    asked = Params(
        method=method,
        student="teacher:2",
        dev=dev,
        grad_accum=accumulate,
        **SHORT,
        name=f"{method}-{accumulate}",
    )
    student = distill.run(asked, work)
    facts = student.facts
    assert facts["steps"] == 4
    assert dev_of_saved(student, dev) == facts["dev"]
    assert facts["sentences_seen"] == 4 * 8 * accumulate
    assert waits.counts == {}  # on a GPU, the host would wait for each
    saved = load_model(student.path / "model")
    assert np.isfinite(saved.state_dict()["transformer.embeddings.word_embeddings.weight"].numpy()).all()
    log = [json.loads(line) for line in (student.path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [0, 2, 4]
    assert "effective_rank" in log[0]
    # No two dev scores are alike: the weights that are deployed have moved.
    scores = [line["dev"] for line in log]
    assert len(set(scores)) == 3
    assert facts["dev"] == pytest.approx(max(scores), abs=1e-7)
    shown = {"ibkd": {"kernel_x", "kernel_s"}, "ckd": {"temperature", "queue"}}.get(method, set())
    assert shown <= log[-1].keys()


def test_simtde_with_a_narrow_table_is_an_electra_checkpoint(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    student = distill.run(Params(method="simtde", student="teacher:2", token_dim=8, dev=dev, **SHORT), work)
    assert student.name.startswith("simtde-teacher-2-e8-")
    saved = load_model(student.path / "model")
    assert saved.config.model_type == "electra"
    assert (saved.config.embedding_size, saved.config.hidden_size, saved.config.num_hidden_layers) == (8, 32, 2)
    assert dev_of_saved(student, dev) == student.facts["dev"]


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_simtde_with_the_states_of_a_teacher_that_is_deeper(prepared: tuple[WorkDirectory, Path], alpha: float) -> None:
    work, dev = prepared
    options = (f"alpha={alpha}", "states=0.1")
    asked = Params(
        method="simtde", student="teacher:2", token_dim=8, options=options, dev=dev, **SHORT, name=f"last-{alpha}"
    )
    student = distill.run(asked, work)
    log = [json.loads(line) for line in (student.path / "log.jsonl").read_text().splitlines()]
    assert ("token" in log[-1]) == (alpha > 0)
    assert log[-1]["states"] > 0
    assert dev_of_saved(student, dev) == student.facts["dev"]


def test_simtde_layer_to_layer_from_a_random_start(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    asked = Params(method="simtde", student="teacher:2", token_dim=8, start="random", dev=dev, **SHORT)
    student = distill.run(replace(asked, options=("layers=0.5",)), work)
    log = [json.loads(line) for line in (student.path / "log.jsonl").read_text().splitlines()]
    assert log[-1]["layers"] > 0
    assert dev_of_saved(student, dev) == student.facts["dev"]


def test_simtde_layer_to_layer_needs_a_teacher_that_is_as_deep(
    prepared: tuple[WorkDirectory, Path], tmp_path: Path
) -> None:
    work, dev = prepared
    deeper = make_tiny_model(tmp_path / "deeper", layers=5)
    with pytest.raises(InputError, match="the student has 5 layers, its teacher only 4"):
        distill.run(Params(method="simtde", student=str(deeper), options=("layers=1",), dev=dev, **SHORT), work)


@pytest.mark.parametrize("loss", ["kl", "cosine-mse", "cosine-mae"])
def test_simtde_with_another_sentence_loss(prepared: tuple[WorkDirectory, Path], loss: str) -> None:
    work, _ = prepared
    student = distill.run(
        Params(method="simtde", student="teacher:2", options=(f"sentence_loss={loss}",), **SHORT), work
    )
    assert student.facts["dev_protocol"].startswith("Pearson x 100")


def test_pkd_needs_the_layers_and_no_more_than_the_student_has(
    prepared: tuple[WorkDirectory, Path], tmp_path: Path, tiny_model: Path, sentences: list[str]
) -> None:
    work, dev = prepared
    with pytest.raises(InputError, match="has 2 layers"):
        distill.run(Params(method="pkd", student="teacher:1", dev=dev, **SHORT), work)
    bare = make_work(tmp_path / "bare", tiny_model, sentences[:40])
    with pytest.raises(MissingArtifactError, match="no states of layers") as caught:
        distill.run(Params(method="pkd", student="teacher:1", dev=dev, **SHORT), bare)
    assert "--layers" in str(caught.value.hint)


def test_cached_layers_are_the_pooled_states(prepared: tuple[WorkDirectory, Path], sentences: list[str]) -> None:
    import torch

    from sentcompress.encoding.npy_files import LAYERS, NpyFiles

    work, _ = prepared
    vectors = work.get("teacher-vectors")
    assert vectors.facts["layers"] == [2, 4]
    cached = NpyFiles(vectors.path, LAYERS).rows(np.array([5])).reshape(2, -1)
    teacher = load_encoder(resolve(vectors.parameters["teacher"]))
    ids = torch.tensor(teacher.tokenize([sentences[5]]))
    with torch.inference_mode():
        states = teacher.transformer(input_ids=ids, output_hidden_states=True).hidden_states
    for row, layer in enumerate((2, 4)):
        assert np.allclose(cached[row], states[layer].mean(dim=1)[0].numpy(), atol=1e-5)


def test_a_student_with_other_tokens_cannot_be_compared_token_by_token(
    prepared: tuple[WorkDirectory, Path], tmp_path: Path
) -> None:
    work, dev = prepared
    other = make_tiny_model(tmp_path / "other")
    vocabulary = (other / "tokenizer.json").read_text().replace('"guitar"', '"banjo"')
    (other / "tokenizer.json").write_text(vocabulary)
    with pytest.raises(InputError, match=r"1 token that its teacher .* lacks"):
        distill.run(Params(method="lmx-kd", student=str(other), dev=dev, **SHORT), work)


def test_a_smaller_vocabulary_still_finds_the_teacher_s_tokens(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    student = distill.run(
        Params(method="simtde", student="teacher:2", vocabulary=40, token_dim=8, dev=dev, **SHORT), work
    )
    assert student.name.startswith("simtde-teacher-2-e8-v40-")
    saved = load_model(student.path / "model")
    assert saved.config.vocab_size == len(saved.tokenizer) == 40
    assert dev_of_saved(student, dev) == student.facts["dev"]


def test_narrower_layers_are_asked_for_by_name(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    student = distill.run(Params(method="mse", student="teacher:2", feed_forward=6, dev=dev, **SHORT), work)
    assert student.name.startswith("mse-teacher-2-f6-")
    assert load_model(student.path / "model").config.intermediate_size == 6
    assert student.facts["feed_forward"] == student.parameters["feed_forward"] == 6


def test_a_finished_student_is_made_smaller(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    first = distill.run(Params(method="mse", student="teacher:2", dev=dev, **SHORT, name="first"), work)
    asked = Params(
        student="first", vocabulary=40, character_count=2, feed_forward=6, start="sentences", dev=dev, **SHORT
    )
    smaller = distill.run(asked, work)
    assert smaller.name.startswith("mse-first-v40-c2-f6-sentences")
    saved = load_model(smaller.path / "model")
    assert (saved.config.vocab_size, saved.config.intermediate_size, saved.depth) == (40, 6, 2)
    assert smaller.facts["parameters"] < first.facts["parameters"]
    assert smaller.facts["dev_before_training"] != first.facts["dev"]
    assert distill.run(asked, work).digest == smaller.digest
    with pytest.raises(UsageError, match="`token_dim` is for `student` teacher:K, not first"):
        replace(asked, token_dim=8).check()
    with pytest.raises(UsageError, match="`start` sentences is for narrowed parts"):
        replace(asked, feed_forward=None).check()


@pytest.mark.parametrize("start", ["weights", "sentences"])
def test_a_student_that_is_made_smaller_goes_on_with_the_same_weights(
    prepared: tuple[WorkDirectory, Path], monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    work, _ = prepared
    distill.run(Params(method="simtde", student="teacher:2", token_dim=8, **SHORT, name="factorised"), work)
    asked = Params(student="factorised", vocabulary=40, feed_forward=6, start=start, **SHORT)
    whole = distill.run(replace(asked, name=f"whole-{start}"), work)
    stopped = replace(asked, name=f"stopped-{start}", checkpoint_seconds=0.0)
    with interrupted(Checkpoints, "save", call=2, after=True):
        distill.run(stopped, work)
    steps: list[str] = []
    listener = Listener()
    monkeypatch.setattr(listener, "step", steps.append)
    resumed = distill.run(stopped, work, listener)
    assert any(line.startswith("resuming after step 2") for line in steps)
    weights = [(student.path / "model" / "model.safetensors").read_bytes() for student in (whole, resumed)]
    assert weights[0] == weights[1]
    assert resumed.facts["best_step"] == whole.facts["best_step"] > 2, "trained after the interruption"


def test_a_start_from_sentences(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    asked = Params(
        method="simtde", student="teacher:1", token_dim=8, feed_forward=6, start="sentences", dev=dev, **SHORT
    )
    student = distill.run(asked, work)
    assert student.name.startswith("simtde-teacher-1-e8-f6-sentences-")
    assert student.facts["start"] == student.parameters["start"] == "sentences"
    assert dev_of_saved(student, dev) == student.facts["dev"]
    assert distill.run(asked, work).digest == student.digest
    plain = distill.run(replace(asked, start="weights"), work)
    assert "start" not in plain.parameters
    assert plain.facts["dev_before_training"] != student.facts["dev_before_training"]
    with pytest.raises(UsageError, match=r"`start` sentence: did you mean sentences\?"):
        replace(asked, start="sentence").check()
    with pytest.raises(UsageError, match="`start` sentences is for narrowed parts"):
        replace(asked, token_dim=None, feed_forward=None).check()


def test_a_smaller_vocabulary_may_leave_characters_out(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    asked = Params(
        method="simtde", student="teacher:1", token_dim=8, vocabulary=40, character_count=2, dev=dev, **SHORT
    )
    student = distill.run(asked, work)
    assert student.name.startswith("simtde-teacher-1-e8-v40-c2-")
    assert student.facts["character_count"] == student.parameters["character_count"] == 2
    assert distill.run(asked, work).digest == student.digest
    assert "character_count" not in distill.run(replace(asked, character_count=0), work).parameters
    with pytest.raises(UsageError, match="`character_count` must be at least 0, not -1"):
        replace(asked, character_count=-1).check()
    with pytest.raises(UsageError, match="`character_count` is for a smaller vocabulary"):
        replace(asked, vocabulary=None).check()


def test_several_passes_through_one_layer(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    options = ("alpha=0.5", "states=0.1")
    asked = Params(method="simtde", student="teacher:1", token_dim=8, passes=2, options=options, dev=dev, **SHORT)
    student = distill.run(asked, work)
    assert student.name.startswith("simtde-teacher-1-e8-p2-")
    assert student.facts["passes"] == student.parameters["passes"] == 2
    assert load_model(student.path / "model").config.model_type == "albert"
    assert dev_of_saved(student, dev) == student.facts["dev"]
    assert distill.run(asked, work).digest == student.digest
    once = distill.run(replace(asked, passes=1), work)
    assert "passes" not in once.parameters
    assert once.facts["parameters"] == student.facts["parameters"]
    assert once.facts["dev_before_training"] != student.facts["dev_before_training"]
    with pytest.raises(UsageError, match="`passes` must be at least 1, not 0"):
        replace(asked, passes=0).check()
    with pytest.raises(UsageError, match="`passes` needs a factorised token table"):
        replace(asked, token_dim=None).check()
    with pytest.raises(UsageError, match="`passes` is for `student` teacher:K, not tinybert"):
        replace(asked, student="tinybert").check()


def test_pkd_with_a_student_that_has_a_dense_layer(prepared: tuple[WorkDirectory, Path]) -> None:
    work, dev = prepared
    short = distill.run(Params(method="hpd", student="teacher:2", dev=dev, **SHORT, name="short"), work)
    folder = str(short.path / "model")
    student = distill.run(Params(method="pkd", student=folder, dev=dev, **SHORT, name="pkd-short"), work)
    assert student.facts["dimension"] == 8
    assert dev_of_saved(student, dev) == student.facts["dev"]


def test_a_teacher_that_runs_beside_the_student_is_the_one_that_made_the_vectors(
    tmp_path: Path, sentences: list[str]
) -> None:
    teacher = make_tiny_model(tmp_path / "teacher")
    work, dev = make_work(tmp_path / "work", teacher, sentences[:40]), write_dev(tmp_path / "dev.tsv", sentences[:40])
    student = make_tiny_model(tmp_path / "student")
    make_tiny_model(teacher, seed=5)
    with pytest.raises(InputError, match="no longer the one"):
        distill.run(Params(method="simtde", student=str(student), dev=dev, **SHORT), work)
