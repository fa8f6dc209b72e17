"""The numbers that the papers and their code train with, against what a recipe comes to after all defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from recipes.shipped import CASES, Case

from sentcompress.recipes.plan import Step
from sentcompress.stages import run as stage
from sentcompress.store import WorkDirectory

TRAINING = ("distill", "finetune", "train-teacher")

# What DistilCSE's code adds to the paper's numbers, which are in `recipes/published/settings.tsv`.
DISTILCSE = {"max_length": 64, "schedule": "cosine", "warmup_steps": 0, "warmup_epochs": 0.1, "clip": 1.0}
DISTILCSE |= {"betas": (0.9, 0.98), "head": "linear"}
# Its stage 2: a temperature that is learnt from 1 / 20, and a tenth of the first of 5 epochs.
STAGE_2 = {"max_length": 64, "schedule": "cosine", "warmup_ratio": 0.02, "betas": (0.9, 0.98)}
STAGE_2 |= {"temperature": 0, "scale_start": 20}
SIMCSE = {"batch_size": 512, "epochs": 3, "max_length": 32, "lr": 5e-5, "schedule": "linear", "warmup_steps": 0}
SIMCSE |= {"warmup_epochs": 0, "clip": 1.0, "eval_every": 125, "temperature": 0.05}
OWN_SIMCSE = {**SIMCSE, "pooling": "cls-mlp"}
# HPD's baseline students, trained without a teacher.
HPD_SIMCSE = {"batch_size": 256, "epochs": 3, "lr": 1e-3, "temperature": 0.05}
HPD = {"batch_size": 256, "epochs": 3, "lr": 1e-4, "warmup_steps": 1000, "weight_decay": 0.01}
HPD |= {"centre": True, "tanh": False, "reduction": "sum"}
# What IBKD's code adds to the paper's numbers.
IBKD = {"layer": 0, "divisor": "n-1", "detach": False, "head": "thrown", "similarity": "cosine", "schedule": "linear"}
IBKD_2 = {"divisor": "n-1", "similarity": "cosine", "negatives": "batch", "schedule": "linear"}
# Its first stage as its baselines have it: of Adam, without an early end.
IBKD_1 = {"weight_decay": 0, "betas": (0.9, 0.999), "schedule": "linear", "warmup_steps": 0, "warmup_epochs": 0}
STS, STS_2 = ({"lr": lr, "batch_size": 256, "epochs": epochs} for lr, epochs in ((1e-4, 10), (3e-5, 3)))
DR, DR_2 = ({"lr": lr, "batch_size": 128, "epochs": 3} for lr in (1e-4, 1e-5))
MINED = {"negatives": 8, "similarity": "dot", "max_score": None}

# (recipes, stage) -> setting -> number. Where a recipe fits several rows, the later one stands.
NUMBERS: list[tuple[str, str, dict[str, Any]]] = [
    ("simcse/tinybert*", "finetune", {**HPD_SIMCSE, "dim": 0}),
    ("simcse/minilm*", "finetune", {**HPD_SIMCSE, "dim": 0}),
    ("simcse/*-projection-128", "finetune", {"dim": 128}),
    ("simcse/*-whitening-128", "whiten", {"dim": 128}),
    ("simcse/tinybert[6-]*", "train-teacher", OWN_SIMCSE),
    ("simcse/*-base", "train-teacher", OWN_SIMCSE),
    ("simcse/*-large", "train-teacher", {**OWN_SIMCSE, "lr": 1e-5}),
    ("simcse/*", "eval-transfer", {"normalize": False}),
    # Three sentences of each.
    ("hpd/*", "augment", {"wordnet": 1, "back_translate": 1, "translator": ("nlpaug",)}),
    ("hpd/*-wo-aug", "augment", {"wordnet": 0, "back_translate": 0, "translator": ()}),
    ("hpd/*", "distill", HPD),
    ("hpd/*", "fit-pca", {"sample": 100_000, "whiten": False}),
    ("hpd/*-128*", "fit-pca", {"dim": 128}),
    ("hpd/*-256*", "fit-pca", {"dim": 256}),
    # All of the student's dimensions.
    ("hpd/tinybert-312*", "fit-pca", {"dim": 312}),
    ("hpd/minilm-384*", "fit-pca", {"dim": 384}),
    ("hpd/tinybert-whiten-*", "fit-pca", {"dim": 312}),
    ("hpd/minilm-whiten-*", "fit-pca", {"dim": 384}),
    ("hpd/*-whiten-128", "whiten", {"dim": 128}),
    ("hpd/*-whiten-256", "whiten", {"dim": 256}),
    ("hpd/*", "eval-retrieval", {"index": ("ivf",), "nlist": 1024, "nprobe": 5}),
    ("distilcse/*", "distill", DISTILCSE),
    ("distilcse/ckd-*", "distill", {"temperature": 0}),
    ("distilcse/*", "finetune", STAGE_2),
    ("distilcse/*-from-simcse", "train-teacher", OWN_SIMCSE),
    ("distilcse/ckd-*", "eval-transfer", {"normalize": False}),
    ("distilcse/pkd-bert-base*", "teacher-embed", {"layers": tuple(range(2, 25, 2))}),
    ("distilcse/pkd-tinybert6*", "teacher-embed", {"layers": (4, 8, 12, 16, 20, 24)}),
    ("distilcse/pkd-tinybert-huawei*", "teacher-embed", {"layers": (6, 12, 18, 24)}),
    ("hpd-ft/*", "augment", {"wordnet": 1, "back_translate": 1, "translator": ("nlpaug",)}),
    ("hpd-ft/*", "fit-pca", {"sample": 100_000, "whiten": False, "dim": 128}),
    ("hpd-ft/*", "distill", HPD),
    ("hpd-ft/*", "finetune", {**STS_2, "temperature": 0.05}),
    ("ibkd/*", "augment", {"wordnet": 1, "back_translate": 1, "translator": ("nlpaug",)}),
    ("ibkd/*", "distill", {**IBKD, "kernel": "rbf", "normalise": False}),
    ("ibkd/*", "finetune", {**IBKD_2, "dim": 0}),
    ("ibkd*/*-imq", "distill", {"kernel": "imq"}),
    ("ibkd*/*-linear", "distill", {"kernel": "linear", "normalise": True}),
    ("ibkd*/*-no-hsic", "distill", {"beta": 0}),
    ("ibkd*/*-no-hsic", "finetune", {"beta": 0}),
    *((f"ibkd/*-beta-1-{beta}", "distill", {"beta": beta}) for beta in (0.1, 0.5, 2.0)),
    *((f"ibkd/*-beta-2-{beta}", "finetune", {"beta": beta}) for beta in (0.1, 1.0, 2.0)),
    ("ibkd-baselines/*", "distill", {**IBKD_1, **STS}),
    ("ibkd*-baselines/*-crd", "distill", {"dim": 128, "memory": 16_384, "temperature": 0.07}),
    ("ibkd-msmarco*/*", "teacher-embed", {"pooling": "cls"}),
    ("ibkd-msmarco/*", "distill", IBKD),
    ("ibkd-msmarco*/*", "mine-negatives", MINED),
    ("ibkd-msmarco/*", "finetune", {**IBKD_2, "dim": 0}),
    ("ibkd-msmarco/*-retromae", "finetune", {"dim": 128}),
    ("ibkd-msmarco-baselines/*-[mch]*", "distill", {**IBKD_1, **DR}),
    ("ibkd-msmarco-baselines/*", "finetune", {**DR_2, "temperature": 0.05, "dim": 0}),
    ("ibkd-msmarco-baselines/*-hpd*", "fit-pca", {"sample": 100_000, "dim": 128}),
    ("simtde/[bl]*", "train-teacher", {**SIMCSE, "pooling": "mean"}),
    ("simtde/*", "teacher-embed", {"normalize": False}),
    ("simtde/*", "distill", {"head": "auto", "reduction": "mean", "normalise": False}),
    ("simtde/small", "distill", {"alpha": 0.5, "token_weight": 0, "token_dim": 128}),
    ("simtde/base-layer-to-layer", "distill", {"layers": 1, "start": "random"}),
    ("simtde/base-kl", "distill", {"sentence_loss": "kl"}),
    ("simtde/base-cosine-mse", "distill", {"sentence_loss": "cosine-mse"}),
    ("simtde/base-cosine-mae", "distill", {"sentence_loss": "cosine-mae"}),
    ("simtde/lrn-kd", "distill", {"token_dim": None, "head": "absent"}),
    ("simtde/lmx-kd", "distill", {"token_dim": None, "start": "random", "alpha": 0.5, "head": "thrown"}),
    ("simtde-entities/*", "train-teacher", {**SIMCSE, "pooling": "mean"}),
    ("simtde-entities/*", "distill", {"alpha": 0.5, "student": "teacher:2"}),
    ("simtde-latency", "distill", {"student": "teacher:3", "token_dim": 384, "max_steps": 1}),
    ("simtde-latency", "bench", {"preset": "simtde", "device": "auto"}),
]
# The papers leave these to us: no numbers of theirs to hold them against.
UNNAMED = {
    "general-2m",
    "general-5m",
    "general-9m",
    "general-static",
}


def wanted(name: str) -> dict[tuple[str, str], Any]:
    return {
        (command, setting): number
        for pattern, command, numbers in NUMBERS
        if fnmatch(name, pattern)
        for setting, number in numbers.items()
    }


def settings_of(step: Step) -> Mapping[str, Any]:
    """Everything that a step goes by: its flags, recipe and flags put together, the switches of its method."""
    params = step.params
    found = {field.name: getattr(params, field.name) for field in fields(params)}
    if step.command in TRAINING:
        options = params.method_options()
        # A recipe's number or a switch; what they stand in place of has the same name.
        found |= {**vars(params.settings()), **options}
    return found


def trained(case: Case) -> set[str]:
    return {stage.command for stage in case.recipe.stages} & set(TRAINING)


@pytest.mark.parametrize("case", [case for case in CASES if wanted(case.name)], ids=lambda case: case.name)
def test_a_recipe_trains_with_the_published_numbers(case: Case, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    inputs = []
    for slot in case.recipe.inputs:
        path = given / f"{slot}.tsv"
        path.touch()
        inputs.append(f"{slot}={given if slot in ('collection', 'tasks') else path}")
    asked = stage.Params(recipe=case.path, variant=case.variant, inputs=tuple(inputs))
    plan = stage.plan(asked, WorkDirectory(tmp_path / "work"))
    # The first of each command: the triplets of stage 2 are read by an `augment` of their own.
    steps = {step.command: step for step in reversed(plan.steps)}
    numbers = {of: number for of, number in wanted(case.name).items() if of[0] in steps}
    found = {(command, setting): settings_of(steps[command]).get(setting, "absent") for command, setting in numbers}
    assert found == numbers


def test_every_training_of_a_recipe_has_its_numbers_in_the_table() -> None:
    for case in CASES:
        told = {command for command, _ in wanted(case.name)} & trained(case)
        assert told == (set() if case.name in UNNAMED else trained(case)), case.name


def test_every_row_of_the_table_is_about_some_recipe() -> None:
    for pattern, command, _ in NUMBERS:
        commands = {stage.command for case in CASES if fnmatch(case.name, pattern) for stage in case.recipe.stages}
        assert command in commands, (pattern, command)
    assert {case.name for case in CASES} >= UNNAMED
