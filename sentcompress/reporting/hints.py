"""The commands that would measure what was not."""

from __future__ import annotations

import re
from pathlib import Path

from sentcompress.plain_text import shell_word
from sentcompress.reporting.evidence import Evidence

COMMANDS = {
    "sts": "eval-sts --sts FOLDER --model {model} --compare teacher",
    "retrieval": "eval-retrieval --pairs FILE --model {model} --compare teacher",
    "transfer": "eval-transfer --tasks FOLDER --model {model} --compare teacher",
    "fidelity": "eval-fidelity --text FILE --model {model}",
    "bench": "bench --model {model} --against teacher",
}
DEFAULT_WORK = "work"


def measuring(kind: str, model: str, work: Path | str | None) -> str:
    """The command for an evaluation of this kind; `work=None` stands for the default work directory."""
    place = "" if work is None else f" --work {shell_word(work)}"
    return f"sentcompress {COMMANDS[kind].format(model=shell_word(model))}{place}"


def missing(evidence: Evidence, kind: str) -> list[str]:
    """A command for each student, or other model that the report is about, without an evaluation of this kind."""
    seen = {model["reference"] for evaluation in evidence.of_kind(kind) for _, model in evaluation.roles()}
    work = None if evidence.work == DEFAULT_WORK else evidence.work
    about = [student.artifact.reference for student in evidence.students] + sorted(evidence.guests)
    lacking = [re.sub("^(students/|model:)", "", reference) for reference in about if reference not in seen]
    return [measuring(kind, name, work) for name in lacking]
