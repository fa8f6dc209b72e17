"""The recipes that come with the project: checked against the Params they name, and each run for a few tiny steps."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from distilling import write_dev
from tiny_models import make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.commands import find_command
from sentcompress.commands.options import keys_of
from sentcompress.methods import METHODS, OBJECTIVES
from sentcompress.methods.hyperparameters import Hyperparameters
from sentcompress.models.names import PRESETS
from sentcompress.recipes.document import read_recipe
from sentcompress.recipes.inputs import placeholders
from sentcompress.stages import run as stage
from sentcompress.store import WorkDirectory

FOLDER = Path(__file__).resolve().parents[2] / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))
# The published figures, seven-set means unless said otherwise; each is the aim of one recipe.
PUBLISHED = {
    "simcse-tinybert": 78.78,
    "simcse-tinybert-huawei": 77.19,
    "simcse-projection-128-tinybert": 78.12,
    "simcse-whitening-128-tinybert": 78.74,
    "mse-tinybert": 79.78,
    "crd-tinybert": 80.54,
    "hpd-128-tinybert": 81.02,
    "ibkd-tinybert": 81.69,
    "ibkd-ft-tinybert": 82.01,
    "ibkd-128-tinybert": 81.12,
    "ckd-tinybert-huawei": 81.16,
    "ckd-ft-tinybert-huawei": 82.84,
    "simcse-minilm": 77.16,
    "mse-minilm": 79.30,
    "crd-minilm": 81.30,
    "hpd-128-minilm": 81.80,
    "ibkd-minilm": 82.01,
    "ibkd-ft-minilm": 82.69,
    "ibkd-128-minilm": 82.29,
    "simcse-tinybert6": 81.09,
    "kd-tinybert6": 83.85,
    "pkd-tinybert6": 84.32,
    "metakd-tinybert6": 84.20,
    "ckd-ft-tinybert6": 84.58,
    "simcse-bert-base": 81.57,
    "kd-bert-base": 84.57,
    "pkd-bert-base": 84.34,
    "metakd-bert-base": 84.30,
    "ckd-ft-bert-base": 85.04,
    "simcse-roberta-large": 83.76,
    "simtde-base": 80.47,
    "simtde-small": 78.09,
    "simtde-entities-1-4m": 99.57,  # percent of the teacher's Recall@1
    "ibkd-ft-msmarco-tinybert": 37.32,  # MRR@10
    "ibkd-ft-msmarco-minilm": 37.49,
}
# Every model that a recipe names: as many layers as the real one has, and next to no width.
LAYERS = {
    **{"tinybert": 4, "tinybert-huawei": 4, "tinybert6": 6, "minilm": 6, "bert-base": 12},
    "princeton-nlp/sup-simcse-roberta-large": 24,
    "sentence-transformers/nli-mpnet-base-v2": 12,
    "princeton-nlp/sup-simcse-bert-base-uncased": 12,
    "sentence-transformers/all-MiniLM-L6-v2": 6,
    "google/bert_uncased_L-2_H-128_A-2": 2,
    "google/bert_uncased_L-6_H-128_A-2": 6,
    "Luyu/co-condenser-marco-retriever": 12,
    "bert-base-uncased": 12,
    "roberta-large": 24,
}
# What makes a stage short, and what does not suit tiny models or depends on what else is installed.
SHORT = {
    **{"max-steps": 2, "epochs": 1, "batch-size": 8, "max-length": 16, "dtype": "float32", "device": "cpu"},
    **{"wordnet": 0, "back-translate": 0, "bootstrap": 0, "rounds": 1, "max-score": 0, "nlist": 4},
}
# Widths that tiny models do not have, where a recipe sets them.
NARROW = {
    **{command: {"dim": 8} for command in ("fit-pca", "whiten", "finetune")},
    "distill": {"token-dim": 8, "vocabulary": 40, "feed-forward": 12},
}


def test_every_published_figure_has_its_recipe() -> None:
    aims = {path.stem: tomllib.loads(path.read_text("utf-8"))["row"].get("score") for path in RECIPES}
    assert {name: score for name, score in aims.items() if score is not None} == PUBLISHED


def test_the_list_of_recipes_is_whole() -> None:
    listed = re.findall(
        r"^\| \[(.+)\]\((.+)\.toml\) \| (.+) \| .+ \| (.+) \|$",
        (FOLDER / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert sorted(name for name, *_ in listed) == sorted(path.stem for path in RECIPES)
    for name, file, model, score in listed:
        row = read_recipe(FOLDER / f"{file}.toml")[0].row
        assert (name, model) == (file, row["model"])
        assert score == (f"{row['score']:.2f}" if "score" in row else "-")


def test_hpd_is_there_for_every_width_teacher_and_student() -> None:
    wanted = {f"hpd-{w}-{s}{t}" for w in (128, 256, "full") for s in ("tinybert", "minilm") for t in ("", "-mpnet")}
    assert wanted <= {path.stem for path in RECIPES}


def test_every_method_has_a_recipe() -> None:
    stages = [table for path in RECIPES for table in tomllib.loads(path.read_text("utf-8"))["stage"]]
    assert {table["method"] for table in stages if "method" in table} == set(METHODS)
    objectives = {table["objective"] for table in stages if "objective" in table}
    assert objectives == set(OBJECTIVES)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_says_what_it_is_for_and_where_its_numbers_are_from(path: Path) -> None:
    recipe, faults = read_recipe(path)
    assert not faults
    assert "http" in recipe.paper
    assert {"table", "model", "parameters", "metric"} <= recipe.row.keys()
    assert "score" in recipe.row or "note" in recipe.row
    used = {name for one in recipe.stages for name in placeholders(dict(one.values))}
    assert used == set(recipe.inputs)
    assert recipe.stages[-1].command in ("eval-sts", "eval-retrieval")
    assert recipe.stages[-1].values["model"] == path.stem
    numbers = {field.name.replace("_", "-") for field in fields(Hyperparameters)}
    blocks = path.read_text(encoding="utf-8").split("[[stage]]")[1:]
    for one, block in zip(recipe.stages, blocks, strict=True):
        if numbers & one.values.keys() and one.command != "augment":
            assert re.search(r"^# .*(paper|code)", block, flags=re.MULTILINE | re.IGNORECASE), one


@dataclass(frozen=True)
class Workshop:
    """A work directory that all recipes share, as a user's would be, with tiny models and inputs."""

    work: WorkDirectory
    models: dict[str, Path]
    inputs: dict[str, Path]

    def params(self, path: Path) -> stage.Params:
        """The recipe with tiny models and a few steps."""
        recipe, _ = read_recipe(path)
        inputs = tuple(f"{name}={self.inputs[name]}" for name in recipe.inputs)
        settings = []
        for one in recipe.stages:
            options = keys_of(find_command(one.command).params)
            short = {name: value for name, value in SHORT.items() if name in options}
            if one.command == "augment":
                short.pop("max-length", None)
            short |= {name: value for name, value in NARROW.get(one.command, {}).items() if name in one.values}
            short |= {key: self.models[str(v)] for key, v in one.values.items() if str(v) in self.models}
            settings += [f"{one.number}.{name}={value}" for name, value in short.items()]
            if one.command == "average":
                settings += [f"{one.number}.inputs={self.models.get(v, v)}" for v in one.values["inputs"]]
        return stage.Params(recipe=path, inputs=inputs, settings=tuple(settings))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = tmp_path_factory.mktemp("workshop")
    texts = make_sentences(140, seed=9)
    models = {
        name: make_tiny_model(folder / f"model-{number}", layers=layers, width=16, seed=number)
        for number, (name, layers) in enumerate(LAYERS.items())
    }
    return Workshop(WorkDirectory(folder / "work"), models, write_inputs(folder, texts))


def write_inputs(folder: Path, texts: Sequence[str]) -> dict[str, Path]:
    """A file or folder for every input that a recipe wants."""
    triplets = [texts[start : start + 3] for start in range(0, 60, 3)]
    twos = [texts[start : start + 2] for start in range(60, 100, 2)]
    files = {
        "nli": ("nli.csv", "sent0,sent1,hard_neg\n" + lines(",".join(three) for three in triplets)),
        "news": ("news.txt", lines(texts[:60])),
        "text": ("text.txt", lines(texts[:60])),
        "wide": ("wide.txt", lines(texts[:80])),
        "short": ("short.txt", lines(texts[40:120])),
        **{f"broad-{part}": (f"broad-{part}.txt", lines(texts[part * 15 : part * 15 + 40])) for part in (1, 2, 3, 4)},
        **{f"short-{part}": (f"short-{part}.txt", lines(texts[part * 20 : part * 20 + 60])) for part in (1, 2)},
        **{f"forum-{part}": (f"forum-{part}.txt", lines(texts[part * 20 : part * 20 + 40])) for part in (1, 2)},
        "documents": ("documents.txt", lines(texts[80:120])),
        "texts": ("texts.txt", lines(texts[60:])),
        "pairs": ("pairs.txt", lines(texts[60:100])),
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
    collection = folder / "marco"
    (collection / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{number}", "text": two} for number, (_, two) in enumerate(twos)]
    queries = [{"_id": f"q{number}", "text": one} for number, (one, _) in enumerate(twos)]
    (collection / "corpus.jsonl").write_text(lines(map(json.dumps, documents)), encoding="utf-8")
    (collection / "queries.jsonl").write_text(lines(map(json.dumps, queries)), encoding="utf-8")
    for split, numbers in (("train", range(10)), ("dev", range(10, 20))):
        judged = "query-id\tcorpus-id\tscore\n" + lines(f"q{number}\td{number}\t1" for number in numbers)
        (collection / "qrels" / f"{split}.tsv").write_text(judged, encoding="utf-8")
    named = {name: folder / file for name, (file, _) in files.items()}
    return {**named, "dev": folder / "dev.tsv", "sts": folder / "sts.tsv", "collection": collection}


def lines(texts: Any) -> str:
    return "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_asks_for_what_its_commands_would(
    path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command lines, read by the command line itself, give the very Params that `run` uses."""
    asked: list[Any] = []

    class EnoughError(Exception):
        """Raised in place of doing the work."""

    def catch(params: Any, *others: object) -> None:
        asked.append(params)
        raise EnoughError

    inputs = tuple(f"{name}={workshop.inputs[name]}" for name in read_recipe(path)[0].inputs)
    plan = stage.plan(stage.Params(recipe=path, inputs=inputs), workshop.work)
    for step in plan.steps:
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


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs(path: Path, workshop: Workshop) -> None:
    done = stage.run(workshop.params(path), workshop.work).done
    assert [one.step.command for one in done] == [one.command for one in read_recipe(path)[0].stages]
    scored = done[-1].artifact
    assert f"students/{path.stem}" in scored.inputs
    assert all(math.isfinite(number) for one in done for number in one.as_dict()["result"].values())
    trained = [one.artifact for one in done if one.step.command in ("distill", "finetune", "train-teacher")]
    assert trained
    assert all(1 <= artifact.facts["steps"] <= 2 for artifact in trained)


def test_recipes_share_what_they_have_in_common(workshop: Workshop) -> None:
    """Stage 1 of IBKD is trained once, whichever of its recipes came first."""
    for path, fresh in ((FOLDER / "ibkd-minilm.toml", 3), (FOLDER / "ibkd-128-minilm.toml", 3)):
        done = stage.run(workshop.params(path), workshop.work).done
        again = stage.run(workshop.params(path), workshop.work).done
        assert [one.artifact.digest for one in done] == [one.artifact.digest for one in again]
        assert all(one.fresh for one in again)
        assert sum(one.step.command in ("augment", "teacher-embed", "distill") for one in again) == fresh


def test_presets_are_the_students_of_the_recipes() -> None:
    names = {str(table.get("student")) for path in RECIPES for table in tomllib.loads(path.read_text("utf-8"))["stage"]}
    assert {name for name in names if name in PRESETS} == set(PRESETS)
