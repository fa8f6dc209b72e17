"""Adapts the last training of a running plan to the time that the stages before it took.

The teacher's speed is measured when the plan is made, and the load of the machine can change later. The plan's file is
changed as well as the stage that runs, so that the file describes what was run, and a later run finds the result up to
date.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sentcompress.compression.plan_file import PlanFile, Planned, parsed_plan
from sentcompress.progress import Reporter
from sentcompress.quantities import told_time
from sentcompress.store import WorkDirectory
from sentcompress.store.atomic import written

# Seconds; smaller differences do not change the plan.
LEAST_CHANGE = 15.0
# Smallest share of the planned time of the last training: finishing late is better than a student that is hardly
# trained.
LEAST_SHARE = 0.5
_STAGE, _MINUTES = "[[stage]]", re.compile(r"\s*max-minutes\s*=")


class Pace:
    """A plan and the time when it should be done.

    Args:
        path: the plan's file.
        ends: when everything should be done, by `time.monotonic()`.
    """

    def __init__(self, plan: PlanFile, path: Path, work: WorkDirectory, ends: float, reporter: Reporter) -> None:
        self.plan = plan
        self._path, self._work, self._ends, self._reporter = path, work, ends, reporter

    def options(self, number: int) -> dict[str, Any]:
        """The options to change for the stage that is about to run; changes the plan accordingly."""
        last = self.plan.last_training()
        if last is None or last.number != number or self.plan.is_made_or_begun(last, self._work):
            return {}
        change = max(self.plan.spare_seconds(last, self._ends - time.monotonic()), (LEAST_SHARE - 1) * last.trains)
        # If its length differs from the plan, it was shortened before, or the user has changed it.
        if abs(change) < LEAST_CHANGE or (change < 0 and not self.plan.is_as_planned(last)):
            return {}
        minutes = round((last.trains + change) / 60, 2)
        amount, took = ("more", "less") if change > 0 else ("less", "more")
        told = f"{told_time(abs(change))} {amount} for training: the stages before it took {took} time than planned"
        text = with_minutes(self._path.read_text(encoding="utf-8"), last, minutes, told)
        plan = parsed_plan(text)
        if plan is None or plan.stages != _stages_with_minutes(self.plan, last, minutes):
            return {}  # the file was rewritten in another form
        with written(self._path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        self.plan = plan
        self._reporter.note(told)
        return {"max_minutes": minutes}


def with_minutes(text: str, last: Planned, minutes: float, told: str) -> str:
    """The text of a plan's file with another time limit for a training, and one more line of its description."""
    lines = text.split("\n")
    starts = (place for place, line in enumerate(lines) if line.strip() == _STAGE)
    start = next(islice(starts, last.number - 1, None), len(lines))
    place = next((place for place in range(start, len(lines)) if _MINUTES.match(lines[place])), None)
    if place is not None:
        lines[place] = f"max-minutes = {minutes!r}"
    end = next((place for place, line in enumerate(lines) if not line.startswith("# ")), len(lines))
    return "\n".join([*lines[:end], f"# {told}", *lines[end:]])


def _stages_with_minutes(plan: PlanFile, last: Planned, minutes: float) -> list[Mapping[str, Any]]:
    stages = list(plan.stages or ())
    stages[last.number - 1] = {**stages[last.number - 1], "max-minutes": minutes}
    return stages
