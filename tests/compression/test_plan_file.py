"""The file of a plan: recognised, read after any change, and how much of its time is left."""

from __future__ import annotations

import json
import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_files import BENCH, SPLIT, TITLE, TRAININGS, write_plan

from sentcompress.compression.plan_file import PlanFile, begun_plan, read_plan
from sentcompress.store import Request, WorkDirectory

STAGES = TITLE + SPLIT + TRAININGS
REQUEST = {"time": "10m"}


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=3))
def test_any_request_survives_in_a_valid_recipe(request: dict[str, str]) -> None:
    head = PlanFile(request, 1800.0, "", (), ()).head
    assert tomllib.loads(f"{head}\ntitle = 'docs'") == {"title": "docs"}
    assert "\n" not in head


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    plan = read_plan(write_plan(tmp_path, STAGES, REQUEST))
    assert plan is not None
    assert (plan.is_for(REQUEST), plan.is_for({"time": "9m"})) == (True, False)
    assert plan.told == ["Read 3 documents"]
    assert [(one.kind, one.name) for one in plan.results()] == [
        ("documents", "docs"),
        ("students", "docs-1-1"),
        ("students", "docs-last"),
    ]


def test_a_plan_that_was_only_begun_is_for_no_request(tmp_path: Path) -> None:
    path = tmp_path / "docs.toml"
    path.write_text(begun_plan("docs", {"time": "10m"}, ""), encoding="utf-8")
    plan = read_plan(path)
    assert plan is not None
    assert plan.request == {"time": "10m"}
    assert not plan.is_for({"time": "10m"})
    assert not plan.is_begun(WorkDirectory(tmp_path / "work"))


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    since = datetime.now(UTC).isoformat(timespec="microseconds")
    with work.build(Request("students", "docs-1-1", "distill", {}, {})) as build:
        (build.path / "weights").write_text("whole", encoding="utf-8")
        student = build.finish({})
    plan = read_plan(write_plan(tmp_path, STAGES, REQUEST, since))
    assert plan is not None
    assert plan.to_replace(work) == [1, 3]
    (student.path / "weights").write_text("", encoding="utf-8")
    assert plan.to_replace(work) == [1, 2, 3]
    assert plan.seconds_left(work) == 600.0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'title = "another"\n',
        b"# compress is what this does\n",
        b"# compress [1]\n",
        b"# compress {}\n",
        b"# compress " + 100_000 * b"[",
        b"\xff\n",
    ],
)
def test_a_file_of_somebody_else_is_not_recognised(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "docs.toml"
    path.write_bytes(text)
    assert read_plan(path) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"request": []},
        {"seconds": math.inf},
        {"seconds": 10**400},
        {"seconds": "600"},
        {"afterwards": -1.0},
        {"training": -1.0},
        {"spent": -1.0},
        {"since": None},
        {"documents": 3},
        {"teacher": []},
        {"replaced": "students/docs"},
        {"replaced": [3]},
    ],
)
def test_a_head_with_another_kind_of_value_is_not_recognised(tmp_path: Path, changes: dict[str, object]) -> None:
    path = write_plan(tmp_path, STAGES, REQUEST, afterwards=100.0)
    assert read_plan(path) is not None
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    mark, head = first[: first.index("{")], json.loads(first[first.index("{") :])
    assert head.keys() >= changes.keys()
    path.write_text(f"{mark}{json.dumps({**head, **changes})}\n{rest}", encoding="utf-8")
    assert read_plan(path) is None


@pytest.mark.parametrize(
    "text",
    [
        "title =",
        "stage = 3",
        "[[stage]]\ncommand = 'distil'\nname = 'docs'",
        "stage = [1]",
        f"stage = {5000 * '['}",
        STAGES.replace("2.0", 400 * "9"),
        STAGES.replace("2.0", "nan"),
    ],
)
def test_a_plan_that_somebody_broke_is_not_replaced(tmp_path: Path, text: str) -> None:
    plan = read_plan(write_plan(tmp_path, text, REQUEST))
    assert plan is not None
    assert plan.stages is None
    assert plan.is_begun(WorkDirectory(tmp_path / "work"))
    assert plan.seconds_left(WorkDirectory(tmp_path / "work")) == 600


def test_the_time_left_is_less_what_stages_took_and_what_one_has_trained(tmp_path: Path) -> None:
    plan, work = read_plan(write_plan(tmp_path, STAGES, REQUEST)), WorkDirectory(tmp_path / "work")
    assert plan is not None
    assert plan.seconds_left(work) == 600.0
    with work.build(Request("documents", "docs", "split-documents", {})) as build:
        build.finish({})
    left = plan.seconds_left(work)
    assert left == pytest.approx(600 - work.get("documents", "docs").manifest["seconds"])
    assert not plan.is_begun(work), "planning reads the documents"
    with work.build(Request("students", "docs-1-1", "distill", {})) as build:
        build.finish({})
    assert plan.is_begun(work)
    # Of a training, all of its minutes count: it may have been done in several runs.
    assert plan.seconds_left(work) == pytest.approx(left - 120)
    log = work.path / "students" / ".docs-last.partial" / "log.jsonl"
    log.parent.mkdir(parents=True)
    for text, used in (('{"step": 10, "seconds": 90.0}\n{"step": 20, "seconds": 200.0}\n', 200), ("", 0), ("{\n", 0)):
        log.write_text(text, encoding="utf-8")
        assert plan.seconds_left(work) == pytest.approx(left - 120 - used)


def test_documents_count_as_long_as_planning_took(tmp_path: Path) -> None:
    """They may have been read for an earlier request, which was refused: that time is not part of this plan."""
    work = WorkDirectory(tmp_path / "work")
    plan = read_plan(write_plan(tmp_path, STAGES, REQUEST, spent=20.0))
    assert plan is not None
    assert plan.seconds_left(work) == 600, "they are read again"
    with work.build(Request("documents", "docs", "split-documents", {})) as build:
        build.finish({})
    assert plan.seconds_left(work) == 580


def test_the_limit_of_a_benchmark_is_no_time_of_training(tmp_path: Path) -> None:
    plan, work = read_plan(write_plan(tmp_path, STAGES + BENCH, REQUEST)), WorkDirectory(tmp_path / "work")
    assert plan is not None
    assert [one.trains for one in plan.results()] == [0, 120, 300, 0]
    with work.build(Request("evaluations", "docs-speed", "bench", {})) as build:
        build.finish({})
    took = work.get("evaluations", "docs-speed").manifest["seconds"]
    assert plan.seconds_left(work) == pytest.approx(600 - took)


def test_results_from_before_a_forced_plan_are_to_be_replaced_and_do_not_count(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    with work.build(Request("students", "docs-1-1", "distill", {})) as build:
        build.finish({})
    since = datetime.now(UTC).isoformat(timespec="microseconds")
    plan, plain = (
        read_plan(write_plan(tmp_path, STAGES, REQUEST, since)),
        read_plan(write_plan(tmp_path, STAGES, REQUEST)),
    )
    assert plan is not None
    assert plain is not None
    assert (plan.to_replace(work), plain.to_replace(work)) == ([1, 2, 3], [])
    assert (plan.seconds_left(work), plain.seconds_left(work)) == (600, 480)
    with work.build(Request("students", "docs-1-1", "distill", {}), force=True) as build:
        build.finish({})
    assert plan.to_replace(work) == [1, 3]
    (work.path / "students" / "docs-1-1" / "manifest.json").write_text("{", encoding="utf-8")
    assert plan.to_replace(work) == [1, 2, 3], "damaged"
    assert plain.seconds_left(work) == 600
