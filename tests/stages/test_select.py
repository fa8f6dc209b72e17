"""select: the best of evaluated models is kept, and models that cannot be compared are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from search_documents import make_documents
from tiny_models import make_sentences, make_tiny_model

from sentcompress.errors import InputError, UsageError
from sentcompress.stages import eval_search, eval_sts
from sentcompress.stages.select import Params, run
from sentcompress.store import WorkDirectory

PAIRS = [
    ("a cat sleeps", "a cat is asleep", 4.5),
    ("a dog runs", "a dog is running", 4.8),
    ("a man eats", "a woman sings", 0.5),
    ("the sky is blue", "bread is baked", 0.1),
    ("children play", "kids are playing", 4.0),
    ("a red car", "a blue boat", 1.2),
]


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    for data in ("one", "other"):
        lines = [f"{score}\t{first}\t{second}" for first, second, score in PAIRS[: 6 if data == "one" else 5]]
        (tmp_path / f"{data}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return work


def models(tmp_path: Path, work: WorkDirectory, data: str = "one") -> tuple[list[str], list[float]]:
    """Three models of random weights, evaluated, and their scores."""
    names = [str(make_tiny_model(tmp_path / f"model-{seed}", seed=seed)) for seed in (1, 2, 3)]
    scores = []
    for name in names:
        params = eval_sts.Params(
            sts=(str(tmp_path / f"{data}.tsv"),), model=name, bootstrap=0, name=f"{data}-{Path(name).name}"
        )
        scores.append(eval_sts.run(params, work).facts["scores"][0]["value"])
    return names, scores


def test_the_ranking_is_by_the_metric(tmp_path: Path, work: WorkDirectory) -> None:
    names, scores = models(tmp_path, work)
    assert len(set(scores)) == 3
    order = np.argsort(scores)[::-1]
    for rank, place in enumerate(order, 1):
        kept = run(Params(inputs=tuple(names), by="spearman_cosine", rank=rank, name=f"rank-{rank}"), work)
        assert kept.facts["models"] == [Path(names[place]).name]
        assert kept.facts["ranking"][rank - 1]["value"] == pytest.approx(scores[place])
        again = eval_sts.run(
            eval_sts.Params(sts=(str(tmp_path / "one.tsv"),), model=f"students/rank-{rank}", bootstrap=0), work
        )
        assert again.facts["scores"][0]["value"] == pytest.approx(scores[place], abs=1e-4)


def test_what_was_not_measured_or_cannot_be_compared_is_refused(tmp_path: Path, work: WorkDirectory) -> None:
    names, _ = models(tmp_path, work)
    with pytest.raises(InputError, match=r"search fidelity|was not measured of model-1, model-2, model-3"):
        run(Params(inputs=tuple(names), by="ndcg_at_10"), work)
    fourth = str(make_tiny_model(tmp_path / "model-4", seed=4))
    eval_sts.run(eval_sts.Params(sts=(str(tmp_path / "other.tsv"),), model=fourth, bootstrap=0), work)
    with pytest.raises(InputError, match="cannot be compared: it was measured on other data"):
        run(Params(inputs=(*names, fourth), by="spearman_cosine"), work)
    models(tmp_path, work, "other")
    with pytest.raises(InputError, match="measured on several data sets"):
        run(Params(inputs=tuple(names), by="spearman_cosine"), work)
    assert run(Params(inputs=tuple(names), by="spearman_cosine", data="one"), work).facts["data"] == "one"


def test_models_are_ranked_by_the_part_that_is_named(tmp_path: Path, work: WorkDirectory) -> None:
    texts = make_sentences(120)
    make_documents(work, texts[:80], [" ".join(text.split()[:4]) for text in texts[80:]])
    names = [str(make_tiny_model(tmp_path / f"model-{seed}", seed=seed)) for seed in (1, 2, 3)]
    teacher = str(make_tiny_model(tmp_path / "teacher", seed=4))
    for name in names:
        for part in ("dev", "test"):
            eval_search.run(eval_search.Params(model=name, compare=teacher, query_part=part, bootstrap=0), work)
    with pytest.raises(InputError, match="measured on several data sets: main dev, main test"):
        run(Params(inputs=tuple(names)), work)
    kept = run(Params(inputs=tuple(names), data="main dev"), work)
    measured = [work.get("evaluations", f"search-main-dev-{Path(name).name}").facts["scores"][0] for name in names]
    assert kept.facts["data"] == "main dev"
    assert [row["value"] for row in kept.facts["ranking"]] == sorted((one["value"] for one in measured), reverse=True)


def test_options_are_checked(work: WorkDirectory) -> None:
    for params, message in (
        (Params(inputs=()), "name at least one model"),
        (Params(inputs=("a", "a")), "named twice"),
        (Params(inputs=("a", "b"), rank=3), "`rank` 3 of 2 models"),
        (Params(inputs=("a",), by="ndcg"), "ndcg_at_10"),
    ):
        with pytest.raises(UsageError, match=message):
            run(params, work)
