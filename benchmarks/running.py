"""What the scripts of this folder share: running a command as a user would, naming the machine, keeping results."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def sentcompress(words: str, work: Path, jobs: int = 1) -> dict[str, Any]:
    """Run one command with --json over a work directory; its document.

    With `jobs` above 1 it gets that share of the cores; else OMP_NUM_THREADS stays as it is.
    """
    command = [sys.executable, "-m", "sentcompress", *shlex.split(words), "--work", str(work), "--json"]
    print(f"$ sentcompress {words} --work {work}", flush=True)
    share = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // jobs))} if jobs > 1 else {}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | share)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def facts(words: str, work: Path, jobs: int = 1) -> dict[str, Any]:
    """Run one command as `sentcompress` does; the figures of the artifact that it made."""
    found: dict[str, Any] = sentcompress(words, work, jobs)["facts"]
    return found


def machine() -> dict[str, Any]:
    """The processor, its cores, and Python's version."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return {"processor": processor, "cores": os.cpu_count(), "python": platform.python_version()}


def read_results(name: str, default: Mapping[str, Any] | None = None, folder: Path = RESULTS) -> dict[str, Any]:
    """What an earlier run wrote; without one, the default."""
    file = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else dict(default or {})
    return found


def write_results(name: str, document: Mapping[str, Any], page: str, folder: Path = RESULTS) -> None:
    """Write NAME.json, and the same for readers as NAME.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
