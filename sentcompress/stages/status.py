"""What a work directory holds: which artifacts are fresh, stale, damaged or partial, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sentcompress.commands import version_of
from sentcompress.commands.status import Params
from sentcompress.errors import DamagedError, InputError
from sentcompress.models.sources import EMBEDDED, locate
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import (
    KINDS,
    Artifact,
    WorkDirectory,
    file_digest,
    installed_libraries,
    is_being_written,
    read_request,
)

# Inputs that are no artifacts. Standard input and data sets of a hub cannot be looked at again.
OUTSIDE = ("file:", "model:", "stdin:", "hub:")
# What of an artifact's facts is worth showing, by kind: the name to show and where it is.
TELLING: Mapping[str, Mapping[str, str]] = {
    "sentences": {"rows": "rows", "triplets": "triplets"},
    "teacher-vectors": {"teacher": "teacher", "rows": "rows", "dimension": "dimension"},
    "projections": {"dimension": "dimension", "explained_variance": "explained_variance"},
    "students": {"method": "method", "parameters": "parameters", "dimension": "dimension", "dev": "dev"},
    "evaluations": {"model": "model.label", "compared_with": "compare.label", "spearman": "mean.model"},
    "exports": {"model": "model", "dimension": "dimension"},
}


@dataclass(frozen=True)
class Row:
    """One artifact.

    Attributes:
        state: fresh, stale, damaged, unknown, partial or running; `why` explains all but the first. Unknown means that
            a file needed to decide is not readable.
        gone: files and model folders that it was made from and that are not there any more.
        drift: libraries that had another version then: name -> "then -> now".
        from_the_future: whether its date is in the future, so that it counts as the oldest of its kind.
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


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> list[dict[str, Any]]:
    """The rows, in the order of the stages.

    Raises:
        InputError: if the work directory does not exist or is a file.
    """
    if not work.path.exists():
        raise InputError(f"there is no work directory {work.path}", "run: sentcompress augment FILE, or use --work")
    freshness = Freshness(work, verify=params.verify)
    rows: list[Row] = []
    for kind in KINDS:
        rows += [_finished_row(artifact, freshness) for name in work.names(kind) if (artifact := work.find(kind, name))]
        rows += [Row(kind, name, "damaged", why) for name, why in work.damaged(kind).items()]
        rows += [_partial_row(work, kind, name) for name in work.unfinished(kind)]
    return [asdict(row) for row in rows]


class Freshness:
    """Tells what is wrong with an artifact; looks at every file, model and artifact once."""

    def __init__(self, work: WorkDirectory, check_models: bool = True, verify: bool = False) -> None:
        self._work = work
        self._check_models = check_models
        self._verify = verify
        self._digests: dict[str, str | None] = {}
        self._judged: dict[str, tuple[str, str]] = {}

    def state(self, artifact: Artifact) -> tuple[str, str]:
        """Its state, and why it is not fresh."""
        if artifact.reference not in self._judged:
            self._judged[artifact.reference] = ("fresh", "")  # an end for references that go in a circle
            try:
                self._judged[artifact.reference] = self._judge(artifact)
            except PermissionError as error:
                self._judged[artifact.reference] = ("unknown", f"no permission to read {error.filename}")
        return self._judged[artifact.reference]

    def _judge(self, artifact: Artifact) -> tuple[str, str]:
        if damage := artifact.damage(contents=self._verify):
            return "damaged", damage
        made_by, now = artifact.manifest["version"], version_of(str(artifact.manifest["command"]))
        if made_by != now:
            return "stale", f"made by version {made_by} of {artifact.manifest['command']}, now {now}"
        unreadable = ""
        for reference, digest in artifact.inputs.items():
            try:
                if fault := self._change_of_input(reference, digest):
                    return "stale", fault
            except PermissionError as error:
                unreadable = f"no permission to read {error.filename}"  # another input may still turn out to be stale
        # Only then what is stale itself: the change that is nearest explains most.
        for reference in artifact.inputs:
            found = None if reference.startswith(OUTSIDE) else self._work.find(*reference.split("/", 1))
            if found and (state := self.state(found)[0]) not in ("fresh", "unknown"):
                return "stale", f"{reference} is {state}"
        return ("unknown", unreadable) if unreadable else ("fresh", "")

    def _change_of_input(self, reference: str, digest: str) -> str:
        if reference.startswith(OUTSIDE):
            now = self._digest_outside(reference)
            return f"{reference.split(':', 1)[1]} has changed" if now not in (None, digest) else ""
        try:
            found = self._work.find(*reference.split("/", 1)) if "/" in reference else None
        except DamagedError:
            return f"{reference} is damaged"
        if found is None:
            return f"{reference} is gone"
        return f"{reference} has changed" if found.digest != digest else ""

    def _digest_outside(self, reference: str) -> str | None:
        """The digest that an input has now; None where that cannot be told (gone, on a hub, from a pipe)."""
        if reference not in self._digests:
            kind, name = reference.split(":", 1)
            digest = None
            if kind == "file" and Path(name).is_file():
                digest = file_digest(Path(name))
            elif kind == "model" and self._check_models and (name == EMBEDDED or Path(name).is_dir()):
                digest = _model_digest(name)
            self._digests[reference] = digest
        return self._digests[reference]


def _model_digest(name: str) -> str | None:
    try:
        return locate(name).digest
    except InputError:
        return None


def _finished_row(artifact: Artifact, freshness: Freshness) -> Row:
    state, why = freshness.state(artifact)
    kind = str(artifact.manifest["kind"])
    then, now = artifact.manifest["libraries"], installed_libraries()
    return Row(
        kind,
        artifact.name,
        state,
        why,
        facts={name: value for name, path in TELLING[kind].items() if (value := _at(artifact.facts, path)) is not None},
        bytes=sum(entry["bytes"] for entry in artifact.manifest["files"].values()),
        finished=str(artifact.manifest["finished"]),
        gone=[reference.split(":", 1)[1] for reference in artifact.inputs if _is_gone(reference)],
        drift={name: f"{old} -> {now[name]}" for name, old in then.items() if name in now and now[name] != old},
        from_the_future=artifact.from_the_future,
    )


def _at(facts: Mapping[str, Any], path: str) -> Any:
    """The value at `model.label` of nested facts, or None."""
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


def _partial_row(work: WorkDirectory, kind: str, name: str) -> Row:
    folder = work.path / kind / f".{name}.partial"
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except (FileNotFoundError, PermissionError):
            continue  # it is being written now, or belongs to another user
    if is_being_written(work.path / kind / name):
        return Row(kind, name, "running", "is being written now", bytes=size)
    asked = read_request(folder)
    command, fingerprint = asked.get("command"), asked.get("fingerprint")
    if not isinstance(command, str) or not isinstance(fingerprint, str):
        return Row(kind, name, "partial", f"interrupted; run {KINDS[kind].command} again to start over", bytes=size)
    if _finished_already(work, kind, name, fingerprint):
        why = f"{command} --force was interrupted; run it again with --force to resume, or without to discard it"
    else:
        why = f"interrupted; run {command} again to go on"
    return Row(kind, name, "partial", why, bytes=size)


def _finished_already(work: WorkDirectory, kind: str, name: str, fingerprint: str) -> bool:
    try:
        finished = work.find(kind, name)
    except DamagedError:
        return False
    return finished is not None and finished.fingerprint == fingerprint
