"""List the artifacts of a work directory: which are fresh, stale, damaged or partial, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sentcompress.commands import options_of
from sentcompress.commands.spelling import spelled, spelled_hint
from sentcompress.commands.status import Params
from sentcompress.errors import DamagedError, InputError
from sentcompress.evaluation.results import headline_of
from sentcompress.models.sources import digest_now
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.store import (
    KINDS,
    MANIFEST,
    Artifact,
    Freshness,
    WorkDirectory,
    installed_libraries,
    read_request,
)
from sentcompress.store.atomic import beside
from sentcompress.store.locking import State, holder_of, state_of
from sentcompress.store.lookup import PLAN, WHOLE
from sentcompress.store.merging import MERGED_FROM
from sentcompress.store.running import read_snapshot
from sentcompress.store.shards import Shards
from sentcompress.store.unfinished import read_failure

# The facts to show for each kind of artifact: display name -> path within the facts.
TELLING: Mapping[str, Mapping[str, str]] = {
    "documents": {"documents": "documents", "passages": "passages", "queries": "queries"},
    "sentences": {"rows": "rows", "triplets": "triplets"},
    "teacher-vectors": {
        "teacher": "teacher",
        "rows": "rows",
        "dimension": "dimension",
        "query_prompt": "prompts.query",
        "document_prompt": "prompts.document",
    },
    "projections": {"dimension": "dimension", "explained_variance": "explained_variance"},
    "students": {"method": "method", "parameters": "parameters", "dimension": "dimension", "dev": "dev"},
    "quantizers": {"model": "model.label", "format": "format", "bytes": "bytes", "fidelity": "fidelity"},
    "evaluations": {
        "model": "model.label",
        "query_prompt": "model.prompts.query",
        "document_prompt": "model.prompts.document",
        "compared_with": "compare.label",
        "its_query_prompt": "compare.prompts.query",
        "its_document_prompt": "compare.prompts.document",
    },
    "indexes": {
        "model": "model.label",
        "documents": "documents",
        "index": "plan.kind",
        "document_prompt": "prompt",
    },
    "exports": {"model": "model", "dimension": "dimension", "weight_format": "weight_format"},
}


@dataclass(frozen=True)
class Row:
    """One artifact.

    Attributes:
        state: fresh, stale, damaged, unknown, partial, failed or running; `why` explains all but fresh. Unknown means
            that a file needed to decide is not readable.
        gone: input files and model folders that no longer exist.
        drift: libraries whose version has changed: name -> "then -> now".
        progress: the last recorded progress of an unfinished build: `line`, `age_seconds` and the fields of
            `store.running.Snapshot`; None if none was recorded.
        shards: for an artifact in shards, the shards that are being written: `shard`, `why`, and `progress` as above.
        from_the_future: whether its date is in the future; it then counts as the oldest of its kind.
    """

    kind: str
    name: str
    state: str
    why: str
    facts: dict[str, Any] = field(default_factory=dict)
    bytes: int = 0
    finished: str | None = None
    gone: list[str] = field(default_factory=list)
    drift: dict[str, str] = field(default_factory=dict)
    from_the_future: bool = False
    progress: dict[str, Any] | None = None
    shards: list[dict[str, Any]] = field(default_factory=list)


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> list[dict[str, Any]]:
    """The rows of all artifacts, in the order of the stages.

    Raises:
        InputError: if the work directory does not exist or is a file.
    """
    if not work.path.exists():
        raise InputError(f"there is no work directory {work.path}", f"run: {WHOLE.usage}, or give another `work`")
    freshness = Freshness(work, partial(digest_now, work), params.verify)
    rows: list[Row] = []
    for kind in KINDS:
        rows += [_finished_row(artifact, freshness) for name in work.names(kind) if (artifact := work.find(kind, name))]
        rows += [Row(kind, name, "damaged", why) for name, why in work.damaged(kind).items()]
        rows += [_partial_row(work, kind, name) for name in work.unfinished(kind)]
        rows += [_row_of_shards(work, kind, name) for name in work.sharded(kind)]
        rows += [_row_of_plan(work, kind, name) for name in work.unplanned(kind)]
    return [asdict(row) for row in rows]


def _finished_row(artifact: Artifact, freshness: Freshness) -> Row:
    state, why = freshness.state(artifact)
    kind = str(artifact.manifest["kind"])
    then, now = artifact.manifest["libraries"], installed_libraries()
    return Row(
        kind,
        artifact.name,
        state,
        why,
        facts=_facts(artifact),
        bytes=sum(entry["bytes"] for entry in artifact.manifest["files"].values()),
        finished=str(artifact.manifest["finished"]),
        gone=[reference.split(":", 1)[1] for reference in artifact.inputs if _is_gone(reference)],
        drift={name: f"{old} -> {now[name]}" for name, old in then.items() if name in now and now[name] != old},
        from_the_future=artifact.from_the_future,
    )


def _facts(artifact: Artifact) -> dict[str, Any]:
    """The facts to show for an artifact; for an evaluation, with its main score."""
    kind = str(artifact.manifest["kind"])
    found = {name: value for name, path in TELLING[kind].items() if (value := _at(artifact.facts, path)) is not None}
    # A role without a prompt has an empty one.
    found = {name: value for name, value in found.items() if value != ""}
    return found | (headline_of(artifact) if kind == "evaluations" else {})


def _at(facts: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as `model.label` in nested facts, or None."""
    value: Any = facts
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_gone(reference: str) -> bool:
    kind, _, name = reference.partition(":")
    try:
        Path(name).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return kind in ("file", "model") and Path(name).is_absolute()
    except OSError:  # not accessible; the state says why
        pass
    return False


def _row_of_shards(work: WorkDirectory, kind: str, name: str) -> Row:
    shards = Shards.of(work, kind, name)
    size, found = _size(shards.folder), shards.progress()
    if found is None:
        return Row(kind, name, "damaged", f"{shards.folder / PLAN / MANIFEST} cannot be read", bytes=size)
    why = f"{found.done} of {found.count} shards are finished"
    if running := len(found.running):
        why += f", {counted(running, 'is', 'are')} being written now"
    elif found.done == found.count:
        why += f"; run merge {kind}/{name}"
    facts = {"shards": found.count, "finished": found.done}
    parts = []
    for shard in found.running:
        target = shards.folder / shard.name
        progress = _progress(beside(target, "partial"))
        parts.append({"shard": str(shard), "why": _written_by(target) or "has just ended", "progress": progress})
    return Row(kind, name, "running" if running else "partial", why, facts, size, shards=parts)


def _row_of_plan(work: WorkDirectory, kind: str, name: str) -> Row:
    """An artifact whose first shard divides the work among all, which can take long: `augment` reads its input."""
    folder = Shards.of(work, kind, name).folder
    size, progress = _size(folder), _progress(beside(folder / PLAN, "partial"))
    if who := _written_by(folder / PLAN):
        return Row(kind, name, "running", f"the plan of its shards {who}", bytes=size, progress=progress)
    why = "the plan of its shards is unfinished; run any of them again"
    return Row(kind, name, "partial", why, bytes=size, progress=progress)


def _written_by(target: Path) -> str | None:
    """Which process writes the artifact at `target`, in words; None if none does."""
    lock = beside(target, "lock")
    if (state := state_of(lock)) is State.FREE:
        return None
    who = holder_of(lock)
    why = f"is being written by {who}" if who else "is being written now"
    return why + ("; it is unknown whether that process is still running" if state is State.UNSURE else "")


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except (FileNotFoundError, PermissionError):
            continue  # being written, or owned by another user
    return size


def _partial_row(work: WorkDirectory, kind: str, name: str) -> Row:
    folder = work.path / kind / f".{name}.partial"
    size = _size(folder)
    progress = _progress(folder)
    if who := _written_by(work.path / kind / name):
        return Row(kind, name, "running", who, bytes=size, progress=progress)
    asked = read_request(folder)
    command, fingerprint = asked.get("command"), asked.get("fingerprint")
    if failure := read_failure(folder):
        params = options_of(str(command))
        told = [spelled(failure.message, params), spelled_hint(failure.alternatives, params)]
        return Row(kind, name, "failed", "; ".join(filter(None, told)), bytes=size)
    if (folder / MERGED_FROM).is_file():
        why = f"the merge of its shards was interrupted; run merge {kind}/{name} again to resume"
        return Row(kind, name, "partial", why, bytes=size, progress=progress)
    if not isinstance(command, str) or not isinstance(fingerprint, str):
        return Row(kind, name, "partial", f"interrupted; run {KINDS[kind].command} again to start over", bytes=size)
    if _finished_already(work, kind, name, fingerprint):
        why = f"{command} --force was interrupted; run it again with --force to resume, or without to discard it"
    else:
        why = f"interrupted in {command}; run the same command again to resume"
    return Row(kind, name, "partial", why, bytes=size, progress=progress)


def _progress(partial: Path) -> dict[str, Any] | None:
    """The last recorded progress of an unfinished build, whose process may have been killed since."""
    found = read_snapshot(partial)
    return {"line": str(found), "age_seconds": round(found.age), **found.as_dict()} if found else None


def _finished_already(work: WorkDirectory, kind: str, name: str, fingerprint: str) -> bool:
    try:
        finished = work.find(kind, name)
    except DamagedError:
        return False
    return finished is not None and finished.fingerprint == fingerprint
