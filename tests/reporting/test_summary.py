"""What a report takes from evaluations: which count, what models are called, what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_works as works

from sentcompress.reporting.evidence import gather
from sentcompress.reporting.formats import amount, between, share, size
from sentcompress.reporting.hints import missing
from sentcompress.reporting.sections import overview, sts
from sentcompress.reporting.sections.training import loss_of
from sentcompress.reporting.summary import common, mean_over, summaries
from sentcompress.store import WorkDirectory


def test_every_model_has_its_figures(tmp_path: Path) -> None:
    evidence = gather(works.full_work(tmp_path / "work"))
    assert list(evidence.names.values()) == ["big", "small", "tiny"]
    found = {evidence.names[reference]: summary for reference, summary in summaries(evidence).items()}
    assert found["small"].retrieval == {"scifact dev": ("ndcg_at_10", 57.0, 95.0)}
    assert found["big"].retrieval == {"scifact dev": ("ndcg_at_10", 60.0, None)}
    assert found["small"].transfer == {"MR": 75.0, "TREC": 85.0}
    assert found["small"].times_faster == 3
    assert found["big"].sentences_per_second == 100
    assert found["tiny"].sentences_per_second is None
    assert found["tiny"].sts == {"STS-B": 75.0, "STS13": 74.0}


def test_an_evaluation_beside_a_student_that_is_gone_does_not_count(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    gone = {"label": "gone", "reference": "students/gone", "digest": "9" * 64}
    facts = {"evaluation": "bench", "model": works.described(small), "against": gone}
    works.make(work, "evaluations", "bench-small", "bench", facts)
    evidence = gather(work)
    assert evidence.evaluations == []
    assert evidence.left_out == {"evaluations/bench-small": "it measured students/gone, which is gone"}


def test_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    other = {"label": "elsewhere/small", "reference": "model:elsewhere/small", "digest": "8" * 64}
    facts = {"evaluation": "bench", "model": works.described(small), "against": other}
    works.make(work, "evaluations", "bench-small", "bench", facts)
    assert gather(work).names == {"model:elsewhere/small": "elsewhere/small", "students/small": "students/small"}


def test_a_model_from_outside_beside_another_is_one_that_the_report_is_about(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.sts(work, works.student(work, "small"))
    works.guest(work, tmp_path / "short", 79.0)
    evidence = gather(work)
    assert list(evidence.names.values()) == ["big", "small", "short"]
    guest = f"model:{tmp_path / 'short'}"
    assert evidence.guests == {guest}
    assert len({evidence.colour(reference) for reference in evidence.names}) == 3
    assert evidence.colour("model:owner/big") == "teacher"
    (quality,) = (table for table in overview.section(evidence).tables if table.title == "Quality")
    assert [row[:2] for row in quality.rows] == [
        ["big", "81.00"],
        ["small", "80.50 (99.4%)"],
        ["short", "78.50 (96.9%)"],
    ]
    (rows,) = (table.rows for table in sts.section(evidence).tables)
    assert {row[1] for row in rows} == {"big", "small", "short"}
    assert f"sentcompress bench --model {tmp_path / 'short'} --against teacher --work {work.path}" in missing(
        evidence, "bench"
    )


def test_what_others_are_held_against_is_not_a_guest(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.guest(work, tmp_path / "short")
    facts = {"evaluation": "bench", "model": works.TEACHER, "against": {**works.TEACHER, "reference": "model:larger"}}
    works.make(work, "evaluations", "bench-big", "bench", facts)
    assert gather(work).guests == {f"model:{tmp_path / 'short'}"}


def test_a_folder_that_holds_another_model_by_now_counts_as_it_was_measured_last(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.guest(work, tmp_path / "short", 60.0, "5" * 64)
    works.guest(work, tmp_path / "short", 79.0, "6" * 64)
    evidence = gather(work)
    assert [one.artifact.name for one in evidence.evaluations] == ["sts-short-6"]
    assert evidence.left_out == {"evaluations/sts-short-5": f"it measured an earlier {tmp_path / 'short'}"}


def test_scores_on_different_data_stand_in_different_tables(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    first, second, third = (works.student(work, name) for name in ("a", "b", "c"))
    works.sts(work, first)
    works.sts(work, second)
    facts = works.sts(work, third).facts
    works.make(work, "evaluations", "sts-c", "eval-sts", facts, {"file:/data/sts/test.tsv": "9" * 64})
    rows = [{row[1] for row in table.rows} for table in sts.section(gather(work)).tables]
    assert rows == [{"big", "a", "b"}, {"big", "c"}]


def test_means_are_over_what_all_models_have() -> None:
    scores = [{"a": 1.004, "b": 2.0, "c": 9.0}, {}, {"c": 3.0, "a": 4.0}]
    assert common(scores) == ["a", "c"]
    assert mean_over(scores[0], ["a", "c"]) == (1.00 + 9.0) / 2
    assert mean_over(scores[1], ["a", "c"]) is None
    assert mean_over(scores[0], []) is None
    assert common([{}, {}]) == []


def test_the_loss_is_the_sum_of_its_terms() -> None:
    line = {"step": 3, "epoch": 0.1, "mse": 2.0, "pkd": 0.5, "sentences_per_second": 9.0, "lr": 1e-3, "queue": 7}
    assert loss_of(line) == 2.5
    assert loss_of({"step": 0, "epoch": 0.0, "dev": 50.0}) is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (size(1536), "1.54 kB"),
        (size(96), "96 B"),
        (size(90_868_376), "90.9 MB"),
        (size(4_505_600_000_000), "4,506 GB"),
        (amount(22_565_376), "22.6M"),
        (between([-1.234, 0.5], signed=True), "-1.23 to +0.50"),
        (between(None), ""),
        (share(98.76), "98.8%"),
        (size(None), ""),
    ],
)
def test_numbers_as_they_are_written(written: str, expected: str) -> None:
    assert written == expected
