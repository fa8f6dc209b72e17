"""Manifests of finished artifacts, and digests of their files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from sentcompress.commands.spelling import work_words
from sentcompress.errors import DamagedError, InputError
from sentcompress.json_documents import finite, parse_json, to_json
from sentcompress.plain_text import shell_line
from sentcompress.store.atomic import MANIFEST, SCAFFOLD
from sentcompress.store.request import KINDS, REQUEST

# Contains timings, which differ between identical runs, so it is not part of the digest.
LOG = "log.jsonl"


# The required fields of a manifest and their types.
FIELDS: Mapping[str, type] = {
    "kind": str,
    "name": str,
    "command": str,
    "version": int,
    "parameters": dict,
    "inputs": dict,
    "fingerprint": str,
    "digest": str,
    "files": dict,
    "facts": dict,
    "line": list,
    "libraries": dict,
    "finished": str,
    "seal": str,
}
# Bytes of a file name: the limit of common file systems.
LONGEST_NAME = 255
# How far the clocks of two machines may differ before a date counts as wrong.
CLOCK_TOLERANCE = timedelta(hours=1)
LIBRARIES = ("torch", "transformers", "sentence-transformers", "scikit-learn", "faiss-cpu", "numpy", "onnxruntime")


@dataclass(frozen=True)
class Artifact:
    """A finished artifact: its folder and its manifest."""

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
        """What the command recorded: row counts, dimensions, scores."""
        return dict(self.manifest["facts"])

    def input_of_kind(self, kind: str) -> str | None:
        """The name of the artifact of `kind` that this one was made from."""
        names = [reference.split("/", 1)[1] for reference in self.inputs if reference.startswith(f"{kind}/")]
        return names[0] if names else None

    def command_line(self) -> str:
        """The command that made it, to be copied into a shell. Run again, it finds the artifact up to date."""
        line = self.manifest["line"] or [self.manifest["command"]]
        return shell_line(["sentcompress", *line, *work_words(self.path.parents[1])])

    @property
    def finished(self) -> datetime:
        """When it was finished, by the clock of the machine that made it."""
        return datetime.fromisoformat(self.manifest["finished"])

    @property
    def from_the_future(self) -> bool:
        """Whether its date is in the future, because a clock was wrong."""
        return self.finished > datetime.now(UTC) + CLOCK_TOLERANCE

    @property
    def age(self) -> tuple[bool, datetime]:
        """Sort key: the newest is last. A date in the future is wrong, and counts as the oldest."""
        return not self.from_the_future, self.finished

    def damage(self, *, contents: bool = False) -> str | None:
        """What is wrong with its files; None if they are unchanged.

        Args:
            contents: also compare the SHA-256 of every file. By default only sizes are compared.
        """
        for name, entry in self.manifest["files"].items():
            path = self.path / name
            try:
                size = path.stat().st_size if path.is_file() else None
                if size != entry["bytes"]:
                    size = _size_now(path)
                if size is None:
                    return f"{name} is missing"
                if size != entry["bytes"]:
                    return f"{name} has {size:,} bytes, expected {entry['bytes']:,}"
                if contents and file_digest(path) != entry["sha256"]:
                    return f"{name} was changed: its SHA-256 differs"
            except PermissionError:
                return f"no permission to read {path}"
        return self._added_file() if contents else None

    def _added_file(self) -> str | None:
        """A file that the manifest does not list; in a model's folder it could change how the model behaves."""
        listed = {*self.manifest["files"], MANIFEST, REQUEST}
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_file() and name not in listed and path.relative_to(self.path).parts[0] != SCAFFOLD:
                return f"{name} was added later"
        return None

    def require_contents(self) -> None:
        """Compare the SHA-256 of every file with the manifest's.

        Raises:
            DamagedError: if one differs.
        """
        if damage := self.damage(contents=True):
            raise damaged(self, damage)


def _size_now(path: Path) -> int | None:
    """Size of a file, None if it is missing. It is opened for this: NFS remembers sizes and names for a while."""
    try:
        os.scandir(path.parent).close()
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None


def damaged(artifact: Artifact, what: str) -> DamagedError:
    """The error for an artifact with damaged files."""
    return DamagedError(
        f"{artifact.reference} is damaged: {what}",
        f"run: {artifact.command_line()} --force",
    )


def read_artifact(folder: Path, target: Path) -> Artifact:
    """Read the artifact in `folder`. Kind and name come from `target`, so a renamed or copied folder has a new name.

    Raises:
        DamagedError: if its manifest cannot be read or was changed.
        FileNotFoundError: if there is no manifest.
    """
    path = folder / MANIFEST
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("it is not a regular file")
        manifest = parse_json(path.read_bytes(), "it")
    except InputError as error:
        raise _damaged_manifest(path, target, error.message) from None
    except PermissionError:
        raise DamagedError(f"no permission to read {path}", "ask its owner for read permission") from None
    if fault := _fault_of(manifest):
        raise _damaged_manifest(path, target, fault)
    return Artifact(folder, {**manifest, "kind": target.parent.name, "name": target.name})


def _damaged_manifest(path: Path, target: Path, what: str) -> DamagedError:
    return DamagedError(f"{path} is damaged ({what})", f"delete {target} and run its command again")


def _fault_of(manifest: Any) -> str | None:
    """What is wrong with a parsed manifest, or None."""
    if not isinstance(manifest, dict):
        return "it is not a JSON object"
    for name, kind in FIELDS.items():
        if not isinstance(manifest.get(name), kind):
            return f"{name} is {'missing' if name not in manifest else 'of the wrong type'}"
    if manifest["seal"] != seal(manifest):
        return "it was changed after it was written"
    for name, entry in manifest["files"].items():
        if not _is_file_entry(name, entry):
            return f"its entry for the file {name!r} is invalid"
    try:
        json.dumps(manifest, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "it contains a lone surrogate"
    for reference in manifest["inputs"]:
        if ":" not in reference.partition("/")[0] and reference.partition("/")[0] not in KINDS:
            return f"its input {reference!r} is of an unknown kind"
        if "\0" in reference or any(len(part.encode()) > LONGEST_NAME for part in reference.split("/")):
            return "the name of an input is too long or contains NUL"
    texts = (*manifest["inputs"].values(), *manifest["libraries"].values(), *manifest["line"])
    if not all(isinstance(text, str) for text in texts):
        return "an input, a library or a word of the command is of the wrong type"
    try:
        dated = datetime.fromisoformat(manifest["finished"])
    except ValueError:
        return f"finished is {manifest['finished']!r}, not a date"
    return None if dated.tzinfo else "finished has no time zone"


def _is_file_entry(name: str, entry: Any) -> bool:
    place = PurePosixPath(name)
    inside = not place.is_absolute() and ".." not in place.parts and "\0" not in name
    if not inside or any(len(part.encode()) > LONGEST_NAME for part in place.parts) or not isinstance(entry, dict):
        return False
    size = entry.get("bytes")
    return type(size) is int and 0 <= size < 2**63 and isinstance(entry.get("sha256"), str)


def seal(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest without its seal, to detect flipped bits and edits."""
    said = {key: value for key, value in manifest.items() if key != "seal"}
    return hashlib.sha256(to_json(said, indent=None).encode()).hexdigest()


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its seal; NaN and infinity become null."""
    said = finite(manifest)
    return {**said, "seal": seal(said)}


def file_digest(path: Path) -> str:
    """SHA-256 of a file, as 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_inputs(paths: Iterable[Path]) -> dict[str, str]:
    """Files as inputs of a request: digest by reference, `file:<absolute path>`. Each file is read once."""
    files = {path.resolve(): path for path in paths}
    return {f"file:{place}": file_digest(path) for place, path in files.items()}


def tree_digest(paths: Mapping[str, Path]) -> str:
    """SHA-256 over several named files."""
    return combined_digest({name: file_digest(path) for name, path in paths.items()})


@cache
def installed_libraries() -> Mapping[str, str]:
    """Versions of the installed libraries that can affect results; those that this process began with."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def combined_digest(digests: Mapping[str, str]) -> str:
    """One SHA-256 over named digests."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
