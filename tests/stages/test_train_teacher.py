"""train-teacher: a plain checkpoint becomes a teacher that the rest of the chain can use."""

from __future__ import annotations

from pathlib import Path

import pytest
from distilling import SHORT, dev_of_saved, write_dev
from listening import Listener
from tiny_models import load_model, make_plain, make_tiny_model

from sentcompress.commands import finetune
from sentcompress.commands.options import keys_of
from sentcompress.errors import InputError, UsageError
from sentcompress.models.catalog import find_model
from sentcompress.models.shape import Size
from sentcompress.stages import augment, teacher_embed, train_teacher
from sentcompress.stages.train_teacher import Params
from sentcompress.store import WorkDirectory


@pytest.fixture
def triplets(tmp_path: Path, sentences: list[str]) -> Path:
    lines = ["sent0,sent1,hard_neg", *(",".join(sentences[start : start + 3]) for start in range(0, 180, 3))]
    path = tmp_path / "nli.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def plain(tmp_path: Path, tiny_model: Path) -> Path:
    return make_plain(tmp_path / "plain", tiny_model)


def test_a_checkpoint_gets_simcse_s_head_and_teaches(
    tmp_path: Path, plain: Path, triplets: Path, sentences: list[str]
) -> None:
    work, dev = WorkDirectory(tmp_path / "work"), write_dev(tmp_path / "dev.tsv", sentences[:40])
    asked = Params(model=str(plain), triplets=(str(triplets),), **SHORT, dev=dev, name="plain-simcse")
    teacher = train_teacher.run(asked, work)
    assert teacher.reference == "students/plain-simcse"
    saved = load_model(teacher.path / "model")
    assert saved.pooling == ("cls",)
    assert [layer.activation_name for layer in saved.dense] == ["Tanh"]
    assert not saved.normalize
    assert dev_of_saved(teacher, dev) == teacher.facts["dev"]
    assert not (teacher.path / "state").exists()
    assert find_model(work, "plain-simcse").reference == "students/plain-simcse"
    assert teacher.facts["method"] == teacher.facts["objective"] == "simcse"
    augment.run(augment.Params(inputs=(str(triplets),), wordnet=0, back_translate=0), work)
    vectors = teacher_embed.run(teacher_embed.Params(teacher="plain-simcse", dtype="float32"), work)
    assert vectors.parameters["teacher"] == teacher.reference
    assert train_teacher.run(asked, work).digest == teacher.digest  # fresh, skipped


def test_a_sentence_transformers_folder_keeps_its_pooling(tmp_path: Path, tiny_model: Path, triplets: Path) -> None:
    teacher = train_teacher.run(
        Params(model=str(tiny_model), triplets=(str(triplets),), **SHORT), WorkDirectory(tmp_path / "work")
    )
    saved = load_model(teacher.path / "model")
    assert teacher.facts["pooling"] == "mean"
    assert saved.pooling == ("mean",)
    assert saved.normalize
    assert len(saved.dense) == 0
    for pooling, told in (("mean", 0), ("cls", 1)):
        listener, asked = Listener(), Params(model=str(tiny_model), triplets=(str(triplets),), pooling=pooling, **SHORT)
        train_teacher.run(asked, WorkDirectory(tmp_path / "work"), listener)
        ignored = f"{tiny_model} keeps its own pooling, mean; `pooling` {pooling} is ignored"
        assert listener.warnings.count(ignored) == told


@pytest.mark.parametrize(("width", "lr"), [(0, 5e-5), (768, 5e-5), (1024, 1e-5)])
def test_a_teacher_is_trained_with_the_numbers_of_simcse_s_paper(width: int, lr: float) -> None:
    size = Size(width=width)
    found = Params(model="x", triplets=("y",)).settings(size)
    assert (found.lr, found.batch_size, found.epochs, found.max_length) == (lr, 512, 3, 32)
    assert (found.schedule, found.warmup_steps, found.clip, found.eval_every) == ("linear", 0, 1.0, 125)
    asked = Params(model="x", triplets=("y",), lr=2e-5, batch_size=64).settings(size)
    assert (asked.lr, asked.batch_size, asked.epochs) == (2e-5, 64, 3)


def test_a_wide_model_is_trained_more_slowly(tmp_path: Path, triplets: Path) -> None:
    numbers = dict(SHORT, lr=None, max_steps=1)
    found = {}
    for width in (32, 1024):
        model = make_tiny_model(tmp_path / str(width), layers=1, width=width)
        teacher = train_teacher.run(
            Params(model=str(model), triplets=(str(triplets),), **numbers), WorkDirectory(tmp_path / f"work-{width}")
        )
        found[width] = (teacher.parameters["lr"], teacher.facts["recipe"]["lr"]["value"])
    assert found == {32: (5e-5, 5e-5), 1024: (1e-5, 1e-5)}


def test_sentences_without_labels_are_no_triplets(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("\n".join(sentences[:20]), encoding="utf-8")
    with pytest.raises(InputError, match="no triplets"):
        train_teacher.run(
            Params(model=str(tiny_model), triplets=(str(path),), **SHORT), WorkDirectory(tmp_path / "work")
        )


def test_all_faults_at_once(tmp_path: Path) -> None:
    asked = Params(model="x", triplets=(), pooling="max", **dict(SHORT, lr=0.0), options=("keep=1",))
    with pytest.raises(UsageError, match="4 errors") as raised:
        train_teacher.run(asked, WorkDirectory(tmp_path / "work"))
    assert [
        word for word in ("`lr`", "keep needs", "`pooling`", "`triplets`") if word not in raised.value.message
    ] == []
    with pytest.raises(UsageError, match="keep"):
        train_teacher.run(Params(model="x", triplets=("y",), options=("keep=1",)), WorkDirectory(tmp_path / "work"))


def test_a_dense_layer_that_was_there_is_not_called_new(tmp_path: Path, tiny_model: Path, triplets: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    first = train_teacher.run(
        Params(model=str(tiny_model), triplets=(str(triplets),), **SHORT, options=("dim=8",)), work
    )
    asked = Params(model=str(first.path / "model"), triplets=(str(triplets),), **SHORT, name="second")
    second = train_teacher.run(asked, work)
    assert second.facts["dimension"] == 8
    assert second.facts["pooling"] == "mean"


def test_no_option_is_shown_that_needs_a_teacher() -> None:
    keys = keys_of(Params)
    assert not {"keep-index", "dev-passages"} & set(keys)
    assert "documents" not in keys["dev"].opt.help
    assert {"keep-index", "dev-passages"} < set(keys_of(finetune.Params))
    assert "documents/NAME" in keys_of(finetune.Params)["dev"].opt.help


def test_a_start_from_principal_axes_is_for_finetune(tmp_path: Path, tiny_model: Path, triplets: Path) -> None:
    asked = Params(model=str(tiny_model), triplets=(str(triplets),), **SHORT, options=("dim=8", "dim_start=pca"))
    with pytest.raises(UsageError, match="for finetune"):
        train_teacher.run(asked, WorkDirectory(tmp_path / "work"))


def test_glue_s_question_pairs_are_triplets(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    rows = [f"{sentences[row]}\t{sentences[row + mark]}\t{mark % 2}\n" for row in range(0, 180, 3) for mark in (1, 2)]
    path = tmp_path / "QQP.tsv"
    path.write_text("question1\tquestion2\tis_duplicate\n" + "".join(rows), encoding="utf-8")
    teacher = train_teacher.run(
        Params(model=str(tiny_model), triplets=(str(path),), **SHORT), WorkDirectory(tmp_path / "work")
    )
    assert teacher.facts["triplets"] == 60
