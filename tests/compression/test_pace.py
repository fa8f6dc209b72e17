"""The last training gets the time that earlier stages left, in its plan as well; nothing that is begun is changed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from listening import Listener
from plan_files import BENCH, TITLE, TRAININGS, write_plan

from sentcompress.compression import pace
from sentcompress.compression.pace import LEAST_CHANGE, Pace
from sentcompress.compression.plan_file import read_plan
from sentcompress.store import Request, WorkDirectory

STAGES = TITLE + TRAININGS + BENCH
NOW = 1000.0
TOLD = "2 min more for training: the stages before it took less time than planned"


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so that no second passes between a plan and its next stage."""
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: NOW))


def pace_of(folder: Path, left: float, text: str = STAGES, since: str = "", notes: Listener | None = None) -> Pace:
    """The pace of a plan with 100 seconds for what follows its last training, after which `left` seconds are left."""
    path = write_plan(folder, text, {}, since, afterwards=100.0, training=300.0)
    plan = read_plan(path)
    assert plan is not None
    return Pace(plan, path, WorkDirectory(folder / "work"), NOW + left, notes or Listener())


def test_time_that_is_left_over_goes_to_the_last_training(tmp_path: Path) -> None:
    notes = Listener()
    of = pace_of(tmp_path, 300 + 100 + 120, notes=notes)
    before = of.plan
    assert not of.options(1)
    assert not of.options(3)
    assert read_plan(tmp_path / "docs.toml") == before
    assert of.options(2) == {"max_minutes": 7.0}
    after = read_plan(tmp_path / "docs.toml")
    assert after == of.plan
    assert (after.request, after.seconds, after.afterwards) == ({}, 600.0, 100.0)
    assert after.told == ["Read 3 documents", TOLD]
    assert notes.notes == [TOLD]
    assert [one.trains for one in after.results()] == [120, 420, 0]
    assert not of.options(2), "it is given once"


@pytest.mark.parametrize(
    ("left", "minutes", "less"),
    [(400 - 60, 4.0, "60 s"), (400 - LEAST_CHANGE, 4.75, "15 s"), (100, 2.5, "2 min"), (-3600, 2.5, "2 min")],
    ids=["a minute", "the least change", "half", "no less than half"],
)
def test_time_that_is_lacking_is_taken_from_the_last_training(
    tmp_path: Path, left: float, minutes: float, less: str
) -> None:
    notes = Listener()
    of = pace_of(tmp_path, left, notes=notes)
    assert of.options(2) == {"max_minutes": minutes}
    assert notes.notes == [f"{less} less for training: the stages before it took more time than planned"]
    assert read_plan(tmp_path / "docs.toml") == of.plan
    assert [one.trains for one in of.plan.results()] == [120, 60 * minutes, 0]


def test_a_training_is_shortened_once_and_not_if_its_minutes_were_chosen(tmp_path: Path) -> None:
    of = pace_of(tmp_path, 300)
    assert of.options(2) == {"max_minutes": 3.33}
    again = Pace(of.plan, tmp_path / "docs.toml", WorkDirectory(tmp_path / "work"), NOW + 100, Listener())
    assert not again.options(2), "it was interrupted before anything was saved, and is run again"
    for chosen in ("9.0", "4.0"):
        of = pace_of(tmp_path, 200, STAGES.replace("max-minutes = 5.0", f"max-minutes = {chosen}"))
        assert not of.options(2)
    assert of.plan.last_training().trains == 240


@pytest.mark.parametrize("left", [400, 400 + LEAST_CHANGE - 0.1, 400 - LEAST_CHANGE + 0.1])
def test_a_plan_that_is_on_time_stays(tmp_path: Path, left: float) -> None:
    of = pace_of(tmp_path, left)
    before = (tmp_path / "docs.toml").read_bytes()
    assert not of.options(2)
    assert (tmp_path / "docs.toml").read_bytes() == before


@pytest.mark.parametrize("left", [900, 100])
def test_a_training_that_is_finished_or_interrupted_keeps_its_minutes(tmp_path: Path, left: float) -> None:
    """With other minutes it would be another request: what it has done would be lost."""
    of, work = pace_of(tmp_path, left), WorkDirectory(tmp_path / "work")
    partial = work.path / "students" / ".docs-last.partial"
    partial.mkdir(parents=True)
    assert not of.options(2)
    partial.rmdir()
    with work.build(Request("students", "docs-last", "distill", {})) as build:
        build.finish({})
    assert not of.options(2)
    assert pace_of(tmp_path, left, since="2999-01-01").options(2), "it is to be replaced"


@pytest.mark.parametrize(
    "text",
    [
        "stage = [{ command = 'distill', max-minutes = 5, name = 'docs-last' }]",
        STAGES.replace("max-minutes", '"max-minutes"'),
        STAGES.replace("max-minutes = 5.0", "max-minutes=5"),
        f"title = '''\n[[stage]]\n'''\n{STAGES.partition('docs')[2][1:]}",
        'title = "mine"\n',
    ],
)
def test_an_edited_plan_is_changed_in_nothing_else(tmp_path: Path, text: str) -> None:
    of = pace_of(tmp_path, 900, text)
    before, last = of.plan, of.plan.last_training()
    given = of.options(last.number) if last else {}
    after = read_plan(tmp_path / "docs.toml")
    assert after is not None
    expected = [dict(stage) for stage in before.stages or ()]
    if given and last:
        expected[last.number - 1]["max-minutes"] = given["max_minutes"]
    assert list(after.stages or ()) == expected
    assert bool(given) == ("max-minutes=5" in text)
