"""Options by their names: what a recipe may say is what the command line takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_group import command_group

from sentcompress.commands import all_commands, makers
from sentcompress.commands.options import Key, keys_of
from sentcompress.commands.parsing import _read, build, checked, from_text
from sentcompress.commands.spelling import spelled, spelled_hint, words
from sentcompress.errors import UsageError
from sentcompress.mining.miner import Rules
from sentcompress.stages import augment, bench, distill, eval_fidelity, mine_negatives, search, teacher_embed

# Where results go and how they are shown is said to `run`, once for all stages.
OF_RUN = {"help", "work", "json", "quiet"}


@pytest.mark.parametrize("command", makers())
def test_a_recipe_takes_what_the_command_line_takes(command: str) -> None:
    group = command_group()
    of_command_line = {
        parameter.opts[0].removeprefix("--") if parameter.opts[0].startswith("--") else parameter.name
        for parameter in group.commands[command].params
    } - OF_RUN
    assert set(keys_of(makers()[command].params)) == of_command_line


def test_an_option_takes_the_same_kind_of_value_in_every_command() -> None:
    """A number, a switch, a model, an artifact of one kind, or other text; `--queries` is a file, and never a count."""
    kinds: dict[str, set[tuple[str, str | None]]] = {}
    for command in all_commands().values():
        for name, key in keys_of(command.params).items():
            value = key.item or key.types[0]
            kind = "number" if value in (int, float) else "switch" if value is bool else "text"
            if not key.opt.positional:
                kinds.setdefault(name, set()).add((kind, key.opt.names))
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


def test_the_help_of_an_option_names_every_choice() -> None:
    for command in all_commands().values():
        for name, key in keys_of(command.params).items():
            shown = f"{key.opt.help} {key.opt.default}"
            missing = [choice for choice in key.choices() if not re.search(rf"\b{re.escape(choice)}\b", shown)]
            assert not missing, (command.name, name, missing)


def test_values_go_to_their_fields() -> None:
    values = {"method": "ckd", "lr": 1, "seed": 3, "dev": "dev.tsv", "set": {"queue": 10, "head_start": "identity"}}
    params, faults = build(distill.Params, values)
    assert not faults
    assert params == distill.Params(
        method="ckd",
        lr=1.0,
        seed=3,
        dev=Path("dev.tsv"),
        options=("queue=10", "head_start=identity"),
    )
    assert isinstance(params.lr, float)


def test_several_values() -> None:
    listed, _ = build(teacher_embed.Params, {"layers": [2, 4]})
    with_commas, _ = build(teacher_embed.Params, {"layers": "2, 4"})
    assert listed.layers == with_commas.layers == (2, 4)
    assert build(augment.Params, {"inputs": "a.txt"})[0].inputs == ("a.txt",)


def test_options_fill_the_dataclasses_of_other_modules() -> None:
    params, _ = build(mine_negatives.Params, {"skip": 7, "negatives": 3, "max-score": 0})
    rules = params.part(Rules, count=params.negatives)
    assert (rules.skip, rules.count, rules.max_score) == (7, 3, None)


def test_none_for_what_is_on_by_default() -> None:
    assert build(bench.Params, {"compare": "none"})[0].compare is None


def test_the_largest_seed_is_a_seed() -> None:
    params = build(bench.Params, {"seed": 2**63 - 1})[0]
    params.check()
    assert params.seed == 2**63 - 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epochs": "3"}, "`epochs` must be a whole number, not '3'"),
        ({"epochs": 3.0}, "`epochs` must be a whole number"),
        ({"epochs": True}, "`epochs` must be a whole number"),
        ({"epochs": 10**400}, "`epochs` must be a whole number below 2^63"),
        ({"lr": True}, "`lr` must be a number"),
        ({"lr": 10**400}, "`lr` must be a number below 2^63"),
        ({"method": 3}, "`method` must be a string"),
        ({"force": "yes"}, "`force` must be true or false"),
        ({"dev": ["a", "b"]}, "`dev` must be a string"),
        ({"dev": ""}, "`dev` must be a path, not ''"),
        ({"batchsize": 3}, "no option 'batchsize'; did you mean batch-size or batches?"),
    ],
)
def test_a_value_of_the_wrong_kind(values: dict[str, Any], words: str) -> None:
    params, faults = build(distill.Params, {**values, "dim": 64})
    assert len(faults) == 1
    assert words in faults[0]
    assert params.dim == 64  # the rest can still be checked


def test_lists_of_the_wrong_kind() -> None:
    assert "`layers` must be whole numbers, separated by commas" in build(teacher_embed.Params, {"layers": "2,x"})[1][0]
    assert "`inputs` must be a string, or a list of them" in build(augment.Params, {"inputs": [3]})[1][0]


def test_what_is_missing() -> None:
    assert build(augment.Params, {"wordnet": 1}) == (None, ["`inputs` is missing"])


def test_text_is_read_as_its_option_has_it() -> None:
    assert from_text(int, "3") == 3
    assert from_text(float, "3") == 3.0
    assert from_text(bool, "true") is True
    assert from_text(str, "3") == "3"
    assert from_text(int, "x") == "x"


def test_words_of_a_command_line() -> None:
    params = augment.Params(inputs=("a b.txt", "c.txt"), wordnet=0, column=("x", "y"), skip_bad=True, workers=3)
    assert words(params) == [
        *("augment", "a b.txt", "c.txt", "--wordnet", "0", "--skip-bad", "--column", "x", "--column", "y")
    ]
    assert words(bench.Params(memory=False, compare=None, runtimes=("onnx", "float32"))) == [
        *("bench", "--compare", "none", "--runtimes", "onnx,float32", "--no-memory")
    ]
    assert words(mine_negatives.Params(max_score=None), name="m") == [
        *("mine-negatives", "--max-score", "0", "--name", "m")
    ]


@pytest.mark.parametrize("command", makers())
def test_the_printed_words_mean_the_same_options(command: str) -> None:
    """Words -> Params -> words, for a value of every option."""
    params = makers()[command].params
    values = {
        key.name: EXAMPLES.get(key.name, EXAMPLE_OF.get(key.item or key.types[0])) for key in keys_of(params).values()
    }
    values = {name: choice(keys_of(params)[name], value) for name, value in values.items()}
    made, faults = build(params, values)
    assert not faults
    written = words(made)
    group = command_group()
    read = group.commands[command].make_context(command, written[1:]).params
    names = {key.field: key.name for key in keys_of(params).values()}
    again, faults = build(
        params, {n: _read(keys_of(params)[n], read[f]) for f, n in names.items() if read[f] is not None}
    )
    assert not faults
    unseen = {key.field: getattr(made, key.field) for key in keys_of(params).values() if key.opt.affects == "run"}
    assert replace(again, **unseen) == made
    assert words(again) == written


EXAMPLE_OF = {int: 7, float: 0.25, str: "x", Path: "x y.tsv", bool: True}
EXAMPLES = {"memory": False}


def choice(key: Key, value: Any) -> Any:
    """A value that the option allows; lists for those that take several."""
    if key.choices():
        value = key.choices()[-1]
    return [value] if key.item is not None else value


def test_every_fault_of_a_line_is_told_with_its_flag() -> None:
    with pytest.raises(UsageError) as raised:
        checked(distill.Params, {"lr": "x", "dim": "-5", "dropout": "3", "method": "hdp", "checkpoint-every": "nan"})
    told = spelled(raised.value.message, distill.Params)
    for text in (
        "5 errors",
        "--lr must be a number, not 'x'",
        "--dim must be at least 1, not -5",
        "--dropout must be at least 0 and below 1, not 3.0",
        "--checkpoint-every must be at least 0, not nan",
        "no method 'hdp'; did you mean hpd?",
    ):
        assert text in told


def test_only_names_of_options_are_spelt_as_flags() -> None:
    assert spelled("`dim` of `rm -rf` and `folder`", distill.Params) == "--dim of `rm -rf` and `folder`"
    assert spelled("`inputs`: none", augment.Params) == "INPUT...: none"


@pytest.mark.parametrize(
    ("alternatives", "of_augment", "of_search", "of_fidelity"),
    [
        (
            ("name it with `column`", "rename it to text"),
            *["name it with --column, or rename it to text"] * 2,
            "rename it to text",
        ),
        (
            ("leave out `column`", "give `format`"),
            "leave out --column, or give --format",
            "leave out --column",
            None,
        ),
        (
            ("use `format` x or `format` y", "rename it"),
            "use --format x or --format y, or rename it",
            *["rename it"] * 2,
        ),
        (("use `config` and `split`",), "use --config and --split", None, None),
        (("choose another `work`", "wait"), *["choose another --work, or wait"] * 3),
    ],
)
def test_a_hint_names_no_option_of_other_commands(
    alternatives: tuple[str, ...], of_augment: str, of_search: str | None, of_fidelity: str | None
) -> None:
    assert spelled_hint(alternatives, augment.Params) == of_augment
    assert spelled_hint(alternatives, search.Params) == of_search
    assert spelled_hint(alternatives, eval_fidelity.Params) == of_fidelity
