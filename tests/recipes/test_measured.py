"""Published figures beside measured ones: which score is meant, and when two figures cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sentcompress.commands import find_command
from sentcompress.commands.parsing import build
from sentcompress.corpora.sts import OFFICIAL_PAIRS
from sentcompress.corpora.transfer import TASKS
from sentcompress.evaluation.metrics import ACCURACY, FIRST_RELEVANT, MRR, PASS_SECONDS, SPEARMAN, recall_at
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score
from sentcompress.recipes.measured import Measured, measured
from sentcompress.recipes.plan import Step
from sentcompress.recipes.rows import Row
from sentcompress.store import Artifact

STS = {"command": "eval-sts", "sts": ["mteb"], "model": "small", "compare": "teacher"}
QUORA = {"command": "eval-retrieval", "pairs": "q.tsv", "model": "small", "index": ["ivf", "flat"]}


def done(options: dict[str, Any], *scores: Score, name: str = "x", **facts: Any) -> tuple[Step, Artifact]:
    """A step and its evaluation, with the given scores."""
    command = options["command"]
    params, faults = build(find_command(command).params, {key: options[key] for key in options if key != "command"})
    assert not faults
    described = {"reference": "students/small", "label": "small"}
    facts = {
        "evaluation": command.removeprefix("eval-"),
        "protocol": {"statement": "as measured", **facts.pop("protocol", {})},
        MODEL: described,
        COMPARE: described,
        "scores": [score.as_dict() for score in scores],
        **facts,
    }
    manifest = {"kind": "evaluations", "name": name, "command": command, "facts": facts}
    return Step(1, command, params, ()), Artifact(Path("nowhere"), manifest)


def score(data: str, metric: str, value: float, **more: Any) -> Score:
    return Score("students/small", more.pop("role", MODEL), data, metric, value, **more)


def sts(left_out: str = "", role: str = MODEL, **protocol: str) -> tuple[Step, Artifact]:
    sets = [
        score(name, SPEARMAN, 80.0, count=pairs, role=role)
        for name, pairs in OFFICIAL_PAIRS.items()
        if name != left_out
    ]
    return done(
        STS, *sets, score(MEAN, SPEARMAN, 81.5, role=role), protocol={"split": "test", "aggregate": "all", **protocol}
    )


def only(row: Row, *evaluations: tuple[Step, Artifact]) -> Measured:
    (found,) = measured([row], evaluations)
    return found


def test_a_mean_of_all_seven_sets_is_compared() -> None:
    row = Row(of="small", metric="STS mean", score=81.0)
    found = only(row, sts())
    assert (found.value, found.difference, found.why) == (81.5, 0.5, "")
    assert found.as_dict() == {"of": "small", "metric": "STS mean", "score": 81.0, "measured": 81.5, "difference": 0.5}
    assert only(Row(of="small", metric="SICK-R", score=79.0), sts()).difference == 1.0
    assert only(Row(of="teacher", metric="STS mean", score=81.0), sts(role=COMPARE)).difference == 0.5


@pytest.mark.parametrize(
    ("evaluation", "why"),
    [
        (sts("STS13"), "mean of 6 of the 7 sets"),
        (sts(split="dev"), "split dev"),
        (sts(aggregate="wmean"), "aggregate wmean"),
        (done(STS, score("mine", SPEARMAN, 80.0, count=9), protocol={}), "not all 7 sets were scored"),
        (done({**STS, "model": "other"}, score(MEAN, SPEARMAN, 80.0)), "not measured"),
    ],
)
def test_another_protocol_is_not_compared(evaluation: tuple[Step, Artifact], why: str) -> None:
    found = only(Row(of="small", metric="STS mean", score=81.0), evaluation)
    assert (found.difference, found.why) == (None, why)


def test_another_copy_of_a_set_is_not_compared() -> None:
    larger = [score(name, SPEARMAN, 80.0, count=pairs + (name == "STS13")) for name, pairs in OFFICIAL_PAIRS.items()]
    protocol = {"split": "test", "aggregate": "all"}
    evaluation = done(STS, *larger, score(MEAN, SPEARMAN, 80.0), protocol=protocol)
    for metric, why in (("STS mean", "STS13 has 1,501 pairs; the papers have 1,500"), ("STS12", "")):
        assert only(Row(of="small", metric=metric, score=81.0), evaluation).why == why


def test_retrieval_is_that_of_the_index_named_first() -> None:
    scores = [score("quora", MRR, value, part=part) for part, value in (("exact search", 63.0), ("ivf", 61.0))]
    evaluation = done(QUORA, *scores, documents=100, judged_queries=10)
    row = Row(of="small", metric="MRR@10", score=61.3)
    assert only(row, evaluation).value == 61.0
    assert only(Row(of="small", metric="MRR@10", documents=100, queries=10, score=61.0), evaluation).difference == 0
    other = only(Row(of="small", metric="MRR@10", documents=87_265, score=61.3), evaluation)
    assert (other.difference, other.why) == (None, "100 documents; the paper has 87,265")


def test_a_row_can_name_the_data_or_the_evaluation() -> None:
    german, french = (
        done(QUORA, score(name, recall_at(1), value, kept=kept), name=f"retrieval-{name}")
        for name, value, kept in (("german", 50.0, 99.5), ("french", 40.0, 98.0))
    )
    for data in ("french", "retrieval-french"):
        assert only(Row(of="small", metric="Recall@1", data=data), german, french).value == 40.0
    assert only(Row(of="small", metric="Recall@1 kept", score=99.0), german, french).difference == 0.5


def test_entity_pairs_of_languages_count_with_their_mean() -> None:
    """The mean of SimTDE's table 3 is that over the languages; the score of all queries weighs them by their size."""
    scores = [score("er", FIRST_RELEVANT, 52.0, kept=104.0), score("er", FIRST_RELEVANT, 50.0, role=COMPARE)]
    languages = [
        {"language": "german", "queries": 90, MODEL: 55.0, COMPARE: 50.0, "relative_percent": 10.0},
        {"language": "mean", "queries": 100, MODEL: 40.0, COMPARE: 50.0, "relative_percent": -20.0},
    ]
    entities = {"command": "eval-retrieval", "entities": "er", "model": "small", "compare": "teacher"}
    several = done(entities, *scores, languages=languages, dataset={"protocol": "entities"})
    one = done(entities, *scores, dataset={"protocol": "entities"})
    kept, of_teacher = Row(of="small", metric="Accuracy@1 kept", score=100.09), Row(of="teacher", metric="Accuracy@1")
    assert [only(row, several).value for row in (kept, of_teacher)] == [80.0, 50.0]
    assert only(kept, one).value == 104.0
    assert only(kept, several).why == "the paper's entity pairs are not public"
    assert only(kept, several).difference is None
    assert only(Row(of="small", metric="MRR@10"), several).why == "not among the scores"


def test_a_set_of_another_name_is_told() -> None:
    dev = done(STS, score("sts-dev", SPEARMAN, 88.0, count=1500), protocol={"split": "dev", "aggregate": "all"})
    found = only(Row(of="small", metric="STS-B", split="dev", score=87.0), dev)
    assert (found.value, found.why) == (None, "no set named STS-B, only sts-dev")


def test_times_depend_on_the_machine() -> None:
    evaluation = done({"command": "bench", "model": "small"}, score("", PASS_SECONDS, 12.0, part="float32"))
    found = only(Row(of="small", metric="one pass s", score=14.0), evaluation)
    assert (found.value, found.difference, found.why) == (12.0, None, "depends on the machine")


def test_transfer_tasks() -> None:
    tasks = {"command": "eval-transfer", "tasks": "folder", "model": "small"}
    scores = [score(name, ACCURACY, 80.0) for name in TASKS]
    evaluation = done(tasks, *scores, score(MEAN, ACCURACY, 85.0))
    assert only(Row(of="small", metric="MR", score=79.0), evaluation).difference == 1.0
    row = Row(of="small", metric="transfer mean", score=86.0)
    assert only(row, evaluation).difference == -1.0
    assert only(row, done(tasks, *scores[:2], score(MEAN, ACCURACY, 85.0))).why == "mean of 2 of the 7 sets"
    assert only(row, done(tasks, scores[0])).why == "not all 7 sets were scored"


def test_other_folds_or_examples_of_a_transfer_task_are_not_compared() -> None:
    tasks = {"command": "eval-transfer", "tasks": "folder", "model": "small"}
    scores = [*(score(name, ACCURACY, 80.0) for name in TASKS), score(MEAN, ACCURACY, 85.0)]
    examples = [{"name": name, "examples": dict(splits)} for name, splits in TASKS.items()]
    rows = [Row(of="small", metric=metric, score=80.0) for metric in ("transfer mean", "TREC", "MR")]
    assert [only(row, done(tasks, *scores, tasks=examples)).why for row in rows] == ["", "", ""]
    fewer = [
        {**one, "examples": {**one["examples"], "test": 400}} if one["name"] == "TREC" else one for one in examples
    ]
    told = "TREC test has 400 examples; the papers have 500"
    assert [only(row, done(tasks, *scores, tasks=fewer)).why for row in rows] == [told, told, ""]
    quick = done(tasks, *scores, tasks=examples, protocol={"folds": 2})
    assert [only(row, quick).why for row in rows] == ["2 folds"] * 3


def test_a_row_of_another_split_is_compared_with_that_split() -> None:
    dev = done(STS, score("STS-B", SPEARMAN, 88.0, count=1500), protocol={"split": "dev", "aggregate": "all"})
    found = only(Row(of="small", metric="STS-B", split="dev", score=87.0), sts(), dev)
    assert (found.value, found.difference) == (88.0, 1.0)
    assert only(Row(of="small", metric="STS-B", score=81.0), dev, sts()).value == 80.0
