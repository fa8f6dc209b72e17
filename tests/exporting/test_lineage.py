"""The command that made an artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sentcompress.exporting.lineage import command_line
from sentcompress.store import Artifact, Request, WorkDirectory


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "work")


def make(
    work: WorkDirectory,
    reference: str,
    command: str,
    inputs: dict[str, str] | None = None,
    facts: dict[str, Any] | None = None,
    **parameters: Any,
) -> Artifact:
    kind, name = reference.split("/")
    with work.build(Request(kind, name, command, parameters, inputs or {}), force=True) as build:
        (build.path / "data").write_text(f"{reference} {parameters}")
        return build.finish(facts or {})


def test_commands_name_files_and_models_without_folders(work: WorkDirectory) -> None:
    files = {"file:/home/someone/sts/test.tsv": "1" * 64, "students/s": "5" * 64}
    sts = make(work, "evaluations/a", "eval-sts", files, model="students/s", compare="model:owner/t", dtype="float32")
    assert command_line(sts) == "sentcompress eval-sts --sts test.tsv --compare owner/t --model s"
    inputs = {"hub:mteb/sts13-sts:test": "1" * 40, "hub:mteb/sts17-crosslingual-sts:en-en:test": "2" * 40}
    hub = make(work, "evaluations/h", "eval-sts", inputs, model="students/s")
    assert command_line(hub) == (
        "sentcompress eval-sts --sts mteb/sts13-sts --sts mteb/sts17-crosslingual-sts:en-en --model s"
    )
    embed = make(work, "teacher-vectors/main", "teacher-embed", teacher="/models/big", revision=None)
    assert command_line(embed) == "sentcompress teacher-embed --teacher big"
    student = make(work, "students/s", "distill", method="hpd", student="teacher:3", lr=0.1)
    assert command_line(student) == "sentcompress distill --method hpd --student teacher:3"
