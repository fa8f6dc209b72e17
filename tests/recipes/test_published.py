"""The recipes that come with the project: every variant is planned, and each distinct chain runs for a few steps."""

from __future__ import annotations

import functools
import gzip
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from beir import with_ids, write_beir
from distilling import write_dev
from recipes.shipped import CASES, CHAINS, FOLDER, Case
from tiny_models import make_plain, make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.commands import find_command
from sentcompress.commands.options import MODEL, keys_of
from sentcompress.methods import METHODS, OBJECTIVES
from sentcompress.methods.hyperparameters import Hyperparameters
from sentcompress.models.names import PRESETS, meaning_of
from sentcompress.recipes.document import Stage
from sentcompress.recipes.placeholders import placeholders
from sentcompress.stages import run as stage
from sentcompress.store import WorkDirectory

# Models from which layers are taken, or states of layers: as many as the real one has, and next to no width.
LAYERS = {
    **{"tinybert": 4, "tinybert-huawei": 4, "tinybert6": 6, "minilm": 6, "bert-base": 12},
    "princeton-nlp/sup-simcse-roberta-large": 24,
    "sentence-transformers/nli-mpnet-base-v2": 12,
    "princeton-nlp/sup-simcse-bert-base-uncased": 12,
    "sentence-transformers/all-MiniLM-L6-v2": 6,
    "bert-base-uncased": 12,
    "microsoft/MiniLM-L12-H384-uncased": 12,
}
FEWEST_LAYERS = 2
# What makes a stage short, and what does not suit tiny models or depends on what else is installed.
SHORT = {
    **{"max-steps": 2, "epochs": 1, "batch-size": 8, "max-length": 16, "dtype": "float32", "device": "cpu"},
    **{"wordnet": 0, "back-translate": 0, "bootstrap": 0, "rounds": 1, "max-score": 0, "folds": 2},
}
# Widths that tiny models do not have, where a recipe sets them.
NARROW = {
    **{command: {"dim": 8} for command in ("fit-pca", "whiten", "finetune")},
    "distill": {"token-dim": 8, "vocabulary": 40, "feed-forward": 12},
}


def ids(case: Case) -> str:
    return case.name


def all_stages() -> Iterator[Stage]:
    for case in CASES:
        yield from case.recipe.stages


def test_every_method_has_a_recipe() -> None:
    assert {one.values["method"] for one in all_stages() if "method" in one.values} == set(METHODS)
    assert {one.values["objective"] for one in all_stages() if "objective" in one.values} == set(OBJECTIVES)


def test_presets_are_the_students_of_the_recipes() -> None:
    named = {str(one.values.get(option)) for one in all_stages() for option in ("student", "model")}
    assert named >= set(PRESETS)


def test_every_input_of_a_recipe_is_used_by_some_variant() -> None:
    used: dict[Path, set[str]] = {}
    declared = {case.path: set(case.recipe.inputs) for case in CASES}
    for case in CASES:
        names = {name for one in case.recipe.stages for name in placeholders(dict(one.values))}
        used[case.path] = used.get(case.path, set()) | names
    assert used == declared


@pytest.mark.parametrize("path", sorted({case.path for case in CASES}), ids=lambda path: path.stem)
def test_a_recipe_says_where_its_numbers_are_from(path: Path) -> None:
    """A stage with numbers of its own has a comment that names the paper or the code; a value has one beside it."""
    text = path.read_text(encoding="utf-8")
    assert "http" in next(case.recipe.paper for case in CASES if case.path == path)
    numbers = {field.name.replace("_", "-") for field in fields(Hyperparameters)}
    for block in text.split("[[stage]]")[1:]:
        own = {line.partition(" = ")[0] for line in block.splitlines()}
        if numbers & own and 'command = "augment"' not in block:
            assert re.search(r"^# .*(paper|code)", block, flags=re.MULTILINE | re.IGNORECASE), block


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_recipe_ends_with_the_scores_of_its_rows(case: Case) -> None:
    assert case.recipe.rows
    assert case.recipe.stages[-1].command.startswith(("eval-", "bench"))


@dataclass(frozen=True)
class Workshop:
    """A work directory that all recipes share, as a user's would be, with tiny models and inputs."""

    work: WorkDirectory
    models: dict[str, Path]
    inputs: dict[str, Path]

    def inputs_of(self, case: Case) -> tuple[str, ...]:
        """What is given for the inputs of a recipe: a folder, where the recipe names its files."""
        given = []
        for name, slot in case.recipe.inputs.items():
            named = [file for file in slot.sha256 if file]
            folder = self.work.path.parent / "named" / name
            for number, file in enumerate(named):
                folder.mkdir(parents=True, exist_ok=True)
                texts = self.inputs[name].read_text(encoding="utf-8").splitlines()[3 * number :][:3]
                (folder / file).write_bytes(gzip.compress(lines(texts).encode()))
            given.append(f"{name}={folder if named else self.inputs[name]}")
        return tuple(given)

    def params(self, case: Case) -> stage.Params:
        """The recipe with tiny models and a few steps."""
        recipe = case.recipe
        inputs = self.inputs_of(case)
        settings = []
        for one in recipe.stages:
            options = keys_of(find_command(one.command).params)
            short = {name: value for name, value in SHORT.items() if name in options}
            if one.command == "augment":
                short.pop("max-length", None)
            if "preset" in one.values:
                short.pop("rounds", None)
            narrow = NARROW.get(one.command, {})
            short |= {name: value for name, value in narrow.items() if isinstance(one.values.get(name), int)}
            models = {key: str(one.values.get(key)) for key, of in options.items() if of.opt.names == MODEL}
            short |= {key: self.models[name] for key, name in models.items() if name in self.models}
            settings += [f"{one.number}.{name}={value}" for name, value in short.items()]
            if one.command == "average":
                settings += [f"{one.number}.inputs={self.models.get(v, v)}" for v in one.values["inputs"]]
        return stage.Params(recipe=case.path, variant=case.variant, inputs=inputs, settings=tuple(settings))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("workshop")
    texts = make_sentences(140, seed=9)
    models = {}
    for number, name in enumerate(sorted({name for case in CHAINS for name in models_of(case)})):
        place = folder / f"model-{number}"
        model = make_tiny_model(place, layers=LAYERS.get(name, FEWEST_LAYERS), width=16, seed=number)
        # A preset is a bare checkpoint, whose pooling a recipe can choose.
        models[name] = make_plain(folder / f"bare-{number}", model) if name in PRESETS else model
    return Workshop(WorkDirectory(folder / "work"), models, write_inputs(folder, texts))


def models_of(case: Case) -> Iterator[str]:
    """The models that a recipe takes from outside."""
    for one in case.recipe.stages:
        for key, of in keys_of(find_command(one.command).params).items():
            given = one.values.get(key) if of.opt.names == MODEL else None
            for name in given if isinstance(given, list) else [given]:
                if name and (meaning := meaning_of(name, lambda *_: False)) and meaning.kind == "source":
                    yield name


def write_inputs(folder: Path, texts: Sequence[str]) -> dict[str, Path]:
    """A file or folder for every input that a recipe wants."""
    triplets = [texts[start : start + 3] for start in range(0, 60, 3)]
    twos = [texts[start : start + 2] for start in range(60, 100, 2)]
    files = {
        "nli": ("nli.csv", "sent0,sent1,hard_neg\n" + lines(",".join(three) for three in triplets)),
        "sources": ("sources.md", "## Training data\n"),
        "news": ("news.txt", lines(texts[:60])),
        "text": ("text.txt", lines(texts[:60])),
        "sentences": ("sentences.txt", lines(texts[:20])),
        "texts": ("texts.txt", lines(texts[60:])),
        "labelled": ("labelled.csv", "sent0,sent1,hard_neg\n" + lines(",".join(three) for three in triplets)),
        "pairs": ("pairs.tsv", "query\tentity\tlabel\n" + lines(f"{a}\t{b}\t1\n{a}\t{c}\t0" for a, b, c in triplets)),
        "quora": (
            "quora.tsv",
            "question1\tquestion2\tis_duplicate\n" + lines(f"{one}\t{two}\t1" for one, two in twos),
        ),
        "entities": ("entities.tsv", "query\tentity\tlabel\n" + lines(f"{one}\t{two}\t1" for one, two in twos)),
    }
    for name, text in files.values():
        (folder / name).write_text(text, encoding="utf-8")
    write_dev(folder / "dev.tsv", texts[100:120])
    write_dev(folder / "sts.tsv", texts[120:])
    queries, documents = with_ids((one for one, _ in twos), "q"), with_ids((two for _, two in twos), "d")
    judged = [(f"q{number}", f"d{number}", 1) for number in range(20)]
    collection = write_beir(folder / "marco", documents, queries, train=judged[:10], dev=judged[10:])
    tasks = folder / "tasks" / "MR"
    tasks.mkdir(parents=True)
    (tasks / "all.tsv").write_text(lines(f"{row % 2}\t{text}" for row, text in enumerate(texts[:40])), encoding="utf-8")
    named = {name: folder / file for name, (file, _) in files.items()}
    return {
        **named,
        "tasks": tasks.parent,
        "dev": folder / "dev.tsv",
        "sts": folder / "sts.tsv",
        "stsb": folder / "sts.tsv",
        "collection": collection,
    }


def lines(texts: Any) -> str:
    return "".join(f"{text}\n" for text in texts)


# Made anew, it takes most of the time of a command that does nothing. It keeps what it was asked first about its help.
command_line = functools.cache(typer.main.get_command)


@pytest.fixture(scope="session")
def checked() -> set[str]:
    """The command lines that were read already: variants share most of their stages."""
    return set()


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_recipe_asks_for_what_its_commands_would(
    case: Case, workshop: Workshop, checked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command lines, read by the command line itself, give the very Params that `run` uses."""
    asked: list[Any] = []
    monkeypatch.setattr(typer.main, "get_command", command_line)

    class EnoughError(Exception):
        """Raised in place of doing the work."""

    def catch(params: Any, *others: object) -> None:
        asked.append(params)
        raise EnoughError

    inputs = workshop.inputs_of(case)
    plan = stage.plan(stage.Params(recipe=case.path, variant=case.variant, inputs=inputs), workshop.work)
    assert len(plan.steps) == len(case.recipe.stages)
    for step in plan.steps:
        if str(step.words) in checked:
            continue
        checked.add(str(step.words))
        monkeypatch.setattr(f"sentcompress.stages.{step.command.replace('-', '_')}.run", catch)
        _run([*step.words, "--quiet"])
        assert plain(asked.pop()) == plain(step.params)


def plain(value: Any) -> Any:
    """Params as dicts, in which a list is as good as a tuple."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("case", CHAINS, ids=ids)
def test_a_chain_runs(case: Case, workshop: Workshop) -> None:
    outcome = stage.run(workshop.params(case), workshop.work)
    assert [one.step.command for one in outcome.done] == [one.command for one in case.recipe.stages]
    assert all(math.isfinite(number) for one in outcome.done for number in one.as_dict()["result"].values())
    trained = [one.artifact for one in outcome.done if one.step.command in ("distill", "finetune", "train-teacher")]
    assert all(1 <= artifact.facts["steps"] <= 2 for artifact in trained)
    for one in outcome.measured():
        assert one.value is None or math.isfinite(one.value)
        assert one.why or one.row.figure.evaluation != "sts", "a miniature is not comparable"


def test_variants_share_what_they_have_in_common(workshop: Workshop) -> None:
    """Sentences and teacher vectors are made once, whichever variant came first."""
    fresh = []
    for variant in ("tinybert-128-mpnet", "tinybert-whiten-128"):
        params = workshop.params(Case(FOLDER / "hpd.toml", variant))
        fresh = [one.fresh for one in stage.run(params, workshop.work).done if one.step.number <= 3]
        done = stage.run(params, workshop.work).done
        assert all(one.fresh for one in done)
    assert fresh == [True, True]
