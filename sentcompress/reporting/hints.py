"""The commands that would measure what was not."""

from __future__ import annotations

from sentcompress.reporting.evidence import Evidence

COMMANDS = {
    "sts": "eval-sts --sts FOLDER --model {model} --compare teacher",
    "retrieval": "eval-retrieval --pairs FILE --model {model} --compare teacher",
    "transfer": "eval-transfer --tasks FOLDER --model {model} --compare teacher",
    "fidelity": "eval-fidelity --text FILE --model {model}",
    "bench": "bench --model {model} --against teacher",
}
DEFAULT_WORK = "work"


def missing(evidence: Evidence, kind: str) -> list[str]:
    """A command for each student that has no evaluation of this kind."""
    seen = {model["reference"] for evaluation in evidence.of_kind(kind) for _, model in evaluation.roles()}
    work = "" if evidence.work == DEFAULT_WORK else f" --work {evidence.work}"
    lacking = [student for student in evidence.students if student.artifact.reference not in seen]
    return [f"sentcompress {COMMANDS[kind].format(model=student.name)}{work}" for student in lacking]
