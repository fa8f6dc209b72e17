"""Two and three ranks end with the weights of one process with the same batches, for every method."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from distilling import TIMINGS, add_triplets, make_work, write_dev
from ranked import run_ranks
from safetensors.torch import load_file
from tiny_models import load_model, make_tiny_model
from warm import Commands

from sentcompress.methods import METHODS
from sentcompress.stages import distill, finetune, fit_pca, teacher_embed
from sentcompress.store import WorkDirectory
from sentcompress.training import selection

# Dropout depends on the division among ranks, so it is off. Adam divides by the size of a gradient: where one is next
# to nothing, a rounding error becomes a step of up to the learning rate; hence a low one.
NUMBERS: dict[str, Any] = {
    "lr": 3e-5,
    "epochs": 2,
    "batch_size": 8,
    "max_steps": 5,
    "dtype": "float32",
    "device": "cpu",
    "eval_every": 5,
    "dropout": 0.0,
}
Run = tuple[str, dict[str, Any]]


def distilled(method: str, name: str = "", **options: Any) -> Run:
    return "distill", {"method": method, "student": "teacher:2", "name": name or method, **NUMBERS, **options}


def finetuned(objective: str, name: str, **options: Any) -> Run:
    return "finetune", {"objective": objective, "name": name, **NUMBERS, **options}


TWO = [
    *(distilled(method) for method in METHODS),
    distilled("ckd", "ckd-together", grad_accum=2, options=["queue=20"]),
    distilled("simtde", "simtde-together", grad_accum=2, options=["relation=1"]),
    distilled("ckd", "ckd-averaged", ema=0.9, batches="random"),
    finetuned("simcse", "simcse", options=["dim=8"]),
    finetuned("ibkd", "ibkd-kept", options=["keep=1", "gamma=0.1"]),
]
# Fewer rows than ranks: one of them has none.
THREE = [
    distilled("ckd", batch_size=2),
    distilled("lmx-kd", batch_size=2),
    finetuned("ibkd", "ibkd-kept", batch_size=2, options=["keep=1", "gamma=0.1"]),
]
# All dev scores are equal, so that the last weights are the ones that are kept.
IN_RANKS = """
import json, sys
from pathlib import Path
from sentcompress.stages import distill, finetune
from sentcompress.store import WorkDirectory
from sentcompress.training import selection
selection.score_of = lambda *_: 50.0
work, dev, model, runs = sys.argv[1:]
for command, options in json.loads(runs):
    stage = {"distill": distill, "finetune": finetune}[command]
    options["options"] = tuple(options.get("options", ()))
    more = {"model": model} if command == "finetune" else {}
    stage.run(stage.Params(dev=Path(dev), **options, **more), WorkDirectory(work))
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> Path:
    """A folder with a teacher, graded pairs, and a work directory for every method."""
    folder = tmp_path_factory.mktemp("ranks")
    teacher = make_tiny_model(folder / "teacher", layers=4)
    work = make_work(folder / "work", teacher, sentences[:44])
    teacher_embed.run(teacher_embed.Params(teacher=str(teacher), dtype="float32", layers=(2, 4), force=True), work)
    fit_pca.run(fit_pca.Params(dim=8), work)
    write_dev(folder / "dev.tsv", sentences[:20])
    add_triplets(work, sentences[100:145])
    return folder


@pytest.mark.parametrize(("count", "runs"), [(2, TWO), (3, THREE)], ids=["two", "three"])
def test_the_weights_are_those_of_one_process(
    count: int,
    runs: Sequence[Run],
    prepared: Path,
    tmp_path: Path,
    sentences: list[str],
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "score_of", lambda *_: 50.0)
    alone, together = (WorkDirectory(shutil.copytree(prepared / "work", tmp_path / name)) for name in ("one", "more"))
    dev, model = prepared / "dev.tsv", prepared / "teacher"
    words = [together.path, dev, model, json.dumps(runs)]
    ended = run_ranks(commands, words, tmp_path, count, code=IN_RANKS)
    assert [rank.code for rank in ended.values()] == [0] * count, ended
    for command, options in runs:
        asked = {**options, "options": tuple(options.get("options", ())), "dev": dev}
        if command == "distill":
            one = distill.run(distill.Params(**asked), alone)
        else:
            one = finetune.run(finetune.Params(**asked, model=str(model)), alone)
        many = together.get("students", one.name)
        assert many.fingerprint == one.fingerprint
        assert many.facts["ranks"] == count
        assert {**one.facts, "ranks": count}.keys() == many.facts.keys()
        assert many.facts["best_step"] == one.facts["best_step"] == one.facts["steps"]
        assert many.facts["sentences_seen"] == one.facts["sentences_seen"]
        weights, others = (load_file(student.path / "model" / "model.safetensors") for student in (one, many))
        start = load_file(model / "model.safetensors")
        assert any((weights[name] - start[name]).abs().max() > 5e-5 for name in weights if name in start)
        for name in weights:
            difference = float((weights[name] - others[name]).abs().max())
            assert difference < 1e-5, f"{one.name}: {name} differs by {difference:.1e}"
        first, second = (vectors(student.path / "model", sentences[:20]) for student in (one, many))
        assert torch.allclose(first, second, atol=1e-5)
        losses = [json.loads((student.path / "log.jsonl").read_text().splitlines()[-1]) for student in (one, many)]
        for name, value in losses[0].items():
            if name not in TIMINGS:
                assert losses[1][name] == pytest.approx(value, rel=1e-4, abs=1e-6), name


def vectors(folder: Path, texts: Sequence[str]) -> torch.Tensor:
    encoder = load_model(folder).eval()
    with torch.no_grad():
        return torch.cat([encoder(torch.tensor([ids]), torch.ones(1, len(ids))) for ids in encoder.tokenize(texts)])
