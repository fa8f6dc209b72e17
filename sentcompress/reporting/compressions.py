"""The finished compressions of a work directory: their plans, and the current results of their stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.compression.plan_file import PLANS, PlanFile, read_plan
from sentcompress.compression.verdict import Achieved, verdict_of
from sentcompress.errors import SentcompressError
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.score import COMPARE
from sentcompress.models.names import is_of_work
from sentcompress.store import Artifact, WorkDirectory, change_of

# Larger files were not written by `compress`.
LARGEST_PLAN = 2**20
Stage = Mapping[str, Any]


@dataclass(frozen=True)
class Compression:
    """A finished compression.

    Attributes:
        name: the name of all its results.
        stages: the tables of its plan.
        results: the artifact of each stage, in the same order; None where it is missing or outdated.
        achieved: the result in figures.
    """

    name: str
    stages: Sequence[Stage]
    results: Sequence[Artifact | None]
    achieved: Achieved

    def made_by(self, *commands: str) -> list[tuple[Stage, Artifact]]:
        """The stages of these commands that have a result, in the order of the plan."""
        pairs = zip(self.stages, self.results, strict=True)
        return [(stage, found) for stage, found in pairs if stage["command"] in commands and found]

    def last(self, command: str) -> Artifact | None:
        """The result of the last stage of this command."""
        return next((found for _, found in reversed(self.made_by(command))), None)

    @property
    def models(self) -> frozenset[str]:
        """References of all models that it made: candidates, students and the export."""
        return frozenset(found.reference for found in self.results if found and is_of_work(found.reference))

    @property
    def teacher(self) -> Mapping[str, Any]:
        """The recorded facts of the teacher: label, reference and more."""
        made = self.last("eval-search")
        assert made is not None
        teacher: Mapping[str, Any] = made.facts[COMPARE]
        return teacher

    @property
    def ends(self) -> frozenset[str]:
        """References of the final model: the export and the student of its name."""
        return frozenset((self.export, f"students/{self.name}"))

    @property
    def export(self) -> str:
        """The reference of the final model."""
        made = self.last("export")
        assert made is not None
        return made.reference


def compressions(work: WorkDirectory, evaluations: Sequence[Evaluation]) -> list[Compression]:
    """The finished compressions, in the order of their exports.

    Args:
        evaluations: evaluations of models in their current state; others are ignored.
    """
    current = {evaluation.artifact.reference: evaluation.artifact for evaluation in evaluations}
    found = [one for path in sorted((work.path / PLANS).glob("*.toml")) for one in _read(path, work, current)]
    places = [f"exports/{name}" for name in work.names("exports")]
    return sorted(found, key=lambda one: places.index(one.export))


def replaced_results(work: WorkDirectory, kinds: Sequence[str]) -> dict[str, str]:
    """Results of plans that `compress --force` replaced, which the new plans do not make: reference -> the reason.

    What was made under such a name since then is not one of them.
    """
    plans = {path.stem: plan for path in sorted((work.path / PLANS).glob("*.toml")) if (plan := _plan_of(path))}
    return {
        reference: f"it belongs to an earlier plan of {name}"
        for name, plan in plans.items()
        for reference in plan.replaced
        if (made := _made(work, reference, kinds)) and str(made.manifest["finished"]) < plan.since
    }


def _made(work: WorkDirectory, reference: str, kinds: Sequence[str]) -> Artifact | None:
    """The artifact of a reference, if it is of one of the kinds; its files may be damaged."""
    kind, _, name = reference.partition("/")
    return work.find(kind, name) if kind in kinds and work.has(kind, name) else None


def _plan_of(path: Path) -> PlanFile | None:
    """The plan in a file; None if it is not one."""
    try:
        return read_plan(path) if path.stat().st_size <= LARGEST_PLAN else None
    except OSError:
        return None


def _read(path: Path, work: WorkDirectory, current: Mapping[str, Artifact]) -> Iterator[Compression]:
    """The compression of a plan; nothing if the file is not one, or its results are not all there."""
    plan = _plan_of(path)
    if plan is None or plan.stages is None:
        return
    stages = plan.stages
    results = [_result(stage, work, current) for stage in stages]
    made = {stage["command"]: found for stage, found in zip(stages, results, strict=True) if found}
    if achieved := verdict_of(made):
        yield Compression(path.stem, stages, results, achieved)


def _result(stage: Stage, work: WorkDirectory, current: Mapping[str, Artifact]) -> Artifact | None:
    """The artifact of a stage; None if it is missing, damaged or of an earlier model."""
    try:
        kind = find_command(stage["command"]).makes
        if kind == "evaluations":
            return current.get(f"{kind}/{stage['name']}")
        found = work.find(kind, stage["name"]) if kind else None
    except SentcompressError:
        return None
    return found if found and not _outdated(work, found) else None


def _outdated(work: WorkDirectory, artifact: Artifact) -> bool:
    """Whether a model that went into an export or a quantizer was made again since."""
    inputs = {name: digest for name, digest in artifact.inputs.items() if name.startswith("students/")}
    wanted = artifact.reference.startswith(("exports/", "quantizers/"))
    return wanted and any(change_of(work, name, digest) for name, digest in inputs.items())
