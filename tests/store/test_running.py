"""What a running stage says of itself: the line, the speed, and the file that others read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentcompress.store import running
from sentcompress.store.running import PROGRESS, Counter, Running, Snapshot, read_snapshot


def test_a_line_has_the_share_the_speed_the_figures_and_the_time_left() -> None:
    snapshot = Snapshot("training", "now", 12_800, 51_200, "sentences", 310.0, 123.9, 0.4123, 71.2, 72.0)
    said = "12,800 of 51,200 sentences (25%), 310/s, loss 0.4123, dev 71.20 (best 72.00), 2 min left"
    assert str(snapshot) == f"training: {said}"
    assert str(Snapshot("reading", "now", 500, None, "texts")) == "reading: 500 texts"
    assert str(Snapshot("loading the student", "now")) == "loading the student"


def test_the_speed_is_that_of_the_last_minute_and_without_what_was_there_before() -> None:
    counter = Counter("encoding", 10_000, "sentences")
    counter.advance(4000)  # of an earlier run
    assert counter.per_second() is None
    for second in range(100):
        counter.sample(float(second))
        counter.advance(10 if second < 50 else 20)
    assert counter.per_second() == pytest.approx((9 * 10 + 50 * 20) / 59, rel=0.02)


def test_of_several_phases_the_one_at_work_is_told_and_what_it_does_inside() -> None:
    now = Running()
    assert str(now.snapshot()) == ""
    with now.track("loading"):
        assert str(now.snapshot()) == "loading"
    with now.track("wordnet", 10, "sentences") as first, now.track("back-translation", 10, "sentences") as second:
        second.advance(10)
        first.advance(3)
        assert now.snapshot().phase == "wordnet"
    with now.track("training", 100, "sentences"):
        now.metrics({"loss": 0.5, "dev": 60.0, "step": 3, "seconds_left": 30.0})
        now.metrics({"loss": float("nan"), "dev": None})
        with now.track("scoring"):
            found = now.snapshot()
        assert (found.phase, found.loss, found.dev, found.seconds_left) == ("training, scoring", None, 60.0, 30.0)
    with now.track("encoding", 100, "sentences"):
        assert now.snapshot().dev is None, "the figures are those of another phase"


def test_the_file_is_written_every_few_seconds_and_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = tmp_path / ".small.partial"
    partial.mkdir()
    now = Running()
    with now.recorded(partial / PROGRESS), now.track("training", 100, "sentences") as counter:
        counter.advance(25)
        monkeypatch.setattr(running, "WRITE_EVERY", 1000.0)
        now.sample()
        assert read_snapshot(partial) is None, "a stage that takes a moment writes nothing"
        monkeypatch.setattr(running, "WRITE_EVERY", 0.0)
        now.sample()
        found = read_snapshot(partial)
        assert found is not None
        assert str(found).startswith("training: 25 of 100 sentences (25%)")
        assert [path.name for path in (partial / PROGRESS).parent.iterdir()] == ["progress.json"]
    assert list(partial.iterdir()) == []
    now.sample()
    assert list(partial.iterdir()) == []


def test_a_build_goes_on_where_its_progress_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WRITE_EVERY", 0.0)
    now = Running()
    with now.recorded(tmp_path / "gone" / PROGRESS):
        now.sample()
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"phase": "training"}', '{"phase": "a", "time": "b"}', '{"phase": "a", "time": 3}']
)
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / PROGRESS).parent.mkdir()
    (tmp_path / PROGRESS).write_text(text)
    assert read_snapshot(tmp_path) is None


def test_a_clock_that_is_ahead_makes_no_negative_age() -> None:
    soon = datetime.now(UTC) + timedelta(minutes=3)
    assert Snapshot("training", soon.isoformat()).age == 0.0
    assert Snapshot("training", (soon - timedelta(minutes=13)).isoformat()).age == pytest.approx(600, abs=200)


def test_the_time_left_knows_which_items_take_longer() -> None:
    def left(stretches: list[tuple[int, float]], done: int) -> float | None:
        counter = Counter("encoding", 200, "sentences")
        counter.set_work(stretches)
        counter.sample(0.0)
        counter.advance(done)
        counter.sample(10.0)
        return counter.seconds_left()

    assert left([], 50) == pytest.approx(30)
    assert left([(100, 300.0), (100, 100.0)], 50) == pytest.approx(250 / 15)
    assert left([(100, 300.0), (100, 100.0)], 150) == pytest.approx(50 / 35)
    assert left([(100, 300.0), (100, 100.0)], 200) == 0
    assert left([(100, 300.0), (100, 100.0)], 0) is None
