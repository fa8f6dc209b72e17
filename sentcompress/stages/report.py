"""One table of a work directory: what a student keeps of its teacher, and what it saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sentcompress.artifacts import Artifact, WorkDirectory
from sentcompress.errors import MissingArtifactError
from sentcompress.progress import SILENT, Reporter

COMMAND = "report"


@dataclass(frozen=True)
class Params:
    """`student` is the one finished last by default."""

    student: str | None = None


@dataclass(frozen=True)
class Line:
    """One measured thing.

    Attributes:
        better: "kept" for a score (share of the other model's, in percent), "smaller" or "faster" for a ratio.
        source: the artifact that the numbers are from.
    """

    measure: str
    student: float
    teacher: float | None
    ratio: float | None
    better: str
    source: str


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> dict[str, Any]:
    """Gather what was measured of a student: `lines`, `paths` and the `teacher` that it stands beside.

    Raises:
        MissingArtifactError: without a student, or when nothing of it was measured.
    """
    student = work.get("students", params.student)
    found = [
        artifact for name in work.names("evaluations") if _is_about(artifact := work.get("evaluations", name), student)
    ]
    lines = [line for artifact in found for line in _lines(artifact)]
    if not lines:
        raise MissingArtifactError(
            f"nothing was measured of {student.reference} as it is now",
            f"run: sentcompress eval-sts --sts FOLDER --model {student.name} --compare teacher --work {work.path}",
        )
    others = {other["label"] for artifact in found if (other := _other(artifact.facts))}
    if any(line.teacher is None for line in lines):
        reporter.note("for a second column, run the evaluations with --compare teacher")
    return {
        "student": student.name,
        "compared_with": sorted(others),
        "lines": [asdict(line) for line in lines],
        "paths": _paths(work, student),
    }


def _is_about(artifact: Artifact, student: Artifact) -> bool:
    model = artifact.facts.get("model", {})
    return bool(model.get("reference") == student.reference and model.get("digest") == student.digest)


def _other(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return facts.get("compare") or facts.get("against")


def _lines(artifact: Artifact) -> Iterator[Line]:
    readers = {"sts": _sts_lines, "retrieval": _retrieval_lines, "bench": _bench_lines}
    facts = artifact.facts
    yield from readers[facts["evaluation"]](facts, artifact.reference)


def _sts_lines(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    for entry in facts["sets"]:
        ours, other = entry["model"], entry.get("compare")
        theirs = other and other["spearman_cosine"]
        yield Line(
            f"{entry['name']}, Spearman x 100", ours["spearman_cosine"], theirs, entry["share_kept"], "kept", source
        )


def _retrieval_lines(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    for entry in facts["indexes"]:
        ours, theirs, index = entry["model"], entry.get("compare", {}), entry["index"]
        score = theirs.get("mrr_at_10")
        yield Line(
            f"retrieval, MRR@10 x 100 ({index})", ours["mrr_at_10"], score, entry.get("share_kept"), "kept", source
        )
        yield _ratio(f"index, bytes ({index})", ours, theirs, "index_bytes", "smaller", source)
        time = "milliseconds_per_1000_queries"
        yield _ratio(f"search, ms per 1,000 queries ({index})", ours, theirs, time, "faster", source)


def _bench_lines(facts: Mapping[str, Any], source: str) -> Iterator[Line]:
    ours, theirs = facts["model"], facts.get("against", {})
    yield _ratio("parameters", ours, theirs, "parameters", "smaller", source)
    yield _ratio("weights, bytes", ours, theirs, "weight_bytes", "smaller", source)
    yield _ratio("vector, bytes (float32)", ours, theirs, "vector_bytes", "smaller", source)
    yield _ratio("latency of one sentence, ms (p50)", ours, theirs, "latency_p50_milliseconds", "faster", source)
    speed = "sentences_per_second"
    ratio = ours[speed] / theirs[speed] if theirs else None
    yield Line("encoding, sentences per second", ours[speed], theirs.get(speed), ratio, "faster", source)


def _ratio(
    measure: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], key: str, better: str, source: str
) -> Line:
    ratio = theirs[key] / ours[key] if theirs and ours[key] else None
    return Line(measure, ours[key], theirs.get(key), ratio, better, source)


def _paths(work: WorkDirectory, student: Artifact) -> dict[str, str]:
    """Where the student and what was made of it are."""
    paths = {"student": str(student.path / "model")}
    for name in work.names("exports"):
        export = work.get("exports", name)
        if export.inputs.get(student.reference) == student.digest:
            paths["export"] = str(export.path)
            paths |= {path.stem: str(path) for path in sorted(export.path.rglob("*.onnx"))}
    return paths
