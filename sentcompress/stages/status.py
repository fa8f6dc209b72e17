"""What a work directory holds: which artifacts are fresh, stale or partial, and why."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sentcompress.artifacts import (
    KINDS,
    REQUEST,
    Artifact,
    WorkDirectory,
    file_digest,
    installed_libraries,
    is_being_written,
)
from sentcompress.errors import InputError
from sentcompress.progress import SILENT, Reporter

# Inputs that are no artifacts. Standard input and data sets of a hub cannot be looked at again.
OUTSIDE = ("file:", "model:", "stdin:", "hub:")
# What of an artifact's facts is worth a column, by kind.
TELLING = {
    "sentences": ("rows", "triplets"),
    "teacher-vectors": ("teacher", "rows", "dimension"),
    "projections": ("dimension", "explained_variance"),
    "students": ("method", "parameters", "dimension", "dev"),
    "evaluations": ("score",),
    "exports": ("dimension",),
}


@dataclass(frozen=True)
class Row:
    """One artifact. `state` is fresh, stale, partial or running; `why` explains all but the first."""

    kind: str
    name: str
    state: str
    why: str
    facts: dict[str, Any]
    bytes: int
    finished: str | None
    drift: dict[str, str]


@dataclass(frozen=True)
class Params:
    """`model_digest` tells whether a teacher's files are still the same; it reads the weights once."""

    check_models: bool = True


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> list[dict[str, Any]]:
    """The rows, in the order of the stages.

    Raises:
        InputError: if the work directory does not exist.
    """
    if not work.path.is_dir():
        raise InputError(f"there is no work directory {work.path}", "run: sentcompress augment FILE, or use --work")
    rows: list[Row] = []
    stale: set[str] = set()
    digests: dict[str, str | None] = {}
    for kind in KINDS:
        for name in work.names(kind):
            artifact = work.get(kind, name)
            why = _why_stale(artifact, work, stale, digests, params.check_models)
            if why:
                stale.add(artifact.reference)
            rows.append(_finished_row(artifact, why))
        rows += [_partial_row(work, kind, name) for name in work.unfinished(kind)]
    return [asdict(row) for row in rows]


def _why_stale(
    artifact: Artifact, work: WorkDirectory, stale: set[str], digests: dict[str, str | None], check_models: bool
) -> str:
    kind = str(artifact.manifest["kind"])
    made_by = artifact.manifest["version"]
    if made_by != KINDS[kind].version:
        return f"made by version {made_by} of {artifact.manifest['command']}, now {KINDS[kind].version}"
    for reference, digest in artifact.inputs.items():
        if reference in stale:
            return f"{reference} is stale"
        if reference.startswith("model:") and not check_models:
            continue
        if reference not in digests:
            digests[reference] = _digest_now(reference, work)
        now = digests[reference]
        if now is None and not reference.startswith(OUTSIDE):
            return f"{reference} is gone"
        if now is not None and now != digest:
            return f"{reference.removeprefix('file:')} has changed"
    return ""


def _digest_now(reference: str, work: WorkDirectory) -> str | None:
    """The digest that an input has now; None where it is gone or cannot be told without a network."""
    if reference.startswith("file:"):
        path = Path(reference.removeprefix("file:"))
        return file_digest(path) if path.is_file() else None
    if reference.startswith("model:"):
        from sentcompress.models.sources import EMBEDDED, resolve

        name = reference.removeprefix("model:")
        return resolve(name, trust_remote_code=True).digest if name == EMBEDDED or Path(name).is_dir() else None
    if reference.startswith(OUTSIDE):
        return None
    kind, name = reference.split("/", 1)
    if kind not in KINDS:
        return None
    found = work.find(kind, name)
    return found.digest if found else None


def _finished_row(artifact: Artifact, why: str) -> Row:
    kind = str(artifact.manifest["kind"])
    recorded = artifact.manifest.get("libraries", {})
    now = installed_libraries()
    drift = {name: f"{old} -> {now[name]}" for name, old in recorded.items() if name in now and now[name] != old}
    size = sum(entry["bytes"] for entry in artifact.manifest["files"].values())
    telling = {key: artifact.facts[key] for key in TELLING[kind] if key in artifact.facts}
    state = "stale" if why else "fresh"
    return Row(kind, artifact.name, state, why, telling, size, str(artifact.manifest["finished"]), drift)


def _partial_row(work: WorkDirectory, kind: str, name: str) -> Row:
    folder = work.path / kind / f".{name}.partial"
    running = is_being_written(work.path / kind / name)
    files = [path for path in folder.rglob("*") if path.is_file()]
    try:
        command = json.loads((folder / REQUEST).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError):
        command = KINDS[kind].command
    why = "is being written now" if running else f"interrupted; run {command} again to go on"
    return Row(kind, name, "running" if running else "partial", why, {}, sum(f.stat().st_size for f in files), None, {})
