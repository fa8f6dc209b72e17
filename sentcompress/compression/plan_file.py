"""The file of a plan: a recipe whose first line is a comment with the request and the time that it was made for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.errors import UsageError
from sentcompress.store import LOG, WorkDirectory
from sentcompress.store.atomic import beside

# The folder of a work directory with the plans of `compress`.
PLANS = "plans"
_MARK = "# compress "


@dataclass(frozen=True)
class PlanFile:
    """A plan that was written.

    Attributes:
        request: what was asked for.
        seconds: how long all of it should take; None if planning did not end.
        told: the plan in words, one line each.
        stages: the tables of the recipe; None if they are not those of a recipe, after somebody's changes.
    """

    request: Mapping[str, Any]
    seconds: float | None
    told: Sequence[str]
    stages: Sequence[Mapping[str, Any]] | None

    def is_for(self, request: Mapping[str, Any]) -> bool:
        """Whether it is a finished plan for a request."""
        return self.seconds is not None and self.request == request

    def made(self) -> list[tuple[str, str, float]]:
        """Kind and name of what each stage makes, and the seconds that it may train."""
        return [
            (kind, stage["name"], 60 * stage.get("max-minutes", 0))
            for stage in self.stages or ()
            if (kind := find_command(stage["command"]).makes)
        ]

    def is_begun(self, work: WorkDirectory) -> bool:
        """Whether a stage has a result, besides the documents, which planning reads already."""
        if self.stages is None:
            return True
        return any(kind != DOCUMENTS and work.has(kind, name) for kind, name, _ in self.made())

    def seconds_left(self, work: WorkDirectory) -> float:
        """Of `seconds`, after the finished stages and what an interrupted one has trained.

        What an interrupted stage has done besides training is not known.
        """
        return max(0.0, (self.seconds or 0.0) - sum(_used(work, *one) for one in self.made()))


def _used(work: WorkDirectory, kind: str, name: str, trains: float) -> float:
    if found := work.find(kind, name):
        return trains or float(found.manifest["seconds"])
    if trains and name in work.unfinished(kind):
        return min(trains, _logged_seconds(beside(work.path / kind / name, "partial") / LOG))
    return 0.0


def _logged_seconds(log: Path) -> float:
    """The time of the last line of a training log; 0 if it has none."""
    try:
        return float(json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["seconds"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0


def read_plan(path: Path) -> PlanFile | None:
    """The plan in a file; None if `compress` did not write it.

    Raises:
        OSError: if the file cannot be read.
    """
    try:
        first, *rest = path.read_text(encoding="utf-8").split("\n")
        head = json.loads(first.removeprefix(_MARK)) if first.startswith(_MARK) else {}
        request, seconds = head["request"], head["seconds"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(request, dict) or not isinstance(seconds, int | float | None):
        return None
    told = [line.removeprefix("# ") for line in rest if line.startswith("# ")]
    return PlanFile(request, seconds, told, _stages("\n".join(rest)))


def _stages(text: str) -> Sequence[Mapping[str, Any]] | None:
    try:
        stages = tomllib.loads(text)["stage"]
    except (ValueError, KeyError):
        return None
    return stages if isinstance(stages, list) and all(map(_is_stage, stages)) else None


def _is_stage(stage: Any) -> bool:
    if not isinstance(stage, dict) or not isinstance(stage.get("name"), str):
        return False
    try:
        find_command(stage.get("command"))
    except UsageError:
        return False
    return isinstance(stage.get("max-minutes", 0), int | float)


def head_of(request: Mapping[str, Any], seconds: float | None) -> str:
    """The first line of a plan."""
    # JSON escapes all control characters but this one, and TOML allows none in comments.
    text = json.dumps({"request": request, "seconds": seconds}, sort_keys=True).replace("\x7f", "\\u007f")
    return f"{_MARK}{text}"


def begun_plan(name: str, request: Mapping[str, Any]) -> str:
    """What stands in place of a plan while it is made: it has no stages."""
    return f"{head_of(request, None)}\ntitle = {json.dumps(f'{name}: not planned yet')}\nstage = []\n"
