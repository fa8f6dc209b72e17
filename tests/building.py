"""Small artifacts, finished and unfinished, for tests of the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from listening import Listener

from sentcompress.store import Artifact, Request, WorkDirectory

KIND = "teacher-vectors"


def asked(name: str = "main", data: int = 0, **parameters: Any) -> Request:
    """A request; `data` stands for the contents of its input."""
    return Request(KIND, name, "teacher-embed", parameters or {"seed": 0}, {"sentences/main": f"d{data + 1}"})


def make(
    work: WorkDirectory,
    name: str = "main",
    text: str = "one",
    *,
    files: tuple[str, ...] = ("a.txt", "model/b.txt"),
    force: bool = False,
    reporter: Listener | None = None,
    **parameters: Any,
) -> Artifact:
    with work.build(asked(name, **parameters), force=force, reporter=reporter or Listener()) as build:
        if build.fresh:
            return build.fresh
        for file in files:
            if not build.has(file):
                with build.write(file) as path:
                    path.write_text(text, encoding="utf-8")
        return build.finish({"text": text})


def interrupt(
    work: WorkDirectory, name: str = "main", files: tuple[str, ...] = ("a.txt",), text: str = "half", **parameters: Any
) -> Path:
    """A build that stops after some of its files; its partial folder."""
    try:
        with work.build(asked(name, **parameters)) as build:
            for file in files:
                with build.write(file) as path:
                    path.write_text(text, encoding="utf-8")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return build.path


def content(artifact: Artifact) -> set[str]:
    return {(artifact.path / name).read_text(encoding="utf-8") for name in artifact.manifest["files"]}


def in_a_child(work: Callable[[], object]) -> int:
    """The exit status of a forked process that does `work`: 0 when it got to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for readers that look at a lock."""
    for module in ("artifacts", "locking"):
        monkeypatch.setattr(f"sentcompress.store.{module}.PATIENCE_SECONDS", 0.0)
