"""Defaults for training a finished student further: from the package, from a run, from a selection, from an average."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distilling import add_triplets, make_work
from listening import Listener
from tiny_models import make_tiny_model

from sentcompress.commands.distill import OF_PUBLISHED, Params
from sentcompress.progress import SILENT
from sentcompress.stages import average, distill, eval_fidelity, finetune, select
from sentcompress.store import WorkDirectory
from sentcompress.training.further import GENTLE, further

TEXTS = [f"the {word} of number {number}" for number in range(300) for word in ("river", "window", "storm")]
SHORT: dict[str, Any] = {"epochs": 1, "batch_size": 32, "student": "teacher:1"}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> WorkDirectory:
    """Students that were trained at a high and at a low rate, one with a new head, and what was made of the two."""
    folder = tmp_path_factory.mktemp("further")
    made = make_work(folder / "work", make_tiny_model(folder / "teacher"), TEXTS)
    for name, rate in (("quick", 2e-3), ("slow", 1e-6)):
        options = ("normalise=true", "alpha=0")
        distill.run(Params(**SHORT, method="simtde", options=options, lr=rate, name=name), made, SILENT)
        eval_fidelity.run(eval_fidelity.Params(model=name, name=f"of-{name}", neighbours=3, pairwise=5), made, SILENT)
    for rank in (1, 2):
        chosen = select.Params(inputs=("quick", "slow"), by="neighbours_shared", rank=rank, name=f"rank-{rank}")
        select.run(chosen, made, SILENT)
    average.run(average.Params(inputs=("slow", "quick"), name="mean"), made, SILENT)
    add_triplets(made, TEXTS[:60])
    for objective, lr in (("simcse", 1e-3), ("ibkd", 1e-5)):
        tuned = finetune.Params(
            model="quick", objective=objective, sentences="triplets", lr=lr, epochs=1, batch_size=4, name=objective
        )
        finetune.run(tuned, made, SILENT)
    tuned = finetune.Params(
        model="general-2m", sentences="triplets", lr=1e-5, epochs=1, max_steps=1, batch_size=4, name="of-published"
    )
    finetune.run(tuned, made, SILENT)
    return made


@pytest.fixture
def copied(work: WorkDirectory, tmp_path: Path) -> WorkDirectory:
    """The same work directory, to change."""
    shutil.copytree(work.path, tmp_path / "work")
    return WorkDirectory(tmp_path / "work")


def taken(work: WorkDirectory, student: str, **changes: Any) -> tuple[str | None, float | None, tuple[str, ...]]:
    found, _ = further(Params(student=student, **changes), work, SILENT)
    return found.method, found.lr, found.options


def test_its_method_and_options_stay_and_its_rate_is_at_most_its_own(work: WorkDirectory) -> None:
    options = ("alpha=0.0", "normalise=true")
    gentle = pytest.approx(GENTLE * 5e-4)
    assert taken(work, "quick") == ("simtde", gentle, options)
    assert taken(work, "slow") == ("simtde", 1e-6, options)
    assert taken(work, "general-5m") == (
        "simtde",
        gentle,
        ("normalise=true", "reduction=sum", "alpha=0", "relation=20"),
    )


def test_the_reduced_rate_is_of_the_method_s_for_a_student_of_that_size(copied: WorkDirectory) -> None:
    """DistilCSE's is higher for small students."""
    trained = Params(**SHORT, method="ckd", options=("queue=32",), lr=2e-3, max_steps=1, name="contrastive")
    distill.run(trained, copied, SILENT)
    assert taken(copied, "contrastive") == ("ckd", pytest.approx(GENTLE * 3e-4), ("queue=32",))


def test_of_a_selection_it_is_what_the_chosen_one_had_and_of_an_average_the_first(work: WorkDirectory) -> None:
    rates = sorted(taken(work, name)[1] or 0 for name in ("rank-1", "rank-2"))
    assert rates == pytest.approx([1e-6, GENTLE * 5e-4])
    for rank in (1, 2):
        chosen = work.get("students", f"rank-{rank}").facts["models"][0]
        assert taken(work, f"rank-{rank}") == taken(work, chosen.rpartition("/")[2])
    assert taken(work, "mean")[1] == 1e-6


def test_weights_of_four_bits_stay(copied: WorkDirectory) -> None:
    rounded = Params(**SHORT, method="simtde", weight_format="int4", max_steps=1, name="rounded")
    distill.run(rounded, copied, SILENT)
    found, filled = further(Params(student="rounded"), copied, SILENT)
    assert found.weight_format == "int4"
    assert set(filled) == {"lr"}, "no hyperparameter of the method"
    numbers: dict[str, Any] = {"student": "rounded", "batch_size": 32, "max_steps": 1, "dtype": "float32"}
    told = "rounded was trained with weights rounded to int4, and this student is not"
    for asked, warned in ({"method": "mse"}, True), ({"method": "mse", "weight_format": "int4"}, False), ({}, False):
        listener = Listener()
        distill.run(Params(**numbers, **asked), copied, listener)
        assert any(line.startswith(told) for line in listener.warnings) == warned


def test_what_was_asked_for_comes_first(work: WorkDirectory) -> None:
    assert taken(work, "quick", lr=1e-3, options=("alpha=0.5",)) == ("simtde", 1e-3, ("normalise=true", "alpha=0.5"))
    assert taken(work, "quick", method="mse") == ("mse", None, ())
    assert taken(work, "teacher:1") == (None, None, ())


def test_it_is_told(work: WorkDirectory) -> None:
    listener = Listener()
    further(Params(student="slow"), work, listener)
    assert listener.notes == [
        "slow is a finished student: training continues with its method, simtde, at learning rate 1e-06"
    ]


def test_a_fine_tuned_student_has_the_method_and_options_of_its_distillation(work: WorkDirectory) -> None:
    method, _, options = taken(work, "quick")
    assert taken(work, "simcse") == (method, pytest.approx(GENTLE * 5e-4), options)
    assert taken(work, "ibkd") == (method, 1e-5, options)  # the rate that it was fine-tuned at is lower
    average.run(average.Params(inputs=("simcse", "quick"), name="mean-of-tuned", force=True), work, SILENT)
    assert taken(work, "mean-of-tuned") == taken(work, "simcse")
    published, _ = further(Params(student="general-2m"), work, SILENT)
    tuned, _ = further(Params(student="of-published"), work, SILENT)
    assert tuned == replace(published, student="of-published", lr=1e-5)


def test_a_student_can_be_named_by_its_path(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work.path.parent)
    for name in ("slow", "rank-1", "simcse"):
        for path in (f"work/students/{name}", f"./work/students/{name}/model", str(work.path / "students" / name)):
            assert taken(work, path) == taken(work, name)


def test_what_has_changed_since_is_not_followed(copied: WorkDirectory) -> None:
    for name in ("mean", "simcse"):
        assert taken(copied, name)[0] == "simtde"
    for name in ("quick", "slow"):
        distill.run(Params(**SHORT, method="mse", options=("head=none",), name=name, force=True), copied, SILENT)
    for name in ("mean", "simcse", "rank-1", "rank-2"):
        assert taken(copied, name) == (None, None, ())


def test_students_that_were_made_of_one_another_end(copied: WorkDirectory) -> None:
    """A copy of a copy has the same digest, so digests alone would lead round for ever."""

    def chosen(name: str, other: str) -> None:
        measured = eval_fidelity.Params(
            model=name, name=f"again-{name}", sentences="main", neighbours=3, pairwise=5, force=True
        )
        eval_fidelity.run(measured, copied, SILENT)
        params = select.Params(inputs=(name,), by="neighbours_shared", name=other, force=True)
        select.run(params, copied, SILENT)

    chosen("quick", "m")
    assert taken(copied, "m") == taken(copied, "quick")
    chosen("m", "n")
    assert taken(copied, "n") == taken(copied, "quick")
    digest = copied.get("students", "m").digest
    chosen("n", "m")
    assert copied.get("students", "m").digest == digest
    assert taken(copied, "m") == taken(copied, "n") == (None, None, ())


def test_an_average_that_is_called_like_the_published_student_it_is_of(copied: WorkDirectory) -> None:
    average.run(average.Params(inputs=("general-2m", "of-published"), name="general-2m"), copied, SILENT)
    method, rate, options = taken(copied, "general-2m")
    assert (method, rate) == ("simtde", pytest.approx(GENTLE * 5e-4))
    assert "relation=20" in options


def test_a_published_student_is_trained_with_the_schedule_and_batches_of_compress(work: WorkDirectory) -> None:
    from sentcompress.compression.recipe import TRAINING

    found, _ = further(Params(student="general-5m"), work, SILENT)
    shared = ("schedule", "warmup_steps", "batch_size", "batch_tokens", "max_length")
    for name in shared:
        assert getattr(found, name) == TRAINING[name.replace("_", "-")] is not None, name
    assert set(OF_PUBLISHED) == set(shared)
    assert further(Params(student="general-5m", batch_size=8), work, SILENT)[0].batch_size == 8
    assert further(Params(student="quick"), work, SILENT)[0].batch_size is None
    with_ratio = further(Params(student="general-5m", warmup_ratio=0.1), work, SILENT)[0]
    assert with_ratio.warmup_steps is None
    assert with_ratio.all_faults() == []


def test_each_number_names_its_own_source(work: WorkDirectory) -> None:
    """What was filled in for the student is no option that anybody gave."""
    found = sources(work, "general-5m", batch_size=8, epochs=1)
    assert found["lr"] == "ours: 0.6 times the method's, for a finished student; default: 0.0005"
    assert found["schedule"] == Params(method="simtde").hyperparameters().schedule.source  # the same value
    assert found["warmup_steps"] == "ours: for published students; default: 300"
    assert found["batch_size"] == "command option; default: 128"
    assert found["epochs"] == "command option; default: 3"
    for student, trained in (("slow", "slow"), ("mean", "slow"), ("ibkd", "ibkd"), ("of-published", "of-published")):
        assert sources(work, student)["lr"] == f"the learning rate of students/{trained}; default: 0.0005"
    assert sources(work, "slow", lr=1e-3)["lr"] == "command option; default: 0.0005"


def sources(work: WorkDirectory, student: str, **changes: Any) -> dict[str, str]:
    """The sources of the hyperparameters of a further training."""
    params, filled = further(Params(student=student, **changes), work, SILENT)
    return {name: told["source"] for name, told in params.hyperparameters(filled=filled).as_dict().items()}
