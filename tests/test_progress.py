"""Reporters that pass on a part of what they are told."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from listening import Listener

from sentcompress.progress import Overview, Reporter, Task


class _Watched(Listener):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, object] = {}
        self.tracked: list[str] = []

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        self.seen |= values

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[Task]:
        self.tracked.append(description)
        with super().track(description, total, unit) as task:
            yield task


def test_an_overview_has_steps_progress_and_warnings_but_no_details() -> None:
    watched = _Watched()
    overview: Reporter = Overview(watched)
    overview.step("stage 1 of 2")
    overview.note("learning rate 0.0003")
    overview.warn("careful")
    overview.warn("careful")
    overview.metrics({"loss": 1.0, "effective_rank": 3.0, "dev": None, "measure": "Spearman"})
    with overview.track("training") as task:
        task.advance()
    assert watched.notes == ["stage 1 of 2"]
    assert watched.warnings == ["careful"]
    assert watched.seen == {"loss": 1.0, "dev": None, "measure": "Spearman"}
    assert watched.tracked == ["training"]


def test_an_overview_that_has_an_end_tells_the_time_that_is_left() -> None:
    watched = _Watched()
    Overview(watched, ends=time.monotonic() + 300.5).step("stage 1 of 2")
    Overview(watched, ends=time.monotonic() - 180).step("stage 2 of 2")
    # A second call of a finished plan has no time left, and takes seconds.
    Overview(watched, ends=time.monotonic() - 8).step("stage 2 of 2")
    assert watched.notes == [
        "stage 1 of 2, about 5 min left in all",
        "stage 2 of 2, 3 min over the time of the plan",
        "stage 2 of 2",
    ]
