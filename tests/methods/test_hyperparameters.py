"""Recipes with their sources, and switches as users set them."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from sentcompress.errors import UsageError
from sentcompress.methods import METHODS, OBJECTIVES, method_class, objective_class
from sentcompress.methods.base import Method
from sentcompress.methods.hyperparameters import Hyperparameters, Number, Option, Sized, parse_options
from sentcompress.methods.ibkd import IBKD, IBKDFinetune
from sentcompress.methods.lmx_kd import LMXKD
from sentcompress.methods.simtde import SimTDE

OPTIONS = {
    "tanh": Option(False, "", ""),
    "queue": Option(10, "", "", minimum=0, maximum=5000),
    "learnt": Option(0.0, "", "", minimum=1e-6, or_zero=True),
    "temperature": Option(0.0, "", ""),
    "reduction": Option("sum", "", "", choices=("sum", "mean")),
}


NEEDS = {"teacher", "pca", "inputs", "tokens", "teacher-layers", "states", "domains", "triplets"}
EVERY = [*map(method_class, METHODS), *map(objective_class, OBJECTIVES)]
# How a source may begin: a place in a paper, a file of released code, ours with the reason, what AdamW does by itself,
# or nothing to go by. Whose it is stands before, where it is not the method's own.
FILE = r"released code, [\w/]+\.(?:sh|py|md)\b"
FORM = re.compile(
    rf"(?:as \w+[^:]*: )?(?:\w+'s )?(?:paper, \S|{FILE}|ours: \S)"
    r"|AdamW's |(?:(?:never|the checkpoint's own); )?not stated$"
)
# What each word has to stand with, wherever it stands. `the paper` speaks of a paper; it is no source.
COMPLETE = (
    re.compile(FILE),
    re.compile(r"(?<!the )\bpapers?\b, \S|\bthe papers?\b"),
    re.compile(r"\bours: \S|\bis ours\b"),
)


def unnamed(source: str) -> list[str]:
    """What is missing in a source: nothing if it says where its number is from."""
    faults = [] if FORM.match(source) else ["the form"]
    for word, complete in zip(("released code", "paper", "ours"), COMPLETE, strict=True):
        if len(re.findall(rf"\b{word}s?\b", source)) != len(complete.findall(source)):
            faults.append(word)
    return faults


def sources(method: type[Method]) -> dict[str, str]:
    """All sources of a method, by what they are of: its recipe, those that train-teacher goes by, its options."""
    recipes = {"recipe": method.recipe, "teacher": method.teacher_recipe or method.recipe}
    found = {
        f"{kind}: {name} {place}": number["source"]
        for kind, recipe in recipes.items()
        for name, told in recipe.as_dict().items()
        for place, number in {"": told, **({"sized": told["sized"]} if "sized" in told else {})}.items()
    }
    return found | {f"--set {name}": option.source for name, option in method.options.items()}


def test_the_repositories_of_the_released_code_are_told() -> None:
    """A file of released code can only be found by its repository, which docs/methods.md names for each paper."""
    own = {"HPD": "HPD", "CKD": "DistilCSE", "IBKD": "IBKD", "IBKDFinetune": "IBKD", "CRD": "CRD", "PKD": "PKD"}
    cited = set()
    for method in EVERY:
        for source in sources(method).values():
            for owner in re.findall(r"(?:(\w+)'s )?released code, ", source):
                cited.add(owner or ("IBKD" if source.startswith("as ibkd") else own[method.__name__]))
    page = (Path(__file__).resolve().parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (\w+) \| \[[\w./-]+\]\(https://github\.com/", page, flags=re.MULTILINE)
    assert sorted(told) == sorted(cited)


def test_each_name_is_of_its_stage() -> None:
    assert {method_class(name).stage for name in METHODS} == {"distill"}
    assert {objective_class(name).stage for name in OBJECTIVES} == {"finetune"}


@pytest.mark.parametrize("method", EVERY, ids=lambda method: method.__name__)
def test_every_method_says_what_it_is(method: type[Method]) -> None:
    assert method.needs <= NEEDS
    assert ("triplets" in method.needs) == (method.stage == "finetune")
    assert isinstance(method.contrastive, bool)
    for text in (method.title, method.paper, method.link, method.equation, method.deployed, inspect.getdoc(method)):
        assert text
    for number in method.recipe.as_dict().values():
        assert number["source"]
    for option in method.options.values():
        assert option.help
        assert option.source
        assert option.parse(str(option.default)) == option.default


def test_the_equation_reduces_as_the_default_does() -> None:
    """|v|^2 is a sum over the dimensions, MSE a mean over them."""
    reduced = [method for method in EVERY if "reduction" in method.options]
    signs = {"sum": "|^2", "mean": "MSE("}
    written = [{name for name, sign in signs.items() if sign in method.equation} for method in reduced]
    assert written == [{method.options["reduction"].default} for method in reduced] != []


@pytest.mark.parametrize("method", EVERY, ids=lambda method: method.__name__)
def test_every_source_names_the_place_or_the_file(method: type[Method]) -> None:
    found = sources(method)
    assert len(found) >= 2 * len(fields(Hyperparameters))
    faults = {name: (source, unnamed(source)) for name, source in found.items() if unnamed(source)}
    assert not faults


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("paper", ["the form", "paper"]),
        ("released code", ["the form", "released code"]),
        ("ours", ["the form", "ours"]),
        ("ours; not stated", ["the form", "ours"]),
        ("paper (released code: 5)", ["the form", "released code", "paper"]),
        ("paper, table 1; released code: 1.0", ["released code"]),
        ("released code, train.sh: random; paper: zero", ["paper"]),
        ("released code, its trainer", ["the form", "released code"]),
        ("as ckd: released code", ["the form", "released code"]),
        ("a blog", ["the form"]),
        ("paper, table 1; released code, src/run_it.sh: 5; 7 is ours", []),
        ("as ckd: DistilCSE's paper, training details; DistilCSE's released code, run.sh: 5", []),
        ("ours: the paper names none", []),
        ("AdamW's own defaults", []),
        ("never; not stated", []),
        ("not stated", []),
    ],
)
def test_a_source_without_a_place_is_found(source: str, missing: list[str]) -> None:
    assert unnamed(source) == missing


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("tanh=true", True),
        ("tanh=no", False),
        ("queue=0", 0),
        ("learnt=0", 0.0),
        ("learnt=1e-6", 1e-6),
        ("temperature=0.05", 0.05),
        ("reduction=mean", "mean"),
    ],
)
def test_an_option_is_set_by_name_and_value(setting: str, value: object) -> None:
    values, faults = parse_options(OPTIONS, [setting])
    assert not faults
    assert values[setting.split("=")[0]] == value


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("tahn=true", "did you mean tanh?"),
        ("tanh", "write name=value"),
        ("tanh=maybe", "true or false"),
        ("queue=1.5", "a number of type int"),
        ("queue=-1", "at least 0"),
        ("queue=5001", "at most 5,000"),
        (f"queue={10**400}", "a number of type int"),
        ("learnt=1e-9", "0, or at least 1e-06"),
        ("temperature=nan", "a number of type float"),
        ("temperature=inf", "a number of type float"),
        ("reduction=max", "one of sum, mean"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said(setting: str, complaint: str) -> None:
    _, faults = parse_options(OPTIONS, [setting])
    assert len(faults) == 1
    assert complaint in faults[0]


@pytest.mark.parametrize(
    ("method", "setting", "complaint"),
    [
        (IBKD, "gamma=0", "at least 1e-06, not 0"),
        (IBKDFinetune, "gamma=0", "at least 1e-06, not 0"),
        (SimTDE, "alpha=1.5", "at most 1, not 1.5"),
        (LMXKD, "alpha=1.5", "at most 1, not 1.5"),
    ],
)
def test_the_ranges_of_the_methods_options(method: type[Method], setting: str, complaint: str) -> None:
    assert parse_options(method.options, [setting])[1] == [f"`options` {setting}: must be {complaint}"]


def test_a_number_that_is_overridden_says_so() -> None:
    recipe = Hyperparameters(Number(1e-4, "paper"), Number(3, "paper"), Number(256, "paper"), Number("linear", "code"))
    changed = recipe.overridden({"lr": 5e-4, "epochs": None}, {"lr": "asked for"})
    assert changed.lr == Number(5e-4, "asked for; default: 0.0001")
    assert changed.epochs == recipe.epochs
    assert {field.name for field in fields(Hyperparameters)} == set(changed.values())


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"below": 100}, {99: True, 100: False, 101: False, 0: False}),
        ({"at_least": 100}, {99: False, 100: True, 0: False}),
        ({"at_least": 10, "below": 20}, {9: False, 10: True, 19: True, 20: False}),
    ],
)
def test_a_number_for_models_of_some_sizes(limits: dict[str, int], sizes: dict[int, bool]) -> None:
    lr = Number(1e-4, "paper, one", Sized(3e-4, "paper, two", "parameters", **limits))
    recipe = Hyperparameters(lr, Number(3, ""), Number(256, ""), Number("linear", ""))
    for size, small in sizes.items():
        found = recipe.for_size(parameters=size, width=15)
        assert found.lr == (Number(3e-4, "paper, two") if small else Number(1e-4, "paper, one"))
        assert found.epochs == recipe.epochs
    assert recipe.for_size(width=15).lr.value == 1e-4
    assert recipe.overridden({"lr": 1e-3}, {"lr": "asked for"}).for_size(parameters=15).lr.value == 1e-3


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"below": 100_000_000}, "below 100,000,000 parameters"),
        ({"at_least": 1024}, "1,024 parameters and more"),
        ({"at_least": 5, "below": 9}, "5 parameters and more, below 9 parameters"),
    ],
)
def test_the_limit_of_a_size_in_words(limits: dict[str, int], words: str) -> None:
    assert Sized(1, "", "parameters", **limits).condition == words


@pytest.mark.parametrize("name", ["ckd", "mse", "pkd", "metakd"])
def test_distilcse_s_optimiser(name: str) -> None:
    """Section 4.2: Adam, which has no weight decay; 2e-4 for 110M parameters, 3e-4 for 52M and 14M."""
    recipe = method_class(name).recipe
    assert recipe.weight_decay.value == 0
    assert recipe.betas.value == "0.9 0.98"
    rates = {size: recipe.for_size(parameters=size).lr.value for size in (110_000_000, 52_000_000, 14_000_000)}
    assert rates == {110_000_000: 2e-4, 52_000_000: 3e-4, 14_000_000: 3e-4}
    assert recipe.as_dict()["lr"]["sized"]["condition"] == "below 100,000,000 parameters"


def test_distilcse_s_second_stage() -> None:
    """Section 4.2: 5 epochs, batches of 128, Adam; 1e-5 for 52M parameters, 5e-5 for 110M and 14M."""
    recipe = objective_class("simcse").recipe
    assert (recipe.epochs.value, recipe.batch_size.value, recipe.weight_decay.value) == (5, 128, 0)
    sizes = (110_000_000, 52_000_000, 14_000_000, 0)
    rates = [recipe.for_size(parameters=size).lr.value for size in sizes]
    assert rates == [5e-5, 1e-5, 5e-5, 5e-5]


@pytest.mark.parametrize(
    ("name", "hint"), [("KD", "here it is called mse"), ("distilcse", "it is ckd"), ("whiten", "sentcompress whiten")]
)
def test_other_names_of_a_method_lead_to_it(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        method_class(name)
    assert hint in str(caught.value.hint)


def test_an_unknown_method_is_a_slip_of_the_finger() -> None:
    with pytest.raises(UsageError) as caught:
        method_class("hdp")
    assert caught.value.hint == "did you mean hpd?"
    with pytest.raises(UsageError, match="no objective 'simsce'") as caught:
        objective_class("simsce")
    assert caught.value.hint == "did you mean simcse?"
