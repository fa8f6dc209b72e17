"""select: the best of evaluated models is kept, and models that cannot be compared are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from search_documents import make_documents
from tiny_models import make_sentences, make_tiny_model

from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.stages import eval_fidelity, eval_search, eval_sts
from sentcompress.stages.select import Params, run
from sentcompress.store import Artifact, WorkDirectory, made_of

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
    for metric, command in (("ndcg_at_10", "eval-retrieval"), ("neighbours_shared", "eval-fidelity")):
        with pytest.raises(InputError, match="was not measured for model-1, model-2, model-3") as raised:
            run(Params(inputs=tuple(names), by=metric), work)
        assert raised.value.hint == f"evaluate each model first, with {command}"
    with pytest.raises(InputError, match="Spearman on on was not measured for model-1, model-2, model-3") as raised:
        run(Params(inputs=tuple(names), by="spearman_cosine", data="on"), work)
    assert raised.value.hint == "did you mean one?"
    fourth = str(make_tiny_model(tmp_path / "model-4", seed=4))
    eval_sts.run(eval_sts.Params(sts=(str(tmp_path / "other.tsv"),), model=fourth, bootstrap=0), work)
    with pytest.raises(InputError, match="cannot be compared: it was measured on other data"):
        run(Params(inputs=(*names, fourth), by="spearman_cosine"), work)
    models(tmp_path, work, "other")
    with pytest.raises(InputError, match="measured on several data sets"):
        run(Params(inputs=tuple(names), by="spearman_cosine"), work)
    assert run(Params(inputs=tuple(names), by="spearman_cosine", data="one"), work).facts["data"] == "one"


def test_a_score_that_is_not_defined_is_not_ranked(
    tmp_path: Path, work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, _ = models(tmp_path, work)

    def undefined(artifact: Artifact) -> Evaluation:
        found = read_evaluation(artifact)
        value = math.nan if artifact.name == "one-model-2" else 1.0
        return replace(found, scores=[replace(score, value=value) for score in found.scores])

    monkeypatch.setattr("sentcompress.stages.select.read_evaluation", undefined)
    with pytest.raises(InputError, match="Spearman is not defined for model-2"):
        run(Params(inputs=tuple(names), by="spearman_cosine"), work)
    assert run(Params(inputs=(names[0], names[2]), by="spearman_cosine"), work).facts["models"] == ["model-1"]


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


def searched(work: WorkDirectory, model: str, compare: str, name: str, queries: int = 1000) -> float:
    """The search fidelity of a model to another one."""
    params = eval_search.Params(
        model=model, compare=compare, query_part="dev", bootstrap=0, max_queries=queries, name=name, force=True
    )
    return float(eval_search.run(params, work).facts["scores"][0]["value"])


@pytest.fixture
def candidates(tmp_path: Path, work: WorkDirectory) -> tuple[str, ...]:
    """Two models and two others to compare them with; there are documents to search."""
    texts = make_sentences(120)
    make_documents(work, texts[:80], [" ".join(text.split()[:4]) for text in texts[80:]])
    return tuple(str(make_tiny_model(tmp_path / name, seed=seed)) for seed, name in enumerate(("a", "b", "big", "wee")))


def test_agreement_with_different_compared_models_is_not_compared(
    tmp_path: Path, work: WorkDirectory, candidates: tuple[str, ...]
) -> None:
    first, second, big, wee = candidates
    (tmp_path / "own.txt").write_text("\n".join(make_sentences(40)), encoding="utf-8")
    for model, compare in ((first, big), (second, wee)):
        searched(work, model, compare, f"search-{Path(model).name}")
        text = (tmp_path / "own.txt",)
        fidelity = eval_fidelity.Params(model=model, compare=compare, text=text, neighbours=3, pairwise=20, bootstrap=0)
        eval_fidelity.run(fidelity, work)
    for metric in (
        *("search_fidelity", "results_shared", "first_result_found"),
        *("neighbours_shared", "nearest_found", "spearman_of_similarities"),
    ):
        with pytest.raises(InputError, match=r"measured against different models \(big, wee\)"):
            run(Params(inputs=(first, second), by=metric), work)
    # The correlation of a model's own dimensions has nothing to do with the compared one.
    assert run(Params(inputs=(first, second), by="mean_absolute_correlation"), work).facts["compared_with"] is None
    made_again = str(make_tiny_model(tmp_path / "big", seed=7))
    searched(work, second, made_again, "search-b")
    with pytest.raises(InputError, match="measured against different versions of big"):
        run(Params(inputs=(first, second)), work)
    searched(work, first, wee, "search-also")
    searched(work, second, wee, "search-b")
    kept = run(Params(inputs=(first, second)), work)
    assert kept.facts["compared_with"] == "wee"


def test_of_several_comparisons_the_one_completed_last_counts(work: WorkDirectory, candidates: tuple[str, ...]) -> None:
    """Whatever the evaluations are called."""
    first, second, big, wee = candidates
    for place, compare in enumerate((big, wee, big)):
        # Names that sort against the order, in the order, and against it again.
        values = [searched(work, model, compare, f"{'nam'[place]}-{Path(model).name}") for model in (first, second)]
        kept = run(Params(inputs=(first, second), name=f"kept-{place}"), work)
        assert kept.facts["compared_with"] == Path(compare).name
        assert [row["value"] for row in kept.facts["ranking"]] == sorted(values, reverse=True)
        assert {name for name in kept.inputs if name.startswith("evaluations/")} == {
            f"evaluations/{'nam'[place]}-{Path(model).name}" for model in (first, second)
        }
    fewer = [searched(work, model, big, f"fewer-{Path(model).name}", queries=5) for model in (second, first)]
    kept = run(Params(inputs=(first, second), name="kept-fewer"), work)
    assert [row["value"] for row in kept.facts["ranking"]] == sorted(fewer, reverse=True)


def test_of_equal_models_the_one_named_first_is_kept(tmp_path: Path, work: WorkDirectory) -> None:
    names = [str(make_tiny_model(tmp_path / name, seed=1)) for name in ("z", "a")]
    for name in names:
        eval_sts.run(eval_sts.Params(sts=(str(tmp_path / "one.tsv"),), model=name, bootstrap=0), work)
    for inputs in (names, names[::-1]):
        kept = run(Params(inputs=tuple(inputs), by="spearman_cosine", name=f"of-{Path(inputs[0]).name}"), work)
        assert [row["model"] for row in kept.facts["ranking"]] == [Path(name).name for name in inputs]
        assert kept.facts["models"] == [Path(inputs[0]).name]


def test_it_is_made_again_if_another_model_has_become_the_best(tmp_path: Path, work: WorkDirectory) -> None:
    names, scores = models(tmp_path, work)
    first, last = names[int(np.argmax(scores))], names[int(np.argmin(scores))]
    params = Params(inputs=tuple(names), by="spearman_cosine", name="best")
    assert run(params, work).facts["models"] == [Path(first).name]
    Path(first).rename(tmp_path / "aside")
    Path(last).rename(first)
    (tmp_path / "aside").rename(last)
    for name in (first, last):
        again = eval_sts.Params(
            sts=(str(tmp_path / "one.tsv"),), model=name, bootstrap=0, name=f"one-{Path(name).name}"
        )
        eval_sts.run(again, work)
    kept = run(params, work)
    assert kept.facts["models"] == [Path(last).name]
    assert [one.rpartition("/")[2] for one in made_of(kept)] == [Path(last).name]


def test_options_are_checked(work: WorkDirectory) -> None:
    for params, message in (
        (Params(inputs=()), "name at least one model"),
        (Params(inputs=("a", "a")), "named twice"),
        (Params(inputs=("a", "b"), rank=3), "`rank` 3 of 2 models"),
        (Params(inputs=("a",), by="ndcg"), "ndcg_at_10"),
    ):
        with pytest.raises(UsageError, match=message):
            run(params, work)
