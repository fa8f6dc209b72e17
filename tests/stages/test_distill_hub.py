"""distill with a student from a model hub, and what happens where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from distilling import make_work
from hub import asking, serve_hub
from tiny_models import make_sentences, make_tiny_model
from warm import Commands

from sentcompress.store import WorkDirectory

Distill = Callable[..., CompletedProcess[str]]
TINYBERT = "nreimers/TinyBERT_L-4_H-312_v2"


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path) -> WorkDirectory:
    return make_work(tmp_path / "work", tiny_model, make_sentences(200))


@pytest.fixture
def distill(work: WorkDirectory, tmp_path: Path, commands: Commands) -> Distill:
    """Runs `distill` with the hub at an address."""

    def run(endpoint: str, *words: str) -> CompletedProcess[str]:
        asked = ["distill", "--work", work.path, "--method", "ckd", *words]
        return commands(asked, environment=asking(endpoint, tmp_path / "home"))

    return run


def test_tinybert_comes_from_the_hub(work: WorkDirectory, tmp_path: Path, distill: Distill) -> None:
    model = make_tiny_model(tmp_path / "tinybert", layers=4, width=24, seed=4)
    for extra in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        (model / extra).unlink()  # a plain checkpoint, as the real one is
    numbers = ("--epochs", "2", "--batch-size", "32", "--dtype", "float32")
    with serve_hub({TINYBERT: model}) as endpoint:
        first = distill(endpoint, "--student", "tinybert", "--json", *numbers)
    assert first.returncode == 0, first.stderr
    manifest = json.loads(first.stdout)
    assert manifest["name"].startswith("ckd-tinybert-")
    assert manifest["facts"]["dimension"] == 24
    assert f"model:{TINYBERT}" in manifest["inputs"]
    # DistilCSE's numbers for a small student.
    for told in ("learning rate 0.0003 (paper, section 4.2", "weight_decay 0,", "betas 0.9 0.98", "queue=65536"):
        assert told in first.stderr
    assert manifest["facts"]["recipe"]["lr"]["value"] == 3e-4
    # The hub has gone; what was downloaded is still there.
    again = distill(endpoint, "--student", "tinybert", "--name", "again", *numbers)
    assert again.returncode == 0, again.stderr
    assert work.get("students", "again").digest == manifest["digest"]


def test_a_name_that_the_hub_does_not_know(work: WorkDirectory, distill: Distill) -> None:
    with serve_hub({}) as endpoint:
        run = distill(endpoint, "--student", "nobody/nothing")
    assert run.returncode == 1
    assert run.stderr.startswith("error: no model 'nobody/nothing'")
    assert "help:" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (work.path / "students").exists()


def test_no_hub_at_all(work: WorkDirectory, distill: Distill) -> None:
    run = distill("http://127.0.0.1:9", "--student", "tinybert")
    assert run.returncode == 1
    assert f"{TINYBERT} cannot be fetched" in run.stderr
    assert "--student teacher:3" in run.stderr
    assert "Traceback" not in run.stderr
