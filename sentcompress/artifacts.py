"""The work directory: named results of stages, built atomically, resumed, and checked for freshness.

    WORK/<kind>/<name>/            data files, request.json (written first), manifest.json (written last)
    WORK/<kind>/.<name>.partial/   the same while it is being built
    WORK/<kind>/.<name>.lock       held by the process that builds it

Two hashes. The *fingerprint* is what was asked for: command, stage version, parameters, digests of the
inputs. The *digest* is what came out: SHA-256 over the data files. An artifact is fresh when its fingerprint
is the one that would be asked for now; what comes downstream is tied to digests.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from sentcompress.errors import BusyError, InputError, MissingArtifactError, did_you_mean
from sentcompress.progress import SILENT, Reporter

REQUEST = "request.json"
MANIFEST = "manifest.json"
# Holds timings, which differ between two runs that are otherwise equal; it is no part of the digest.
LOG = "log.jsonl"


@dataclass(frozen=True)
class Kind:
    """One kind of artifact: the command that makes it, and the version of what that command does.

    Raise the version when a stage changes what it computes; artifacts of older versions turn stale.
    """

    command: str
    version: int = 1


KINDS: Mapping[str, Kind] = {
    "sentences": Kind("augment"),
    "teacher-vectors": Kind("teacher-embed"),
    "projections": Kind("fit-pca"),
    "students": Kind("distill"),
    "evaluations": Kind("eval-sts"),
    "exports": Kind("export"),
}

LIBRARIES = ("torch", "transformers", "sentence-transformers", "scikit-learn", "faiss-cpu", "numpy", "onnxruntime")


@dataclass(frozen=True)
class Request:
    """What a stage was asked to make.

    `inputs` maps a reference to a digest. A reference is `<kind>/<name>` of this work directory,
    `file:<absolute path>`, or `model:<name>`.
    """

    kind: str
    name: str
    command: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return KINDS[self.kind].version

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "command": self.command,
            "version": self.version,
            "parameters": dict(self.parameters),
            "inputs": dict(self.inputs),
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the request without its name: the same work under two names is the same work."""
        asked = {key: value for key, value in self.as_dict().items() if key != "name"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Artifact:
    """A finished result: a folder and what its manifest says."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def reference(self) -> str:
        return f"{self.manifest['kind']}/{self.manifest['name']}"

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def digest(self) -> str:
        return str(self.manifest["digest"])

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.manifest["parameters"])

    @property
    def inputs(self) -> dict[str, str]:
        return dict(self.manifest["inputs"])

    @property
    def facts(self) -> dict[str, Any]:
        """What the stage found out and wrote down: rows, dimensions, scores."""
        return dict(self.manifest["facts"])

    def input_of_kind(self, kind: str) -> str | None:
        """The name of the artifact of `kind` that this one was made from."""
        names = [reference.split("/", 1)[1] for reference in self.inputs if reference.startswith(f"{kind}/")]
        return names[0] if names else None


class Build:
    """An artifact in the making; see `WorkDirectory.build`."""

    def __init__(self, request: Request, target: Path, partial: Path, fresh: Artifact | None, resumed: bool) -> None:
        self.request = request
        self.target = target
        self.path = partial
        self.fresh = fresh
        self.resumed = resumed
        self._started = time.monotonic()

    def has(self, name: str) -> bool:
        """Whether a file of this name was completed, by this run or by the one that is resumed."""
        return (self.path / name).exists()

    @contextmanager
    def write(self, name: str) -> Iterator[Path]:
        """A path to write to; the file gets its name only when the block ends without an error."""
        final = self.path / name
        final.parent.mkdir(parents=True, exist_ok=True)
        unfinished = final.with_name(f".{final.name}.tmp")
        yield unfinished
        _fsync(unfinished)
        unfinished.replace(final)
        _fsync(final.parent)

    def remove(self, name: str) -> None:
        """Drop a file or folder that only the building needed (a token cache, checkpoints)."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Write the manifest and put the artifact in its place, replacing an older one."""
        for leftover in self.path.rglob(".*.tmp"):
            leftover.unlink()
        files: dict[str, dict[str, Any]] = {
            str(path.relative_to(self.path)): {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and path.name not in (MANIFEST, REQUEST)
        }
        manifest = {
            **self.request.as_dict(),
            "fingerprint": self.request.fingerprint,
            "digest": _combined({name: entry["sha256"] for name, entry in files.items() if name != LOG}),
            "files": files,
            "facts": dict(facts),
            "libraries": installed_libraries(),
            "seconds": round(time.monotonic() - self._started, 3),
            "finished": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        for folder in {path.parent for path in self.path.rglob("*")}:
            _fsync(folder)
        with self.write(MANIFEST) as path:
            path.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _swap(self.path, self.target)
        return _read(self.target)


class WorkDirectory:
    """The folder that holds all artifacts of one compression project."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def _target(self, kind: str, name: str) -> Path:
        return self.path / kind / name

    def find(self, kind: str, name: str) -> Artifact | None:
        """The finished artifact of that name, or None. A swap that was interrupted is finished first."""
        target = self._target(kind, name)
        if not (target / MANIFEST).exists() and _interrupted(target):
            with _locked(target):
                _recover(target)
        return _read(target) if (target / MANIFEST).exists() else None

    def names(self, kind: str) -> list[str]:
        """Names of the finished artifacts of a kind, the newest last."""
        folder = self.path / kind
        if not folder.is_dir():
            return []
        candidates = {p.name if not p.name.startswith(".") else p.name[1:].rsplit(".", 1)[0] for p in folder.iterdir()}
        found = [artifact for name in candidates if (artifact := self.find(kind, name))]
        return [a.name for a in sorted(found, key=lambda a: str(a.manifest["finished"]))]

    def unfinished(self, kind: str) -> list[str]:
        """Names that have a partial build, running or interrupted."""
        folder = self.path / kind
        return sorted(p.name[1:-8] for p in folder.glob(".*.partial")) if folder.is_dir() else []

    def get(self, kind: str, name: str | None = None) -> Artifact:
        """The artifact of that name; without a name, the one finished last.

        Raises:
            MissingArtifactError: if there is none; its hint is the command that makes one.
        """
        names = self.names(kind)
        command = f"sentcompress {KINDS[kind].command} --work {self.path}"
        what = kind.replace("-", " ")
        if name is None:
            if not names:
                raise MissingArtifactError(f"no {what} in {self.path}", f"run: {command}")
            name = names[-1]
        artifact = self.find(kind, name)
        if artifact is None:
            hint = did_you_mean(name, names) if names else f"run: {command}"
            raise MissingArtifactError(f"no {what} named {name!r} in {self.path}", hint)
        return artifact

    @contextmanager
    def build(self, request: Request, *, force: bool = False, reporter: Reporter = SILENT) -> Iterator[Build]:
        """Build the artifact that `request` asks for, alone, and going on where a killed run stopped.

        `build.fresh` is the finished artifact when the same request was carried out before (and `force` is
        not given): there is nothing to do then.

        Raises:
            BusyError: if another process builds the same artifact.
        """
        target = self._target(request.kind, request.name)
        check_name(request.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            _recover(target)
            current = _read(target) if (target / MANIFEST).exists() else None
            if current and current.fingerprint == request.fingerprint and not force:
                reporter.note(f"{request.command}: {current.reference} is fresh, skipped (--force to redo)")
                yield Build(request, target, target, current, resumed=False)
                return
            partial, resumed = _open_partial(request, target, force, reporter)
            yield Build(request, target, partial, None, resumed)


def check_name(name: str) -> None:
    """Raise InputError for a name that cannot be a folder's."""
    if not name or name.startswith(".") or any(c in name for c in "/\\\0") or len(name) > 150:
        raise InputError(f"{name!r} cannot be the name of an artifact", "use letters, digits, dots and dashes")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_digest(paths: Mapping[str, Path]) -> str:
    """One SHA-256 over several named files."""
    return _combined({name: file_digest(path) for name, path in paths.items()})


def installed_libraries() -> dict[str, str]:
    """Versions of the libraries that have a say in results, as far as they are installed."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def is_being_written(target: Path) -> bool:
    """Whether a living process holds the lock of the artifact at `target`."""
    path = _beside(target, "lock")
    if not path.exists():
        return False
    with path.open("r", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _combined(digests: Mapping[str, str]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _read(target: Path) -> Artifact:
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(
            f"{target / MANIFEST} is damaged ({error})", f"delete {target} and run its stage again"
        ) from None
    return Artifact(target, manifest)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _open_partial(request: Request, target: Path, force: bool, reporter: Reporter) -> tuple[Path, bool]:
    partial = _beside(target, "partial")
    asked = partial / REQUEST
    resumed = False
    if partial.exists():
        resumed = not force and asked.exists() and _fingerprint_of(asked) == request.fingerprint
        if resumed:
            reporter.note(f"{request.command}: going on with the unfinished {request.kind}/{request.name}")
        else:
            why = "--force" if force else "it was asked for other parameters or inputs"
            reporter.note(f"{request.command}: an unfinished {request.kind}/{request.name} is dropped ({why})")
            shutil.rmtree(partial)
    if not resumed:
        partial.mkdir()
        unfinished = partial / f".{REQUEST}.tmp"
        unfinished.write_text(json.dumps({**request.as_dict(), "fingerprint": request.fingerprint}, indent=1))
        _fsync(unfinished)
        unfinished.replace(asked)
        _fsync(partial)
    return partial, resumed


def _fingerprint_of(asked: Path) -> str | None:
    try:
        return str(json.loads(asked.read_text(encoding="utf-8")).get("fingerprint"))
    except (ValueError, UnicodeDecodeError):
        return None


def _swap(partial: Path, target: Path) -> None:
    old = _beside(target, "old")
    if old.exists():
        shutil.rmtree(old)
    if target.exists():
        target.rename(old)
    partial.rename(target)
    _fsync(target.parent)
    if old.exists():
        shutil.rmtree(old)


def _interrupted(target: Path) -> bool:
    return (_beside(target, "partial") / MANIFEST).exists() or _beside(target, "old").exists()


def _recover(target: Path) -> None:
    """Finish, or take back, a swap that a killed process left half done. The caller holds the lock."""
    partial, old = _beside(target, "partial"), _beside(target, "old")
    if (partial / MANIFEST).exists():
        _swap(partial, target)
    elif old.exists():
        if target.exists():
            shutil.rmtree(old)
        else:
            old.rename(target)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the artifact's lock. The kernel frees a flock when its process dies, however it dies."""
    path = _beside(target, "lock")
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(target, stream) from None
        stream.seek(0)
        stream.truncate()
        json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat()}, stream)
        stream.flush()
        yield


def _busy(target: Path, stream: TextIO) -> BusyError:
    stream.seek(0)
    try:
        holder = json.loads(stream.read())
        who = f"process {holder['pid']} on {holder['host']}, since {holder['since'][:19]} UTC"
    except (ValueError, KeyError):
        who = "another process"
    return BusyError(f"{target} is being written by {who}", "wait for it, or choose another --name or --work")


def _fsync(path: Path) -> None:
    if path.is_dir():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    else:
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
